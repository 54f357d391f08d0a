"""The lists and pages of ``pairun doc``, as text and as data; docs/reference is generated from them."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
from collections.abc import Collection, Iterator
from typing import Any

from pairun.catalogue import CATALOGUE
from pairun.contract.arguments import arguments, arguments_schema
from pairun.diagnose.classes import CLASSES, UNKNOWN
from pairun.errors import PairunError, Problem, Problems, did_you_mean
from pairun.module import CheckModule
from pairun.playbook.content import Content
from pairun.playbook.keywords import KEYWORDS
from pairun.playbook.moduleexamples import example_task
from pairun.playbook.pluginfolders import folders_in_force
from pairun.playbook.rules import Rules, read_rules
from pairun.playbook.specs import check_spec

_KINDS = ("module", "plugin", "keyword", "error", "failure")


def names(content: Content) -> list[str]:
    """Every name that `pairun doc` accepts."""
    listings = [f"{kind}s" for kind in _KINDS]
    return sorted({*listings, *_KINDS, *(n for each in _known(content).values() for n in each)})


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
    if words and words[0] in _KINDS:
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
        listings = [f"{k}s" for k in _KINDS] if kind is None else []
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


# --- text ----------------------------------------------------------------------------------------


def document(words: list[str], content: Content, commands: Collection[str]) -> Iterator[str]:
    """The requested pages, line by line; without words an overview.

    Args:
        words: names, each optionally after its kind; or one kind in the plural.
        content: the content roots.
        commands: the names of commands, for a hint.

    Raises:
        PairunError: a name has no page.
    """
    one = words[0].removesuffix("s") if len(words) == 1 else None
    if not words:
        yield from _overview(content)
    elif one in ("module", "plugin"):
        yield from _table(one, content)
    elif one in _KINDS:
        for name in _known(content)[one]:
            yield f"{name}: {CATALOGUE[name].title}" if one == "error" else name
            yield f"  {CATALOGUE[name].advice if one == 'error' else _summary(one, name, content)}"
    else:
        for n, (kind, name) in enumerate(_pages(words, content, commands)):
            yield from [""] if n else []
            yield from _PAGES[kind](name, content)


def _overview(content: Content) -> Iterator[str]:
    for kind in ("module", "plugin", "keyword"):
        yield from _table(kind, content)
        yield ""
    ids = sorted(CATALOGUE)
    yield "errors"
    yield f"  {ids[0]} to {ids[-1]:9}{len(ids)} errors and warnings, each with what to do"
    yield ""
    yield "failures"
    yield f"  {len(CLASSES)} classes of failures, each with an example and what to do"
    yield ""
    yield "more: pairun doc NAME, pairun doc modules, plugins, keywords, errors, failures"


def _table(kind: str, content: Content) -> Iterator[str]:
    yield f"{kind}s"
    for name in _known(content)[kind]:
        yield f"  {name:18}{_summary(kind, name, content)}"


def _summary(kind: str, name: str, content: Content) -> str:
    if kind == "plugin":
        try:
            return plugin_summary(name, content)
        except PairunError as e:
            return f"(cannot be read: {e})"
    if kind == "module":
        return summary_of(name, content)
    return KEYWORDS[name].meaning if kind == "keyword" else CLASSES[name].meaning


def _module(name: str, content: Content) -> Iterator[str]:
    cls = content.module(name)
    yield f"module {name}"
    for line in (inspect.getdoc(cls) or "").splitlines():
        yield f"  {line}".rstrip()
    yield ""
    yield f"  kind        {'check' if issubclass(cls, CheckModule) else 'state'}"
    yield f"  phases      {', '.join(cls.phases)}"
    yield f"  privileges  {cls.privileges}"
    yield ""
    yield "arguments"
    for a in arguments(cls):
        default = "required" if a.required else f"default {a.default_text()}"
        yield f"  {a.name} ({a.kind.name}, {default})"
        yield f"      {a.doc}"
    if not arguments(cls):
        yield "  none"
    yield from ("", "example", "  tasks:", *(f"    {line}" for line in example_task(cls)))


def _plugin(name: str, content: Content) -> Iterator[str]:
    data = plugin_data(name, content)
    yield f"plugin {name}"
    yield f"  {data['summary']}"
    if "folder" in data:
        yield f"  folder  {data['folder']}"
        return
    yield ""
    yield "parameters"
    schema = data["parameters"]
    for parameter, described in schema.get("properties", {}).items():
        p = described if isinstance(described, dict) else {}
        kinds = p.get("type", "anything")
        shown = " or ".join(kinds) if isinstance(kinds, list) else kinds
        default = f"default {json.dumps(p['default'])}" if "default" in p else "optional"
        if parameter in schema.get("required", ()):
            default = "required"
        yield f"  {parameter} ({shown}, {default})"
        if "description" in p:
            yield f"      {p['description']}"
    spec = _sound_spec(name, content)
    for phase in ("init", "runtime"):
        for task in spec.get(phase, ()):
            modules = [k for k in task if k in content.modules]
            yield ""
            yield f"{phase}: {task['name']}"
            yield f"  {modules[0]}" + (f", when {task['when']}" if "when" in task else "")


def _keyword(name: str, _content: Content) -> Iterator[str]:
    k = KEYWORDS[name]
    yield f"keyword {k.name}"
    yield f"  {k.meaning}"
    yield f"  used in: {', '.join(sorted(k.where))}"
    if k.default:
        yield f"  default: {k.default}"
    yield from ("", "example", *(f"  {line}" for line in k.example.splitlines()))


def _error(name: str, _content: Content) -> Iterator[str]:
    yield f"{name}: {CATALOGUE[name].title}"
    yield f"  {CATALOGUE[name].advice}"


def _failure(name: str, content: Content) -> Iterator[str]:
    kind = CLASSES[name]
    yield f"failure {name}"
    yield f"  {kind.meaning}"
    if kind.advice:
        yield ""
        yield f"  fault  {kind.fault}"
        yield f"  retry  {kind.retry or 'no advice'}"
        yield f"  do     {kind.advice}"
    if kind.check:
        yield ""
        yield f"  check  {kind.check}"
        yield f"         $ {kind.command}"
        yield f"  mend   {kind.mend}"
    if shown := examples(name, content):
        yield from ("", "for example", *(f"  {each}" for each in shown))


_PAGES = {
    "module": _module, "plugin": _plugin, "keyword": _keyword, "error": _error, "failure": _failure,
}  # fmt: skip


# --- data ----------------------------------------------------------------------------------------


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
        out.setdefault(f"{kind}s", {})[name] = _data(kind, name, content)
    return out


def _data(kind: str, name: str, content: Content) -> dict[str, Any]:
    if kind == "module":
        cls = content.module(name)
        return {
            "summary": summary_of(name, content),
            "text": inspect.getdoc(cls) or "",
            "kind": "check" if issubclass(cls, CheckModule) else "state",
            "phases": list(cls.phases),
            "privileges": cls.privileges,
            "arguments": arguments_schema(cls),
            "example": cls.example,
        }
    if kind == "plugin":
        return plugin_data(name, content)
    if kind == "keyword":
        k = KEYWORDS[name]
        return {
            "meaning": k.meaning,
            "stands_in": sorted(k.where),
            "default": k.default,
            "example": k.example,
            "schema": dict(k.schema),
        }
    if kind == "failure":
        return {**CLASSES[name]._asdict(), "examples": examples(name, content)}
    return {"title": CATALOGUE[name].title, "advice": CATALOGUE[name].advice}


def summary_of(module: str, content: Content) -> str:
    """The first sentence of a module, or why it cannot be read."""
    try:
        return (inspect.getdoc(content.module(module)) or "").split("\n", 1)[0]
    except PairunError as e:
        return f"(cannot be loaded: {e})"


def examples(failure: str, content: Content) -> list[str]:
    """One line for each rule of a class of failure."""
    samples = _rules(content).samples.values() if failure != UNKNOWN else ()
    return [s.positive[0].splitlines()[-1] for s in samples if s.data["class"] == failure]


@functools.cache
def _rules(content: Content) -> Rules:
    return read_rules(content, Problems())


def plugin_names(content: Content) -> list[str]:
    """The names of all plugins, sorted."""
    return sorted({*content.specs, *folders_in_force(content).folders})


def plugin_summary(name: str, content: Content) -> str:
    """One sentence about a plugin.

    Raises:
        PairunError: its file cannot be read.
    """
    folders = folders_in_force(content)
    if name in folders.folders:
        program = folders.program(name, content)
        return f"A plugin folder in OpenPAI's form: init runs {program or 'nothing'}"
    summary = content.document(*content.specs[name]).get("summary")
    return str(summary.value) if summary else ""


def plugin_data(name: str, content: Content) -> dict[str, Any]:
    """The documentation of a plugin as plain data.

    Raises:
        PairunError: its spec has mistakes.
    """
    folders = folders_in_force(content).folders
    if name in folders:
        summary = plugin_summary(name, content)
        return {"summary": summary, "parameters": {}, "folder": folders[name].path}
    spec = _sound_spec(name, content)
    return {"summary": spec["summary"], "parameters": spec.get("parameters", {})}


def _sound_spec(name: str, content: Content) -> Any:
    document = content.document(*content.specs[name])
    problems = Problems()
    check_spec(document, content, problems)
    problems.raise_errors()
    return document.plain()
