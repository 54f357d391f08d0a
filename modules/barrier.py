"""Wait until every task of the job has an address."""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import quote

from pairun.module import (
    PORT_ANNOTATION,
    CheckModule,
    Context,
    Duration,
    Failure,
    Gathering,
    Peer,
    Permanent,
    PortPlan,
    Result,
    TimedOut,
    Transient,
    arg,
    define,
    format_duration,
    init_succeeded,
    port_annotation,
    task_statuses,
    why_missing,
)

_Object = dict[str, Any]

_SHOWN = 10
# What the barrier leaves of the attempt's time, to say who is missing before it is stopped.
_RESERVE_S = 1.0
# How long one question to the API server may take, and those about who is missing together.
_ANSWER_S = 30.0
_REASONS_S = 10.0
_REASONS_IN_LARGE_GANGS = 3
_LARGE_GANG = 100
# Looks per second of a whole gang at one API server, and the shortest time between those of one.
_LOOKS_PER_S = {"framework": 150.0, "pods": 25.0}
_SHORTEST_S = 1.0
# How long the job's leader may take to be reached before the API server is looked at instead.
_PATIENCE_S = 20.0
# While the leader is reached the API server is looked at this seldom, and in large gangs never:
# a leader that began anew has nobody to tell about.
_SELDOM_S, _SELDOM_PER_TASK_S = 90.0, 0.06
# A Framework of more tasks is over a megabyte; ten thousand Pods do not read ten thousand of those.
_WHOLE_FRAMEWORK = 800
_MAX_BYTES = 256 * 1024 * 1024
_METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_FRAMEWORKS = "/apis/frameworkcontroller.microsoft.com/v1/namespaces/{}/frameworks/{}"
_PODS = "/api/v1/namespaces/{}/pods"
_JOB_LABEL, _ROLE_LABEL = "pairun/job", "pairun/role"
_INDEX_LABELS = ("pairun/index", "batch.kubernetes.io/job-completion-index")

_INSTANCE = ("FC_TASKROLE_NAME", "FC_TASK_INDEX", "FC_POD_UID")
_OBJECT = ("FC_FRAMEWORK_NAMESPACE", "FC_FRAMEWORK_NAME")
_NEEDED = {
    "local": ("PAIRUN_GANG_DIR", "PAIRUN_HOST_IP", *_INSTANCE),
    "framework": (*_OBJECT, *_INSTANCE),
    "pods": ("PAIRUN_FRAMEWORK_FILE", *_OBJECT, *_INSTANCE),
}
# Variables that FrameworkController's barrier reads, with the least and the most it accepts.
_SETTINGS = {
    "BARRIER_CHECK_INTERVAL_SEC": (5, 1200),
    "BARRIER_CHECK_TIMEOUT_SEC": (60, 1200),
}


class _Member(NamedTuple):
    """One task of the job."""

    role: str
    number: int

    def __str__(self) -> str:
        return f"{self.role}-{self.number}"


class _Look(NamedTuple):
    """What one look found.

    Attributes:
        framework: the Framework with every address that is known.
        members: who is waited for.
        missing: those of them who are not there.
        foreign: why the whole does not count, however complete it is; empty where it does.
    """

    framework: _Object
    members: list[_Member]
    missing: list[_Member]
    foreign: str = ""

    @property
    def complete(self) -> bool:
        """Whether nobody is waited for any more."""
        return not self.missing and not self.foreign

    def __str__(self) -> str:
        here = len(self.members) - len(self.missing)
        return f"{here} of {len(self.members)} tasks have addresses"


class _Backend(Protocol):
    """Who knows the addresses."""

    def look(self) -> _Look:
        """What is known now.

        Raises:
            Transient: nothing, and that may change.
            TimedOut: likewise.
            Permanent: nothing, and that will not change.
        """

    def why(self, missing: list[_Member]) -> Iterator[tuple[_Member, str]]:
        """Why tasks are missing, as far as this Pod may know.

        Raises:
            Failure: it may not, or not now.
        """


