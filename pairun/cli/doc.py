"""``pairun doc``: a module, plugin, keyword or error, as the code knows it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from pairun.catalogue import CATALOGUE
from pairun.diagnose.classes import CLASSES
from pairun.errors import PairunError, Problem, did_you_mean
from pairun.playbook.content import Content, open_content
from pairun.playbook.keywords import KEYWORDS
from pairun.report.pages import page_data, page_lines, summary_of
from pairun.report.problems import problem_data
from pairun.report.terminal import Style

KINDS = ("module", "plugin", "keyword", "error", "failure")
SCHEMA = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", nargs="*", help="a module, plugin, keyword, error id or class of failure; or one "
                        "of modules, plugins, keywords, errors, failures; `plugin git` is the plugin of that "
                        "name only")  # fmt: skip
    parser.add_argument(
        "--root",
        action="append",
        default=[],
        metavar="DIR",
        help="a content root whose modules and plugins are known too",
    )
    parser.add_argument("--json", action="store_true", help="JSON on standard output")


def run(args: argparse.Namespace) -> int:
    """Print documentation."""
    try:
        content = open_content(args.root, os.environ)
        if args.json:
            _print_data(_data(args.name, content), ())
            return 0
        style = Style(sys.stdout)
        for line in _document(args.name, content):
            # what is indented by nothing is a heading
            print(style(line, "bold") if line and not line.startswith(" ") else line)
    except PairunError as e:
        if not args.json:
            raise
        _print_data({}, e.problems)
        return 2 if all(p.id == "PR801" for p in e.problems) else 1
    return 0


def names(content: Content) -> list[str]:
    """Everything that `pairun doc` takes."""
    listings = [f"{kind}s" for kind in KINDS]
    return sorted({*listings, *KINDS, *(n for each in _known(content).values() for n in each)})


def _known(content: Content) -> dict[str, list[str]]:
    """Kind to the names there are."""
    return {
        "module": sorted(content.modules),
        "plugin": sorted(content.specs),
        "keyword": list(KEYWORDS),
        "error": list(CATALOGUE),
        "failure": list(CLASSES),
    }


def _pages(words: list[str], content: Content) -> list[tuple[str, str]]:
    """The kind and the name of every page that is asked for.

    Raises:
        PairunError: there is no page of a name.
    """
    known = _known(content)
    kind, found = None, []
    if words and words[0] in KINDS:
        kind, *words = words
    for word in words:
        name = word.upper() if word.upper().startswith("PR") and word[2:].isdigit() else word
        pages = [(k, name) for k, each in known.items() if name in each and kind in (None, k)]
        if not pages:
            raise PairunError(_nothing_of(name, kind, known))
        found += [p for p in pages if p not in found]
    return found


def _nothing_of(name: str, kind: str | None, known: dict[str, list[str]]) -> Problem:
    if others := [k for k, each in known.items() if name in each]:
        hint: str | None = f"it is a {others[0]}: pairun doc {others[0]} {name}"
    else:
        from pairun.cli.main import COMMANDS

        near = [n for k, each in known.items() for n in each if kind in (None, k)]
        listings = [f"{k}s" for k in KINDS] if kind is None else []
        hint = did_you_mean(name, [*near, *listings]) or "`pairun doc` lists what there is"
        if name in COMMANDS:
            hint = f"it is a command: pairun {name} --help"
    what = f"{kind} '{name}'" if kind else f"documentation of '{name}'"
    return Problem("PR801", f"there is no {what}", hint=hint)


def _document(words: list[str], content: Content) -> Iterator[str]:
    listings = {
        "module": lambda: _modules(content),
        "plugin": lambda: _plugins(content),
        "keyword": _keywords,
        "error": _errors,
        "failure": _failures,
    }
    one = words[0] if len(words) == 1 else None
    if not words:
        yield from _overview(content)
    elif one and one.removesuffix("s") in listings:
        yield from listings[one.removesuffix("s")]()
    else:
        for n, (kind, name) in enumerate(_pages(words, content)):
            yield from [""] if n else []
            yield from page_lines(kind, name, content)


def _overview(content: Content) -> Iterator[str]:
    yield from _modules(content)
    yield ""
    yield from _plugins(content)
    yield ""
    yield "keywords"
    for keyword in KEYWORDS.values():
        yield f"  {keyword.name:18}{keyword.meaning}"
    ids = sorted(CATALOGUE)
    yield ""
    yield "errors"
    yield f"  {ids[0]} to {ids[-1]:9}{len(ids)} errors and warnings, each with what to do"
    yield ""
    yield "failures"
    yield f"  {len(CLASSES)} classes of failures, each with an example and what to do"
    yield ""
    yield "more: pairun doc NAME, pairun doc modules, plugins, keywords, errors, failures"


def _modules(content: Content) -> Iterator[str]:
    yield "modules"
    for name in sorted(content.modules):
        yield f"  {name:18}{summary_of(name, content)}"


def _plugins(content: Content) -> Iterator[str]:
    yield "plugins"
    for name in sorted(content.specs):
        try:
            summary = content.document(*content.specs[name]).get("summary")
            yield f"  {name:18}{summary.value if summary else ''}"
        except PairunError as e:
            yield f"  {name:18}(cannot be read: {e})"


def _keywords() -> Iterator[str]:
    for keyword in KEYWORDS.values():
        yield f"{keyword.name}"
        yield f"  {keyword.meaning}"


def _errors() -> Iterator[str]:
    for id_, kind in CATALOGUE.items():
        yield f"{id_}: {kind.title}"
        yield f"  {kind.advice}"


def _failures() -> Iterator[str]:
    for name, kind in CLASSES.items():
        yield f"{name}"
        yield f"  {kind.meaning}"


# --- JSON ----------------------------------------------------------------------------------------


def _print_data(data: dict[str, Any], problems: Iterable[Problem]) -> None:
    whole = {"schema": SCHEMA, **data, "problems": [problem_data(p) for p in problems]}
    print(json.dumps(whole, indent=2, ensure_ascii=False))


def _data(words: list[str], content: Content) -> dict[str, Any]:
    """The pages that are asked for, by kind; all of them when no name is given."""
    known = _known(content)
    one = words[0].removesuffix("s") if len(words) == 1 else None
    if not words or one in known:
        pages = [(k, n) for k, each in known.items() for n in each if one in (None, k)]
    else:
        pages = _pages(words, content)
    out: dict[str, Any] = {}
    for kind, name in pages:
        out.setdefault(f"{kind}s", {})[name] = page_data(kind, name, content)
    return out
