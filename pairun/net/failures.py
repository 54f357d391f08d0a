"""Maps errors on the way to a server to kinds of failure."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator

import requests
import urllib3

from pairun.module import Failure, Permanent, TimedOut, Transient, format_duration
from pairun.net.boundedcall import name_failure

_NO_HOST = (UnicodeError, urllib3.exceptions.LocationValueError, requests.exceptions.InvalidURL)
_NO_HTTP = (http.client.HTTPException, urllib3.exceptions.HTTPError, requests.RequestException)


class BadCertificate(Permanent):
    """The server's certificate is not valid; ``reason`` is OpenSSL's message."""

    reason = ""


def failure_of(error: Exception, where: str, limit_s: float) -> Failure:
    """Explain why there was no response, without path, query or header."""
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, Failure):
            return cause
        if isinstance(cause, TimeoutError):
            return timed_out(where, limit_s)
        if isinstance(cause, ssl.SSLCertVerificationError):
            failure = BadCertificate(
                f"the certificate of {where} is not valid here: {cause.verify_message}",
                fault="platform",
                hint="add the authority that signed it to the container, or name it in SSL_CERT_FILE",
            )
            failure.reason = cause.verify_message
            return failure
        if isinstance(cause, socket.gaierror):
            return name_failure(cause, where)
        if isinstance(cause, _NO_HOST):
            return Permanent(f"{where} is not a host name", hint="check the address")
    for cause in causes:
        # The libraries' errors only wrap the system's; those of requests are OSErrors, too.
        if isinstance(cause, OSError) and not isinstance(cause, requests.RequestException):
            reason = getattr(cause, "reason", None) or cause.strerror or str(cause)
            message = f"the connection to {where} failed: {reason or 'it was interrupted'}"
            return Transient(message, fault="platform")
    if names := [type(cause).__name__ for cause in causes if isinstance(cause, _NO_HTTP)]:
        message = f"{where} closed the connection, or its response is not HTTP ({names[-1]})"
        return Transient(message, fault="platform")
    return Failure(f"the request to {where} failed: {type(error).__name__}", fault="platform")


def timed_out(where: str, limit_s: float) -> TimedOut:
    """The failure of a server that exceeds a time limit."""
    waited = format_duration(max(0.0, limit_s))
    return TimedOut(f"{where} did not answer within {waited}", fault="platform")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and all its causes, the outermost first."""
    todo, seen = [error], {id(error)}
    while todo:
        yield (one := todo.pop(0))
        for other in (one.__cause__, one.__context__, *one.args):
            if isinstance(other, BaseException) and id(other) not in seen:
                seen.add(id(other))
                todo.append(other)
