"""Wait until every task of the job has an address."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import random
import re
import socket
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from pairun.module import (
    CheckModule,
    Context,
    Duration,
    Failure,
    NotFound,
    Permanent,
    Result,
    TimedOut,
    Transient,
    arg,
    define,
    format_duration,
)

_SHOWN = 10
_MAX_BYTES = 256 * 1024 * 1024
# What the barrier leaves of the attempt's time, to say who is missing before it is stopped.
_RESERVE_S = 1.0
_TELL_S = 30.0
# How many questions a second the tasks of a gang ask the API server together, at most.
_TASKS_PER_S = 50.0
_FIRST_PAUSE_S = 1.0
# How many missing Pods are looked at in the end, and for how long in all.
_LOOKED_AT = 5
_LOOK_S = 5.0
_CONNECT_S = 0.5
_LOCAL = (
    "PAIRUN_GANG_DIR",
    "PAIRUN_HOST_IP",
    "FC_TASKROLE_NAME",
    "FC_TASK_INDEX",
    "FC_POD_UID",
)
_FRAMEWORK = ("FC_FRAMEWORK_NAMESPACE", "FC_FRAMEWORK_NAME")
_OWN = ("FC_TASKROLE_NAME", "FC_TASK_INDEX", "FC_POD_UID")
_INDEX_LABELS = ("batch.kubernetes.io/job-completion-index", "FC_TASK_INDEX")
_JOB_LABELS = ("jobset.sigs.k8s.io/replicatedjob-name", "FC_TASKROLE_NAME")
_JOB_INDEX = "jobset.sigs.k8s.io/job-index"


@define
class Barrier(CheckModule):
    """Wait until every task of the job has an address, and write them to the shared volume.

    With ``local`` every task announces itself in a directory that all share. With ``framework``
    FrameworkController's object knows every Pod; it becomes ``framework.json``. With ``pods`` the
    Pods of a label selector are counted; they become ``roster.json``.
    """

    phases = ("init",)
    privileges = (
        "may write to the shared volume and, with the local backend, to the gang's directory; "
        "with framework, `get frameworks` (and `get pods`, to say more of who is missing); with "
        "pods, `list pods`"
    )
    example = "barrier: {backend: local, interval: 1s, timeout: 5m}"

    backend: Literal["local", "framework", "pods"] = arg("Who knows the addresses.")
    interval: Duration = arg(
        "The longest time between two looks; a small gang looks more often.", default=Duration(10.0)
    )
    timeout: Duration = arg("How long to wait for the last task.", default=Duration(600.0))
    gang: bool = arg(
        "Wait for all tasks; if not, only until the Framework knows this Pod.", default=True
    )
    selector: str = arg("With pods: the labels of the Pods, as `job-name=x`.", default="")
    count: int = arg("With pods: how many there will be.", default=0)
    namespace: str = arg("With pods: where they are; this Pod's own by default.", default="")
    ready: str = arg(
        "With pods: when one counts: `address`, `init_finished` or `port:NUMBER`.",
        default="address",
    )

    def require(self) -> Iterator[str]:
        """The arguments of the backend are there."""
        if self.backend == "pods" and not self.selector:
            yield "the backend pods needs a selector"
        if self.backend == "pods" and self.count < 1:
            yield "the backend pods needs a count of 1 or more"
        port = re.fullmatch("port:([0-9]{1,5})", self.ready)
        if self.ready not in ("address", "init_finished") and not (
            port and 0 < int(port[1]) < 65536
        ):
            yield f"ready must be address, init_finished or port:NUMBER, not {self.ready!r}"

    def check(self, ctx: Context) -> Result:
        """Wait for the others, record them all."""
        say = _Speaker(ctx)
        try:
            if self.backend == "local":
                return self._local(ctx, say)
            interval, timeout = _limits(ctx.env)
            wait = _Wait(ctx, say, interval, float(timeout or self.timeout), float(self.interval))
            if self.backend == "framework":
                return _wait_for_framework(ctx, wait, gang=self.gang)
            pods = _Pods(ctx, self.selector, self.count, self.namespace, self.ready)
            return pods.wait(wait)
        except Failure as e:
            say.keep(f"{e.message}{f' ({e.hint})' if e.hint else ''}")
            raise

    def _local(self, ctx: Context, say: _Speaker) -> Result:
        _need(ctx.env, _LOCAL)
        gang = ctx.env["PAIRUN_GANG_DIR"]
        framework = _local_framework(ctx, gang)
        members = _members(framework)
        _announce(ctx, gang, members)
        found = self._wait(ctx, say, gang, members)
        _record(ctx, framework, found)
        return Result(message=f"all {len(members)} tasks have addresses")

    def _wait(self, ctx: Context, say: _Speaker, gang: str, members: list[_Member]) -> _Addresses:
        limit = float(self.timeout)
        if (left := ctx.remaining_s()) is not None:
            limit = max(0.0, min(limit, left - _RESERVE_S))
        start, told = ctx.now(), -1
        while True:
            found = _announced(ctx, gang, members)
            if len(found) != told:
                told = len(found)
                say.say(f"{told} of {len(members)} tasks have addresses")
            if len(found) == len(members):
                return found
            waited = ctx.now() - start
            if waited >= limit:
                missing = [str(m) for m in members if m not in found]
                raise TimedOut(
                    f"after {format_duration(limit)} {len(found)} of {len(members)} tasks have "
                    f"addresses; missing: {_some(missing)}",
                    fault="platform",
                    hint="see why those tasks do not start: resources, image, node",
                )
            ctx.sleep(min(self.interval, limit - waited))


# --- common to all -----------------------------------------------------------------------------------


class _Member(NamedTuple):
    """One task of the job."""

    role: str
    number: int

    def __str__(self) -> str:
        return f"{self.role}-{self.number}"


_Addresses = dict[_Member, dict[str, str]]


class _Look(NamedTuple):
    """What one look at the cluster showed: of ``total`` tasks, who is missing and why."""

    total: int
    missing: Mapping[str, str]
    done: bool


class _Speaker:
    """Says lines to people, and keeps them in ``barrier.log`` where the Pod has a log folder."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._lines: list[str] = []
        uid = ctx.env.get("FC_POD_UID", "")
        folder = os.path.join(ctx.pai_dir, "logs", uid)
        there = bool(re.fullmatch("[-0-9A-Za-z]+", uid)) and ctx.stat(folder) is not None
        self._path = os.path.join(folder, "barrier.log") if there else None

    def say(self, line: str) -> None:
        """Say and keep a line."""
        self._ctx.log(line)
        self.keep(line)

    def keep(self, line: str) -> None:
        """Keep a line that somebody else says."""
        if self._path is not None:
            clock = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._ctx.now()))
            self._lines.append(f"{clock} {line}\n")
            # The gang does not depend on it; the same lines are in the log of the phase.
            with contextlib.suppress(Failure):
                self._ctx.write_file(self._path, "".join(self._lines).encode())