@define
class Barrier(CheckModule):
    """Wait until every task of the job has an address; write them to ``framework.json``.

    With the local backend every task announces itself in a directory that all share. With the
    framework backend the controller knows every Pod, with the pods backend the Pods themselves are
    asked for; both ask the cluster's API server, and also leave ``injector.sh`` and, in the Pod's
    log directory, ``barrier.log``. Where the tasks find each other (docs/rendezvous.md), they tell
    each other their addresses, and the server is asked for little.

    ``BARRIER_CHECK_INTERVAL_SEC`` and ``BARRIER_CHECK_TIMEOUT_SEC``, where they are set, count
    in place of ``interval`` and ``timeout``.
    """

    phases = ("init",)
    privileges = (
        "may write to the shared volume and, with the local backend, to the gang's directory; the "
        "others need to get frameworks or list pods, and to get pods to say who is missing why"
    )
    example = "barrier: {backend: local, interval: 1s, timeout: 5m}"

    backend: Literal["local", "framework", "pods"] = arg("Who knows the addresses.")
    gang: bool = arg("Wait for all tasks; if not, only for this one (local: always all).",
                     default=True)  # fmt: skip
    interval: Duration = arg("How often to look at most; small gangs are looked at more often.",
                             default=Duration(10.0))  # fmt: skip
    timeout: Duration = arg("How long to wait for the last task.", default=Duration(600.0))
    ready: Literal["address", "init", "port"] = arg(
        "With pods, what the others must have: an address, ended init containers, an open port.",
        default="address",
    )
    port: str = arg("With `ready: port`, the label of the TCP port that must answer.", default="")
    compat: Literal["", "strict"] = arg(
        "strict: `framework.json` is the whole object, also of more than 800 tasks.", default=""
    )

    def require(self) -> Iterator[str]:
        """A port to ask goes with asking for ports, among Pods."""
        if (self.ready == "port") != bool(self.port):
            yield "`ready: port` and `port` go together"
        if self.ready != "address" and self.backend != "pods":
            yield f"`ready: {self.ready}` needs `backend: pods`"

    def check(self, ctx: Context) -> Result:
        """Wait for the others, record them all."""
        missing = [name for name in _NEEDED[self.backend] if not ctx.env.get(name)]
        if missing:
            raise Permanent(
                f"the barrier needs {', '.join(missing)} in its environment",
                fault="platform",
                hint="the engine that starts the tasks sets them",
            )
        found = self._obtain(ctx)
        _write_framework(ctx, found.framework)
        if self.backend != "local":
            _write_injector(ctx, found.framework)
        message = f"all {len(found.members)} tasks have addresses"
        return Result(message=message if self.gang else "this task has its address")

    def _obtain(self, ctx: Context) -> _Look:
        """The Framework with every address."""
        if self.backend == "local":
            local = _Local(ctx)
            return _Wait(ctx, local, self.interval, self.timeout, ctx.log).result()
        given = {name: _setting(ctx, name) for name in _SETTINGS}
        timeout = given["BARRIER_CHECK_TIMEOUT_SEC"] or self.timeout
        backend: _Framework | _Pods
        if self.backend == "framework":
            backend = _Framework(ctx, self.gang, strict=self.compat == "strict")
        else:
            backend = _Pods(ctx, self.gang, self.ready, self.port)
        log = _Log(ctx)
        wait = _Wait(ctx, backend, self.interval, timeout, log.say)
        roles = _parsed(ctx.env.get("PAIRUN_ROLES", "{}").encode(), "PAIRUN_ROLES")
        if self.gang and self.ready == "address" and roles:
            counts = {name: role["count"] for name, role in roles.items()}
            if (gathering := ctx.gather(counts, log.say)) is not None:
                tasks = sum(counts.values())
                wait.meet(gathering, tasks, lambda: backend.met(roles, gathering))
        if interval := given["BARRIER_CHECK_INTERVAL_SEC"]:
            wait.interval = interval
        else:
            wait.looks_per_s = _LOOKS_PER_S[self.backend]
        try:
            return wait.result()
        except Failure as e:
            log.keep(e.message)
            raise


