"""Wait until every task of the job has an address."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from pairun.module import (
    CheckModule,
    Context,
    Duration,
    Permanent,
    Result,
    TimedOut,
    arg,
    define,
    format_duration,
)

_SHOWN = 10
# What the barrier leaves of the attempt's time, to say who is missing before it is stopped.
_RESERVE_S = 1.0
_VARIABLES = (
    "PAIRUN_GANG_DIR",
    "PAIRUN_HOST_IP",
    "FC_TASKROLE_NAME",
    "FC_TASK_INDEX",
    "FC_POD_UID",
)


class _Member(NamedTuple):
    """One task of the job."""

    role: str
    number: int

    def __str__(self) -> str:
        return f"{self.role}-{self.number}"


_Addresses = dict[_Member, dict[str, str]]


@define
class Barrier(CheckModule):
    """Wait until every task of the job has an address; write them to ``framework.json``.

    With the local backend every task announces itself in a directory that all share. With the
    framework backend the controller knows every Pod.
    """

    phases = ("init",)
    privileges = (
        "may write to the shared volume and, with the local backend, to the gang's directory"
    )
    example = "barrier: {backend: local, interval: 1s, timeout: 5m}"

    backend: Literal["local", "framework"] = arg("Who knows the addresses.")
    interval: Duration = arg("How often to look.", default=Duration(10.0))
    timeout: Duration = arg("How long to wait for the last task.", default=Duration(600.0))

    def check(self, ctx: Context) -> Result:
        """Announce this task, wait for the others, record them all."""
        if self.backend == "framework":
            raise Permanent(
                "the framework backend is not part of this version",
                fault="platform",
                hint="use `backend: local`, or disable the barrier",
            )
        missing = [name for name in _VARIABLES if not ctx.env.get(name)]
        if missing:
            raise Permanent(
                f"the barrier needs {', '.join(missing)} in its environment",
                fault="platform",
                hint="the engine that starts the tasks sets them",
            )
        gang = ctx.env["PAIRUN_GANG_DIR"]
        framework = _framework(ctx, gang)
        members = _members(framework)
        _announce(ctx, gang, members)
        found = self._wait(ctx, gang, members)
        _record(ctx, framework, found)
        return Result(message=f"all {len(members)} tasks have addresses")

    def _wait(self, ctx: Context, gang: str, members: list[_Member]) -> _Addresses:
        limit = float(self.timeout)
        if (left := ctx.remaining_s()) is not None:
            limit = max(0.0, min(limit, left - _RESERVE_S))
        start, told = ctx.now(), -1
        while True:
            found = _announced(ctx, gang, members)
            if len(found) != told:
                told = len(found)
                ctx.log(f"{told} of {len(members)} tasks have addresses")
            if len(found) == len(members):
                return found
            waited = ctx.now() - start
            if waited >= limit:
                raise TimedOut(
                    f"after {format_duration(limit)} {len(found)} of {len(members)} tasks have "
                    f"addresses; missing: {_some(m for m in members if m not in found)}",
                    fault="platform",
                    hint="see why those tasks do not start: resources, image, node",
                )
            ctx.sleep(min(self.interval, limit - waited))


def _framework(ctx: Context, gang: str) -> dict[str, Any]:
    """The Framework that the engine put there."""
    path = os.path.join(gang, "framework.json")
    data = ctx.read_file(path, 256 * 1024 * 1024)
    if data is None:
        raise Permanent(f"there is no {path}", fault="platform")
    try:
        framework = json.loads(data)
        _members(framework)
    except (ValueError, KeyError, TypeError) as e:
        raise Permanent(f"{path} is no Framework: {e}", fault="platform") from e
    return framework  # type: ignore[no-any-return]


def _members(framework: dict[str, Any]) -> list[_Member]:
    roles = framework["spec"]["taskRoles"]
    return [_Member(role["name"], i) for role in roles for i in range(role["taskNumber"])]


def _announce(ctx: Context, gang: str, members: list[_Member]) -> None:
    """Tell the others this task's address, replacing what an earlier run of it told."""
    name = f"{ctx.env['FC_TASKROLE_NAME']}-{ctx.env['FC_TASK_INDEX']}"
    if name not in map(str, members):
        raise Permanent(f"the task {name} is not part of its own job", fault="platform")
    ip = ctx.env["PAIRUN_HOST_IP"]
    said = {"podUID": ctx.env["FC_POD_UID"], "podIP": ip, "podHostIP": ip}
    directory = os.path.join(gang, "announce")
    ctx.make_dir(directory)
    _write(ctx, os.path.join(directory, f"{name}.json"), said)


def _announced(ctx: Context, gang: str, members: list[_Member]) -> _Addresses:
    """The members that have told their address."""
    directory = os.path.join(gang, "announce")
    there = set(ctx.list_dir(directory) or ())
    found: _Addresses = {}
    for member in members:
        if f"{member}.json" not in there:
            continue
        try:
            said = json.loads(ctx.read_file(os.path.join(directory, f"{member}.json")) or b"")
            address = {key: said[key] for key in ("podUID", "podIP", "podHostIP")}
        except (ValueError, KeyError, TypeError):
            continue
        if address["podIP"]:
            found[member] = address
    return found


def _record(ctx: Context, framework: dict[str, Any], found: _Addresses) -> None:
    """Write the Framework with every task's address, as the controller would have it."""
    name = framework.get("metadata", {}).get("name", "job")
    roles: dict[str, list[dict[str, Any]]] = {r["name"]: [] for r in framework["spec"]["taskRoles"]}
    for member, address in found.items():
        own = {**address, "podName": f"{name}-{member}"}
        roles[member.role].append({"index": member.number, "attemptStatus": own})
    statuses = [{"name": role, "taskStatuses": tasks} for role, tasks in roles.items()]
    status: dict[str, Any] = framework.get("status") or {}
    attempt: dict[str, Any] = status.get("attemptStatus") or {}
    filled = {
        **framework,
        "status": {**status, "attemptStatus": {**attempt, "taskRoleStatuses": statuses}},
    }
    _write(ctx, os.path.join(ctx.pai_dir, "framework.json"), filled)


def _write(ctx: Context, path: str, value: dict[str, Any]) -> None:
    data = json.dumps(value, indent=1).encode() + b"\n"
    if ctx.stat(path) is None or ctx.read_file(path, 256 * 1024 * 1024) != data:
        ctx.write_file(path, data)


def _some(members: Iterable[_Member]) -> str:
    names = [str(m) for m in members]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
