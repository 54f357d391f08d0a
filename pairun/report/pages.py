"""The pages of ``pairun doc``, as text and as data; docs/reference is generated from them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from typing import Any

from pairun.catalogue import CATALOGUE
from pairun.contract.arguments import arguments, arguments_schema
from pairun.diagnose.classes import CLASSES, UNKNOWN
from pairun.diagnose.remedies import REMEDIES
from pairun.errors import PairunError, Problems
from pairun.module import CheckModule, Module
from pairun.playbook.content import Content
from pairun.playbook.keywords import KEYWORDS, Keyword
from pairun.playbook.moduleexamples import example_task
from pairun.playbook.rules import Rules, read_rules
from pairun.report.pluginpages import plugin_data, plugin_lines


def page_lines(kind: str, name: str, content: Content) -> Iterator[str]:
    """A page as text for people, line by line."""
    if kind == "module":
        yield from module_lines(name, content.module(name))
    elif kind == "plugin":
        yield from plugin_lines(name, content)
    elif kind == "keyword":
        yield from _keyword(KEYWORDS[name])
    elif kind == "failure":
        yield from failure_lines(name, content)
    else:
        yield f"{name}: {CATALOGUE[name].title}"
        yield f"  {CATALOGUE[name].advice}"


def page_data(kind: str, name: str, content: Content) -> dict[str, Any]:
    """A page as plain data, for JSON."""
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
        described = CLASSES[name]
        remedy = REMEDIES[name]._asdict() if name in REMEDIES else {}
        return {**described._asdict(), **remedy, "examples": examples(name, content)}
    return {"title": CATALOGUE[name].title, "advice": CATALOGUE[name].advice}


def summary_of(module: str, content: Content) -> str:
    """The first sentence of a module, or why it cannot be read."""
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
        default = "required" if a.required else f"default {a.default_text()}"
        yield f"  {a.name} ({a.kind.name}, {default})"
        yield f"      {a.doc}"
    if not arguments(cls):
        yield "  none"
    yield ""
    yield "example"
    yield "  tasks:"
    for line in example_task(cls):
        yield f"    {line}"


def failure_lines(name: str, content: Content) -> Iterator[str]:
    """The documentation of a class of failure, line by line."""
    kind = CLASSES[name]
    yield f"failure {name}"
    yield f"  {kind.meaning}"
    if kind.advice:
        yield ""
        yield f"  fault  {kind.fault}"
        yield f"  retry  {kind.retry or 'no advice'}"
    if kind.advice:
        yield f"  do     {kind.advice}"
    if remedy := REMEDIES.get(name):
        yield ""
        yield f"  check  {remedy.check}"
        yield f"         $ {remedy.command}"
        yield f"  mend   {remedy.mend}"
    shown = examples(name, content)
    if shown:
        yield ""
        yield "for example"
        for each in shown:
            yield f"  {each}"


def examples(name: str, content: Content) -> list[str]:
    """One line for each rule of a class of failure."""
    samples = _rules(content).samples.values()
    return [
        s.positive[0].splitlines()[-1]
        for s in samples
        if s.data["class"] == name and name != UNKNOWN
    ]


@functools.cache
def _rules(content: Content) -> Rules:
    return read_rules(content, Problems())


def _keyword(k: Keyword) -> Iterator[str]:
    yield f"keyword {k.name}"
    yield f"  {k.meaning}"
    yield f"  used in: {', '.join(sorted(k.where))}"
    if k.default:
        yield f"  default: {k.default}"
    yield ""
    yield "example"
    for line in k.example.splitlines():
        yield f"  {line}"
