"""The barrier after a restart of the container in its Pod, when init does not run again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from pairun.module import RESTARTS, Context, Permanent, Result, parse_json

from .objects import MAX_BYTES, Object, task_attempts
from .pods import PodsBackend
from .waiting import Wait

_SETTLE_S = 2.0
"""Seconds before the first check: tasks that fail together are reported a moment later."""

_CLUSTER, _MOVED = ("runtime.d", "cluster.json"), ("run", "cluster.json")
"""On the volume: the cluster that init wrote, and the same with the current addresses."""


def meet_again(ctx: Context, interval: float, timeout: float, looks_per_s: float) -> Result:
    """Wait until the containers of all other tasks run or have succeeded, then renew addresses.

    A task whose container runs counts, restarted or not. So two waiting tasks see each other, and
    no task waits for one that runs undisturbed.

    Args:
        ctx: the world.
        interval: the longest time between two checks, in seconds.
        timeout: how long to wait, in seconds.
        looks_per_s: number of checks per second that the whole gang sends to the API server.

    Raises:
        TimedOut: tasks are missing at the end; the message names them and the reasons.
        Transient: the API server gives no usable answer.
        Permanent: this Pod cannot ask it, or init's files are unusable.
    """
    if not ctx.env.get(RESTARTS):
        return Result(message="the first start: the init container has waited")
    ctx.log("this container restarted: waiting until the containers of all other tasks run")
    ctx.sleep(_SETTLE_S)
    wait = Wait(ctx, PodsBackend(ctx, True, "running", ""), interval, timeout, ctx.log)
    wait.looks_per_s = looks_per_s
    look = wait.result()
    addresses = {
        (member.role, member.number): attempt for member, attempt in task_attempts(look.framework)
    }
    moved = _renew(ctx, addresses)
    environment = {n: v for n, v in _variables(ctx.env, moved).items() if v != ctx.env[n]}
    message = f"all {len(look.members)} tasks run"
    if moved:
        message += f"; {len(moved)} have new addresses"
    ctx.log(message)
    return Result(message=message, environment=environment)


def _renew(ctx: Context, addresses: Mapping[tuple[str, int], Object]) -> dict[str, str]:
    """Write the cluster with the current addresses if one has changed; returns old to new."""
    path, target = (os.path.join(ctx.pai_dir, *parts) for parts in (_CLUSTER, _MOVED))
    moved: dict[str, str] = {}
    try:
        cluster: Any = parse_json(ctx.read_file(path, MAX_BYTES) or b"{}")
        for role in cluster["roles"]:
            for instance in role["instances"]:
                now = addresses.get((role["fc_name"], instance["index"]), {})
                old, new = instance.get("host_ip"), now.get("podHostIP")
                if old and new and old != new:
                    moved[old] = new
                    instance |= {"host_ip": new, "pod_uid": now.get("podUID")}
    except (ValueError, KeyError, TypeError) as e:
        raise Permanent(
            f"{path} does not have the format that init writes: {e!r}", fault="platform"
        ) from e
    ctx.remove(target)
    if moved:
        ctx.write_file(target, json.dumps(cluster).encode(), 0o644)
    return moved


def _variables(env: Mapping[str, str], moved: Mapping[str, str]) -> dict[str, str]:
    """The job's variables with the current addresses instead of those from init."""
    if not moved:
        return {}
    old = re.compile(rf"(?<![\w.:])(?:{'|'.join(map(re.escape, moved))})(?![\w.])")
    ours = {name: value for name, value in env.items() if name.startswith("PAI_")}
    return {name: old.sub(lambda m: moved[m[0]], value) for name, value in ours.items()}
