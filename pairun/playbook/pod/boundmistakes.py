"""Finds errors in a policy's limits on Pod settings when the policy is read."""

from __future__ import annotations

from collections.abc import Iterator

from pairun.errors import Problem
from pairun.playbook.document.checking import shown
from pairun.playbook.document.reading import Node
from pairun.playbook.pod.bounds import measured
from pairun.playbook.pod.table import POD_SETTINGS, PodSetting

_EDGES = ("max", "min")
_LISTS = ("one_of", "none_of")


def bound_mistakes(key: str, bound: Node) -> Iterator[Problem]:
    """Report limits that cannot be compared with the values of a setting.

    An unknown setting is not an error here: another version may have it.

    Args:
        key: the setting that the policy names.
        bound: the policy's limit for it; its schema is checked elsewhere.
    """
    setting = POD_SETTINGS.get(key)
    if setting is None:
        if below := [each for each in POD_SETTINGS if each.startswith(f"{key}.")]:
            message = f"'{key}' has no bounds of its own, only the settings below it"
            yield _error(message, bound, f"name one of {', '.join(below)}")
        return
    for edge in _EDGES:
        if (limit := bound.get(edge)) is not None:
            yield from _limit_mistakes(setting, edge, limit)
    yield from _crossed(setting, bound)
    for name in _LISTS:
        listed = bound.get(name)
        for each in listed.elements() if listed else ():
            if not isinstance(each.value, str | int | float):
                message = f"'{name}' of '{key}' must list texts, not {shown(each.value)}"
                yield _error(message, each, f"for example {name}: [team-a, 'team-*']")


def _crossed(setting: PodSetting, bound: Node) -> Iterator[Problem]:
    """Report a ``min`` above the ``max``, of the setting or of an entry: it allows no value."""
    lowest, highest = bound.get("min"), bound.get("max")
    if lowest is None or highest is None:
        return
    pairs = [(setting.key, lowest, highest)]
    if isinstance(lowest.value, dict):
        pairs = [
            (f"{setting.key}.{name}", each, other)
            for name, each in lowest.items()
            if (other := highest.get(name)) is not None
        ]
    for key, low, high in pairs:
        if isinstance(low.value, dict | list) or isinstance(high.value, dict | list):
            continue
        least, most = measured(setting, low.value), measured(setting, high.value)
        if least is not None and most is not None and least > most:
            message = f"no value of '{key}' is allowed: 'min' {shown(low.value)} is above 'max' {shown(high.value)}"
            yield _error(message, low, "swap the two, or correct one")


def _limit_mistakes(setting: PodSetting, edge: str, limit: Node) -> Iterator[Problem]:
    entries = _ordered_entries(setting)
    if entries is None and not _is_ordered(setting):
        message = f"'{setting.key}' has no order, so it has no '{edge}'"
        yield _error(message, limit, "bound it with one_of or none_of")
    elif entries is None:
        if isinstance(limit.value, dict) or measured(setting, limit.value) is None:
            yield _not_measured(setting, f"'{edge}' of '{setting.key}'", limit)
    elif not isinstance(limit.value, dict):
        name = entries[0] if entries else "cpu"
        message = f"'{edge}' of '{setting.key}' must be a mapping, not {shown(limit.value)}"
        yield _error(message, limit, f"for example {edge}: {{{name}: 2}}")
    else:
        for name, each in limit.items():
            if entries and name not in entries:
                message = f"'{name}' of '{setting.key}' has no order, so it has no '{edge}'"
                yield _error(message, each, f"entries that have one: {', '.join(entries)}")
            elif isinstance(each.value, dict | list) or measured(setting, each.value) is None:
                yield _not_measured(setting, f"'{edge}' of '{name}' in '{setting.key}'", each)


def _ordered_entries(setting: PodSetting) -> list[str] | None:
    """The ordered entries of a mapping; empty means all; None if it has none."""
    if setting.kind == "quantities":
        return []
    properties = (setting.schema or {}).get("properties", {})
    return [name for name, each in properties.items() if each.get("type") == "integer"] or None


def _is_ordered(setting: PodSetting) -> bool:
    return (
        setting.kind in ("duration", "quantity") or (setting.schema or {}).get("type") == "integer"
    )


def _not_measured(setting: PodSetting, what: str, node: Node) -> Problem:
    kind, example = ("a duration", "12h") if setting.kind == "duration" else ("a quantity", "16Gi")
    if setting.kind == "plain":
        kind, example = "a number", "1000"
    return _error(f"{what} must be {kind}, not {shown(node.value)}", node, f"for example {example}")


def _error(message: str, node: Node, hint: str) -> Problem:
    return Problem("PR406", message, node.key or node.place, hint)