class _Wait:
    """The wait itself: how long, how often, and what is said meanwhile.

    Args:
        ctx: the world.
        say: takes progress.
        exactly: seconds between two looks that the environment asks for, or None.
        timeout: seconds.
        at_most: the longest time between two looks where the environment asks for none.
    """

    def __init__(
        self, ctx: Context, say: _Speaker, exactly: float | None, timeout: float, at_most: float
    ) -> None:
        self._ctx = ctx
        self._say = say
        self._exactly = exactly
        self._at_most = at_most
        left = ctx.remaining_s()
        # The last word needs a few reads more.
        spare = _RESERVE_S + min(_LOOK_S, 0.2 * timeout)
        self._limit = timeout if left is None else max(0.0, min(timeout, left - spare))
        self._start = ctx.now()
        self._told_at = float("-inf")
        self._told = ""
        self._seen: _Look | None = None
        self._answered_at = self._start
        self._trouble: Failure | None = None

    @property
    def ask_s(self) -> float:
        """How long one question may take."""
        return min(10.0, max(1.0, self._limit - self._waited()))

    def until(self, look: Callable[[], _Look], explain: Callable[[_Look], str]) -> None:
        """Look until all is there.

        Args:
            look: one look; Transient and TimedOut are waited out.
            explain: more words on who is missing, in the end.

        Raises:
            TimedOut: somebody is missing, as the API server has told lately.
            Transient: the API server did not answer.
            Permanent: from the look.
        """
        while True:
            pause = self._one(look)
            if self._seen is not None and self._seen.done and self._trouble is None:
                return
            left = self._limit - self._waited()
            if left <= 0:
                raise self._over(explain)
            self._ctx.sleep(min(pause, left))

    def _one(self, look: Callable[[], _Look]) -> float:
        """One look; says how long to wait before the next."""
        try:
            self._seen, self._trouble = look(), None
        except (Transient, TimedOut) as e:
            self._trouble = e
            self._tell(f"{e.message}; asking again")
            # One after the other while it is young, then ever more seldom.
            shortest = min(max(_FIRST_PAUSE_S, self._silent_s() / 2), self._at_most)
            return max(e.retry_after_s or 0.0, self._jittered(shortest))
        self._answered_at = self._ctx.now()
        if not self._seen.done:
            count, total = len(self._seen.missing), self._seen.total
            names = _some(self._seen.missing)
            self._tell(f"waiting for {count} of {total} tasks: {names}")
        return self._pause(self._seen.total)

    def _pause(self, total: int) -> float:
        if self._exactly is not None:
            return self._exactly * random.uniform(0.95, 1.0)  # noqa: S311 - spreads load, hides nothing
        return self._jittered(max(_FIRST_PAUSE_S, total / _TASKS_PER_S))

    def _jittered(self, seconds: float) -> float:
        return min(seconds, self._at_most) * random.uniform(0.6, 1.0)  # noqa: S311 - likewise

    def _tell(self, line: str) -> None:
        now = self._ctx.now()
        if line != self._told or now - self._told_at >= _TELL_S:
            self._told, self._told_at = line, now
            self._say.say(line)

    def _waited(self) -> float:
        return self._ctx.now() - self._start

    def _silent_s(self) -> float:
        return self._ctx.now() - self._answered_at

    def _over(self, explain: Callable[[_Look], str]) -> Failure:
        """The last word: who is missing and why, or that nobody could tell."""
        limit = format_duration(self._limit)
        longest = max(_TELL_S, 3 * (self._exactly or self._at_most))
        if self._seen is None or (self._trouble is not None and self._silent_s() > longest):
            said = self._trouble.message if self._trouble else "nothing was asked"
            since = "" if self._seen is None else f" for {format_duration(self._silent_s())}"
            return Transient(
                f"the API server gave no answer that could be used{since or ' within ' + limit}: "
                f"{said}",
                fault="platform",
                hint="this says nothing of the other tasks; see the API server, and the network of "
                "this node",
            )
        seen = self._seen
        ready = seen.total - len(seen.missing)
        return TimedOut(
            f"after {limit} {ready} of {seen.total} tasks are ready; missing: {explain(seen)}",
            fault="platform",
            hint="see why those tasks do not start: resources, image, node",
        )