class _Wait:
    """Looks until all is well or the time is up.

    Args:
        ctx: the world.
        backend: where to look.
        interval: seconds between two looks; with ``looks_per_s``, the most.
        timeout: seconds in all.
        say: takes lines for people.
    """

    def __init__(
        self, ctx: Context, backend: _Backend, interval: float, timeout: float, say: Any
    ) -> None:
        self._ctx, self._backend, self._say = ctx, backend, say
        self.interval, self._limit = interval, timeout
        # How many looks of a whole gang one server should get; 0 where nobody is asked.
        self.looks_per_s = 0.0
        if (left := ctx.remaining_s()) is not None:
            self._limit = max(0.0, min(timeout, left - _RESERVE_S))
        self._trouble: Failure | None = None
        self._troubles = 0
        self._look: _Look | None = None
        self._said = ""
        self._gathering: Gathering | None = None
        self._met: Callable[[], _Look] | None = None
        self._tasks = 0

    def meet(self, gathering: Gathering, tasks: int, met: Callable[[], _Look]) -> None:
        """Wait for the others themselves; look only where they do not find each other.

        Args:
            gathering: the others on their way.
            tasks: how many there are.
            met: what is known once all are there and have proven it.
        """
        self._gathering, self._tasks, self._met = gathering, tasks, met

    def result(self) -> _Look:
        """The last look, which found everybody.

        Raises:
            TimedOut: some were missing to the end; who, and why.
            Transient: to the end there was no answer that counts.
            Permanent: waiting on would not help.
        """
        start, turn = self._ctx.now(), 0
        looked = float("-inf")
        while True:
            gathering = self._gathering
            if (look := self._together()) is not None:
                return look
            if self._gathering is not gathering:
                looked = float("-inf")  # what is known now was not known then
            now = self._ctx.now()
            left = self._limit - (now - start)
            wait = max(looked + self._pause(turn), start + self._patience(turn)) - now
            if left > 0 and wait > 0:
                self._rest(min(left, wait))
                continue
            look = self._once()
            if look is not None and look.complete:
                if self._gathering is not None:
                    self._gathering.close()
                return look
            looked = self._ctx.now()
            if self._limit <= looked - start:
                raise self._late()
            turn += 1

    def _patience(self, turn: int) -> float:
        """Seconds from the beginning in which only the others are listened to."""
        if self._gathering is None:
            return 0.0
        if not self._gathering.connected:
            return _PATIENCE_S
        return (turn + 1) * max(_SELDOM_S, self._tasks * _SELDOM_PER_TASK_S)

    def _together(self) -> _Look | None:
        """What the others told, once all are there; the gathering is over then."""
        gathering = self._gathering
        if gathering is None or not (gathering.complete or gathering.over):
            return None
        self._gathering = None
        if gathering.over:
            self._say(f"the tasks do not find each other: {gathering.over}")
        if gathering.peers is None or self._met is None:
            return None
        self._say(f"all {len(gathering.peers)} tasks have found each other")
        return self._met()

    def _rest(self, seconds: float) -> None:
        if self._gathering is None:
            self._ctx.sleep(seconds)
        else:
            self._gathering.wait(seconds)

    def _once(self) -> _Look | None:
        try:
            self._look = self._backend.look()
        except (Transient, TimedOut) as e:
            self._trouble, self._troubles = e, self._troubles + 1
            self._tell(f"{e.message}; trying again")
            return None
        self._trouble, self._troubles = None, 0
        self._tell(
            str(self._look) + (f", but {foreign}" if (foreign := self._look.foreign) else "")
        )
        return self._look

    def _tell(self, line: str) -> None:
        if line != self._said:
            self._said = line
            self._say(line)

    def _pause(self, turn: int) -> float:
        """Seconds until the next look; the tasks of a gang do not look all at once."""
        if self._trouble is not None:
            asked = self._trouble.retry_after_s or 0.0
            backing_off = float(2 ** min(self._troubles - 1, 6))
            return max(asked, min(10.0, backing_off)) * self._jitter(turn)
        if not self.looks_per_s or self._look is None:
            return self.interval
        fair = len(self._look.members) / self.looks_per_s
        return min(self.interval, max(_SHORTEST_S, fair) * self._jitter(turn))

    def _jitter(self, turn: int) -> float:
        """From 0.75 to 1.25, another for every task and turn."""
        who = f"{self._ctx.env.get('FC_POD_UID')}/{turn}"
        return 0.75 + zlib.crc32(who.encode()) / 2**33

    def _late(self) -> Failure:
        limit, look = format_duration(self._limit), self._look
        if self._trouble is not None or look is None:
            last = self._trouble.message if self._trouble else "none came"
            return Transient(
                f"after {limit} there is no answer that counts; the last: {last}",
                fault="platform",
                hint="see whether the API server is up, and reachable from this node",
            )
        hint = "see why those tasks do not start: resources, image, node"
        reasons: dict[_Member, str] = {}
        asked = _SHOWN if len(look.members) <= _LARGE_GANG else _REASONS_IN_LARGE_GANGS
        try:
            reasons.update(self._backend.why(look.missing[:asked]))
        except Failure as e:
            hint = f"why they are missing is not known: {e.message}"
            hint += f"; {e.hint}" if e.hint else ""
        if look.foreign:
            hint = (
                "this Pod is one of an attempt that is over, or not recorded yet: see the job's own"
            )
            hint += " state, and whether its controller runs"
        missing = f"; missing: {_some(look.missing, reasons)}" if look.missing else ""
        foreign = f", but {look.foreign}" if look.foreign else ""
        return TimedOut(f"after {limit} {look}{foreign}{missing}", fault="platform", hint=hint)


