"""The lists and pages of ``pairun doc``: modules, plugins, keywords, errors, failures."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Any

from pairun.catalogue import CATALOGUE
from pairun.contract.arguments import arguments
from pairun.diagnose.classes import CLASSES
from pairun.errors import PairunError, Problem, did_you_mean
from pairun.playbook.content import Content
from pairun.playbook.keywords import KEYWORDS
from pairun.report.pages import page_data, page_lines, summary_of
from pairun.report.pluginpages import plugin_names, plugin_summary

KINDS = ("module", "plugin", "keyword", "error", "failure")


def names(content: Content) -> list[str]:
    """Every name that `pairun doc` accepts."""
    listings = [f"{kind}s" for kind in KINDS]
    return sorted({*listings, *KINDS, *(n for each in _known(content).values() for n in each)})


def _known(content: Content) -> dict[str, list[str]]:
    """The names of each kind of page."""
    return {
        "module": sorted(content.modules),
        "plugin": plugin_names(content),
        "keyword": list(KEYWORDS),
        "error": list(CATALOGUE),
        "failure": list(CLASSES),
    }


def _pages(words: list[str], content: Content, commands: Collection[str]) -> list[tuple[str, str]]:
    """The kind and name of every requested page.

    Raises:
        PairunError: a name has no page.
    """
    known = _known(content)
    kind, listed = None, []
    if words and words[0] in KINDS:
        kind, *words = words
    for word in words:
        name = word.upper() if word.upper().startswith("PR") and word[2:].isdigit() else word
        pages = [(k, name) for k, each in known.items() if name in each and kind in (None, k)]
        if not pages:
            raise PairunError(_no_page(name, kind, content, commands))
        listed += [p for p in pages if p not in listed]
    return listed


def _no_page(name: str, kind: str | None, content: Content, commands: Collection[str]) -> Problem:
    known = _known(content)
    if others := [k for k, each in known.items() if name in each]:
        hint: str | None = f"it is a {others[0]}: pairun doc {others[0]} {name}"
    else:
        near = [n for k, each in known.items() for n in each if kind in (None, k)]
        listings = [f"{k}s" for k in KINDS] if kind is None else []
        hint = did_you_mean(name, [*listings, *near]) or "`pairun doc` lists all of them"
        if users := _modules_with(name, content):
            hint = f"it is an argument of {', '.join(users)}: pairun doc {users[0]}"
        if name in commands:
            hint = f"it is a command: pairun {name} --help"
    what = f"{kind} '{name}'" if kind else f"documentation of '{name}'"
    return Problem("PR801", f"there is no {what}", hint=hint)


def _modules_with(argument: str, content: Content) -> list[str]:
    """The modules with an argument of this name; skips modules that cannot be loaded."""
    users = []
    for name in sorted(content.modules):
        with contextlib.suppress(PairunError):
            if any(a.name == argument for a in arguments(content.module(name))):
                users.append(name)
    return users


def document(words: list[str], content: Content, commands: Collection[str]) -> Iterator[str]:
    """The requested pages, line by line; without words an overview.

    Args:
        words: names, each optionally after its kind; or one kind in the plural.
        content: the content roots.
        commands: the names of commands, for a hint.

    Raises:
        PairunError: a name has no page.
    """
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
        for n, (kind, name) in enumerate(_pages(words, content, commands)):
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
    for name in plugin_names(content):
        try:
            yield f"  {name:18}{plugin_summary(name, content)}"
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


def document_data(words: list[str], content: Content, commands: Collection[str]) -> dict[str, Any]:
    """The requested pages as data, by kind; without words all pages."""
    known = _known(content)
    one = words[0].removesuffix("s") if len(words) == 1 else None
    if not words or one in known:
        pages = [(k, n) for k, each in known.items() for n in each if one in (None, k)]
    else:
        pages = _pages(words, content, commands)
    out: dict[str, Any] = {}
    for kind, name in pages:
        out.setdefault(f"{kind}s", {})[name] = page_data(kind, name, content)
    return out