def _limits(env: Mapping[str, str]) -> tuple[float | None, float | None]:
    """Interval and timeout that the environment asks for, in the bounds of FrameworkBarrier.

    Raises:
        Permanent: a variable holds what it does not take.
    """
    bounds = {
        "BARRIER_CHECK_INTERVAL_SEC": (5, 1200),
        "BARRIER_CHECK_TIMEOUT_SEC": (60, 1200),
    }
    found: list[float | None] = []
    for name, (least, most) in bounds.items():
        text = env.get(name, "")
        number = int(text) if re.fullmatch(r"[0-9]{1,9}", text) else -1
        if text and not least <= number <= most:
            raise Permanent(
                f"{name} is {text[:20]!r}: it takes a number of seconds from {least} to {most}",
                fault="platform",
                hint="correct it, or leave it out for the playbook's value",
            )
        found.append(float(number) if text else None)
    return found[0], found[1]


def _need(env: Mapping[str, str], names: Iterable[str]) -> None:
    """Refuse an environment without some variables.

    Raises:
        Permanent: they are named.
    """
    if missing := [name for name in names if not env.get(name)]:
        raise Permanent(
            f"the barrier needs {', '.join(missing)} in its environment",
            fault="platform",
            hint="the engine that starts the tasks sets them",
        )


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more


def _write(ctx: Context, path: str, value: dict[str, Any], mode: int = 0o644) -> None:
    _write_bytes(ctx, path, json.dumps(value, indent=1).encode() + b"\n", mode)


def _write_bytes(ctx: Context, path: str, data: bytes, mode: int = 0o644) -> None:
    if ctx.stat(path) is None or ctx.read_file(path, _MAX_BYTES) != data:
        ctx.write_file(path, data, mode)


