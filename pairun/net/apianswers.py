"""Explains the API server's error responses."""

from __future__ import annotations

import re
import time
from typing import Any

from pairun.base.foreignjson import parse_record
from pairun.base.retryafter import is_worth_a_retry, retry_after_s
from pairun.kube.paths import resource_of
from pairun.module import Failure, Fetched, Permanent, Transient

_EXPIRED = 410
"""An outdated version or list page. A retry helps here, unlike
with other servers (Kubernetes API concepts, "410 Gone responses")."""


_SPEAKS_HTTPS = b"HTTP request to an HTTPS server"
"""A Go server's response to plain HTTP on a TLS port (Go, net/http, "tlsRecordHeader")."""


class Refused(Permanent):
    """The server knows the object, but denies this Pod access."""


def failure_of_answer(
    answer: Fetched, where: str, path: str, *, token_file: str | None = None, verb: str = ""
) -> Failure:
    """The failure that an error response means.

    Args:
        token_file: the path of the token; None for no token.
        verb: the verb, if it is neither "get" nor "list".
    """
    status = answer.status
    message = str(status_object(answer.body).get("message") or "")
    group, resource, namespace, is_one = resource_of(path)
    resource = f"{resource}.{group}".rstrip(".")
    verb = verb or ("get" if is_one else "list")
    if status == 400 and _SPEAKS_HTTPS in answer.body:
        hint = "correct the address: https://…"
        return Permanent(
            f"{where} requires https, but its address begins with http", fault="platform", hint=hint
        )
    if status == 401:
        if token_file is None:
            return Refused(
                f"{where} requires a token, and this Pod has none (401)", fault="platform"
            )
        return Refused(
            f"{where} refuses the token in {token_file}, which was read again (401)",
            fault="platform",
            hint="it has expired, or its service account or Pod was deleted",
        )
    if status == 403:
        named = re.search(r'[Uu]ser "([^"\s]{1,300})"', message)
        user = named[1] if named else None
        return Refused(
            f"{user or 'this Pod'} may not {verb} {resource} in the namespace {namespace}: "
            f"{where} answered 403",
            fault="platform",
            hint=_grant(verb, resource, namespace, user),
        )
    if is_worth_a_retry(status) or status == _EXPIRED:
        return Transient(
            f"{where} answered {status} to `{verb} {resource}`",
            fault="platform",
            retry_after_s=retry_after_s(answer.header("retry-after"), time.time()),
        )
    if status == 404:
        hint = "check that the CustomResourceDefinition is installed in this cluster"
        return Permanent(
            f"{where} does not have the resource {resource}", fault="platform", hint=hint
        )
    shown = f": {' '.join(message.split())[:200]}" if message else ""
    return Permanent(f"{where} answered {status} to `{verb} {resource}`{shown}", fault="platform")


def status_object(body: bytes) -> dict[str, Any]:
    """The ``Status`` object in an error response; empty if there is none.

    A server sends that of its own timeout (504) without a kind.
    """
    parsed = parse_record(body) or {}
    return parsed if parsed.get("kind") == "Status" or parsed.get("status") == "Failure" else {}


def _grant(verb: str, resource: str, namespace: str, user: str | None) -> str:
    """How to grant a user a right."""
    who = f"--user={user or 'USER'}"
    if user and user.startswith("system:serviceaccount:"):
        who = f"--serviceaccount={user.removeprefix('system:serviceaccount:')}"
    name = f"pairun-{verb}-{resource.partition('.')[0]}"
    return (
        f"grant it: kubectl -n {namespace} create role {name} --verb={verb} --resource={resource} "
        f"&& kubectl -n {namespace} create rolebinding {name} --role={name} {who}"
    )
