"""docs/security.md names every test of an attack, and only tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs/security.md").read_text()
NAMED = re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", PAGE)
"""Files below `tests/`, each with the name of a test or with none."""
FOLDERS = tuple(f"{name}/" for name in re.findall(r"`(attack/\w+)`", PAGE))
"""Folders all of whose tests are one attack."""


def test_the_page_names_every_attack() -> None:
    """Whoever adds a file of attacks adds a line that says what it promises."""
    files = {str(path.relative_to(TESTS)) for path in (TESTS / "attack").rglob("test_*.py")}
    unnamed = files - {path for path, _ in NAMED}
    assert [path for path in sorted(unnamed) if not path.startswith(FOLDERS)] == []


def test_every_named_test_exists() -> None:
    """A test that is renamed or removed is renamed or removed on the page, too."""
    assert len(NAMED) >= 5
    assert all((TESTS / folder).is_dir() for folder in FOLDERS)
    for path, name in NAMED:
        source = (TESTS / path).read_text()
        assert not name or f"def {name}(" in source, f"{path}::{name}"


def test_every_attack_has_five_cells() -> None:
    """A row says what was tried and promised, what fell, and the test; nothing fell is a word."""
    section = PAGE.partition("\n## Attacks\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    assert rows
    for row in rows:
        cells = re.split(r"(?<!\\)\|", row)
        assert len(cells) == 7, row
        assert all(cell.strip() for cell in cells[1:5]), row
