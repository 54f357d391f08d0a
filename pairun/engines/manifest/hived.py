"""``extras.hivedScheduler`` in the form that HiveD reads: an annotation of each Pod.

As OpenPAI's REST server makes it: https://github.com/microsoft/pai, rest-server,
``middlewares/v2/hived.js`` and ``models/v2/job/k8s.js``.
"""

from __future__ import annotations

import math
from typing import Any

from pairun.base.sizes import quantity
from pairun.engines.manifest.choices import ManifestOptions
from pairun.errors import Problem, Problems
from pairun.job.model import Job, Role
from pairun.job.writing import as_yaml
from pairun.kube.owners import Object
from pairun.playbook.document.checking import Format, violations
from pairun.playbook.document.reading import Node

SPEC = "hivedscheduler.microsoft.com/pod-scheduling-spec"
_ISOLATION = "hivedscheduler.microsoft.com/pod-leaf-cell-isolation"
_ENABLE = "hivedscheduler.microsoft.com/pod-scheduling-enable"
_DEVICES = "NVIDIA_VISIBLE_DEVICES"
_PRIORITIES = {"crit": 120, "prod": 100, "test": 10, "oppo": -1}
_SWITCHES = ("gangReleaseEnable", "lazyPreemptionEnable", "ignoreK8sSuggestedNodes")
_NUMBER = {"type": ["integer", "null"]}
_OF_A_ROLE: Object = {
    **dict.fromkeys(("pinnedCellId", "skuType", "affinityGroupName", *_SWITCHES), True),
    "skuNumber": _NUMBER,
    "skuNum": _NUMBER,
}
"""The keys of a role, each with its schema."""


def _hived(job: Job) -> Node | None:
    node = job.extras.get("hivedScheduler") if job.extras else None
    return None if node is None or node.value is None else node


def _of_role(hived: Node, role: Role) -> Object:
    node = hived.at(("taskRoles", role.name))
    return {key: each.value for key, each in node.items()} if node else {}


def place_with_hived(template: Object, job: Job, role: Role, options: ManifestOptions) -> None:
    """Turn a job's HiveD settings into its Pod's annotation; does nothing if there are none.

    HiveD assigns the GPUs, so HiveD's own resource replaces the GPU limit.

    Args:
        template: metadata and spec; changed in place.
    """
    hived = _hived(job)
    if hived is None:
        return
    spec, app = template["spec"], template["spec"]["containers"][0]
    own, priority = _of_role(hived, role), hived.get("jobPriorityClass")
    made = {
        "virtualCluster": job.virtual_cluster,
        "priority": _PRIORITIES.get(str(priority.value or "test") if priority else "test"),
        "pinnedCellId": own.get("pinnedCellId"),
        "leafCellType": own.get("skuType"),
        "leafCellNumber": _cells(role, hived, options),
        **{key: own[key] for key in _SWITCHES if own.get(key) is not None},
        "affinityGroup": _affinity_group(job, role, hived, options),
    }
    template["metadata"]["annotations"][SPEC] = as_yaml(made)
    spec.setdefault("schedulerName", f"hivedscheduler-ds-{job.virtual_cluster}")
    app["resources"]["limits"].pop(options.gpu_resource, None)
    app["resources"]["limits"][_ENABLE] = "1"
    if role.resources.gpu:
        path = f"metadata.annotations['{_ISOLATION}']"
        others = [v for v in app["env"] if v["name"] != _DEVICES]
        field = {"name": _DEVICES, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        app["env"] = [*others, field]


def _affinity_group(job: Job, role: Role, hived: Node, options: ManifestOptions) -> Object | None:
    """The group of Pods to place together: the group that a role names, or a gang's own."""
    names = {r.name: _of_role(hived, r).get("affinityGroupName") for r in job.roles}
    if not any(name is not None for name in names.values()):
        names = dict.fromkeys(names, "default" if job.gang else None)
    group = names[role.name]
    if group is None:
        return None
    members = [
        {"podNumber": r.instances, "leafCellNumber": _cells(r, hived, options)}
        for r in job.roles
        if names[r.name] == group
    ]
    return {"name": f"{job.framework_name}/{group}", "members": members}


def _cells(role: Role, hived: Node, options: ManifestOptions) -> int:
    """How many leaf cells an instance needs: by the cluster's sizes, else one per GPU."""
    own, asked = _of_role(hived, role), role.resources
    skus = options.whole.get("hived_skus") or {}
    chosen = skus.get(own.get("skuType"))
    sizes = [chosen] if chosen else list(skus.values())
    if sizes:
        rows = [(s["gpu"], s["cpu"], (quantity(s["memory"]) or 0) / 2**20) for s in sizes]
        least = map(min, zip(*rows, strict=True))
        wanted = zip((asked.gpu, asked.cpu, asked.memory_mb), least, strict=True)
        most: int = max(math.ceil(number / size) for number, size in wanted if size)
        return most
    number = own.get("skuNumber") or own.get("skuNum") or asked.gpu
    return number if isinstance(number, int) else 0


def check_hived(job: Job, options: ManifestOptions, problems: Problems) -> None:
    """Report what HiveD would refuse, and a missing scheduler.

    Args:
        problems: collects errors, and a warning if no setting names the scheduler.
    """
    hived = _hived(job)
    if hived is None:
        return
    closed: Object = {"type": ["object", "null"], "additionalProperties": False}
    of_role = {**closed, "properties": _OF_A_ROLE}
    roles = {**closed, "properties": {role.name: of_role for role in job.roles}}
    priorities = {"enum": [*_PRIORITIES, None]}
    schema = {"type": "object", "properties": {"jobPriorityClass": priorities, "taskRoles": roles}}
    form = Format("PR502", "PR503", "PR503", dotted=True, adjust=_no_role)
    if wrong := list(violations(hived, schema, form, whole="extras.hivedScheduler")):
        problems.extend(wrong)
        return
    groups: dict[Any, tuple[Any, Any]] = {}
    for role in job.roles:
        own, at = _of_role(hived, role), hived.at(("taskRoles", role.name))
        name, cells = own.get("affinityGroupName"), (own.get("skuType"), own.get("pinnedCellId"))
        in_job = role.node.key or role.node.place
        in_hived = (at and at.key) or in_job
        rows = (
            (None not in cells, "PR503", in_hived, None,
             f"the role '{role.name}' has skuType and pinnedCellId, and HiveD takes one of them"),
            (name is not None and groups.setdefault(name, cells) != cells, "PR503", in_hived, None,
             f"the roles of the affinity group '{name}' have different cells"),
            (not _cells(role, hived, options), "PR782", in_job,
             "set the size of the cells in the cluster's policy: pod.defaults.hived_skus",
             f"how many cells of HiveD the role '{role.name}' needs is unknown: it has no GPU"),
        )  # fmt: skip
        for is_wrong, id_, place, hint, words in rows:
            if is_wrong:
                problems.error(id_, words, place, hint)
    if options.whole.get("spec.schedulerName") is None:
        problems.warning(
            "PR784",
            f"HiveD's scheduler hivedscheduler-ds-{job.virtual_cluster} places the Pods; without "
            "it they stay pending",
            hived.key or hived.place,
            "leave out extras.hivedScheduler where the cluster has no HiveD, or name its scheduler "
            "with spec.schedulerName",
        )


def _no_role(path: tuple[str | int, ...], _: Node, problem: Problem) -> Problem:
    return problem._replace(id="PR509") if len(path) == 2 and problem.id == "PR502" else problem
