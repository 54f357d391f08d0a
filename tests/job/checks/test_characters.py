# ruff: noqa: RUF001
"""Characters that only look like ASCII are named where they do harm, and nowhere else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.errors import Problem, Problems, Source
from pairun.formats.jsyaml import JS
from pairun.job.checks.characters import check_characters
from pairun.playbook.document.reading import read_text

NBSP, ZERO_WIDTH, OVERRIDE = "\u00a0", "\u200b", "\u202e"


def _warnings(text: str) -> list[Problem]:
    problems = Problems()
    check_characters(read_text(Source("job.yaml", "job", text), JS), problems)
    assert all(p.id == "PR928" and p.severity == "warning" for p in problems)
    return list(problems)


WRONG = [
    ("commands: ['python -c “print(1)”']", 1, '"'),
    ("commands: [echo ‘a’]", 1, "'"),
    ("commands: [train –epochs 3]", 1, "-"),
    ("commands: [train —epochs 3]", 1, "-"),
    ("commands: [train -–epochs 3]", 1, "-"),
    (f"commands: ['train{NBSP}--lr 1']", 1, "a space"),
    (f"commands: ['train{ZERO_WIDTH} a']", 1, None),
    (f"commands: ['# {OVERRIDE} a']", 1, None),
    ("preCommands: [pip install “a”]", 1, '"'),
    ("pairun: {runtime: [{append: x, cmd: {script: “a”}}]}", 1, '"'),
    ("uri: docker.io/a–b:1", 1, "-"),
    (f"uri: 'ubuntu:22.04{ZERO_WIDTH}'", 1, None),
    (f"uri: ['https://a/b{NBSP}']", 1, "a space"),
    ("repo_uri: https://a/b’s.git", 1, "'"),
    ("site: https://a/b–c", 1, "-"),
    (f"'commands{NBSP}': [a]", 1, "a space"),
    ("“name”: a", 2, '"'),
]
RIGHT = [
    "commands: [echo it’s a – good – day …]",
    "commands: ['echo \"“a”\"']",
    f"commands: ['echo \"a{NBSP}b\"']",
    "commands: ['# “quoted” –in a comment']",
    'commands: ["cat <<E\\n“a” –b\\nE"]',
    "commands: [echo 训练完成：好, echo äöü]",
    "description: “anything” – at all",
    "name: Zoë’s job",
    "parameters: {title: “a”}",
    "uri: https://bücher.example/a",
]


@pytest.mark.parametrize(("text", "count", "meant"), WRONG, ids=[w[0] for w in WRONG])
def test_a_character_that_looks_like_another(text: str, count: int, meant: str | None) -> None:
    """The caret is at the character, and the help says what to write."""
    warnings = _warnings(text)
    assert len(warnings) == count
    for p in warnings:
        assert p.place is not None
        char = p.place.source.text.split("\n")[p.place.line - 1][p.place.column - 1]
        assert f"U+{ord(char):04X}" in p.message
        assert p.hint == (f"write {meant}" if meant else "remove it")


@pytest.mark.parametrize("text", RIGHT)
def test_texts_for_people(text: str) -> None:
    """Quotes, comments and descriptions may say what they like."""
    assert _warnings(text) == []


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40))
def test_any_text(text: str) -> None:
    """As key, command and address, whatever it holds."""
    _warnings(json.dumps({"commands": [text], "uri": text, f"k{text}": 1}))
