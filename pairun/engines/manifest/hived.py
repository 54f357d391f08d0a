"""``extras.hivedScheduler`` in the form that HiveD reads: an annotation of each Pod.

As OpenPAI's REST server makes it: https://github.com/microsoft/pai, rest-server,
``middlewares/v2/hived.js`` and ``models/v2/job/k8s.js``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pairun.base.sizes import quantity
from pairun.engines.manifest.choices import Object, Options
from pairun.errors import Problems, did_you_mean
from pairun.job.model import Job, Role
from pairun.job.writing import as_yaml
from pairun.playbook.document.reading import Node

SPEC = "hivedscheduler.microsoft.com/pod-scheduling-spec"
_ISOLATION = "hivedscheduler.microsoft.com/pod-leaf-cell-isolation"
_ENABLE = "hivedscheduler.microsoft.com/pod-scheduling-enable"
_PRIORITIES = {"crit": 120, "prod": 100, "test": 10, "oppo": -1}
_SWITCHES = ("gangReleaseEnable", "lazyPreemptionEnable", "ignoreK8sSuggestedNodes")
_ROLE_KEYS = ("pinnedCellId", "skuType", "skuNumber", "skuNum", "affinityGroupName", *_SWITCHES)
_DEVICES = "NVIDIA_VISIBLE_DEVICES"


def _hived(job: Job) -> Node | None:
    node = job.extras.get("hivedScheduler") if job.extras else None
    return node if node is not None and isinstance(node.value, dict) else None


def place_with_hived(template: Object, job: Job, role: Role, options: Options) -> None:
    """Turn a job's HiveD settings into its Pod's annotation; does nothing if there are none.

    HiveD assigns the GPUs, so HiveD's own resource replaces the GPU limit.

    Args:
        template: metadata and spec; changed in place.
        job: a job that passed `check_hived`.
        role: the role.
        options: the options for the job's objects.
    """
    hived = _hived(job)
    if hived is None:
        return
    spec, app = template["spec"], template["spec"]["containers"][0]
    template["metadata"]["annotations"][SPEC] = as_yaml(_scheduling_spec(job, role, hived, options))
    spec.setdefault("schedulerName", f"hivedscheduler-ds-{job.virtual_cluster}")
    app["resources"]["limits"].pop(options.gpu_resource, None)
    app["resources"]["limits"][_ENABLE] = "1"
    if role.resources.gpu:
        path = f"metadata.annotations['{_ISOLATION}']"
        others = [v for v in app["env"] if v["name"] != _DEVICES]
        field = {"name": _DEVICES, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        app["env"] = [*others, field]


def _scheduling_spec(job: Job, role: Role, hived: Node, options: Options) -> Object:
    own = _of_role(hived, role)
    priority = _value(hived, "jobPriorityClass")
    return {
        "virtualCluster": job.virtual_cluster,
        "priority": _PRIORITIES.get("test" if priority is None else priority),
        "pinnedCellId": _value(own, "pinnedCellId"),
        "leafCellType": _value(own, "skuType"),
        "leafCellNumber": _cells(role, hived, options),
        **{key: value for key in _SWITCHES if (value := _value(own, key)) is not None},
        "affinityGroup": _affinity_group(job, role, hived, options),
    }


def _affinity_group(job: Job, role: Role, hived: Node, options: Options) -> Object | None:
    """The group of Pods to place together: the group that a role names, or a gang's own."""
    names = {r.name: _value(_of_role(hived, r), "affinityGroupName") for r in job.roles}
    named = any(name is not None for name in names.values())
    group = names[role.name] if named else "default" if job.gang else None
    if group is None:
        return None
    return {
        "name": f"{job.framework_name}/{group}",
        "members": [
            {"podNumber": r.instances, "leafCellNumber": _cells(r, hived, options)}
            for r in job.roles
            if not named or names[r.name] == group
        ],
    }


