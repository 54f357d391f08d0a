"""Writes Pod settings into the objects: over the Pod template, and into the spec of a Job or JobSet."""

from __future__ import annotations

import math

from pairun.base.durations import parse_seconds
from pairun.engines.manifest.choices import Object, Options
from pairun.engines.manifest.objectnames import JOB_LABEL, ROLE_LABEL
from pairun.job.model import Role
from pairun.playbook.podfragment import APP, overlaid

_DEADLINE = "activeDeadlineSeconds"


def apply_to_pod(template: Object, role: Role, options: Options) -> None:
    """Lay a role's settings over its Pod template.

    Args:
        template: metadata and spec; changed in place.
        role: the role.
        options: the options for the job's objects.
    """
    pod = options.pod(role.name)
    for part in ("metadata", "spec"):
        template[part] = overlaid(template[part], pod.get(part) or {})
    spec = template["spec"]
    init = spec["initContainers"][0]
    if (resources := pod.get("init_resources")) is not None:
        init |= overlaid(init, {"resources": resources})
    if (size := pod.get("shm")) is not None:
        [shm] = [v for v in spec["volumes"] if v["name"] == "dshm"]
        shm["emptyDir"] = {**shm["emptyDir"], "sizeLimit": str(size)}
    if (policy := pod.get(f"{APP}.imagePullPolicy")) is not None:
        init["imagePullPolicy"] = policy
    for constraint in spec.get("topologySpreadConstraints", ()):
        own = {JOB_LABEL: options.name, ROLE_LABEL: role.fc_name}
        constraint.setdefault("labelSelector", {"matchLabels": own})
    if options.engine in ("job", "jobset"):
        spec.pop(_DEADLINE, None)


def job_fields(role: Role, options: Options) -> Object:
    """The settings for the spec of a role's Job: the deadline counts from its first attempt."""
    deadline = options.pod(role.name).get(f"spec.{_DEADLINE}")
    return {} if deadline is None else {_DEADLINE: deadline}


def workload_fields(options: Options) -> Object:
    """The settings for the spec of a Job or a JobSet itself."""
    suspend, ttl = options.whole.get("suspend"), options.whole.get("ttl_after_finished")
    fields: Object = {} if suspend is None else {"suspend": suspend}
    if ttl is not None:
        fields["ttlSecondsAfterFinished"] = math.ceil(parse_seconds(ttl) or 0)
    return fields