# --- local -------------------------------------------------------------------------------------------


def _local_framework(ctx: Context, gang: str) -> dict[str, Any]:
    """The Framework that the engine put there."""
    path = os.path.join(gang, "framework.json")
    data = ctx.read_file(path, _MAX_BYTES)
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
    _write(ctx, os.path.join(ctx.pai_dir, "framework.json"), _filled(framework, statuses))


def _filled(framework: dict[str, Any], statuses: list[Any]) -> dict[str, Any]:
    """A Framework with other task statuses."""
    status: dict[str, Any] = framework.get("status") or {}
    attempt: dict[str, Any] = {**(status.get("attemptStatus") or {})}
    attempt.pop("taskRoleStatusesCompressed", None)
    attempt["taskRoleStatuses"] = statuses
    return {**framework, "status": {**status, "attemptStatus": attempt}}


# --- framework ---------------------------------------------------------------------------------------


def _wait_for_framework(ctx: Context, wait: _Wait, *, gang: bool) -> Result:
    """Ask for the Framework until it has what is waited for; leave it on the volume."""
    _need(ctx.env, _FRAMEWORK if gang else (*_FRAMEWORK, *_OWN))
    namespace, name = (ctx.env[v] for v in _FRAMEWORK)
    path = f"/apis/frameworkcontroller.microsoft.com/v1/namespaces/{namespace}/frameworks/{name}"
    latest: list[_Framework] = []

    def look() -> _Look:
        latest[:] = [_Framework(ctx.ask_api(path, timeout_s=wait.ask_s), ctx.env)]
        return latest[0].gang() if gang else latest[0].own()

    wait.until(look, lambda seen: _explained(ctx, seen, latest[0].pod_names, namespace))
    latest[0].leave(ctx)
    tasks = f"all {len(latest[0].tasks)} tasks have addresses"
    return Result(message=tasks if gang else "the Framework knows this Pod and its host")


class _Framework:
    """One reading of the Framework.

    Args:
        found: what the API server answered.
        env: who asks.

    Raises:
        Permanent: it is another one than this Pod's.
        Transient: its statuses cannot be read.
    """

    def __init__(self, found: Any, env: Mapping[str, str]) -> None:
        self._env = env
        try:
            self._roles = {r["name"]: int(r["taskNumber"]) for r in found["spec"]["taskRoles"]}
            attempt = (found.get("status") or {}).get("attemptStatus") or {}
            self._statuses = _inflated(attempt)
            self.tasks = {
                _Member(role["name"], task["index"]): (task, task.get("attemptStatus") or {})
                for role in self._statuses
                for task in role.get("taskStatuses") or ()
                # Of a role or a task that was scaled down only the status is left for a while.
                if task["index"] < self._roles.get(role["name"], 0)
            }
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            raise Transient(f"the Framework cannot be read yet: {e!r}", fault="platform") from e
        self._object = found
        self._attempt = attempt.get("id")
        self._require_own()
        self.pod_names = {str(m): str(a.get("podName") or "") for m, (_, a) in self.tasks.items()}

    def _require_own(self) -> None:
        uid = (self._object.get("metadata") or {}).get("uid")
        if uid and self._env.get("FC_FRAMEWORK_UID") not in (None, "", uid):
            raise Permanent(
                "the Framework was deleted and made anew under the same name; this Pod belongs to "
                "the one that is gone",
                fault="platform",
                hint="nothing is left to do in it: the controller removes it",
            )

    def _other_attempt(self) -> str:
        """Why the statuses are not of this Pod's attempt; empty where they are."""
        own = self._env.get("FC_FRAMEWORK_ATTEMPT_ID") or ""
        if not own or self._attempt is None or str(self._attempt) == own:
            return ""
        return f"the Framework is in its attempt {self._attempt}, this Pod is of attempt {own}"

    def gang(self) -> _Look:
        """Whether every task that the job asks for has an address."""
        wanted = [_Member(role, i) for role, number in self._roles.items() for i in range(number)]
        other = self._other_attempt()
        missing = {str(m): other or self._lack(m) for m in wanted}
        missing = {name: why for name, why in missing.items() if why}
        return _Look(len(wanted), missing, not missing)

    def _lack(self, member: _Member) -> str:
        """What a task lacks to count; nothing where it counts."""
        task, attempt = self.tasks.get(member, ({}, {}))
        if task.get("deletionPending"):
            return "it is being removed"
        if attempt.get("podIP"):
            return ""
        return "its Pod has no address yet" if attempt.get("podUID") else "no Pod yet"

    def own(self) -> _Look:
        """Whether this very Pod and its host are known."""
        role, index, uid = (self._env[v] for v in _OWN)
        name = f"{role}-{index}"
        tasks = [a for m, (_, a) in self.tasks.items() if str(m) == name]
        attempt = tasks[0] if tasks else {}
        if other := self._other_attempt():
            lack = other
        elif not attempt.get("podUID"):
            lack = "the Framework does not know its Pod yet"
        elif attempt["podUID"] != uid:
            lack = f"the Framework has another Pod of it, {attempt['podUID']}"
        else:
            lack = "" if attempt.get("podHostIP") else "its Pod has no address yet"
        return _Look(1, {name: lack} if lack else {}, not lack)

    def leave(self, ctx: Context) -> None:
        """Leave the whole Framework, inflated, and what can be sourced."""
        whole = _filled(self._object, self._statuses)
        _write(ctx, os.path.join(ctx.pai_dir, "framework.json"), whole)
        script = _injector(self._statuses, self._roles).encode()
        _write_bytes(ctx, os.path.join(ctx.pai_dir, "injector.sh"), script, 0o755)