def _setting(ctx: Context, name: str) -> float | None:
    """Seconds that a variable gives, or None.

    Raises:
        Permanent: they are none, or more or fewer than FrameworkController's barrier accepts.
    """
    text, (low, high) = ctx.env.get(name, ""), _SETTINGS[name]
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) < 10 and low <= int(text) <= high:
        return float(text)
    raise Permanent(
        f"{name} is '{text[:40]}', not a number of seconds from {low} to {high}",
        fault="platform",
        hint="correct the variable, or unset it",
    )


class _Log:
    """What is said, also in ``barrier.log``."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._folder = os.path.join(ctx.pai_dir, "logs", ctx.env["FC_POD_UID"])
        self._lines: list[str] = []
        self._works = True

    def say(self, line: str) -> None:
        """Say one line, and keep it."""
        self._ctx.log(line)
        self.keep(line)

    def keep(self, line: str) -> None:
        """Add one line to the file; the barrier goes on where that cannot be done."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._ctx.now()))
        self._lines.append(f"{stamp} {line}\n")
        if not self._works:
            return
        try:
            self._ctx.make_dir(self._folder)
            path = os.path.join(self._folder, "barrier.log")
            self._ctx.write_file(path, "".join(self._lines).encode())
        except Failure as e:
            self._works = False
            self._ctx.log(f"no barrier.log is kept: {e.message}")


# --- the members, and what is known of them -------------------------------------------------------


def _members(framework: Mapping[str, Any]) -> list[_Member]:
    """Every task that the job wants now.

    Raises:
        Permanent: it is no Framework.
    """
    try:
        roles = framework["spec"]["taskRoles"]
        return [_Member(role["name"], i) for role in roles for i in range(role["taskNumber"])]
    except (KeyError, TypeError) as e:
        raise Permanent(f"what describes the job is no Framework: {e}", fault="platform") from e


def _own(ctx: Context, members: list[_Member]) -> _Member:
    """This task.

    Raises:
        Permanent: the job does not want it.
    """
    name = f"{ctx.env['FC_TASKROLE_NAME']}-{ctx.env['FC_TASK_INDEX']}"
    for member in members:
        if str(member) == name:
            return member
    raise Permanent(
        f"the task {name} is not part of its own job",
        fault="platform",
        hint="the job may have been scaled down",
    )


def _attempts(framework: Mapping[str, Any]) -> Iterator[tuple[_Member, _Object]]:
    """Every task with what the status says of its attempt, those that are to go left out."""
    for role in _role_statuses(framework):
        for position, task in enumerate(role.get("taskStatuses") or ()):
            attempt = task.get("attemptStatus")
            if attempt and not task.get("deletionPending"):
                yield _Member(role.get("name", ""), task.get("index", position)), attempt


def _role_statuses(framework: Mapping[str, Any]) -> list[_Object]:
    status = (framework.get("status") or {}).get("attemptStatus") or {}
    return status.get("taskRoleStatuses") or []


