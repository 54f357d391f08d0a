"""The task statuses of a Framework, which FrameworkController compresses when they are large."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pairun.base.foreignjson import parse_json

MAX_STATUS_BYTES = 64 * 1024 * 1024
"""The maximum size of inflated statuses; those of 10,000 tasks have 10 MB."""


def task_statuses(framework: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The statuses of every role and its tasks, inflated; empty if there are none.

    Source: FrameworkController's ``pkg/apis/frameworkcontroller/v1/funcs.go``: base64 of gzip of
    JSON, in ``taskRoleStatusesCompressed`` instead of ``taskRoleStatuses``.

    Raises:
        ValueError: they cannot be inflated, or are invalid.
    """
    status = _checked(framework.get("status"), dict, "status")
    attempt = _checked(status.get("attemptStatus"), dict, "attemptStatus")
    statuses = attempt.get("taskRoleStatuses")
    if not statuses and (text := attempt.get("taskRoleStatusesCompressed")):
        statuses = _inflated(text)
    roles = _entries(statuses, "taskRoleStatuses")
    for role in roles:
        _checked(role.get("name"), str, "name")
        for task in _entries(role.get("taskStatuses"), "taskStatuses"):
            _checked(task.get("index"), int, "index")
            _checked(task.get("attemptStatus"), dict, "attemptStatus")
    return roles


def _inflated(text: Any) -> Any:
    # imported here: few Frameworks are that large
    import base64
    import binascii
    import zlib

    try:
        inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        data = inflater.decompress(base64.b64decode(text), MAX_STATUS_BYTES)
        if inflater.eof:
            return parse_json(data)
    except (binascii.Error, zlib.error, ValueError, TypeError) as e:
        raise ValueError(f"the Framework's compressed task statuses cannot be read: {e}") from e
    limit = f"are too large: more than {MAX_STATUS_BYTES >> 20} MiB"
    what = limit if inflater.unconsumed_tail else "end too early"
    raise ValueError(f"the Framework's compressed task statuses {what}")


def _entries(value: Any, name: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = _checked(value, list, name)
    if not all(isinstance(each, dict) for each in entries):
        raise _invalid(name)
    return entries


def _checked(value: Any, kind: type, name: str) -> Any:
    """Check the type of a part; a missing one is empty."""
    part = kind() if value is None else value
    if not isinstance(part, kind):
        raise _invalid(name)
    return part


def _invalid(name: str) -> ValueError:
    return ValueError(f"{name!r} in the Framework's status does not have its controller's format")
