"""The settings of a job's Pods: layers of a fragment of a Pod template, and the policy's judgement.

Inside, the lists that merge by name are mappings from a name to the rest of the element. So a path
such as ``spec.containers.app.resources.limits.cpu`` names every value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from pairun.base.sizes import quantity
from pairun.errors import Place, Problem, Problems, Source, did_you_mean
from pairun.kube.ports import PORT_ANNOTATION
from pairun.playbook.document.reading import Node, entries
from pairun.playbook.document.scalars import js_text
from pairun.playbook.drafts import merged
from pairun.playbook.podschema import NAME_OF, measured, pod_mistakes
from pairun.playbook.policy import Policy

COMMAND_LINE = "command line"
"""The layer of command-line options."""
APP = "spec.containers.app"
"""The path of the user's container."""
_OPERATOR = ("built-in", "cluster")
"""The operator's own layers: a policy's limits do not apply to them."""
_NOWHERE = Place(Source("", "built-in", ""), 0, 0)


class PodSettings(NamedTuple):
    """The settings of a role's Pods after every layer.

    Attributes:
        root: the effective values with their history.
    """

    root: Node = Node({}, _NOWHERE)

    @property
    def values(self) -> dict[str, Node]:
        """Each value that is no mapping, by its path."""
        return dict(_leaves(self.root))

    def get(self, path: str) -> Any:
        """The value at a path as plain data; None if no layer sets it."""
        node = self.at(path)
        return None if node is None else node.plain()

    def at(self, path: str) -> Node | None:
        """The first node at a path; the step ``*`` is any."""
        return next((node for _, node in found(self.root, path)), None)

    def place(self, path: str) -> Place | None:
        """Where the value at a path was written."""
        node = self.at(path)
        return None if node is None else node.head

    def refused(self, problems: Iterable[Problem]) -> set[str]:
        """The paths of values that have an error, or are part of one that has."""
        return set(_refused(self.root, refusal_places(problems)))

    def above(self, *layers: str) -> dict[str, Node]:
        """The values that layers other than these set."""
        return {k: n for k, n in _leaves(self.root) if n.place.source.layer not in layers}


NO_POD_SETTINGS = PodSettings()


def refusal_places(problems: Iterable[Problem]) -> set[Place]:
    """The places of errors."""
    return {p.place for p in problems if p.severity == "error" and p.place is not None}


def places_of(node: Node) -> Iterator[Place]:
    """The places of a value, its key, and all its parts."""
    yield node.place
    if node.key is not None:
        yield node.key
    for inner in (*(n for _, n in node.items()), *node.elements()):
        yield from places_of(inner)


def found(node: Node, path: str, at: str = "") -> Iterator[tuple[str, Node]]:
    """The values at a dotted path with their own paths; the step ``*`` is any key or element."""
    if not path:
        yield at, node
    inner = (*node.items(), *((str(n), each) for n, each in enumerate(node.elements())))
    for key, each in inner if path else ():
        for word in dict.fromkeys((key, "*")):
            if path == word or path.startswith(f"{word}."):
                yield from found(each, path[len(word) + 1 :], f"{at}.{key}".lstrip("."))


def _leaves(node: Node, at: str = "") -> Iterator[tuple[str, Node]]:
    for key, each in node.items():
        path = f"{at}.{key}" if at else key
        if isinstance(each.value, dict) and each.value:
            yield from _leaves(each, path)
        else:
            yield path, each


def _refused(node: Node, places: set[Place], at: str = "") -> Iterator[str]:
    for key, each in node.items():
        path = f"{at}.{key}" if at else key
        if each.place in places or each.key in places:
            yield from (p for p, _ in _leaves(Node({key: each}, node.place), at))
        elif isinstance(each.value, dict):
            yield from _refused(each, places, path)
        elif not places.isdisjoint(places_of(each)):
            yield path


# --- one form for all layers ---------------------------------------------------------------------


