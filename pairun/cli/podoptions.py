"""The options that set Pod settings, generated from the table of settings."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from pairun.errors import Place, Problems, Source
from pairun.playbook.document.checking import Ids, violations
from pairun.playbook.document.reading import Node, node_of
from pairun.playbook.pod.layering import COMMAND_LINE
from pairun.playbook.pod.schema import settings_schema
from pairun.playbook.pod.table import POD_SETTINGS, PodSetting

_TYPED = {key: setting for key, setting in POD_SETTINGS.items() if setting.flag}
_USAGE = Ids("PR801", "PR801", "PR801")


def add_pod_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare an option for every setting that has one."""
    group = parser.add_argument_group("settings of the Pods", "docs/pod.md has all of them")
    for key, setting in _TYPED.items():
        assert setting.flag is not None
        assert setting.schema is not None
        more: dict[str, Any] = {"dest": _dest(key), "default": None, "help": setting.meaning}
        kind = setting.schema.get("type")
        if kind == "boolean":
            group.add_argument(setting.flag, action=argparse.BooleanOptionalAction, **more)
        elif "enum" in setting.schema:
            group.add_argument(setting.flag, choices=setting.schema["enum"], **more)
        elif kind == "integer":
            group.add_argument(setting.flag, metavar="NUMBER", type=int, **more)
        elif kind in ("object", "array"):
            form = "KEY=VALUE" if kind == "object" else "KEY[=VALUE][:EFFECT]"
            group.add_argument(setting.flag, metavar=form, action="append", **more)
        else:
            group.add_argument(setting.flag, metavar="VALUE", **more)


def _dest(key: str) -> str:
    return f"pod_{key.replace('.', '_')}"


def pod_flags(args: argparse.Namespace) -> Node | None:
    """The settings from a person's options; None if there are none.

    Args:
        args: the arguments of a command with the options of `add_pod_arguments`.

    Raises:
        PairunError: an option's value is invalid for the setting.
    """
    problems = Problems()
    flags: Node | None = None
    for key, setting in _TYPED.items():
        given = getattr(args, _dest(key))
        if given is None:
            continue
        assert setting.flag is not None
        place = Place(Source(setting.flag, COMMAND_LINE, ""), 0, 0)
        read = _READERS.get(_kind(setting), _as_given)
        flags = _with(flags, key.split("."), node_of(read(setting, given, problems), place))
    if flags is not None:
        problems.extend(violations(flags, settings_schema(_TYPED.values()), _USAGE))
    problems.raise_errors()
    return flags


def _with(flags: Node | None, path: list[str], node: Node) -> Node:
    """Add a setting at a path."""
    if not path:
        return node
    values: Mapping[str, Node] = flags.value if flags is not None else {}
    first, *rest = path
    return Node({**values, first: _with(values.get(first), rest, node)}, node.place, node.place)


def _kind(setting: PodSetting) -> str:
    return str((setting.schema or {}).get("type"))


def _as_given(_: PodSetting, given: Any, problems: Problems) -> Any:  # noqa: ARG001
    return given


def _entries(setting: PodSetting, given: list[str], problems: Problems) -> dict[str, str]:
    entries = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not (name and equals):
            problems.error("PR801", f"{setting.flag} '{each}' must be KEY=VALUE")
            continue
        entries[name] = value
    return entries


def _tolerations(_: PodSetting, given: list[str], problems: Problems) -> list[dict[str, str]]:  # noqa: ARG001
    """Tolerations in the form of `kubectl taint`: ``KEY[=VALUE][:EFFECT]``."""
    made = []
    for each in given:
        taint, colon, effect = each.partition(":")
        name, equals, value = taint.partition("=")
        toleration = {"key": name} if name else {}
        toleration |= {"operator": "Equal", "value": value} if equals else {"operator": "Exists"}
        made.append(toleration | ({"effect": effect} if colon else {}))
    return made


_READERS: Mapping[str, Callable[[PodSetting, Any, Problems], Any]] = {
    "object": _entries,
    "array": _tolerations,
}
