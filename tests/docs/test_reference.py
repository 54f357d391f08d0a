"""The pages of the command line say all that the command line takes, and what it exits with."""

from __future__ import annotations

import argparse
import pathlib
import re
from collections.abc import Iterator

import pytest

from pairun.cli import main as cli

ROOT = pathlib.Path(__file__).parents[2]


def _parsers(name: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[str]]]:
    """A command and those within it, each with the words that its part of the page must have."""
    words: list[str] = []
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or action.dest == "help":
            continue
        words += action.option_strings or [str(action.metavar or action.dest)]
        words += map(str, action.choices or ())
        if isinstance(action, argparse._SubParsersAction):
            for verb, its in action.choices.items():
                yield from _parsers(f"{name} {verb}", its)
    yield name, words


COMMANDS = [
    pytest.param(full, words, id=full)
    for name, text in cli.COMMANDS.items()
    if text is not argparse.SUPPRESS
    for full, words in _parsers(name, cli.parser_of(name))
]


@pytest.mark.parametrize(("command", "words"), COMMANDS)
def test_the_reference_names_every_argument(command: str, words: list[str]) -> None:
    """Of commands within commands too, and every value of an argument that takes few."""
    page = (ROOT / "docs/reference/commands.md").read_text()
    part = re.search(rf"^##+ pairun {command}\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
    assert part is not None
    assert [w for w in words if not re.search(rf"(?<![-\w]){re.escape(w)}(?![-\w])", part[1])] == []


@pytest.mark.parametrize(
    ("given", "code", "problem"),
    [
        (("--name", "My Job"), 1, "PR783"),
        (("--image", "bad image"), 1, "PR782"),
        (("--kubernetes-version", "1.2"), 1, "PR781"),
        (("--root", "/none"), 1, "PR601"),
        (("--namespace", "Bad_NS"), 2, "PR801"),
        (("--user", "a b"), 2, "PR801"),
    ],
)
def test_a_wrong_value_exits_as_the_page_says(
    given: tuple[str, str], code: int, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What does not fit the job, the engine or the cluster is input; what no job takes is usage."""
    job = str(ROOT / "examples/hello.yaml")
    assert cli.main(["manifest", job, "--engine", "job", "--image", "a/b:1", *given]) == code
    assert f"error[{problem}]" in capsys.readouterr().err
    page = (ROOT / "docs/exit-codes.md").read_text()
    assert re.search(rf"^\| any \| {code} \|.*`{problem}`", page, re.MULTILINE)
