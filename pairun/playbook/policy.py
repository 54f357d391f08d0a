"""The policy: what a job may change, from the highest content root that has ``playbooks/policy.yaml``."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pairun.base.durations import DURATION_PATTERN, parse_duration
from pairun.errors import Place, Problem, Problems, Source, did_you_mean
from pairun.playbook.document.checking import Format, violations
from pairun.playbook.document.reading import Node, elements
from pairun.playbook.podkeys import policy_keys
from pairun.playbook.podschema import (
    DEFAULTS_SCHEMA,
    measured,
    pod_definitions,
    pod_mistakes,
    split_path,
)

_NAMES: dict[str, Any] = {"anyOf": [{"const": "*"}, {"type": "array", "items": {"type": "string"}}]}
_LIMITS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "object"]},
}
_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "pairun policy",
    "type": "object",
    "required": ["job_may"],
    "additionalProperties": False,
    "properties": {
        "job_may": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "patch": {
                    "anyOf": [{"const": "*"}, {"type": "object", "additionalProperties": _NAMES}]
                },
                "disable": _NAMES,
                "insert": {
                    "type": "object",
                    "properties": {"init": _NAMES, "runtime": _NAMES},
                    "additionalProperties": False,
                },
                "vars": _NAMES,
                "hold_max": {"type": "string", "pattern": DURATION_PATTERN},
                "plugins": {
                    "type": "object",
                    "properties": {
                        "allow": _NAMES,
                        "deny": {"type": "array", "items": {"type": "string"}},
                    },
                    "additionalProperties": False,
                },
            },
        },
        "job_yaml": {"enum": ["js-yaml 3", "js-yaml 4"]},
        "plugin_folders": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "roots": _NAMES,
                "paths": {"type": "array", "items": {"type": "string", "minLength": 1}},
            },
        },
        "pod": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "defaults": {"type": "object"},
                "set": {
                    "type": "array",
                    "items": {
                        "anyOf": [
                            {"type": "string"},
                            {
                                "type": "object",
                                "additionalProperties": {
                                    "type": "array",
                                    "items": {"type": "string"},
                                },
                            },
                        ]
                    },
                },
                "max": _LIMITS,
                "min": _LIMITS,
            },
        },
    },
}


def published_schema() -> dict[str, Any]:
    """The schema of a policy with that of Pod settings."""
    pod = _SCHEMA["properties"]["pod"]
    pod = {**pod, "properties": {**pod["properties"], "defaults": DEFAULTS_SCHEMA}}
    return {
        **_SCHEMA,
        "properties": {**_SCHEMA["properties"], "pod": pod},
        "$defs": pod_definitions(),
    }


NEVER_BY_STAR = ("on_exit", "environment", "exit_codes", "locked", "vars")
"""Keywords that ``"*"`` does not include; a job may set them only if a policy names them."""

_STAR_WORDS = f"'*' covers everything but {', '.join(NEVER_BY_STAR)}"


class Permission(NamedTuple):
    """Whether a job may do something, the policy's place, and a text that lists what is allowed."""

    allowed: bool
    place: Place
    words: str = ""

    def granted(self, problems: Problems, what: str, place: Place) -> bool:
        """Whether it is allowed; if not, report that the job may not ``what``."""
        if not self.allowed:
            also = [("the policy", self.place)]
            problems.error("PR402", f"a job may not {what}", place, self.words, also)
        return self.allowed


