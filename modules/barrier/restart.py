"""The barrier after a restart of the container in its Pod, when init does not run again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from pairun.module import RESTARTS, Context, Permanent, Result, parse_json

from .objects import MAX_BYTES, Member, Object, task_attempts
from .pods import PodsBackend
from .waiting import Wait

_SETTLE_S = 2.0
"""Seconds before the first check: instances that fail together are reported a moment later."""

_CLUSTER, _MOVED = ("runtime.d", "cluster.json"), ("run", "cluster.json")
"""On the volume: the cluster that init wrote, and the same with the current addresses."""


def meet_again(ctx: Context, interval: float, timeout: float) -> Result:
    """Wait until the containers of all other instances run or have succeeded, then renew addresses.

    An instance whose container runs counts, restarted or not. So two waiting instances see each
    other, and no instance waits for one that runs undisturbed.

    Args:
        ctx: the world.
        interval: the longest time between two checks, in seconds.
        timeout: how long to wait, in seconds.

    Raises:
        TimedOut: instances are missing at the end; the message names them and the reasons.
        Transient: the API server gives no usable answer.
        Permanent: this Pod cannot ask it, or init's files are unusable.
    """
    if not ctx.env.get(RESTARTS):
        return Result(message="the first start: the init container has waited")
    ctx.log("this container restarted: waiting until the containers of all other instances run")
    ctx.sleep(_SETTLE_S)
    look = Wait(ctx, PodsBackend(ctx, True, "running", ""), interval, timeout, ctx.log).result()
    moved = _renew(ctx, task_attempts(look.framework))
    message = f"all {len(look.members)} instances run"
    if moved:
        message += f"; {len(moved)} have new addresses"
    ctx.log(message)
    return Result(message=message, environment=_changed_variables(ctx.env, moved))


def _renew(ctx: Context, addresses: Mapping[Member, Object]) -> dict[str, str]:
    """Write the cluster with the current addresses if one has changed; returns old to new."""
    path, target = (os.path.join(ctx.pai_dir, *parts) for parts in (_CLUSTER, _MOVED))
    moved: dict[str, str] = {}
    try:
        cluster: Any = parse_json(ctx.read_file(path, MAX_BYTES) or b"{}")
        for role in cluster["roles"]:
            for instance in role["instances"]:
                now = addresses.get(Member(role["fc_name"], instance["index"]), {})
                old, new = instance.get("host_ip"), now.get("podHostIP")
                if old and new and old != new:
                    moved[old] = new
                    instance |= {"host_ip": new, "pod_uid": now.get("podUID")}
    except (ValueError, KeyError, TypeError) as e:
        message = f"{path} does not have the format that init writes: {e!r}"
        raise Permanent(message, fault="platform") from e
    ctx.remove(target)
    if moved:
        ctx.write_file(target, json.dumps(cluster).encode(), 0o644)
    return moved


def _changed_variables(env: Mapping[str, str], moved: Mapping[str, str]) -> dict[str, str]:
    """The job's variables that contain addresses from init, with the current ones."""
    if not moved:
        return {}
    old = re.compile(rf"(?<![\w.:])(?:{'|'.join(map(re.escape, moved))})(?![\w.])")
    ours = {n: old.sub(lambda m: moved[m[0]], v) for n, v in env.items() if n.startswith("PAI_")}
    return {name: value for name, value in ours.items() if value != env[name]}
