"""Help, errors and pages use the field's words: none of those that only a translation uses."""

from __future__ import annotations

import argparse
import ast
import pathlib
import re
from collections.abc import Iterator

import pytest

from pairun.catalogue import CATALOGUE
from pairun.cli.examples import examples_of
from pairun.cli.main import parser_of, shown_commands
from pairun.contract.arguments import arguments_schema
from pairun.diagnose.classes import CLASSES
from pairun.playbook.content import Content, built_in_root
from pairun.playbook.keywords import KEYWORDS

ROOT = pathlib.Path(__file__).parents[2]
BANNED = re.compile(
    r"\b(told|said|stands? in|is left|lives?|somebody|nobody|of its own|such are|what is there|"
    r"(?:tr(?:y|ies)|looks?|asks?|tried|asked) again|anew|goes on|go on|whatever it)\b"
)
EXCEPTIONS: dict[str, str] = {}
"""A text that may use such a word, and why."""


def _help() -> Iterator[tuple[str, str]]:
    """Sentences, arguments and examples of every command."""
    for name in ("", *shown_commands()):
        yield from _parser(name, parser_of(name))


def _parser(name: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    yield f"pairun {name}", parser.description or ""
    for example in examples_of(f"pairun {name}"):
        yield f"pairun {name}: example", example.purpose
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb, its in action.choices.items():
                yield from _parser(f"{name} {verb}".strip(), its)
        elif action.help not in (None, argparse.SUPPRESS):
            yield f"pairun {name}: {action.option_strings or action.dest}", action.help or ""


def _tables() -> Iterator[tuple[str, str]]:
    """What the code knows of ids, keywords, classes and modules."""
    for id_, kind in CATALOGUE.items():
        yield id_, f"{kind.title}. {kind.advice}"
    for keyword in KEYWORDS.values():
        yield f"keyword {keyword.name}", keyword.meaning
    for name, each in CLASSES.items():
        yield f"class {name}", f"{each.meaning}. {each.advice}"
    content = Content([built_in_root()])
    for name in content.modules:
        schema = arguments_schema(content.module(name))
        yield f"module {name}", content.module(name).__doc__ or ""
        for argument, its in schema.get("properties", {}).items():
            yield f"module {name}: {argument}", str(its.get("description", ""))


def _errors() -> Iterator[tuple[str, str]]:
    """Messages and hints of problems and failures, as they stand in the code."""
    makers = {
        "Problem",
        "error",
        "warning",
        "Transient",
        "Permanent",
        "Conflict",
        "Timeout",
        "Harmless",
    }
    for folder in ("pairun", "modules"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    function = node.func
                    name = getattr(function, "attr", getattr(function, "id", ""))
                    if name in makers:
                        for value in (*node.args, *(k.value for k in node.keywords)):
                            for text in _texts(value):
                                yield f"{path.relative_to(ROOT)}:{value.lineno}", text


def _pages() -> Iterator[tuple[str, str]]:
    """The documentation, without code."""
    for path in [
        *sorted((ROOT / "docs").rglob("*.md")),
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
    ]:
        prose = re.sub(
            r"^ *```.*?^ *```|`[^`\n]*`", "", path.read_text(), flags=re.MULTILINE | re.DOTALL
        )
        yield from ((str(path.relative_to(ROOT)), line) for line in prose.splitlines())


def _texts(node: ast.expr) -> Iterator[str]:
    """The constant parts of a text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield " … ".join(
            part.value
            for part in node.values
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        )
    elif isinstance(node, ast.BinOp):
        yield from _texts(node.left)
        yield from _texts(node.right)
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)


@pytest.mark.parametrize(
    "texts", [_help, _tables, _errors, _pages], ids=["help", "tables", "errors", "pages"]
)
def test_no_word_of_a_translation(texts: object) -> None:
    """Every use of a banned word is listed, at once."""
    assert callable(texts)
    every = list(texts())
    assert len(every) > 100
    found = [
        f"{where}: …{text[max(0, m.start() - 40) : m.end() + 40]}…"
        for where, text in every
        for m in BANNED.finditer(text)
        if text not in EXCEPTIONS
    ]
    assert not found, "\n" + "\n".join(found)