class Policy:
    """What a job may do.

    Args:
        node: the policy document.
        pod_defaults: default Pod settings from the policies of every root, the lowest first.
    """

    def __init__(self, node: Node, pod_defaults: Sequence[Node] = ()) -> None:
        self._may = node.get("job_may") or Node({}, node.place)
        self._folders = node.get("plugin_folders") or Node({}, node.place)
        reader = node.get("job_yaml")
        self.job_yaml = "js-yaml 3" if reader is None else str(reader.value)
        self._pod = node.get("pod") or Node({}, node.place)
        self.pod_defaults = tuple(pod_defaults)

    @property
    def place(self) -> Place:
        """The place of the policy."""
        return self._may.head

    def may_patch(self, id_: str, module: str, path: str) -> Permission:
        """Whether a job may change ``path`` (``retries``, ``args.depth``) of a task."""
        section = self._may.get("patch")
        if section is None:
            return Permission(False, self.place, "no task may be patched")
        if section.value == "*":
            return Permission(_covers("*", path), section.place, _STAR_WORDS)
        entries = [n for k, n in section.items() if k in (id_, module, "*")]
        if not entries:
            named = ", ".join(sorted(dict(section.items()))) or "none"
            return Permission(False, section.head, f"tasks that may be patched: {named}")
        for entry in entries:
            for allowed in ["*"] if entry.value == "*" else [n.value for n in entry.elements()]:
                if _covers(str(allowed), path):
                    return Permission(True, entry.place)
        allowed_here = sorted({str(a) for e in entries for a in _names(e)})
        words = f"of '{id_}' a job may change: {', '.join(allowed_here) or 'nothing'}"
        if "*" in allowed_here:
            words = _STAR_WORDS
        return Permission(False, entries[0].head, words)

    def may_disable(self, id_: str, module: str) -> Permission:
        """Whether a job may disable a task."""
        return self._listed(self._may.get("disable"), {id_, module}, "tasks that may be disabled")

    def may_insert(self, phase: str, module: str) -> Permission:
        """Whether a job may insert a task with this module into a phase."""
        section = self._may.get("insert")
        node = section.get(phase) if section else None
        what = f"modules that may be inserted into {phase}"
        if node is None and section is not None:
            return Permission(False, section.head, f"{what}: none")
        return self._listed(node, {module}, what)

    def may_set(self, name: str) -> Permission:
        """Whether a job may set and read a variable."""
        return self._listed(self._may.get("vars"), {name}, "variables that may be set")

    def may_use(self, plugin: str) -> Permission:
        """Whether a job may use a plugin."""
        section = self._may.get("plugins")
        for node in elements(section, "deny"):
            if node.value == plugin:
                return Permission(False, node.place, f"the policy denies the plugin {plugin}")
        return self._listed(section.get("allow") if section else None, {plugin}, "plugins")

    def unknown_plugins(self, known: Collection[str], *lists: str) -> Iterator[Problem]:
        """Warn of plugins that the policy names but that do not exist.

        Args:
            known: the names of all plugins.
            lists: ``allow``, ``deny``.
        """
        for name in lists:
            for node in elements(self._may.get("plugins"), name):
                if node.value not in (*known, "*"):
                    message, plugin = f"there is no plugin '{node.value}'", str(node.value)
                    hint = did_you_mean(plugin, known)
                    yield Problem("PR406", message, node.place, hint, "warning")

    def longest(self, bound: str) -> tuple[float, Place] | None:
        """The longest duration, in seconds, that a job may set for an argument with this bound."""
        node = self._may.get(bound)
        seconds = None if node is None else parse_duration(str(node.value))
        return None if node is None or seconds is None else (seconds, node.place)

    def plugin_paths(self) -> list[str]:
        """The paths of plugin folders in OpenPAI's form: in a content root, or absolute."""
        paths = self._folders.get("paths")
        return ["plugins"] if paths is None else [str(n.value) for n in paths.elements()]

    def may_bring_plugins(self, root: str) -> bool:
        """Whether init may run the programs of plugin folders of a cluster's root.

        By default all may run: the authors of a root also write its policy.
        """
        roots = self._folders.get("roots")
        names = ["*"] if roots is None else _names(roots)
        return "*" in names or os.path.realpath(root) in map(os.path.realpath, names)

    @property
    def pod_place(self) -> Place:
        """The place of what a job may set of its Pods."""
        section = self._pod.get("set") or self._pod
        return section.key or self.place

    @property
    def pod_paths(self) -> Iterator[tuple[str, Sequence[str] | None, Place]]:
        """The paths of Pod settings that a job may set, and the only values that it may set there."""
        for node in elements(self._pod, "set"):
            if isinstance(node.value, dict):
                for path, values in node.items():
                    allowed = [str(n.value) for n in values.elements()]
                    yield path, allowed, values.head
            else:
                yield str(node.value), None, node.place

    @property
    def pod_limits(self) -> list[tuple[str, Node, str, int]]:
        """The limits of Pod settings: path, limit, words, and -1 for the lowest."""
        return [
            (path, limit, words, sign)
            for edge, words, sign in (("max", "at most", 1), ("min", "at least", -1))
            for path, limit in _limits(self._pod.get(edge))
        ]

    def _listed(self, node: Node | None, names: set[str], what: str) -> Permission:
        if node is None:
            return Permission(False, self.place, f"{what}: none")
        allowed = _names(node)
        if "*" in allowed or names & set(allowed):
            return Permission(True, node.place)
        return Permission(False, node.head, f"{what}: {', '.join(allowed) or 'none'}")