def _inflated(attempt: Mapping[str, Any]) -> list[Any]:
    """The task statuses, also where the controller compressed them; none yet is an empty list."""
    statuses, packed = attempt.get("taskRoleStatuses"), attempt.get("taskRoleStatusesCompressed")
    if statuses or not packed:
        return list(statuses or ())
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        data = inflater.decompress(base64.b64decode(packed), _MAX_BYTES)
        whole = data if inflater.eof else b"they end too early, or are too large"
        return list(json.loads(whole))
    except (binascii.Error, zlib.error, ValueError, TypeError, RecursionError) as e:
        message = f"the Framework's compressed task statuses cannot be read: {e}"
        raise Transient(message, fault="platform") from e


def _injector(statuses: list[Any], roles: Mapping[str, int]) -> str:
    """The script that FrameworkBarrier writes: the addresses of each role as variables."""
    own = "echo ./injector.sh:"
    lines = ["#!/bin/bash", "", f"{own} Start to inject environment variables"]
    for suffix in ("IPS", "ADDRESSES"):
        lines.append("")
        for role in statuses:
            name = role["name"]
            # It will be sourced.
            if name not in roles or not re.fullmatch("[A-Za-z0-9_]+", name):
                continue
            port = f":${{FB_{name.upper()}_PORT}}" if suffix == "ADDRESSES" else ""
            tasks = [t for t in role.get("taskStatuses") or () if t["index"] < roles[name]]
            ips = (str((t.get("attemptStatus") or {}).get("podIP") or "") for t in tasks)
            value = ",".join(f"{ip}{port}" for ip in ips if re.fullmatch("[0-9A-Fa-f.:]+", ip))
            variable = f"FB_{name.upper()}_{suffix}"
            lines += [f"export {variable}={value}", f"echo {variable}=${{{variable}}}"]
    lines += ["", f"{own} Succeeded to inject environment variables", ""]
    return "\n".join(lines)


# --- the last word -----------------------------------------------------------------------------------


def _explained(ctx: Context, seen: _Look, pods: Mapping[str, str], namespace: str) -> str:
    """Who is missing and why, with what their Pods say where they may be read."""
    reasons = dict(seen.missing)
    end, may_ask = ctx.now() + _LOOK_S, True
    asked = [n for n in seen.missing if pods.get(n)][:_LOOKED_AT]
    for name in asked:
        left = end - ctx.now()
        if not may_ask or left <= 0:
            break
        try:
            path = f"/api/v1/namespaces/{namespace}/pods/{pods[name]}"
            pod = ctx.ask_api(path, timeout_s=min(2.0, left))
            reasons[name] = _ailment(pod) or reasons[name]
        except NotFound:
            reasons[name] = "its Pod is gone"
        except Failure:
            # What is known is said; more needs a right that not every cluster grants.
            may_ask = False
    return _with_reasons(reasons)


