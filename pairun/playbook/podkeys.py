"""The Pod settings of pairun 0.3, which now are fields of a Pod template: errors that show the new form."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from pairun.base.durations import parse_seconds
from pairun.errors import Problem
from pairun.playbook.document.checking import Format
from pairun.playbook.document.reading import Node

_APP = "spec.containers.app"
FIELDS: Mapping[str, str] = {
    "scheduler_name": "spec.schedulerName",
    "labels": "metadata.labels",
    "annotations": "metadata.annotations",
    "priority_class": "spec.priorityClassName",
    "node_selector": "spec.nodeSelector",
    "affinity": "spec.affinity",
    "tolerations": "spec.tolerations",
    "topology_spread": "spec.topologySpreadConstraints",
    "runtime_class": "spec.runtimeClassName",
    "host_network": "spec.hostNetwork",
    "host_ipc": "spec.hostIPC",
    "security.run_as_user": f"{_APP}.securityContext.runAsUser",
    "security.run_as_group": f"{_APP}.securityContext.runAsGroup",
    "security.fs_group": "spec.securityContext.fsGroup",
    "security.run_as_non_root": f"{_APP}.securityContext.runAsNonRoot",
    "security.seccomp": "spec.securityContext.seccompProfile",
    "security.apparmor": f"{_APP}.securityContext.appArmorProfile",
    "security.capabilities.add": f"{_APP}.securityContext.capabilities.add",
    "security.capabilities.drop": f"{_APP}.securityContext.capabilities.drop",
    "security.privileged": f"{_APP}.securityContext.privileged",
    "security.allow_privilege_escalation": f"{_APP}.securityContext.allowPrivilegeEscalation",
    "security.read_only_root": f"{_APP}.securityContext.readOnlyRootFilesystem",
    "resources": f"{_APP}.resources",
    "image_pull_policy": f"{_APP}.imagePullPolicy",
    "volumes": "spec.volumes",
    "mounts": f"{_APP}.volumeMounts",
    "active_deadline": "spec.activeDeadlineSeconds",
}
"""Each old setting, and the path of its field."""
_SECTIONS = frozenset(key.partition(".")[0] for key in FIELDS)


def moved_keys(settings: Node, form: Format) -> tuple[Node, list[Problem]]:
    """The settings without keys of 0.3, and an error for each of these.

    Args:
        settings: ``extras.pairun.pod``, or a policy's ``pod.defaults``.
    """
    rest, problems = {}, []
    for key, node in settings.items():
        if key == "roles" and isinstance(node.value, dict):
            roles = {name: moved_keys(role, form) for name, role in node.items()}
            rest[key] = Node({n: r for n, (r, _) in roles.items()}, node.place, node.key)
            problems += [p for _, found in roles.values() for p in found]
        elif key in _SECTIONS:
            message = (
                f"'{key}' is a setting of an earlier release: it is part of a Pod template now"
            )
            hint = f"write {flow(_new_form(key, node.plain()))}"
            problems.append(Problem(form.unknown, message, node.head, hint))
        else:
            rest[key] = node
    return Node(rest, settings.place, settings.key) if problems else settings, problems


def flow(fragment: dict[str, Any]) -> str:
    """A mapping in one line, without its outermost braces."""
    import yaml

    data = json.loads(json.dumps(fragment, default=str))
    text = yaml.safe_dump(data, default_flow_style=True, sort_keys=False, width=math.inf)
    return str(text).strip()[1:-1]


def _new_form(key: str, value: Any) -> dict[str, Any]:
    """The fragment for an old setting; a key that 0.3 did not have keeps its name."""
    made: dict[str, Any] = {}
    for path, each in _fields(key, value):
        at = made
        *above, last = path.split(".")
        for step in above:
            if step == "containers":
                at = at.setdefault(step, [{"name": "app"}])[0]
            elif step != "app":
                at = at.setdefault(step, {})
        at[last] = each
    return made


def _fields(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if key not in FIELDS and isinstance(value, dict):
        for name, inner in value.items():
            yield from _fields(f"{key}.{name}", inner)
        return
    if key in ("security.seccomp", "security.apparmor") and isinstance(value, str):
        kind, _, path = value.partition("/")
        value = {"type": "Localhost", "localhostProfile": path} if path else {"type": kind}
    elif key == "active_deadline" and isinstance(value, str):
        value = math.ceil(parse_seconds(value) or 0)
    yield FIELDS.get(key, key), value


def policy_keys(pod: Node) -> Iterator[Problem]:
    """Yield an error for each key of 0.3 in a policy's section ``pod``, with its new form."""
    if (named := pod.get("job_may")) is not None:
        keys = [str(n.value) for n in named.elements()]
        paths = [path for key in keys for path in _paths(key)]
        is_star = named.value == "*"
        hint = (
            "write the list set: of docs/policy.md" if is_star else f"write {flow({'set': paths})}"
        )
        yield _gone("job_may", named, hint)
    if (bounds := pod.get("bounds")) is not None:
        new: dict[str, Any] = {"max": {}, "min": {}, "set": []}
        for key, bound in bounds.items():
            path = _paths(key)[0]
            for edge in ("max", "min"):
                if (limit := bound.get(edge)) is not None:
                    new[edge][path] = limit.plain()
            if (allowed := bound.get("one_of")) is not None:
                new["set"].append({_ELEMENTS.get(key, path): allowed.plain()})
        hint = f"write {flow({k: v for k, v in new.items() if v})}"
        if any(bound.get("none_of") is not None for _, bound in bounds.items()):
            hint += "; for none_of list the values that a job may set, below set"
        yield _gone("bounds", bounds, hint)


_ELEMENTS = {
    "tolerations": "spec.tolerations.*.key",
    "topology_spread": "spec.topologySpreadConstraints.*.topologyKey",
    "volumes.hostPath": "spec.volumes.*.hostPath.path",
}
"""The field that 0.3 compared with the texts of a bound."""


_CLOSED = ("security.privileged", "security.capabilities.add")
"""What only its own name permitted in 0.3."""
_VOLUMES = ("configMap", "emptyDir", "persistentVolumeClaim", "secret")


def _paths(key: str) -> list[str]:
    """The paths that permit what a name permitted in 0.3."""
    if key in ("volumes", "volumes.hostPath"):
        kinds = _VOLUMES if key == "volumes" else ("hostPath",)
        return [f"spec.volumes.*.{kind}" for kind in kinds]
    open_keys = (k for k in FIELDS if k.startswith(f"{key}.") and k not in _CLOSED)
    below = [FIELDS[k] for k in ([key] if key in FIELDS else open_keys)]
    section, _, rest = key.partition(".")
    return below or [f"{FIELDS[section]}.{rest}" if section in FIELDS else key]


def _gone(key: str, node: Node, hint: str) -> Problem:
    message = (
        f"'pod.{key}' is a key of an earlier release; the policy has 'set', 'max' and 'min' now"
    )
    return Problem("PR406", message, node.head, hint)