def by_name(node: Node, problems: Problems) -> Node:
    """A layer whose lists of named things are mappings; reports a name that a list has twice."""
    if not isinstance(node.value, dict):
        return node
    values = {}
    for key, each in node.items():
        if key not in NAME_OF or not isinstance(each.value, list):
            values[key] = by_name(each, problems)
            continue
        named: dict[str, Node] = {}
        for element in each.elements():
            rest = dict(element.items())
            own = rest.pop(NAME_OF[key], None)
            name = "" if own is None else str(own.value)
            name = name.rstrip("/") or name
            if name in named:
                problems.error("PR783", f"'{name}' is twice in '{key}'", element.place)
            named[name] = by_name(Node(rest, element.place, element.key), problems)
        values[key] = Node(named, each.place, each.key)
    return Node(values, node.place, node.key)


def listed(value: Any) -> Any:
    """Plain data of a layer as Kubernetes has it, with lists of named things."""
    return overlaid({}, value) if isinstance(value, dict) else value


def overlaid(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a Pod template with a layer's plain data over it.

    Args:
        below: from the template, with lists.
        above: the layer, with named things as mappings.
    """
    made = dict(below)
    for key, value in above.items():
        old = made.get(key)
        if not isinstance(value, dict):
            made[key] = value
        elif (name_of := NAME_OF.get(key)) is not None:
            own = {each[name_of]: each for each in old or ()}
            names = dict.fromkeys((*own, *value))
            made[key] = [overlaid(own.get(n, {name_of: n}), value.get(n, {})) for n in names]
        elif key in ("limits", "requests"):
            made[key] = {**(old or {}), **{name: str(number) for name, number in value.items()}}
        else:
            made[key] = overlaid(old if isinstance(old, dict) else {}, value)
    return made


def _without_null(node: Node) -> Node | None:
    if not isinstance(node.value, dict) or not node.value:
        return None if node.value is None else node
    kept = {k: each for k, n in node.items() if (each := _without_null(n)) is not None}
    return Node(kept, node.place, node.key, node.overrides) if kept else None


# --- layers --------------------------------------------------------------------------------------


def pod_settings(
    policy: Policy,
    job: Node | None,
    flags: Node | None,
    role: str,
    aliases: Iterable[str],
    problems: Problems,
    asked: Node | None = None,
) -> PodSettings:
    """Stack the layers for one role, and judge them by the policy.

    The policy's ``set`` applies to the job only; ``max`` and ``min`` apply to options, too.

    Args:
        job: ``extras.pairun.pod``, valid by its schema.
        flags: the settings of command-line options, in the same form.
        aliases: other names that the job may use for it.
        problems: takes what the policy does not allow, and what is reserved for pairun.
        asked: the settings that other keys of the role amount to, below all layers.
    """
    of_job: list[Node] = []
    if job is not None:
        own = {k: n for k, n in job.items() if k != "roles"}
        roles = job.get("roles")
        of_job = [Node(own, job.place, job.key)]
        of_job += [n for k, n in (roles.items() if roles else ()) if k in (role, *aliases)]
        of_job = [by_name(each, problems) for each in of_job]
    for each in of_job:
        _check_permitted(policy, each, problems)
    defaults = (by_name(each, problems) for each in policy.pod_defaults)
    stacked = Node({}, _NOWHERE)
    for layer in (*defaults, *of_job, *([by_name(flags, problems)] if flags else ())):
        stacked = merged(stacked, layer)
    root = _without_null(stacked) or Node({}, _NOWHERE)
    _check_limits(policy, root if asked is None else merged(asked, root), problems)
    _check_reserved(root, problems)
    _check_volumes(root, problems)
    problems.extend(_size_warnings(root))
    return PodSettings(root)


def check_roles(job: Node | None, roles: Iterable[str], problems: Problems) -> None:
    """Report settings for roles that the job does not have."""
    names = list(roles)
    listed_roles = job.get("roles") if job is not None else None
    for name, node in listed_roles.items() if listed_roles else ():
        if name not in names:
            hint = did_you_mean(name, names)
            place = node.head
            problems.error("PR509", f"the job has no role '{name}'", place, hint)


# --- the policy ----------------------------------------------------------------------------------


class _Rule(NamedTuple):
    """What is left of a path that a policy permits, and the only values that it permits."""

    rest: str
    values: Sequence[str] | None


def check_sound_part(policy: Policy, job: Node, problems: Problems) -> None:
    """Report what the policy refuses in Pod settings with mistakes, besides these.

    Args:
        job: ``extras.pairun.pod``; the mistakes are reported elsewhere.
    """
    sound = _without(job, refusal_places(pod_mistakes(job)))
    own = {k: n for k, n in sound.items() if k != "roles"}
    for each in (Node(own, job.place, job.key), *(n for _, n in entries(sound, "roles"))):
        _check_permitted(policy, by_name(each, Problems()), problems)


def _without(node: Node, places: set[Place]) -> Node:
    """A tree without the entries and elements at some places."""
    value = node.value
    if isinstance(value, dict):
        value = {k: _without(n, places) for k, n in value.items() if not places & {n.place, n.key}}
    elif isinstance(value, list):
        value = [_without(n, places) for n in value if n.place not in places]
    return Node(value, node.place, node.key)


def _check_permitted(policy: Policy, layer: Node, problems: Problems) -> None:
    """Report what a job sets and the policy's ``set`` does not list."""
    rules = [_Rule(path, values) for path, values, _ in policy.pod_paths]
    for path, node, words in _forbidden(layer, rules):
        what = f"a job may not set 'pod.{path}'"
        also = [("the policy", policy.pod_place)]
        problems.error("PR402", what, node.head, words, also)


def _forbidden(node: Node, rules: Sequence[_Rule], at: str = "") -> Iterator[tuple[str, Node, str]]:
    """The values that no rule permits: their paths, and what would be permitted."""
    here = [rule for rule in rules if not rule.rest]
    values = [v for rule in here for v in rule.values or ()]
    parts = [*node.items(), *((str(n), each) for n, each in enumerate(node.elements()))]
    if any(rule.values is None for rule in here) or node.value == {}:
        return
    if not parts:
        may_be_null = here and node.value is None
        if not may_be_null and not any(fnmatchcase(js_text(node.value), v) for v in values):
            yield at, node, f"it may be {', '.join(values)}" if here else _permitted(rules, at)
    for key, each in parts:
        below = [*_after(key, rules), *here]
        path = f"{at}.{key}" if at else key
        if below:
            yield from _forbidden(each, below, path)
        else:
            yield path, each, _permitted(rules, at)
        if isinstance(node.value, list):
            yield from ((path, each, words) for words in _missing(each, below))


def _after(key: str, rules: Sequence[_Rule]) -> Iterator[_Rule]:
    """What is left of rules after a key."""
    for rest, values in rules:
        word = next((w for w in (key, "*") if rest == w or rest.startswith(f"{w}.")), None)
        if word is not None:
            yield _Rule(rest[len(word) + 1 :], values)


def _permitted(rules: Sequence[_Rule], at: str) -> str:
    names = sorted({rest.partition(".")[0] for rest, _ in rules if rest})
    return f"of 'pod{at and f'.{at}'}' a job may set: {', '.join(names) or 'nothing'}"


def _missing(element: Node, rules: Sequence[_Rule]) -> Iterator[str]:
    """Keys that a list's element must have, because without one it matches every value.

    A toleration without a key tolerates every taint
    (https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/).
    """
    free = {rest for rest, values in rules if values is None}
    for rest, values in rules:
        own = element.get(rest)
        if rest and values is not None and rest not in free and (own is None or own.value is None):
            yield f"it needs '{rest}', one of {', '.join(values)}: without one it means all"


def _check_limits(policy: Policy, root: Node, problems: Problems) -> None:
    """Report values of the job and of options beyond the policy's ``max`` and ``min``.

    Kubernetes takes a request that a container does not have from its limit
    (https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/).
    """
    for path, limit, words, sign in policy.pod_limits:
        values = dict(found(root, path))
        for at, node in found(root, path.replace(".requests", ".limits", 1)):
            values.setdefault(at.replace(".limits", ".requests", 1), node)
        for at, node in values.items():
            size, most = measured(path, node.value), measured(path, limit.value)
            is_within = size is not None and most is not None and sign * size <= sign * most
            if not is_within and node.place.source.layer not in _OPERATOR:
                edge = js_text(limit.value)
                message = f"'pod.{at}' must be {words} {edge}, not {js_text(node.value)}"
                problems.error("PR402", message, node.head, also=[("the policy", limit.head)])


# --- what no policy permits ----------------------------------------------------------------------

_RESERVED: Mapping[str, str | None] = {
    "spec.restartPolicy": None,
    "spec.terminationGracePeriodSeconds": "set 'grace' of the runtime playbook",
    "spec.initContainers.init": "init_resources sets the resources of pairun's init container",
    **dict.fromkeys(
        f"{APP}.{key}" for key in ("args", "terminationMessagePath", "terminationMessagePolicy")
    ),
    f"{APP}.command": "the role's commands are in the job",
    f"{APP}.image": "the role's image is in the job",
}
"""Fields that pairun sets itself, and what to set instead."""
_RESERVED_VOLUMES = frozenset(
    {"dshm", "pai-vol", "host-log", "logs", "job-exit-spec", "job-secrets", "rendezvous",
     "api-token", "job", "pairun-image"}
)  # fmt: skip
_RESERVED_NAMES: Mapping[str, tuple[frozenset[str], tuple[str, ...]]] = {
    "metadata.labels": (frozenset({"app.kubernetes.io/managed-by"}), ("pairun/", "FC_")),
    "metadata.annotations": (frozenset({PORT_ANNOTATION}), ("pairun/", "FC_")),
    "spec.volumes": (_RESERVED_VOLUMES, ("storage-",)),
    f"{APP}.env": (frozenset(), ("PAIRUN_", "PAI_", "FC_")),
}
"""Names, and beginnings of names, that are pairun's own."""


def _check_reserved(root: Node, problems: Problems) -> None:
    for path, instead in _RESERVED.items():
        for _, node in found(root, path):
            place = node.head
            problems.error("PR783", f"'pod.{path}' is reserved for pairun", place, instead)
    for path, (names, beginnings) in _RESERVED_NAMES.items():
        for _, listed_names in found(root, path):
            for name, node in listed_names.items():
                if name in names or name.startswith(beginnings):
                    message = f"'{name}' in 'pod.{path}' is reserved for pairun"
                    problems.error("PR783", message, node.head)


def _check_volumes(root: Node, problems: Problems) -> None:
    """Report volumes of several kinds, and mounts of volumes that no layer defines."""
    volumes = next((dict(node.items()) for _, node in found(root, "spec.volumes")), {})
    for name, node in volumes.items():
        if len(dict(node.items())) != 1:
            message = f"the volume '{name}' must have one kind"
            hint = "such as persistentVolumeClaim, configMap, secret or emptyDir"
            problems.error("PR783", message, node.head, hint)
    for kind in ("containers", "initContainers"):
        for _, mount in found(root, f"spec.{kind}.*.volumeMounts.*"):
            mounted = mount.get("name")
            if mounted is not None and mounted.value not in volumes:
                message = f"there is no volume '{mounted.value}' to mount"
                near = did_you_mean(str(mounted.value), volumes)
                problems.error("PR783", message, mount.place, near)


# --- sizes ---------------------------------------------------------------------------------------


_SIZES = (
    "shm", "init_resources.*.memory", "spec.volumes.*.emptyDir.sizeLimit",
    "spec.containers.*.resources.*.memory", "spec.initContainers.*.resources.*.memory",
)  # fmt: skip
_LEAST = 2**20
"""Bytes; Docker's default for /dev/shm is 64 MiB, and no container runs in 1 MiB of memory."""
_MOST_GI = 128
"""A number above this one more likely means MiB."""


def _size_warnings(root: Node) -> Iterator[Problem]:
    """A warning for each size below 1 MiB, which probably lacks a unit; 0 means no limit."""
    for path, node in (each for size in _SIZES for each in found(root, size)):
        if not 0 < (quantity(node.value) or 0) < _LEAST:
            continue
        word = js_text(node.value)
        number = re.match(r"[0-9]+", word)
        unit = "Gi" if number and int(number[0]) <= _MOST_GI else "Mi"
        yield Problem(
            "PR933",
            f"'pod.{path}' is {word}, which is less than 1 MiB",
            node.head,
            f"did you mean '{number[0] if number else word}{unit}'? a size without a unit is in bytes",
            "warning",
        )
