"""A command that stands deeper than the one above it is a part of that one to YAML."""

from __future__ import annotations

import pytest

from pairun.errors import Source
from pairun.job.checks.surprises import folded_warnings
from pairun.job.jsyaml import JS
from pairun.playbook.document.reading import read_text


def places_of(text: str) -> list[tuple[int, int]]:
    """The lines and columns of the warnings about a list of commands."""
    commands = read_text(Source("job.yaml", "job", text), JS).elements()
    warnings = list(folded_warnings(commands))
    assert all((p.id, p.severity) == ("PR932", "warning") for p in warnings)
    return [(p.place.line, p.place.column) for p in warnings if p.place]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("- ls\n  - pwd\n", [(2, 3)]),
        ("- ls\n   - pwd\n   - date\n- a\n", [(2, 4), (3, 4)]),
        ("- ls -l\n  --all\n  - pwd\n", [(3, 3)]),
        ("- a\n- ls\r\n  - pwd\r\n", [(3, 3)]),
    ],
)
def test_a_line_that_looks_like_a_command(text: str, places: list[tuple[int, int]]) -> None:
    """The place is that of the dash."""
    assert places_of(text) == places


@pytest.mark.parametrize(
    "text",
    [
        "- ls\n- pwd\n",
        "- train\n  -lr 1\n  --epochs 2\n",
        "- |\n  cat <<E\n  - a\n  E\n",
        "- >\n  ls\n  - pwd\n",
        '- "ls\n  - pwd"\n',
        "- a - b\n- c\n",
        "[a, b - c]\n",
    ],
)
def test_a_text_that_means_what_it_shows(text: str) -> None:
    """Options on lines of their own, blocks and quoted texts have no warning."""
    assert places_of(text) == []
