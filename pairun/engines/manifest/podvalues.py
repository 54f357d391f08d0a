"""Writes Pod settings where the table says: into the Pod template, its containers, its Job."""

from __future__ import annotations

import math
from typing import Any

from pairun.base.durations import parse_seconds
from pairun.engines.manifest.choices import Object, Options
from pairun.engines.manifest.objectnames import JOB_LABEL, ROLE_LABEL
from pairun.job.model import Role
from pairun.playbook.pod.layering import PodSettings
from pairun.playbook.pod.table import POD_SETTINGS, PodSetting


def apply_to_pod(template: Object, role: Role, options: Options) -> None:
    """Write a role's settings into its Pod template.

    Args:
        template: metadata and spec; changed in place.
        role: the role.
        options: the options for the job's objects.
    """
    pod, spec = options.pod(role.name), template["spec"]
    init, app = spec["initContainers"][0], spec["containers"][0]
    roots = {"pod": template, "init": init, "app": app}
    for setting in POD_SETTINGS.values():
        value = pod.get(setting.key)
        root, _, path = (setting.target_of(options.engine) or "").partition(".")
        if value is None or root not in roots:
            continue
        _put(roots[root], path.split("."), written(setting, value))
    if (size := pod.get("shm")) is not None:
        [shm] = [v for v in spec["volumes"] if v["name"] == "dshm"]
        shm["emptyDir"]["sizeLimit"] = str(size)
    if (policy := pod.get("image_pull_policy")) is not None:
        init["imagePullPolicy"] = app["imagePullPolicy"] = policy
    for constraint in spec.get("topologySpreadConstraints", ()):
        own = {JOB_LABEL: options.name, ROLE_LABEL: role.fc_name}
        constraint.setdefault("labelSelector", {"matchLabels": own})


def job_fields(role: Role, options: Options) -> Object:
    """The settings for the spec of a role's Job."""
    return _fields("job", options.pod(role.name), options)


def workload_fields(options: Options) -> Object:
    """The settings for the spec of the workload itself."""
    return _fields("workload", options.whole, options)


def _fields(root: str, pod: PodSettings, options: Options) -> Object:
    fields: Object = {}
    for setting in POD_SETTINGS.values():
        value = pod.get(setting.key)
        first, _, path = (setting.target_of(options.engine) or "").partition(".")
        if first == root and value is not None:
            fields[path] = written(setting, value)
    return fields


def written(setting: PodSetting, value: Any) -> Any:
    """Convert a value to the form that Kubernetes accepts."""
    if setting.kind == "duration":
        return math.ceil(parse_seconds(value) or 0)
    if setting.kind == "quantity":
        return str(value)
    if setting.kind == "quantities":
        return {name: str(number) for name, number in value.items() if number is not None}
    if setting.kind == "profile":
        return profile_field(value)
    if isinstance(value, dict):
        return {name: each for name, each in value.items() if each is not None}
    return value


def profile_field(name: str) -> Object:
    """A seccomp or AppArmor profile: RuntimeDefault, Unconfined, ``localhost/PATH``."""
    kind, _, path = name.partition("/")
    return {"type": "Localhost", "localhostProfile": path} if path else {"type": kind}


def _put(at: Object, path: list[str], value: Any) -> None:
    """Set a value at a path; merges mappings and appends to lists of volumes."""
    *folders, last = path
    for each in folders:
        at = at.setdefault(each, {})
    if isinstance(value, dict) and isinstance(at.get(last), dict):
        at[last] = {**at[last], **value}
    elif isinstance(value, list) and last in ("volumes", "volumeMounts"):
        at[last] = [*at[last], *value]
    else:
        at[last] = value
