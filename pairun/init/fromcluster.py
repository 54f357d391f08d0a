"""The Framework of this Pod, read from the cluster's API server."""

from __future__ import annotations

import contextlib
import re
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from pairun.base.foreignjson import parse_record
from pairun.base.signals import STOP_SIGNALS
from pairun.errors import PairunError
from pairun.job.stored import API_VERSION
from pairun.kube.paths import object_path
from pairun.module import Failure, TimedOut, Transient, format_duration
from pairun.net.apicredentials import NoApiServer
from pairun.net.apiserver import METADATA_ONLY, ApiServer

TIMEOUT = "BARRIER_CHECK_TIMEOUT_SEC"
_DEFAULT_TIMEOUT_S = 600
_TIMEOUTS_S = (60, 1200)
_ANSWER_S = 30.0
_LONGEST_PAUSE_S = 10.0
_MAX_BYTES = 16 * 1024 * 1024


def read_head(namespace: str, name: str, env: Mapping[str, str]) -> dict[str, Any]:
    """Read a Framework's metadata, which contains the job, without spec and status.

    Retries failures that may be temporary for as long as the barrier waits, or until a stop signal.

    Args:
        env: names the API server (see `ApiServer.in_pod`); ``BARRIER_CHECK_TIMEOUT_SEC`` bounds the
            retries, in seconds.

    Raises:
        PairunError: the Framework is missing or unreadable; only PR773 may be temporary.
    """
    limit_s = _timeout_s(env)
    path = object_path(API_VERSION, "frameworks", namespace, name)
    try:
        with _stop_signals_exit(), contextlib.closing(ApiServer.in_pod(env)) as server:
            data = _ask_with_retries(server, path, limit_s)
    except NoApiServer as e:
        raise _problem("PR770", e) from e
    except (Transient, TimedOut) as e:
        raise _problem("PR773", e) from e
    except Failure as e:
        raise _problem("PR772", e) from e
    if data is None:
        message = f"there is no Framework {name} in the namespace {namespace}"
        hint = "it was deleted, or this Pod is older than it; there is nothing to do here"
        raise PairunError.of("PR771", message, hint=hint)
    if (framework := parse_record(data)) is None:
        raise PairunError.of("PR704", "the response of the API server is not a Framework object")
    return framework


def _ask_with_retries(server: ApiServer, path: str, limit_s: float) -> bytes | None:
    """Send a request until it succeeds or fails permanently.

    Raises:
        Failure: the last failure; permanent, or after the time limit.
    """
    end, pause_s, printed = time.monotonic() + limit_s, 1.0, ""
    while True:
        left = end - time.monotonic()
        try:
            return server.ask(
                path,
                accept=METADATA_ONLY,
                timeout_s=max(1.0, min(_ANSWER_S, left)),
                max_bytes=_MAX_BYTES,
            )
        except (Transient, TimedOut) as e:
            left = end - time.monotonic()
            if left <= 0:
                e.message = f"no usable answer for {format_duration(limit_s)}: {e.message}"
                raise
            if e.message != printed:
                printed = e.message
                sys.stdout.write(f"{printed}; retrying for {format_duration(left)}\n")
                sys.stdout.flush()
            time.sleep(min(left, max(pause_s, e.retry_after_s or 0.0)))
            pause_s = min(_LONGEST_PAUSE_S, pause_s * 2)


@contextlib.contextmanager
def _stop_signals_exit() -> Iterator[None]:
    """Exit on a stop signal: no other code takes these signals yet, which are blocked."""

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    handlers = {number: signal.signal(number, leave) for number in STOP_SIGNALS}
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _timeout_s(env: Mapping[str, str]) -> float:
    text = env.get(TIMEOUT) or str(_DEFAULT_TIMEOUT_S)
    low, high = _TIMEOUTS_S
    if re.fullmatch("[0-9]{1,9}", text) and low <= int(text) <= high:
        return float(text)
    raise PairunError.of(
        "PR774", f"{TIMEOUT} is '{text[:40]}', not a number of seconds from {low} to {high}"
    )


def _problem(id_: str, failure: Failure) -> PairunError:
    return PairunError.of(id_, failure.message, hint=failure.hint)