def _with_reasons(reasons: Mapping[str, str]) -> str:
    """Names grouped by reason: the first ten names, and how many more there are."""
    groups: dict[str, list[str]] = {}
    for name, why in list(reasons.items())[:_SHOWN]:
        groups.setdefault(why, []).append(name)
    said = "; ".join(f"{', '.join(names)} ({why})" for why, names in groups.items())
    more = len(reasons) - _SHOWN
    return said + (f" and {more} more" if more > 0 else "")


def _ailment(pod: Any) -> str:
    """Why a Pod does not get on, in words; nothing where it does not say."""
    try:
        status = pod.get("status") or {}
        if pod["metadata"].get("deletionTimestamp"):
            return "its Pod is being deleted"
        for found in (_unscheduled(status), _container(status), _failed(status)):
            if found:
                return found
    except (KeyError, TypeError, AttributeError):
        pass
    return ""


def _unscheduled(status: Mapping[str, Any]) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            words = f"{condition.get('reason') or 'no reason'}: {condition.get('message') or ''}"
            return f"not scheduled, {_line(words.rstrip(': '))}"
    return ""


def _container(status: Mapping[str, Any]) -> str:
    both = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    for container in both:
        state, name = container.get("state") or {}, container.get("name")
        if (ended := state.get("terminated")) and ended.get("exitCode"):
            return _line(f"its container {name} failed with exit code {ended['exitCode']}")
        if (waits := state.get("waiting")) and waits.get("reason") != "PodInitializing":
            image = f" {container.get('image')}" if "Image" in str(waits.get("reason")) else ""
            said = f": {waits['message']}" if waits.get("message") else ""
            return _line(f"its container {name} waits, {waits.get('reason')}{image}{said}")
    return ""


def _failed(status: Mapping[str, Any]) -> str:
    if status.get("phase") == "Failed":
        return _line(f"its Pod failed: {status.get('reason') or ''} {status.get('message') or ''}")
    return "its Pod is pending" if status.get("phase") == "Pending" else ""


