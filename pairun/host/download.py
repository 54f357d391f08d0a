"""Downloads a file completely or not at all, and continues an earlier attempt's download.

A partial file (`pairun.host.part`) is continued only with ``If-Range``: the server then confirms
that the content is still the same (RFC 9110, 13.1.5).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import attrs

from pairun.base.retryafter import is_worth_a_retry, retry_after_s
from pairun.host.part import Note, Part
from pairun.host.place import Place
from pairun.host.redirects import follow
from pairun.module import (
    Failure,
    Fault,
    Fetched,
    FetchedFile,
    Permanent,
    Secret,
    TimedOut,
    Transient,
    format_duration,
    format_size,
)
from pairun.net.session import Deadline, Session

_MAX_STARTS = 3
# Ends before the executor stops the attempt, to report how many bytes have arrived.
_MARGIN_S = 0.25


@attrs.frozen(kw_only=True)
class FileRequest:
    """The arguments of a download; see `pairun.module.Context.fetch_file`."""

    url: str
    place: Place
    headers: Mapping[str, str | Secret]
    mode: int
    sha256: str | None
    max_bytes: int | None
    stall_s: float


@attrs.frozen(kw_only=True)
class _World:
    """The parts of the environment that a download uses."""

    env: Mapping[str, str]
    remaining: Callable[[], float | None]
    progress: Callable[[int, int | None, str], None]
    now: Callable[[], float]


class _StartOver(Exception):
    """The partial file is useless; download the whole file."""


def fetch_file(
    request: FileRequest,
    *,
    env: Mapping[str, str],
    remaining: Callable[[], float | None],
    progress: Callable[[int, int | None, str], None],
    now: Callable[[], float],
) -> FetchedFile:
    """Download a file.

    Args:
        request: the address, the file, and the limits.
        env: the task's environment; see `pairun.net.proxies` and `pairun.net.authorities`.
        remaining: seconds left, or None for no limit.
        progress: called with the bytes so far, the total or None, and the path.
        now: seconds since the epoch.

    Raises:
        Failure: see `pairun.module.Context.fetch_file`.
    """
    world = _World(env=env, remaining=remaining, progress=progress, now=now)
    with Part.opened(request.place, request.url) as part:
        for _ in range(_MAX_STARTS):
            try:
                return _Download(request, world, part).run()
            except _StartOver:
                part.forget()
    host = urlsplit(request.url).hostname or "the server"
    raise Transient(f"{host} keeps changing the content while it is downloaded", fault="platform")


class _Download:
    """One attempt: downloads the whole file, or continues a partial one."""

    def __init__(self, request: FileRequest, world: _World, part: Part) -> None:
        self._request = request
        self._world = world
        self._part = part

    def run(self) -> FetchedFile:
        """Complete the partial file and move it to its final path.

        Raises:
            _StartOver: the partial file is useless.
            Failure: the download fails.
        """
        part = self._part
        resumed_at = part.resume()
        if resumed_at and self._is_whole():
            return self._finished(resumed_at)
        with follow(
            self._request.url,
            self._request.headers,
            conditions=part.conditions(),
            env=self._world.env,
            limit_s=self._limit_s,
            may_downgrade=self._request.sha256 is not None,
        ) as (session, head):
            resumed_at = self._continue(head, session.where)
            expected = part.note.total
            self._check_size(expected, session.where)
            part.write_note()
            self._take(session, expected)
            # Without a length, an empty body means that the connection broke after the headers.
            cut_off = not part.size and not head.header("transfer-encoding")
            if part.size != expected if expected is not None else cut_off:
                raise self._broken(f"{session.where} sent less than it announced", expected)
        self._check_sum(resumed_at, session.where)
        return self._finished(resumed_at)

    def _is_whole(self) -> bool:
        """Whether an earlier attempt got all bytes and failed before the rename."""
        part, sha256 = self._part, self._request.sha256
        return sha256 is not None and part.size == part.note.total and part.digest() == sha256

    def _continue(self, head: Fetched, where: str) -> int:
        """Check status and headers, and prepare the part; returns the body's offset in it.

        Raises:
            _StartOver: the response does not continue the part.
            Failure: the status is an error.
        """
        part = self._part
        if head.status == 206 and part.size:
            span = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", head.header("content-range") or "")
            total = part.note.total
            fits = (
                span is not None
                and int(span[1]) == part.size
                and int(span[2]) >= part.size
                and (span[3] == "*" or total is None or int(span[3]) == total)
            )
            etag = head.header("etag")
            same = etag is None or not part.note.etag or etag == part.note.validator
            if not fits or not same or span is None:
                raise _StartOver
            if total is None and span[3] != "*":
                part.note.total = int(span[3])
            return part.size
        if head.status == 416 and part.size:
            raise _StartOver
        if head.status != 200:
            raise _status_failure(head, where, self._world.now())
        part.begin(Note.of(self._request.url, head))
        return 0

    def _check_size(self, total: int | None, where: str) -> None:
        """Fail early if the file is too large for its limit or for the disk."""
        limit, part = self._request.max_bytes, self._part
        if limit is not None and max(total or 0, part.size) > limit:
            part.forget()
            size = format_size(total) if total else "its body"
            raise Permanent(
                f"{where}: {size} is more than the {format_size(limit)} that are allowed",
                fault="user",
            )
        if total is None:
            return
        with contextlib.suppress(OSError):
            disk = os.fstatvfs(part.fd)
            free = disk.f_bavail * disk.f_frsize
            if total - part.size > free:
                raise Transient(
                    f"not enough space for {self._request.place.path}: it needs {format_size(total - part.size)}"
                    f" more, and its file system has {format_size(free)} free",
                    hint="free space on that file system, or download to another",
                )

    # --- the body ---

    def _take(self, session: Session, expected: int | None) -> None:
        part, request = self._part, self._request
        self._world.progress(part.size, expected, request.place.path)
        while True:
            limit = self._limit_s()
            try:
                piece = session.read(Deadline(limit))
            except TimedOut:
                stalled = limit >= request.stall_s
                why = f"sent nothing for {format_duration(limit)}" if stalled else "is too slow"
                more = "" if stalled else " for the time of this attempt"
                raise TimedOut(
                    self._so_far(f"{session.where} {why}{more}", expected), fault="platform"
                ) from None
            except Transient as e:
                raise self._broken(e.message, expected) from None
            if not piece:
                return
            part.append(piece)
            if request.max_bytes is not None and part.size > request.max_bytes:
                self._check_size(None, session.where)
            if expected is not None and part.size > expected:
                part.forget()
                raise Transient(f"{session.where} sent more than it announced", fault="platform")
            self._world.progress(part.size, expected, request.place.path)

    def _limit_s(self) -> float:
        """The timeout for the next byte, in seconds."""
        left = self._world.remaining()
        if left is None:
            return self._request.stall_s
        return min(self._request.stall_s, max(left - _MARGIN_S, 0.001))

    def _broken(self, why: str, expected: int | None) -> Transient:
        return Transient(self._so_far(why, expected), fault="platform")

    def _so_far(self, why: str, expected: int | None) -> str:
        part = self._part
        of = f" of {format_size(expected)}" if expected is not None else ""
        then = "continues from there" if part.note.validator else "starts over (no strong ETag)"
        return f"{why}: {format_size(part.size)}{of} arrived; the next attempt {then}"

    def _check_sum(self, resumed_at: int, where: str) -> None:
        expected, part = self._request.sha256, self._part
        if expected is None or (sha256 := part.digest()) == expected:
            return
        part.forget()
        if resumed_at:
            # An earlier attempt's part may be wrong.
            raise _StartOver
        raise Permanent(
            f"{where} sent different content: its SHA-256 is {sha256}, not {expected}",
            fault="user",
            hint="correct sha256, or check why the file changed",
        )

    def _finished(self, resumed_at: int) -> FetchedFile:
        part = self._part
        fetched = FetchedFile(part.size, part.digest(), resumed_at)
        part.into_place(self._request.mode)
        self._world.progress(fetched.size, fetched.size, self._request.place.path)
        return fetched


def _status_failure(head: Fetched, where: str, now: float) -> Failure:
    """The failure for a status other than success."""
    status = head.status
    if is_worth_a_retry(status):
        return Transient(
            f"{where} answered {status}",
            fault="platform",
            retry_after_s=retry_after_s(head.header("retry-after"), now),
        )
    hints: dict[int, tuple[Fault, str | None]] = {
        401: ("user", "add a header with credentials, such as Authorization"),
        403: ("user", "check the credentials, and whether a link has expired"),
        404: ("user", "check the address: the file does not exist"),
        407: ("platform", "add a login to the proxy's address: http://USER:PASSWORD@HOST:PORT"),
        410: ("user", "find another source: the file was removed permanently"),
    }
    fault, hint = hints.get(status, ("unknown", None))
    return Permanent(f"{where} answered {status}", fault=fault, hint=hint)
