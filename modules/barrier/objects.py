"""The Kubernetes objects with the addresses of the tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pairun.module import Context, Peer, Permanent, parse_json

from .members import Member

Object = dict[str, Any]
MAX_BYTES = 256 * 1024 * 1024
"""The maximum size of an object that the barrier reads, in bytes."""

ANSWER_S = 30.0
"""The timeout of one request to the API server."""

OBJECT_VARIABLES = ("FC_FRAMEWORK_NAMESPACE", "FC_FRAMEWORK_NAME")
"""The variables that name the job's object."""

PODS_PATH = "/api/v1/namespaces/{}/pods"


def parse_object(data: bytes, what: str) -> Object:
    """A JSON object.

    Args:
        data: the text.
        what: its name in messages.

    Raises:
        Permanent: it is not one.
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


def task_attempts(framework: Mapping[str, Any]) -> Iterator[tuple[Member, Object]]:
    """Every task with its attempt in the status, except tasks that are being deleted."""
    for role in role_statuses(framework):
        for position, task in enumerate(role.get("taskStatuses") or ()):
            attempt = task.get("attemptStatus")
            if attempt and not task.get("deletionPending"):
                yield Member(role.get("name", ""), task.get("index", position)), attempt


def role_statuses(framework: Mapping[str, Any]) -> list[Object]:
    """The roles in a Framework's status."""
    status = (framework.get("status") or {}).get("attemptStatus") or {}
    return status.get("taskRoleStatuses") or []


def with_statuses(framework: Mapping[str, Any], statuses: list[Object]) -> Object:
    """The Framework with these roles in its status."""
    status = framework.get("status") or {}
    attempt = {**(status.get("attemptStatus") or {}), "taskRoleStatuses": statuses}
    return {**framework, "status": {**status, "attemptStatus": attempt}}


def with_addresses(
    framework: Mapping[str, Any], addresses: Mapping[Member, Mapping[str, Any]]
) -> Object:
    """The Framework with addresses in its status, in the form of FrameworkController."""
    roles: dict[str, list[Object]] = {r["name"]: [] for r in framework["spec"]["taskRoles"]}
    for member, address in sorted(addresses.items()):
        roles[member.role].append({"index": member.number, "attemptStatus": dict(address)})
    statuses = [{"name": role, "taskStatuses": tasks} for role, tasks in roles.items()]
    return with_statuses(framework, statuses)


def peer_addresses(peers: Iterable[Peer]) -> dict[Member, Object]:
    """The addresses that the tasks sent, in the form of a Framework's status."""
    return {
        Member(p.role, p.index): {
            "podUID": p.pod_uid, "podName": p.pod_name, "podIP": p.pod_ip, "podHostIP": p.host_ip,
        }
        for p in peers
    }  # fmt: skip


def read_framework(ctx: Context, path: str) -> Object:
    """The Framework in a file that the engine wrote.

    Raises:
        Permanent: it is missing, or not a JSON object.
    """
    data = ctx.read_file(path, MAX_BYTES)
    if data is None:
        raise Permanent(f"{path} is missing", fault="platform")
    return parse_object(data, path)
