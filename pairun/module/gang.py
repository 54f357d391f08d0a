"""The instances of a job, as ``cluster.json`` lists them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import attrs

from pairun.base.foreignjson import parse_json
from pairun.base.paths import CLUSTER_FILE, MOVED_FILE, runtime_file
from pairun.module.context import Context
from pairun.module.failures import Permanent

RESTARTS = "PAIRUN_RESTARTS"
"""How often this container has restarted in its Pod since init ran; not set at its first start."""

_MAX_BYTES = 256 * 1024 * 1024


@attrs.frozen
class Instance:
    """One instance of the job.

    Attributes:
        role: its role, in the platform's name.
        job_role: its role, in the job's own name.
        index: its number in the role.
        host_ip: its address; empty if it is not known yet.
        ports: its ports by their names.
        own: whether it is this instance.
    """

    role: str
    job_role: str
    index: int
    host_ip: str
    ports: Mapping[str, Sequence[int]]
    own: bool


def cluster_path(ctx: Context) -> str:
    """The path of ``cluster.json``: init's, or after a restart the one with moved instances."""
    if ctx.env.get(RESTARTS):
        moved = os.path.join(ctx.pai_dir, MOVED_FILE)
        if ctx.stat(moved) is not None:
            return moved
    return runtime_file(ctx.pai_dir, CLUSTER_FILE)


def job_instances(ctx: Context) -> list[Instance]:
    """Every instance of the job in the order of ranks; none if init wrote no file.

    Raises:
        Permanent: the file does not have the form that init writes.
    """
    path = cluster_path(ctx)
    data = ctx.read_file(path, _MAX_BYTES)
    if data is None:
        return []
    try:
        cluster = parse_json(data)
        own = cluster.get("own", {})
        return [
            Instance(
                str(role["fc_name"]), str(role["name"]), int(each["index"]), str(each.get("host_ip") or ""),
                {name: [int(p) for p in ports] for name, ports in (each.get("ports") or {}).items()},
                (role["fc_name"], each["index"]) == (own.get("role"), own.get("index")),
            )
            for role in cluster["roles"]
            for each in role["instances"]
        ]  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise Permanent(
            f"{path} does not have the format that init writes: {e!r}", fault="platform"
        ) from e


def own_rank(instances: Sequence[Instance]) -> int:
    """The rank of this instance.

    Raises:
        Permanent: it is not among the instances.
    """
    for rank, instance in enumerate(instances):
        if instance.own:
            return rank
    raise Permanent("cluster.json does not list this instance", fault="platform")