def _cells(role: Role, hived: Node, options: Options) -> int:
    """How many leaf cells an instance needs: by the cluster's sizes, else one per GPU."""
    own, asked = _of_role(hived, role), role.resources
    skus = options.whole.get("hived_skus") or {}
    chosen = skus.get(_value(own, "skuType"))
    sizes = [chosen] if chosen else list(skus.values())
    if sizes:
        memory_mb = [(quantity(s["memory"]) or 0) / 2**20 for s in sizes]
        wanted = (
            (asked.gpu, min(s["gpu"] for s in sizes)),
            (asked.cpu, min(s["cpu"] for s in sizes)),
            (asked.memory_mb, min(memory_mb)),
        )
        return max(math.ceil(number / size) for number, size in wanted if size)
    return int(_value(own, "skuNumber") or _value(own, "skuNum") or asked.gpu)


def _of_role(hived: Node, role: Role) -> Node | None:
    return hived.at(("taskRoles", role.name))


def _value(node: Node | None, key: str) -> Any:
    child = node.get(key) if node is not None else None
    return None if child is None else child.value


def check_hived(job: Job, options: Options, problems: Problems) -> None:
    """Report what HiveD would refuse, and a missing scheduler.

    Args:
        job: the job.
        options: the options for the job's objects.
        problems: collects errors, and a warning if no setting names the scheduler.
    """
    given = job.extras.get("hivedScheduler") if job.extras else None
    if given is None or given.value is None:
        return
    hived = _hived(job)
    if hived is None:
        problems.error("PR503", "extras.hivedScheduler must be a mapping", given.place)
        return
    priority = hived.get("jobPriorityClass")
    if priority is not None and priority.value not in (None, *_PRIORITIES):
        words = f"jobPriorityClass must be one of {', '.join(_PRIORITIES)}"
        problems.error("PR503", words, priority.place)
    listed = hived.get("taskRoles")
    for name, own in listed.items() if listed else ():
        _check_role(job, name, own, problems)
    for role in job.roles:
        if not _cells(role, hived, options):
            problems.error(
                "PR782",
                f"how many cells of HiveD the role '{role.name}' needs is unknown: it has no GPU",
                role.node.key or role.node.place,
                "set the size of the cells in the cluster's policy: pod.defaults.hived_skus",
            )
    _check_groups(job, hived, problems)
    if options.whole.get("spec.schedulerName") is None:
        problems.warning(
            "PR784",
            f"HiveD's scheduler hivedscheduler-ds-{job.virtual_cluster} places the Pods; without "
            "it they stay pending",
            given.key or given.place,
            "leave out extras.hivedScheduler where the cluster has no HiveD, or name its scheduler "
            "with spec.schedulerName",
        )


def _check_role(job: Job, name: str, own: Node, problems: Problems) -> None:
    names = [r.name for r in job.roles]
    if name not in names:
        place, hint = own.key or own.place, did_you_mean(name, names)
        problems.error("PR509", f"extras.hivedScheduler: there is no role '{name}'", place, hint)
    for key, node in own.items():
        if key not in _ROLE_KEYS:
            problems.error(
                "PR502",
                f"HiveD has no '{key}'",
                node.key or node.place,
                did_you_mean(key, _ROLE_KEYS),
            )
    pinned = own.get("pinnedCellId")
    if pinned is not None and None not in (pinned.value, _value(own, "skuType")):
        words = f"the role '{name}' has skuType and pinnedCellId, and HiveD takes one of them"
        problems.error("PR503", words, pinned.key or pinned.place)


def _check_groups(job: Job, hived: Node, problems: Problems) -> None:
    """Check that the roles of an affinity group have the same cells."""
    first: dict[Any, Sequence[Any]] = {}
    for role in job.roles:
        own = _of_role(hived, role)
        name = _value(own, "affinityGroupName")
        cells = [_value(own, "skuType"), _value(own, "pinnedCellId")]
        if own is not None and name is not None and first.setdefault(name, cells) != cells:
            words = f"the roles of the affinity group '{name}' have different cells"
            problems.error("PR503", words, own.key or own.place)