def _line(text: str) -> str:
    """A text of somebody else as one bounded, printable line."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= 200 else line[:199] + "…"


# --- pods --------------------------------------------------------------------------------------------


class _Pods:
    """The Pods that a selector finds."""

    def __init__(self, ctx: Context, selector: str, count: int, namespace: str, ready: str) -> None:
        self._ctx = ctx
        self._selector = selector
        self._count = count
        self._namespace = namespace or _own_namespace(ctx)
        self._ready = ready
        self._roster: list[dict[str, Any]] = []
        self._reached: set[str] = set()

    def wait(self, wait: _Wait) -> Result:
        """Wait until all of them are ready; leave their addresses on the volume."""
        wait.until(lambda: self._look(wait), lambda seen: _with_reasons(seen.missing))
        own = next((p["index"] for p in self._roster if p["own"]), None)
        pods = [{k: v for k, v in pod.items() if k != "own"} for pod in self._roster]
        roster = {
            "schema": 1,
            "namespace": self._namespace,
            "selector": self._selector,
            "own": own,
            "pods": pods,
        }
        _write(self._ctx, os.path.join(self._ctx.pai_dir, "roster.json"), roster)
        return Result(message=f"all {self._count} Pods are ready ({self._ready})")

    def _look(self, wait: _Wait) -> _Look:
        path = f"/api/v1/namespaces/{self._namespace}/pods"
        query = {"labelSelector": self._selector}
        found = self._ctx.ask_api(path, query=query, timeout_s=wait.ask_s)
        try:
            live = _latest([p for p in found["items"] if _is_live(p)])
            missing = {p["metadata"]["name"]: self._lack(p) for p in live}
            self._roster = [self._entry(i, p) for i, p in enumerate(live)]
        except (KeyError, TypeError, AttributeError, ValueError) as e:
            raise Transient(f"the list of Pods cannot be read: {e!r}", fault="platform") from e
        missing = {name: why for name, why in missing.items() if why}
        absent = self._count - len(live)
        if absent > 0:
            missing |= dict.fromkeys(self._absent(live), "no Pod yet")
        if absent < 0:
            missing |= {f"{-absent} Pods fewer": "the selector finds too many"}
        return _Look(self._count, missing, not missing)

    def _absent(self, live: list[Any]) -> list[str]:
        """Names for the Pods that are not there."""
        indices = {_index(p) for p in live}
        if indices and None not in indices and len({(_job(p), _job_index(p)) for p in live}) == 1:
            return [f"index {i}" for i in range(self._count) if i not in indices]
        return [f"Pod {n} of {self._count}" for n in range(len(live) + 1, self._count + 1)]

    def _lack(self, pod: Any) -> str:
        """What a Pod lacks to count; nothing where it counts."""
        ip = (pod.get("status") or {}).get("podIP")
        if not ip:
            return _ailment(pod) or "no address yet"
        if self._ready == "address":
            return ""
        if self._is_own(pod):
            raise Permanent(
                f"this Pod is one of those that it waits for to be ready ({self._ready}): it would "
                "wait for itself",
                fault="user",
                hint="let the selector find the others only, or wait for `ready: address`",
            )
        if self._ready == "init_finished":
            return "" if _init_finished(pod) else _ailment(pod) or "its init phase is not finished"
        return self._unreached(ip, int(self._ready.partition(":")[2]))

    def _unreached(self, ip: str, port: int) -> str:
        if ip not in self._reached:
            try:
                socket.create_connection((ip, port), _CONNECT_S).close()
            except OSError as e:
                return f"nobody answers at {ip}, port {port}: {_line(e.strerror or str(e))}"
            self._reached.add(ip)
        return ""

    def _is_own(self, pod: Any) -> bool:
        env, metadata = self._ctx.env, pod["metadata"]
        uid = env.get("POD_UID") or env.get("FC_POD_UID")
        name = env.get("POD_NAME") or env.get("FC_POD_NAME") or env.get("HOSTNAME")
        return bool(metadata["uid"] == uid if uid else metadata["name"] == name)

    def _entry(self, number: int, pod: Any) -> dict[str, Any]:
        status, metadata = pod.get("status") or {}, pod["metadata"]
        return {
            "index": number,
            "job": _job(pod) or None,
            "name": metadata["name"],
            "ip": status.get("podIP"),
            "uid": metadata["uid"],
            "host_ip": status.get("hostIP"),
            "own": self._is_own(pod),
        }


def _own_namespace(ctx: Context) -> str:
    if given := ctx.env.get("POD_NAMESPACE") or ctx.env.get("FC_FRAMEWORK_NAMESPACE"):
        return given
    mounted = "/var/run/secrets/kubernetes.io/serviceaccount"
    folder = ctx.env.get("PAIRUN_SERVICE_ACCOUNT_DIR") or mounted
    data = ctx.read_file(os.path.join(folder, "namespace"))
    return data.decode("ascii", "replace").strip() if data else "default"


def _is_live(pod: Any) -> bool:
    """Whether a Pod is one to reckon with: neither failed nor on its way out."""
    failed = (pod.get("status") or {}).get("phase") == "Failed"
    return not (failed or pod["metadata"].get("deletionTimestamp"))


def _latest(pods: list[Any]) -> list[Any]:
    """In order, of each place only the Pod that was made last."""
    places: dict[Any, Any] = {}
    for pod in sorted(pods, key=lambda p: str(p["metadata"].get("creationTimestamp"))):
        index = _index(pod)
        key = (_job(pod), _job_index(pod), index if index is not None else 0)
        places[(*key, "" if index is not None else pod["metadata"]["name"])] = pod
    return [places[key] for key in sorted(places)]


def _index(pod: Any) -> int | None:
    """The number that a Job or the controller gave a Pod."""
    metadata = pod["metadata"]
    for where in (metadata.get("labels") or {}, metadata.get("annotations") or {}):
        for name in _INDEX_LABELS:
            if re.fullmatch("[0-9]{1,9}", where.get(name, "")):
                return int(where[name])
    return None


def _job(pod: Any) -> str:
    labels = pod["metadata"].get("labels") or {}
    return next((labels[n] for n in _JOB_LABELS if n in labels), "")


def _job_index(pod: Any) -> int:
    text = (pod["metadata"].get("labels") or {}).get(_JOB_INDEX, "")
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else 0


def _init_finished(pod: Any) -> bool:
    status = pod.get("status") or {}
    if not pod["spec"].get("initContainers"):
        return status.get("phase") in ("Running", "Succeeded")
    ended = [(s.get("state") or {}).get("terminated") for s in status["initContainerStatuses"]]
    return all(e is not None and e.get("exitCode") == 0 for e in ended)