def _filled(
    framework: Mapping[str, Any], addresses: Mapping[_Member, Mapping[str, Any]]
) -> _Object:
    """The Framework with addresses, as FrameworkController would have it."""
    roles: dict[str, list[_Object]] = {r["name"]: [] for r in framework["spec"]["taskRoles"]}
    for member, address in sorted(addresses.items()):
        roles[member.role].append({"index": member.number, "attemptStatus": dict(address)})
    statuses = [{"name": role, "taskStatuses": tasks} for role, tasks in roles.items()]
    return _with_statuses(framework, statuses)


def _told(peers: Iterable[Peer]) -> dict[_Member, _Object]:
    """What the tasks said of themselves, as a Framework's status has it."""
    return {
        _Member(p.role, p.index): {
            "podUID": p.pod_uid, "podName": p.pod_name, "podIP": p.pod_ip, "podHostIP": p.host_ip,
        }
        for p in peers
    }  # fmt: skip


def _with_statuses(framework: Mapping[str, Any], statuses: list[_Object]) -> _Object:
    status = framework.get("status") or {}
    attempt = {**(status.get("attemptStatus") or {}), "taskRoleStatuses": statuses}
    return {**framework, "status": {**status, "attemptStatus": attempt}}


def _file_framework(ctx: Context, path: str) -> _Object:
    """The Framework that the engine put there."""
    data = ctx.read_file(path, _MAX_BYTES)
    if data is None:
        raise Permanent(f"there is no {path}", fault="platform")
    return _parsed(data, path)


def _parsed(data: bytes, what: str) -> _Object:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise Permanent(f"{what} is no JSON: {e}", fault="platform") from e
    if not isinstance(found, dict):
        raise Permanent(f"{what} is no object of Kubernetes", fault="platform")
    return found


def _write(ctx: Context, name: str, data: bytes, mode: int = 0o644) -> None:
    path = os.path.join(ctx.pai_dir, name)
    if ctx.stat(path) is None or ctx.read_file(path, _MAX_BYTES) != data:
        ctx.write_file(path, data, mode)


def _write_framework(ctx: Context, framework: _Object) -> None:
    # In one line: to indent that of a large gang takes longer than all else that is done with it.
    _write(ctx, "framework.json", json.dumps(framework).encode() + b"\n")


def _write_injector(ctx: Context, framework: _Object) -> None:
    """The script of FrameworkController's barrier; ``FB_<ROLE>_PORT`` is its caller's to set."""
    wanted = set(_members(framework))
    ips: dict[str, list[str]] = {role["name"]: [] for role in _role_statuses(framework)}
    for member, attempt in _attempts(framework):
        if member in wanted and attempt.get("podIP"):
            ips[member.role].append(attempt["podIP"])
    lines = ["#!/bin/bash", ""]
    for suffix, port in (("IPS", ""), ("ADDRESSES", ":${{FB_{}_PORT}}")):
        for role in dict.fromkeys(member.role for member in wanted if member.role in ips):
            name = f"FB_{role.upper()}_{suffix}"
            values = ",".join(ip + port.format(role.upper()) for ip in ips[role])
            lines += [f"export {name}={values}", f"echo {name}=${{{name}}}"]
    _write(ctx, "injector.sh", "\n".join(lines).encode() + b"\n", 0o755)


def _some(members: Iterable[_Member], reasons: Mapping[_Member, str]) -> str:
    names = [f"{m} ({reasons[m]})" if m in reasons else str(m) for m in members]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


# --- a directory that all share -------------------------------------------------------------------


