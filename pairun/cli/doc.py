"""``pairun doc``: a module, plugin, keyword or error, as the code knows it."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
from collections.abc import Iterator

from pairun.errors import CATALOGUE, PairunError, Problem, Problems, did_you_mean
from pairun.executor.arguments import arguments, type_name
from pairun.module import CheckModule, Module, format_duration
from pairun.playbook.content import Content, open_content
from pairun.playbook.keywords import KEYWORDS, Keyword
from pairun.playbook.specs import check_spec
from pairun.report.terminal import Style


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", nargs="*", help="a module, plugin, keyword or error id; or one of "
                        "modules, plugins, keywords, errors")  # fmt: skip
    parser.add_argument(
        "--root",
        action="append",
        default=[],
        metavar="DIR",
        help="a content root whose modules and plugins are known too",
    )


def run(args: argparse.Namespace) -> int:
    """Print documentation."""
    content = open_content(args.root, os.environ)
    style = Style(sys.stdout)
    for line in _document(" ".join(args.name), content):
        # what is indented by nothing is a heading
        print(style(line, "bold") if line and not line.startswith(" ") else line)
    return 0


def _document(name: str, content: Content) -> Iterator[str]:
    # `pairun doc module cmd` and `pairun doc cmd` are the same
    kind, _, rest = name.partition(" ")
    if rest and kind in ("module", "plugin", "keyword", "error"):
        name = rest
    listings = {
        "": lambda: _overview(content),
        "modules": lambda: _modules(content),
        "plugins": lambda: _plugins(content),
        "keywords": _keywords,
        "errors": _errors,
    }
    if name in listings:
        yield from listings[name]()
        return
    found = False
    if name in content.modules:
        found = True
        yield from module_lines(name, content.module(name))
    if name in content.specs:
        yield from [""] if found else []
        found = True
        yield from plugin_lines(name, content)
    if name in KEYWORDS:
        found = True
        yield from _keyword(KEYWORDS[name])
    if name.upper() in CATALOGUE:
        found = True
        kind_of = CATALOGUE[name.upper()]
        yield from (f"{name.upper()}: {kind_of.title}", f"  {kind_of.advice}")
    if not found:
        known = [*content.modules, *content.specs, *KEYWORDS, *CATALOGUE, *filter(None, listings)]
        near = did_you_mean(name, known)
        raise PairunError(Problem("PR801", f"there is no documentation of '{name}'", hint=near))


def _overview(content: Content) -> Iterator[str]:
    yield from _modules(content)
    yield ""
    yield from _plugins(content)
    yield ""
    yield "keywords"
    yield f"  {', '.join(KEYWORDS)}"
    yield ""
    yield "more: pairun doc NAME, pairun doc keywords, pairun doc errors"


def _modules(content: Content) -> Iterator[str]:
    yield "modules"
    for name in sorted(content.modules):
        yield f"  {name:18}{_summary_of(name, content)}"


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


def _summary_of(module: str, content: Content) -> str:
    try:
        return (inspect.getdoc(content.module(module)) or "").split("\n", 1)[0]
    except PairunError as e:
        return f"(cannot be loaded: {e})"


def module_lines(name: str, cls: type[Module]) -> Iterator[str]:
    """The documentation of a module, line by line."""
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
        default = "required" if a.required else f"default {_shown_default(a.type, a.default)}"
        yield f"  {a.name} ({type_name(a.type)}, {default})"
        yield f"      {a.doc}"
    if not arguments(cls):
        yield "  none"
    yield ""
    yield "example"
    yield "  tasks:"
    for n, line in enumerate(["name: One sentence for people", *cls.example.splitlines()]):
        yield f"    {'- ' if n == 0 else '  '}{line}"


def _shown_default(kind: object, default: object) -> str:
    named = type_name(kind)
    if isinstance(default, float) and named.startswith("duration"):
        return format_duration(default)
    if isinstance(default, int) and named == "file mode":
        return f"'{default:04o}'"
    return json.dumps(default)


def plugin_lines(name: str, content: Content) -> Iterator[str]:
    """The documentation of a plugin, line by line.

    Raises:
        PairunError: its spec has mistakes.
    """
    document = content.document(*content.specs[name])
    problems = Problems()
    check_spec(document, content, problems)
    problems.raise_errors()
    spec = document.plain()
    yield f"plugin {name}"
    yield f"  {spec['summary']}"
    yield ""
    yield "parameters"
    schema = spec.get("parameters", {})
    for parameter, described in schema.get("properties", {}).items():
        p = described if isinstance(described, dict) else {}
        kinds = p.get("type", "anything")
        shown = " or ".join(kinds) if isinstance(kinds, list) else kinds
        default = (
            "required"
            if parameter in schema.get("required", ())
            else (f"default {json.dumps(p['default'])}" if "default" in p else "optional")
        )
        yield f"  {parameter} ({shown}, {default})"
        if "description" in p:
            yield f"      {p['description']}"
    for phase in ("init", "runtime"):
        for task in spec.get(phase, ()):
            modules = [k for k in task if k in content.modules]
            yield ""
            yield f"{phase}: {task['name']}"
            yield f"  {modules[0]}" + (f", when {task['when']}" if "when" in task else "")


def _keyword(k: Keyword) -> Iterator[str]:
    yield f"keyword {k.name}"
    yield f"  {k.meaning}"
    yield f"  stands in: {', '.join(sorted(k.where))}"
    if k.default:
        yield f"  default: {k.default}"
    yield ""
    yield "example"
    for line in k.example.splitlines():
        yield f"  {line}"
