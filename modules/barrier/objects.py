"""The instances of the job, the objects with their addresses, and what reads them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from pairun.module import Context, Gathering, Permanent, parse_json

Object = dict[str, Any]

SHOWN = 10
"""The maximum number of instances that a message names."""

MAX_BYTES = 256 * 1024 * 1024
"""The maximum size of an object that the barrier reads, in bytes."""

_ANSWER_S = 30.0
"""The timeout of one request to the API server."""

INSTANCE_VARIABLES = ("FC_TASKROLE_NAME", "FC_TASK_INDEX", "FC_POD_UID")
"""The variables that identify this instance."""

OBJECT_VARIABLES = ("FC_FRAMEWORK_NAMESPACE", "FC_FRAMEWORK_NAME")
"""The variables that name the job's object."""


class Member(NamedTuple):
    """One instance of the job."""

    role: str
    number: int

    def __str__(self) -> str:
        return f"{self.role}-{self.number}"


class Look(NamedTuple):
    """The result of one check.

    Attributes:
        framework: the Framework with every known address.
        members: the instances that the barrier waits for.
        missing: those without an address, or not ready.
        foreign: why the addresses are not for this Pod; empty if they are.
        state: what those that are not missing do.
        running: whether another instance has passed the barrier: this one joins a running gang.
    """

    framework: Object
    members: list[Member]
    missing: list[Member]
    foreign: str = ""
    state: str = "have addresses"
    running: bool = False

    @property
    def complete(self) -> bool:
        """Whether the barrier need not wait any more."""
        return not self.missing and not self.foreign

    def __str__(self) -> str:
        total = len(self.members)
        here = f"{total - len(self.missing)} of {total} instances {self.state}"
        return f"{here}, but {self.foreign}" if self.foreign else here


class Backend(ABC):
    """Reads the addresses of the instances.

    Args:
        ctx: the world.
        gang: whether to wait for all instances, or only for this one.
        file: the file with the Framework that the engine wrote; empty if the server has it.

    Attributes:
        looks_per_s: requests per second that a whole gang sends to one server; 0 for no limit.
    """

    looks_per_s = 0.0

    def __init__(self, ctx: Context, gang: bool, file: str) -> None:
        self._ctx, self._gang = ctx, gang
        self._namespace, self._name = (ctx.env.get(name, "") for name in OBJECT_VARIABLES)
        self._pods_path = f"/api/v1/namespaces/{quote(self._namespace)}/pods"
        if file:
            data = ctx.read_file(file, MAX_BYTES)
            if data is None:
                raise Permanent(f"{file} is missing", fault="platform")
            self._use(parse_object(data, file))

    @abstractmethod
    def look(self) -> Look:
        """Read the current addresses.

        Raises:
            Transient: there is no answer now.
            TimedOut: likewise.
            Permanent: there will never be an answer.
        """

    def why(self, missing: list[Member]) -> Iterator[tuple[Member, str]]:
        """Why instances are missing; omits instances whose reason is unknown.

        Raises:
            Failure: this Pod cannot find out.
        """
        yield from ()

    def met(self, roles: Mapping[str, Object], gathering: Gathering) -> Look:
        """The Framework with the addresses that the instances sent each other."""
        addresses = peer_addresses(gathering)
        return Look(with_addresses(self._framework, addresses), list(addresses), [])

    def _use(self, framework: Object) -> None:
        """Keep the Framework, its instances, and this one.

        Raises:
            Permanent: the object is not a Framework, or this instance does not belong to it.
        """
        self._framework, self._members = framework, all_members(framework)
        name = "{FC_TASKROLE_NAME}-{FC_TASK_INDEX}".format_map(self._ctx.env)
        own = next((member for member in self._members if str(member) == name), None)
        if own is None:
            raise Permanent(
                f"the instance {name} does not belong to its job",
                fault="platform",
                hint="the job may have been scaled down",
            )
        self._own = own

    def _foreign(self, address: Mapping[str, Any]) -> str:
        """Why this instance's address is not for this Pod; empty if it is."""
        uid = address.get("podUID")
        is_other = uid and uid != self._ctx.env["FC_POD_UID"]
        return "they refer to another Pod instead of this one" if is_other else ""

    def _ask(self, path: str, timeout_s: float = _ANSWER_S, **more: Any) -> bytes | None:
        return self._ctx.ask_api(path, timeout_s=timeout_s, max_bytes=MAX_BYTES, **more)


def parse_object(data: bytes, what: str) -> Object:
    """A JSON object.

    Raises:
        Permanent: it is not one; the message names it with ``what``.
    """
    try:
        parsed = parse_json(data)
    except ValueError as e:
        raise Permanent(f"{what} is not JSON: {e}", fault="platform") from e
    if not isinstance(parsed, dict):
        raise Permanent(f"{what} is not an object of Kubernetes", fault="platform")
    return parsed


def meta(item: Mapping[str, Any], key: str) -> Any:
    """A field of an object's metadata; None if it is missing."""
    return (item.get("metadata") or {}).get(key)


def all_members(framework: Mapping[str, Any]) -> list[Member]:
    """Every instance in the job's specification.

    Raises:
        Permanent: the object is not a Framework.
    """
    try:
        roles = framework["spec"]["taskRoles"]
        return [Member(role["name"], i) for role in roles for i in range(role["taskNumber"])]
    except (KeyError, TypeError) as e:
        message = f"the object that describes the job is not a Framework: {e}"
        raise Permanent(message, fault="platform") from e


def task_attempts(framework: Mapping[str, Any]) -> dict[Member, Object]:
    """Every instance with its attempt in the status, except instances that are being deleted."""
    status = (framework.get("status") or {}).get("attemptStatus") or {}
    return {
        Member(role.get("name", ""), task.get("index", position)): task["attemptStatus"]
        for role in status.get("taskRoleStatuses") or ()
        for position, task in enumerate(role.get("taskStatuses") or ())
        if task.get("attemptStatus") and not task.get("deletionPending")
    }


def with_statuses(framework: Mapping[str, Any], statuses: list[Object]) -> Object:
    """The Framework with these roles in its status, not compressed."""
    status = framework.get("status") or {}
    attempt = {**(status.get("attemptStatus") or {}), "taskRoleStatuses": statuses}
    attempt.pop("taskRoleStatusesCompressed", None)
    return {**framework, "status": {**status, "attemptStatus": attempt}}


def with_addresses(framework: Mapping[str, Any], addresses: Mapping[Member, Object]) -> Object:
    """The Framework with addresses in its status, in the form of FrameworkController."""
    roles: dict[str, list[Object]] = {r["name"]: [] for r in framework["spec"]["taskRoles"]}
    for member, address in sorted(addresses.items()):
        roles[member.role].append({"index": member.number, "attemptStatus": dict(address)})
    return with_statuses(framework, [{"name": r, "taskStatuses": t} for r, t in roles.items()])


def peer_addresses(gathering: Gathering) -> dict[Member, Object]:
    """The addresses that the instances sent, in the form of a Framework's status."""
    return {
        Member(p.role, p.index): {
            "podUID": p.pod_uid, "podName": p.pod_name, "podIP": p.pod_ip, "podHostIP": p.host_ip,
        }
        for p in gathering.peers or ()
    }  # fmt: skip
