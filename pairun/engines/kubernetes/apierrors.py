"""The API server's errors as messages for people, and how long pairun retries them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from pairun.base.durations import format_duration
from pairun.base.escapes import visible
from pairun.base.retryafter import retry_after_s
from pairun.errors import PairunError, Problem
from pairun.kube.paths import resource_of

CONNECT_S = 10
"""Limit for one connection attempt."""
SILENCE_S = 30
"""Limit for a pause in the middle of a response."""
TROUBLE_S = 300
"""How long pairun retries an API server that does not respond, while it follows a job."""

_SAY_AFTER_S, _SAY_AGAIN_S = 5, 30
"""When pairun reports an outage, and how often again."""

VERBS = {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}
"""The verb in a Role for an HTTP method; a GET may also be ``list`` or ``watch``."""


class Unreachable(PairunError):
    """The API server did not respond; it may later."""


class ClusterRefusal(PairunError):
    """The API server responded with an error.

    Attributes:
        status: the HTTP status.
        reason: the API's reason, such as ``AlreadyExists``.
        retry_after_s: seconds to wait before a retry, within bounds.
        passing: whether the same request may succeed later.
        next_page: continues a list whose token has expired (410), with the objects as they are now.
    """

    status: int
    reason: str
    retry_after_s: float
    passing: bool
    next_page: str


class Patience:
    """Limits how long pairun retries an API server that does not respond or fails.

    Args:
        say: takes lines for people about an outage.
    """

    def __init__(self, say: Callable[[str], None] = lambda _: None) -> None:
        self._say = say
        self._since: float | None = None
        self._said: float | None = None

    def answered(self) -> None:
        """The server responded: the next error starts a new period."""
        if self._since is not None and self._said is not None:
            for_s = format_duration(round(time.monotonic() - self._since))
            self._say(f"the API server responds again, after {for_s}")
        self._since = self._said = None

    def bear(self, e: ClusterRefusal | Unreachable) -> None:
        """Accept an error that may be temporary.

        Raises:
            ClusterRefusal, Unreachable: the error, when it is permanent or has lasted too long.
        """
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if (isinstance(e, ClusterRefusal) and not e.passing) or now - self._since > TROUBLE_S:
            raise e
        due = self._since + _SAY_AFTER_S if self._said is None else self._said + _SAY_AGAIN_S
        if now >= due:
            self._said = now
            left = format_duration(round(self._since + TROUBLE_S - now))
            self._say(f"{e.problems[0].message}; pairun retries for {left}")


def unreachable(server: str, why: str) -> Unreachable:
    """The error for a server that does not respond.

    Args:
        server: the API server's address.
        why: a library's error message.
    """
    text = f"the API server {server} cannot be reached: {_why(why)}"
    return Unreachable(Problem("PR787", text, hint=_hint(why)))


def refusal(
    server: str,
    verb: str,
    path: str,
    status: int,
    document: Mapping[str, Any],
    retry_after: str | None = None,
    *,
    passing: bool = False,
) -> ClusterRefusal:
    """The error for a response with an error status.

    Args:
        server: the API server's address.
        verb: the verb in a Role.
        path: the path of the request.
        status: the HTTP status.
        document: the API's ``Status`` (Kubernetes API, "Status"); may be empty.
        retry_after: the response's ``Retry-After`` header, if any.
        passing: whether the same request may succeed later.
    """
    reason = str(document.get("reason") or "")
    words = visible(str(document.get("message") or reason or f"HTTP status {status}"))[:1000]
    group, what, namespace, _ = resource_of(path)
    hint = None
    if status == 400 and not document and server.startswith("http://"):
        text = f"the API server {server} does not answer http (400): it may require https"
        hint = "correct the address in the kubeconfig: https://…"
    elif status == 401:
        text = f"the API server {server} does not accept this login"
        hint = "log in again: the kubeconfig's token or certificate may have expired"
    elif status == 403 and f"cannot {verb} " in words:
        within = f" in namespace {namespace}" if namespace else ""
        text = f"not permitted{within}: {verb} {what} ({words})"
        hint = f"ask for this rule in a Role: {role_rule(group, what, verb)}"
    else:
        text = f"the API server refuses to {verb} {what}: {words}"
        if re.search('serviceaccount "[^"]*" not found', words):
            hint = "apply deploy/base to the namespace, or name another account: --set spec.serviceAccountName=NAME"
        elif passing:
            hint = "retry later; the server has a problem"
    refused = ClusterRefusal(Problem("PR788", text, hint=hint))
    refused.status, refused.reason, refused.passing = status, reason, passing
    refused.next_page = str((document.get("metadata") or {}).get("continue") or "")
    pause_s = retry_after_s(retry_after, time.time())
    refused.retry_after_s = 1.0 if pause_s is None else min(max(pause_s, 0.1), 60.0)
    return refused


def role_rule(group: str, resource: str, *verbs: str) -> str:
    """A rule of a Role, as YAML on one line (Kubernetes API, ``PolicyRule``)."""
    rule = {"apiGroups": [group], "resources": [resource], "verbs": verbs}
    return f"{{{', '.join(f'{key}: {json.dumps(value)}' for key, value in rule.items())}}}"


def _why(text: str) -> str:
    """The innermost message of nested library errors."""
    for pattern, words in _WHY:
        if match := re.search(pattern, text, re.IGNORECASE):
            return words.format(*match.groups())
    return visible(text.replace("\n", " "))[-300:]


def _hint(why: str) -> str:
    if "certificate is not yet valid" in why or "certificate has expired" in why:
        return "check this machine's clock (NTP), and the dates of the server's certificate"
    if "CERTIFICATE_VERIFY_FAILED" in why or "WRONG_VERSION" in why:
        return (
            "the kubeconfig's certificate-authority-data and server must belong to the same cluster"
        )
    return "check the server's address in the kubeconfig, and the network to it"


_WHY = (
    (r"certificate verify failed: ([^(\[]+)", "its certificate is not trusted: {0}"),
    (r"WRONG_VERSION_NUMBER", "it does not use TLS"),
    (r"Connection refused", "the connection is refused"),
    (r"Name or service not known|failure in name resolution|No address associated|nodename nor",
     "its name cannot be resolved"),
    (r"(?:connect timeout|ConnectTimeout)", f"no connection within {CONNECT_S} s"),
    (r"Read timed out", f"it sends nothing for {SILENCE_S} s"),
    (r"(?:Connection aborted|Remote end closed|Connection reset|IncompleteRead|prematurely)",
     "it closed the connection"),
    (r"unreachable", "there is no route to it"),
)  # fmt: skip
