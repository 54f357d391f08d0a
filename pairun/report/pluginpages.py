"""The plugin pages of ``pairun doc``: plugin specs, and plugin folders in OpenPAI's form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pairun.errors import Problems
from pairun.playbook.content import Content
from pairun.playbook.pluginfolders import folders_in_force
from pairun.playbook.specs import check_spec


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
    """The documentation of a plugin as plain data."""
    folders = folders_in_force(content).folders
    if name in folders:
        summary = plugin_summary(name, content)
        return {"summary": summary, "parameters": {}, "folder": folders[name].path}
    spec = _sound_spec(name, content)
    return {"summary": spec["summary"], "parameters": spec.get("parameters", {})}


def plugin_lines(name: str, content: Content) -> Iterator[str]:
    """The documentation of a plugin, line by line.

    Raises:
        PairunError: its spec has mistakes.
    """
    folders = folders_in_force(content)
    if name in folders.folders:
        yield f"plugin {name}"
        yield f"  {plugin_summary(name, content)}"
        yield f"  folder  {folders.folders[name].path}"
        return
    spec = _sound_spec(name, content)
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


def _sound_spec(name: str, content: Content) -> Any:
    document = content.document(*content.specs[name])
    problems = Problems()
    check_spec(document, content, problems)
    problems.raise_errors()
    return document.plain()
