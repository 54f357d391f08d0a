"""Checks the values of a Pod's settings against a policy's limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from pairun.base.durations import parse_seconds
from pairun.errors import Problems
from pairun.playbook.document.reading import Node
from pairun.playbook.document.scalars import js_text
from pairun.playbook.pod.table import POD_SETTINGS, PodSetting

if TYPE_CHECKING:
    from pairun.playbook.policy import Policy

_SUFFIXES = {
    "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
}  # fmt: skip
_OPERATOR = ("built-in", "cluster")
"""Layers that the limits do not apply to: the operator's own."""


def quantity(text: Any) -> float | None:
    """The number that a Kubernetes quantity represents; None for anything else.

    https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
    """
    word = str(text)
    for suffix in sorted(_SUFFIXES, key=len, reverse=True):
        if word.endswith(suffix):
            number = _number(word.removesuffix(suffix))
            return None if number is None else number * _SUFFIXES[suffix]
    return _number(word)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def check_bounds(
    policy: Policy, values: Mapping[str, Node], asked: Mapping[str, Node], problems: Problems
) -> None:
    """Report values that exceed a policy's limits.

    Args:
        policy: the effective policy.
        values: by the key in the table.
        asked: by the same keys, what the job requests in other places; `values` override it.
        problems: takes the values that exceed a limit.
    """
    final = _final(values, asked)
    for key, bound in policy.pod_bounds:
        setting = POD_SETTINGS.get(key)
        if setting is None:
            continue
        refused = [each for n in _nodes(setting, final) for each in _beyond(setting, n, bound)]
        refused += [
            (n, each) for n in _nodes(setting, values) for each in _unlisted(setting, n, bound)
        ]
        for node, message in refused:
            if node.place.source.layer not in _OPERATOR:
                problems.error(
                    "PR402",
                    f"'pod.{key}' {message}",
                    node.key or node.place,
                    also=[("the policy", bound.key or bound.place)],
                )


def _final(values: Mapping[str, Node], asked: Mapping[str, Node]) -> dict[str, Node]:
    """The values that the Pod finally gets: a request without an entry defaults to the limit.

    https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
    """
    final = {**asked, **values}
    for section in ("resources", "init_resources"):
        requests, limits = f"{section}.requests", f"{section}.limits"
        for key, below in ((limits, asked.get(limits)), (requests, final.get(limits))):
            if below is not None:
                own = values.get(key, below)
                entries = {k: n for k, n in own.items() if n.value is not None}
                final[key] = Node({**dict(below.items()), **entries}, own.place, own.key)
    return final


def _nodes(setting: PodSetting, values: Mapping[str, Node]) -> Iterator[Node]:
    """The nodes of a setting; for a part that only a policy names, those of its parent list."""
    above, _, part = setting.key.rpartition(".")
    if setting.schema is None and above in values:
        yield from (n for e in values[above].elements() if (n := e.get(part)) is not None)
    elif setting.key in values:
        yield values[setting.key]


def _beyond(setting: PodSetting, node: Node, bound: Node) -> Iterator[tuple[Node, str]]:
    """Report values above the maximum or below the minimum."""
    for name, sign in (("max", 1), ("min", -1)):
        limit = bound.get(name)
        for of, each, edge in _compared(node, limit) if limit else ():
            size, most = measured(setting, each.value), measured(setting, edge.value)
            if size is None or most is None or sign * (size - most) > 0:
                words = "at most" if sign > 0 else "at least"
                yield each, f"must be {words} {js_text(edge.value)}{of}, not {js_text(each.value)}"


def _unlisted(setting: PodSetting, node: Node, bound: Node) -> Iterator[str]:
    """Report values that are not in the allowed list, or are in the denied list."""
    words = list(_words(setting, node))
    if (allowed := bound.get("one_of")) is not None:
        patterns = [js_text(n.value) for n in allowed.elements()]
        names = ", ".join(patterns) or "none"
        for word in words:
            if word is None and "*" not in patterns:
                yield f"must have a '{setting.element}', one of {names}: without one it means all"
            elif word is not None and not any(fnmatchcase(word, p) for p in patterns):
                yield f"must be one of {names}, not '{word}'"
    if (denied := bound.get("none_of")) is not None:
        patterns = [js_text(n.value) for n in denied.elements()]
        for word in words:
            if word is None and patterns:
                names = ", ".join(patterns)
                yield f"must have a '{setting.element}', not {names}: without one it means all"
            elif word is not None and any(fnmatchcase(word, p) for p in patterns):
                yield f"must not be '{word}'"


def _compared(node: Node, limit: Node) -> Iterator[tuple[str, Node, Node]]:
    """What to compare with a limit: the value, or each entry that the limit names."""
    if not isinstance(limit.value, dict):
        yield "", node, limit
        return
    for name, edge in limit.items():
        if (entry := node.get(name)) is not None and entry.value is not None:
            yield f" of {name}", entry, edge


def measured(setting: PodSetting, value: Any) -> float | None:
    """The number to compare for a value, in seconds for a duration; None if it has none."""
    return parse_seconds(str(value)) if setting.kind == "duration" else quantity(value)


def _words(setting: PodSetting, node: Node) -> Iterator[str | None]:
    """The texts of a value to compare with a limit's lists; None matches every text.

    A toleration without a key tolerates every taint
    (https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/).
    """
    if isinstance(node.value, list):
        for each in node.value:
            value = each
            if setting.element and isinstance(each.value, dict):
                value = each.get(setting.element)
            yield js_text(value.value) if value is not None else None
    elif isinstance(node.value, dict):
        inner = node.get(setting.element) if setting.element else None
        yield from [js_text(inner.value)] if inner is not None else [k for k, _ in node.items()]
    else:
        yield js_text(node.value)