class _Local:
    """Every task announces itself in a directory, replacing what an earlier run of it told."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        gang = ctx.env["PAIRUN_GANG_DIR"]
        self._framework = _file_framework(ctx, os.path.join(gang, "framework.json"))
        self._members = _members(self._framework)
        self._directory = os.path.join(gang, "announce")
        own = _own(ctx, self._members)
        ip = ctx.env["PAIRUN_HOST_IP"]
        said = {"podUID": ctx.env["FC_POD_UID"], "podIP": ip, "podHostIP": ip}
        ctx.make_dir(self._directory)
        _write(ctx, self._file(own), json.dumps(said, indent=1).encode() + b"\n")

    def _file(self, member: _Member) -> str:
        return os.path.join(self._directory, f"{member}.json")

    def look(self) -> _Look:
        """Those that have told their address."""
        name = (self._framework.get("metadata") or {}).get("name", "job")
        there = set(self._ctx.list_dir(self._directory) or ())
        found = {}
        for member in self._members:
            if f"{member}.json" not in there:
                continue
            try:
                said = json.loads(self._ctx.read_file(self._file(member)) or b"")
                address = {key: said[key] for key in ("podUID", "podIP", "podHostIP")}
            except (ValueError, KeyError, TypeError):
                continue
            if address["podIP"]:
                found[member] = {**address, "podName": f"{name}-{member}"}
        missing = [m for m in self._members if m not in found]
        return _Look(_filled(self._framework, found), self._members, missing)

    def why(self, missing: list[_Member]) -> Iterator[tuple[_Member, str]]:
        """Nobody knows."""
        _ = missing
        yield from ()


# --- FrameworkController ---------------------------------------------------------------------------


class _Framework:
    """The Framework object, whose status the controller keeps.

    Args:
        ctx: the world.
        gang: whether all tasks count, or this one alone.
        strict: whether a large Framework is read whole, too.
    """

    def __init__(self, ctx: Context, gang: bool, *, strict: bool = False) -> None:
        self._ctx, self._gang, self._strict = ctx, gang, strict
        self._namespace, self._name = (ctx.env[name] for name in _OBJECT)
        self._path = _FRAMEWORKS.format(quote(self._namespace), quote(self._name))
        self._last: _Look | None = None
        self._seen = ""

    def look(self) -> _Look:
        """The Framework; while its metadata says that nothing changed, only these are read."""
        # What is not older than the last answer the server has in memory; after trouble it says
        # what is so now.
        seen, self._seen = self._seen, ""
        if self._last is not None:
            head = self._get(seen, accept=_METADATA_ONLY)
            seen = _meta(head, "resourceVersion") or ""
            if seen == _meta(self._last.framework, "resourceVersion"):
                self._seen = seen
                return self._last
        framework = _inflated(self._get(seen))
        self._seen = _meta(framework, "resourceVersion") or ""
        members = _members(framework)
        own = _own(self._ctx, members)
        attempts = dict(_attempts(framework))
        if self._ctx.env.get("PAIRUN_HOST_IP"):
            # Pods of an engine that sets it are reached at their own addresses, not their nodes'.
            for said in attempts.values():
                said["podHostIP"] = said.get("podIP")
        if self._gang:
            missing = [m for m in members if not attempts.get(m, {}).get("podIP")]
        else:
            members, said = [own], attempts.get(own, {})
            has_ip = said.get("podHostIP") or self._ctx.env.get("PAIRUN_HOST_IP")
            missing = [] if said.get("podUID") and has_ip else [own]
        foreign = self._foreign(framework, attempts.get(own, {}))
        self._last = _Look(framework, members, missing, foreign)
        return self._last

    def met(self, roles: Mapping[str, _Object], gathering: Gathering) -> _Look:
        """The Framework with the addresses that the tasks told each other.

        The controller's own record may come later. A large one is not read at all: what the tasks
        need of it is known.
        """
        addresses = _told(gathering.peers or ())
        members = list(addresses)
        ports = gathering.ports
        if self._strict or ports is None or len(members) <= _WHOLE_FRAMEWORK:
            try:
                framework = _inflated(self._lately())
                known = dict(_attempts(framework))
                whole = {m: {**known.get(m, {}), **said} for m, said in addresses.items()}
                return _Look(_filled(framework, whole), members, [])
            except (Transient, TimedOut):
                if self._strict or ports is None:
                    raise
        return _Look(_filled(self._sketch(roles, ports), addresses), members, [])

    def _lately(self) -> _Object:
        """The Framework as the server has it in memory, which costs it half; a moment old, maybe."""
        try:
            return self._get("0")
        except Permanent:
            return self._get()

    def _sketch(self, roles: Mapping[str, _Object], ports: tuple[int, int]) -> _Object:
        """The part of the Framework that addresses and ports follow from."""
        drawn = []
        for name, role in roles.items():
            annotations = {PORT_ANNOTATION: port_annotation(role["ports"], ports)}
            task = {"pod": {"metadata": {"annotations": annotations}}}
            drawn.append({"name": name, "taskNumber": role["count"], "task": task})
        return {
            "apiVersion": "frameworkcontroller.microsoft.com/v1",
            "kind": "Framework",
            "metadata": {"namespace": self._namespace, "name": self._name},
            "spec": {"taskRoles": drawn},
        }

    def _get(self, version: str = "", accept: str | None = None) -> _Object:
        """The Framework, not older than a version (Kubernetes API concepts, "Resource versions")."""
        query = {"resourceVersion": version} if version else None
        data = self._ctx.ask_api(
            self._path, query=query, accept=accept, timeout_s=_ANSWER_S, max_bytes=_MAX_BYTES
        )
        which = f"the Framework {self._name} in the namespace {self._namespace}"
        if data is None:
            gone = "was deleted while this task waited" if self._last else "does not exist"
            raise Permanent(f"{which} {gone}", fault="user", hint="submit the job again")
        framework = _parsed(data, which)
        if _meta(framework, "deletionTimestamp"):
            raise Permanent(f"{which} is being deleted", fault="user", hint="submit the job again")
        uid = self._ctx.env.get("FC_FRAMEWORK_UID")
        if uid and _meta(framework, "uid") != uid:
            raise Permanent(
                f"{which} is not the one that this Pod belongs to, but a later one of that name",
                fault="user",
                hint="nothing is left to do here: the Pod is removed with its own Framework",
            )
        return framework

    def _foreign(self, framework: _Object, own: _Object) -> str:
        """Why the status is no news for this Pod; it may be older or newer."""
        said = ((framework.get("status") or {}).get("attemptStatus") or {}).get("id")
        mine = self._ctx.env.get("FC_FRAMEWORK_ATTEMPT_ID")
        if mine and said is not None and str(said) != mine:
            return f"they are those of the job's attempt {said}, and this Pod belongs to {mine}"
        pod = own.get("podUID")
        if pod and pod != self._ctx.env["FC_POD_UID"]:
            return "in place of this Pod they have another one"
        return ""

    def why(self, missing: list[_Member]) -> Iterator[tuple[_Member, str]]:
        """What the Pods say, one by one: those that are missing are few, or many are like them."""
        assert self._last is not None
        known = dict(_attempts(self._last.framework))
        end = self._ctx.now() + _REASONS_S
        for member in missing:
            attempt = known.get(member, {})
            if not attempt.get("podUID"):
                yield member, "no Pod yet"
                continue
            name = attempt.get("podName") or f"{self._name}-{member}"
            path = f"{_PODS.format(quote(self._namespace))}/{quote(name)}"
            left = max(0.5, end - self._ctx.now())
            data = self._ctx.ask_api(path, timeout_s=left, max_bytes=_MAX_BYTES)
            yield member, "its Pod is gone" if data is None else why_missing(_parsed(data, name))


def _meta(found: Mapping[str, Any], key: str) -> Any:
    return (found.get("metadata") or {}).get(key)


def _inflated(framework: _Object) -> _Object:
    """The Framework with its task statuses as they are, where the controller compressed them.

    Raises:
        Transient: they cannot be inflated, or are not as the controller writes them.
    """
    try:
        statuses = task_statuses(framework)
    except ValueError as e:
        raise Transient(str(e), fault="platform") from e
    if not statuses:
        return framework
    filled = _with_statuses(framework, statuses)
    filled["status"]["attemptStatus"].pop("taskRoleStatusesCompressed", None)
    return filled


# --- Pods -----------------------------------------------------------------------------------------


class _Pods:
    """The job's Pods, found by their labels; what is expected stands in the Framework's file.

    Args:
        ctx: the world.
        gang: whether all tasks count, or this one alone.
        ready: what the others must have.
        port: the label of the port that must answer.
    """

    def __init__(self, ctx: Context, gang: bool, ready: str, port: str) -> None:
        self._ctx, self._gang, self._ready, self._port = ctx, gang, ready, port
        self._namespace, self._name = (ctx.env[name] for name in _OBJECT)
        self._framework = _file_framework(ctx, ctx.env["PAIRUN_FRAMEWORK_FILE"])
        self._members = _members(self._framework)
        self._own = _own(ctx, self._members)
        self._found: dict[_Member, _Object] = {}
        self._heard: set[str] = set()
        self._silent = 0

    def look(self) -> _Look:
        """Those whose Pod is as it must be."""
        data = self._ctx.ask_api(
            _PODS.format(quote(self._namespace)),
            # Any version will do, so the server answers from memory.
            query={"labelSelector": f"{_JOB_LABEL}={self._name}", "resourceVersion": "0"},
            timeout_s=_ANSWER_S,
            max_bytes=_MAX_BYTES,
        )
        items = _parsed(data or b"{}", "the list of Pods").get("items") or []
        self._found = _newest(items, set(self._members))
        addresses = {m: _address(pod) for m, pod in self._found.items() if _address(pod)["podIP"]}
        members = self._members if self._gang else [self._own]
        self._silent = 0
        missing = [m for m in members if m not in addresses or not self._is_ready(m)]
        own = addresses.get(self._own)
        other = own is not None and own["podUID"] != self._ctx.env["FC_POD_UID"]
        foreign = "in place of this Pod they have another one" if other else ""
        return _Look(_filled(self._framework, addresses), members, missing, foreign)

    def met(self, roles: Mapping[str, _Object], gathering: Gathering) -> _Look:
        """The Framework of the file with the addresses that the tasks told each other."""
        _ = roles
        addresses = _told(gathering.peers or ())
        return _Look(_filled(self._framework, addresses), list(addresses), [])

    def _is_ready(self, member: _Member) -> bool:
        pod = self._found[member]
        status = pod.get("status") or {}
        if status.get("phase") == "Failed":
            return False
        # This one waits here, in its own init container.
        if self._ready == "address" or member == self._own:
            return True
        if self._ready == "init":
            return init_succeeded(pod)
        return self._answers(member, pod)

    def _answers(self, member: _Member, pod: _Object) -> bool:
        """Whether a Pod's port accepts connections; once is enough, and some that do not, too."""
        uid = _meta(pod, "uid")
        if uid in self._heard or self._silent >= _SHOWN:
            return uid in self._heard
        number = _first_port(self._framework, member, uid, self._port)
        if not self._ctx.connects(_address(pod)["podIP"], number):
            self._silent += 1
            return False
        self._heard.add(uid)
        return True

    def why(self, missing: list[_Member]) -> Iterator[tuple[_Member, str]]:
        """The last list has it."""
        for member in missing:
            pod = self._found.get(member)
            why = "no Pod yet" if pod is None else why_missing(pod)
            if pod is not None and self._ready == "port" and _address(pod)["podIP"]:
                why = f"its port {self._port} does not answer"
            yield member, why


