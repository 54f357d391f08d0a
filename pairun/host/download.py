"""A body becomes a file: whole or not at all, and from where an earlier try was broken off.

What is there already is used again only with ``If-Range``, so that the server itself says whether it
still has the same content (RFC 9110, 13.1.5); `pairun.host.part` keeps it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import urljoin, urlsplit

import attrs

from pairun.base.retryafter import is_worth_a_retry, retry_after_s
from pairun.host.part import Note, Part
from pairun.host.place import Place
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
from pairun.net.address import Origin, may_share_headers
from pairun.net.exchange import Deadline, Exchange
from pairun.net.session import Session

_REDIRECTIONS = 10
_TRIES = 3
# We give up a moment before the attempt is stopped from outside, to say how far it got.
_MARGIN_S = 0.25


@attrs.frozen(kw_only=True)
class FileRequest:
    """What is asked for; see `pairun.module.Context.fetch_file`."""

    url: str
    place: Place
    headers: Mapping[str, str | Secret]
    mode: int
    sha256: str | None
    max_bytes: int | None
    stall_s: float


@attrs.frozen(kw_only=True)
class _World:
    """What a download depends on besides the server."""

    env: Mapping[str, str]
    remaining: Callable[[], float | None]
    progress: Callable[[int, int | None, str], None]
    now: Callable[[], float]


class _Again(Exception):
    """The part is of no use: begin anew."""


def fetch_file(
    request: FileRequest,
    *,
    env: Mapping[str, str],
    remaining: Callable[[], float | None],
    progress: Callable[[int, int | None, str], None],
    now: Callable[[], float],
) -> FetchedFile:
    """Take a body into a file.

    Args:
        request: what, where to, and within which limits.
        env: the task's; see `pairun.net.proxies` and `pairun.net.authorities`.
        remaining: seconds left, or None.
        progress: told how many bytes are there, of how many, of what.
        now: seconds since the epoch.

    Raises:
        Failure: see `pairun.module.Context.fetch_file`.
    """
    world = _World(env=env, remaining=remaining, progress=progress, now=now)
    with Part.opened(request.place, request.url) as part:
        for _ in range(_TRIES):
            try:
                return _Download(request, world, part).run()
            except _Again:
                part.forget()
    raise Transient(f"{_host(request.url)} changes its mind about what it sends", fault="platform")


class _Download:
    """One try: what is there already, one answer, what comes with it."""

    def __init__(self, request: FileRequest, world: _World, part: Part) -> None:
        self._request = request
        self._world = world
        self._part = part

    def run(self) -> FetchedFile:
        """Bring the part to its end and put it into place.

        Raises:
            _Again: the part was of no use.
            Failure: anything else that prevents it.
        """
        part = self._part
        resumed_at = part.resume()
        if resumed_at and self._is_whole():
            return self._finished(resumed_at)
        with self._answer() as (exchange, head):
            resumed_at = self._continue(head, exchange.where)
            expected = part.note.total
            self._check_size(expected, exchange.where)
            part.write_note()
            self._take(exchange, expected)
            # An empty body whose end is the connection's is a head that was cut off.
            cut_off = not part.size and not head.header("transfer-encoding")
            if part.size != expected if expected is not None else cut_off:
                raise self._broken(f"{exchange.where} ended too early", expected)
        self._check_sum(resumed_at, exchange.where)
        return self._finished(resumed_at)

    def _is_whole(self) -> bool:
        """Whether an earlier try had everything, and was only not put into place."""
        part, sha256 = self._part, self._request.sha256
        return sha256 is not None and part.size == part.note.total and part.digest() == sha256

    # --- the answer ---

    @contextlib.contextmanager
    def _answer(self) -> Iterator[tuple[Exchange, Fetched]]:
        """The answer that is no redirection."""
        url, headers = self._request.url, dict(self._request.headers)
        for _ in range(_REDIRECTIONS + 1):
            asked = {**headers, **self._part.conditions()}
            deadline = Deadline(self._limit_s())
            with (
                Session.to(url, self._world.env) as session,
                Exchange(session, "GET", url, headers=asked, deadline=deadline) as exchange,
            ):
                head = exchange.head(deadline)
                if head.status not in (301, 302, 303, 307, 308):
                    yield exchange, head
                    return
            target = self._target(url, head, session.where)
            if not may_share_headers(url, target):
                # For good: what comes back to the first server was sent by the second.
                headers = {}
            url = target
        raise Permanent(
            f"{_host(self._request.url)} sends from place to place, without end", fault="platform"
        )

    def _target(self, url: str, head: Fetched, where: str) -> str:
        location = head.header("location")
        try:
            target = urljoin(url, (location or "").strip())
            # Of an address with spaces or umlauts each server makes its own; curl does this.
            target = re.sub(
                r"[^!-~]", lambda m: "".join(f"%{b:02X}" for b in m[0].encode("latin-1", "replace")),
                target,
            )  # fmt: skip
            scheme = Origin.of(target).scheme
        except ValueError:
            location, scheme = None, ""
        if not location or scheme not in ("http", "https"):
            raise Permanent(
                f"{where} sends to where nobody can go (status {head.status})", fault="platform"
            )
        if urlsplit(url).scheme == "https" and scheme == "http" and self._request.sha256 is None:
            raise Permanent(
                f"{where} sends from https to http, where anybody could change the content",
                fault="platform",
                hint="give its sha256, or the address it should come from",
            )
        return target

    def _continue(self, head: Fetched, where: str) -> int:
        """Judge status and headers, prepare the part; say where in it the body goes on.

        Raises:
            _Again: the answer does not continue what is there.
            Failure: it is no answer with a body.
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
                raise _Again
            if total is None and span[3] != "*":
                part.note.total = int(span[3])
            return part.size
        if head.status == 416 and part.size:
            raise _Again
        if head.status != 200:
            raise _status_failure(head, where, self._world.now())
        part.begin(Note.of(self._request.url, head))
        return 0

    def _check_size(self, total: int | None, where: str) -> None:
        """Refuse in time what is too large for us or for the disk."""
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
                    f"no room for {self._request.place.path}: it needs {format_size(total - part.size)}"
                    f" more, and its file system has {format_size(free)} left",
                    hint="free space on that file system, or download to another",
                )

    # --- the body ---

    def _take(self, exchange: Exchange, expected: int | None) -> None:
        part, request = self._part, self._request
        self._world.progress(part.size, expected, request.place.path)
        while True:
            limit = self._limit_s()
            try:
                piece = exchange.read(Deadline(limit))
            except TimedOut:
                stalled = limit >= request.stall_s
                why = f"sent nothing for {format_duration(limit)}" if stalled else "is too slow"
                more = "" if stalled else " for the time of this attempt"
                raise TimedOut(
                    self._so_far(f"{exchange.where} {why}{more}", expected), fault="platform"
                ) from None
            except Transient as e:
                raise self._broken(e.message, expected) from None
            if not piece:
                return
            part.append(piece)
            if request.max_bytes is not None and part.size > request.max_bytes:
                self._check_size(None, exchange.where)
            if expected is not None and part.size > expected:
                part.forget()
                raise Transient(f"{exchange.where} sent more than it said", fault="platform")
            self._world.progress(part.size, expected, request.place.path)

    def _limit_s(self) -> float:
        """Seconds that we wait for the next byte."""
        left = self._world.remaining()
        if left is None:
            return self._request.stall_s
        return min(self._request.stall_s, max(left - _MARGIN_S, 0.001))

    def _broken(self, why: str, expected: int | None) -> Transient:
        return Transient(self._so_far(why, expected), fault="platform")

    def _so_far(self, why: str, expected: int | None) -> str:
        part = self._part
        of = f" of {format_size(expected)}" if expected is not None else ""
        then = "goes on from there" if part.note.validator else "begins anew (no strong ETag)"
        return f"{why}: {format_size(part.size)}{of} came, and a next attempt {then}"

    def _check_sum(self, resumed_at: int, where: str) -> None:
        expected, part = self._request.sha256, self._part
        if expected is None or (sha256 := part.digest()) == expected:
            return
        part.forget()
        if resumed_at:
            # The first half may be to blame, which nobody has asked for today.
            raise _Again
        raise Permanent(
            f"{where} has another content than asked for: its SHA-256 is {sha256}, not {expected}",
            fault="user",
            hint="correct sha256, or find out who changed the file",
        )

    def _finished(self, resumed_at: int) -> FetchedFile:
        part = self._part
        fetched = FetchedFile(part.size, part.digest(), resumed_at)
        part.into_place(self._request.mode)
        self._world.progress(fetched.size, fetched.size, self._request.place.path)
        return fetched


# --- words and small judgements ---------------------------------------------------------------------


def _status_failure(head: Fetched, where: str, now: float) -> Failure:
    """What a status without a body for us means."""
    status = head.status
    if is_worth_a_retry(status):
        return Transient(
            f"{where} answered {status}",
            fault="platform",
            retry_after_s=retry_after_s(head.header("retry-after"), now),
        )
    hints: dict[int, tuple[Fault, str | None]] = {
        401: ("user", "it wants to know who asks: add a header, such as Authorization"),
        403: ("user", "who asks may not have it: check the credentials, or whether a link expired"),
        404: ("user", "there is no such file: check the address"),
        407: ("platform", "the proxy wants a login: http://USER:PASSWORD@HOST:PORT"),
        410: ("user", "the file was removed for good: find another source"),
    }
    fault, hint = hints.get(status, ("unknown", None))
    return Permanent(f"{where} answered {status}", fault=fault, hint=hint)


def _host(url: str) -> str:
    return urlsplit(url).hostname or "the server"