def _names(node: Node) -> list[str]:
    return ["*"] if node.value == "*" else [str(n.value) for n in node.elements()]


def _covers(allowed: str, path: str) -> bool:
    if allowed == "*":
        return path.split(".", maxsplit=1)[0] not in NEVER_BY_STAR
    if allowed == path or path.startswith(allowed + "."):
        return True
    return allowed.endswith(".*") and path.startswith(allowed[:-1])


def _limits(node: Node | None, at: str = "") -> Iterator[tuple[str, Node]]:
    """The limits below a node; a mapping continues the path of its key."""
    for key, inner in node.items() if node else ():
        path = f"{at}.{key}" if at else key
        yield from _limits(inner, path) if isinstance(inner.value, dict) else ((path, inner),)


_FORMAT = Format("PR406", "PR406", "PR406")


def policy_mistakes(document: Node) -> Iterator[Problem]:
    """Yield the errors of a policy: of its form, and limits that cannot be compared."""
    pod = document.get("pod")
    if pod is not None and isinstance(pod.value, dict):
        gone = list(policy_keys(pod))
        yield from gone
        if (defaults := pod.get("defaults")) is not None and isinstance(defaults.value, dict):
            yield from pod_mistakes(defaults, DEFAULTS_SCHEMA, _FORMAT)
        if gone:
            pod = Node({k: n for k, n in pod.items() if k in ("set", "max", "min")}, pod.place)
            document = Node({**document.value, "pod": pod}, document.place)
    yield from violations(document, _SCHEMA, _FORMAT)
    for edge in ("max", "min"):
        for path, limit in _limits(document.at(("pod", edge))):
            if measured(path, limit.value) is None:
                message = f"'{edge}' of '{path}' must be a number, a quantity or a duration"
                yield Problem("PR406", message, limit.place, "for example 8, 16Gi or 7d")


def unknown_pod_paths(policy: Policy) -> Iterator[Problem]:
    """Warn of paths in a policy that no Pod setting has."""
    paths = [(path, place) for path, _, place in policy.pod_paths]
    paths += [(path, n.head) for path, n, *_ in policy.pod_limits]
    for path, place in paths:
        steps, known = split_path(path)
        if isinstance(known, list):
            hint = did_you_mean(steps[-1], known)
            message = f"there is no setting '{path}' of Pods"
            yield Problem("PR406", message, place, hint, "warning")


def read_policy(documents: Iterable[Node], problems: Problems) -> Policy:
    """The effective policy: the highest root's file; without one, a job may change nothing.

    Pod defaults come from every root: a higher root adds to a lower one's.
    """
    last: Node | None = None
    defaults = []
    for last in documents:
        problems.extend(policy_mistakes(last))
        if (given := last.at(("pod", "defaults"))) is not None and isinstance(given.value, dict):
            defaults.append(given)
    if last is None or not isinstance(last.value, dict):
        last = Node({}, Place(Source("policy.yaml", "built-in", ""), 1, 1))
    return Policy(last, defaults)