def _newest(items: Iterable[_Object], wanted: set[_Member]) -> dict[_Member, _Object]:
    """The Pod of every task: none that is to go; of two one that lives, or the one made last."""
    found: dict[_Member, _Object] = {}
    for pod in items:
        labels = {**(_meta(pod, "annotations") or {}), **(_meta(pod, "labels") or {})}
        index = next((labels[name] for name in _INDEX_LABELS if name in labels), "")
        if _meta(pod, "deletionTimestamp") or not (index.isascii() and index.isdigit()):
            continue
        member = _Member(labels.get(_ROLE_LABEL, ""), int(index))
        before = found.get(member)
        if member in wanted and (before is None or _rank(before) < _rank(pod)):
            found[member] = pod
    return found


def _rank(pod: _Object) -> tuple[bool, str, str]:
    failed = (pod.get("status") or {}).get("phase") == "Failed"
    return (not failed, _meta(pod, "creationTimestamp") or "", _meta(pod, "uid") or "")


def _address(pod: _Object) -> _Object:
    """What a Framework's status says of a Pod; others reach it at its own address."""
    ip = (pod.get("status") or {}).get("podIP") or None
    return {"podUID": _meta(pod, "uid"), "podName": _meta(pod, "name"), "podIP": ip,
            "podHostIP": ip}  # fmt: skip


def _first_port(framework: _Object, member: _Member, pod_uid: str, label: str) -> int:
    """The number of a Pod's first port of a label.

    Raises:
        Permanent: the role has no such label.
    """
    try:
        (role,) = (r for r in framework["spec"]["taskRoles"] if r["name"] == member.role)
        annotation = role["task"]["pod"]["metadata"]["annotations"][PORT_ANNOTATION]
        return PortPlan(annotation).of(pod_uid, member.number)[label][0]
    except (KeyError, TypeError, ValueError, IndexError) as e:
        raise Permanent(f"the role {member.role} has no port '{label}' to ask", fault="user") from e
