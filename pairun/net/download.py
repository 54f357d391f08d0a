"""A body becomes a file: whole or not at all, and from where an earlier try was broken off.

What is there already is used again only with ``If-Range``, so that the server itself says whether it
still has the same content (RFC 9110, 13.1.5); `pairun.net.part` keeps it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import attrs

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
from pairun.net.http import Stream
from pairun.net.part import Note, Part, seconds

_REDIRECTIONS = 10
_TRIES = 3
# We give up a moment before the attempt is stopped from outside, to say how far it got.
_MARGIN_S = 0.25


@attrs.frozen(kw_only=True)
class Wanted:
    """What is asked for; see `pairun.module.Context.fetch_file`."""

    url: str
    path: str
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
    wanted: Wanted,
    *,
    env: Mapping[str, str],
    remaining: Callable[[], float | None],
    progress: Callable[[int, int | None, str], None],
    now: Callable[[], float],
) -> FetchedFile:
    """Take a body into a file.

    Args:
        wanted: what, where to, and within which limits.
        env: as `pairun.net.http.fetch`.
        remaining: seconds left, or None.
        progress: told how many bytes are there, of how many, of what.
        now: seconds since the epoch.

    Raises:
        Failure: see `pairun.module.Context.fetch_file`.
    """
    world = _World(env=env, remaining=remaining, progress=progress, now=now)
    with Part.opened(wanted.path, wanted.url) as part:
        for _ in range(_TRIES):
            try:
                return _Download(wanted, world, part).run()
            except _Again:
                part.forget()
    raise Transient(f"{_host(wanted.url)} changes its mind about what it sends", fault="platform")


class _Download:
    """One try: what is there already, one answer, what comes with it."""

    def __init__(self, wanted: Wanted, world: _World, part: Part) -> None:
        self._wanted = wanted
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
        with self._answer() as (stream, head):
            resumed_at = self._continue(head, stream.where)
            expected = part.note.total
            self._check_size(expected, stream.where)
            part.write_note()
            self._take(stream, expected)
            # An empty body whose end is the connection's is a head that was cut off.
            cut_off = not part.size and not head.header("transfer-encoding")
            if part.size != expected if expected is not None else cut_off:
                raise self._broken(f"{stream.where} ended too early", expected)
        self._check_sum(resumed_at, stream.where)
        return self._finished(resumed_at)

    def _is_whole(self) -> bool:
        """Whether an earlier try had everything, and was only not put into place."""
        part, sha256 = self._part, self._wanted.sha256
        return sha256 is not None and part.size == part.note.total and part.digest() == sha256

    # --- the answer ---

    @contextlib.contextmanager
    def _answer(self) -> Iterator[tuple[Stream, Fetched]]:
        """The answer that is no redirection."""
        url, headers = self._wanted.url, dict(self._wanted.headers)
        for _ in range(_REDIRECTIONS + 1):
            asked = {"Accept-Encoding": "identity", **headers, **self._part.conditions()}
            limit = self._limit_s()
            with Stream(url, headers=asked, env=self._world.env, timeout_s=limit) as stream:
                head = stream.head(limit)
                if head.status not in (301, 302, 303, 307, 308):
                    yield stream, head
                    return
            target = self._target(url, head, stream.where)
            if not _same_server(url, target):
                # For good: what comes back to the first server was sent by the second.
                headers = {}
            url = target
        raise Permanent(
            f"{_host(self._wanted.url)} sends from place to place, without end", fault="platform"
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
            scheme = _server(target).scheme
        except ValueError:
            location, scheme = None, ""
        if not location or scheme not in ("http", "https"):
            raise Permanent(
                f"{where} sends to where nobody can go (status {head.status})", fault="platform"
            )
        if urlsplit(url).scheme == "https" and scheme == "http" and self._wanted.sha256 is None:
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
            found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", head.header("content-range") or "")
            total = part.note.total
            fits = (
                found is not None
                and int(found[1]) == part.size
                and int(found[2]) >= part.size
                and (found[3] == "*" or total is None or int(found[3]) == total)
            )
            etag = head.header("etag")
            same = etag is None or not part.note.etag or etag == part.note.validator
            if not fits or not same or found is None:
                raise _Again
            if total is None and found[3] != "*":
                part.note.total = int(found[3])
            return part.size
        if head.status == 416 and part.size:
            raise _Again
        if head.status != 200:
            raise _status_failure(head, where, self._world.now())
        part.begin(Note.of(self._wanted.url, head))
        return 0

    def _check_size(self, total: int | None, where: str) -> None:
        """Refuse in time what is too large for us or for the disk."""
        limit, part = self._wanted.max_bytes, self._part
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
                    f"no room for {self._wanted.path}: it needs {format_size(total - part.size)}"
                    f" more, and its file system has {format_size(free)} left",
                    hint="free space on that file system, or download to another",
                )

    # --- the body ---

    def _take(self, stream: Stream, expected: int | None) -> None:
        part, wanted = self._part, self._wanted
        self._world.progress(part.size, expected, wanted.path)
        while True:
            limit = self._limit_s()
            try:
                piece = stream.read(limit)
            except TimedOut:
                stalled = limit >= wanted.stall_s
                why = f"sent nothing for {format_duration(limit)}" if stalled else "is too slow"
                more = "" if stalled else " for the time of this attempt"
                raise TimedOut(
                    self._so_far(f"{stream.where} {why}{more}", expected), fault="platform"
                ) from None
            except Transient as e:
                raise self._broken(e.message, expected) from None
            if not piece:
                return
            part.append(piece)
            if wanted.max_bytes is not None and part.size > wanted.max_bytes:
                self._check_size(None, stream.where)
            if expected is not None and part.size > expected:
                part.forget()
                raise Transient(f"{stream.where} sent more than it said", fault="platform")
            self._world.progress(part.size, expected, wanted.path)

    def _limit_s(self) -> float:
        """Seconds that we wait for the next byte."""
        left = self._world.remaining()
        if left is None:
            return self._wanted.stall_s
        return min(self._wanted.stall_s, max(left - _MARGIN_S, 0.001))

    def _broken(self, why: str, expected: int | None) -> Transient:
        return Transient(self._so_far(why, expected), fault="platform")

    def _so_far(self, why: str, expected: int | None) -> str:
        part = self._part
        of = f" of {format_size(expected)}" if expected is not None else ""
        then = "goes on from there" if part.note.validator else "begins anew (no strong ETag)"
        return f"{why}: {format_size(part.size)}{of} came, and a next attempt {then}"

    def _check_sum(self, resumed_at: int, where: str) -> None:
        wanted, part = self._wanted.sha256, self._part
        if wanted is None or (found := part.digest()) == wanted:
            return
        part.forget()
        if resumed_at:
            # The first half may be to blame, which nobody has asked for today.
            raise _Again
        raise Permanent(
            f"{where} has another content than asked for: its SHA-256 is {found}, not {wanted}",
            fault="user",
            hint="correct sha256, or find out who changed the file",
        )

    def _finished(self, resumed_at: int) -> FetchedFile:
        part = self._part
        fetched = FetchedFile(part.size, part.digest(), resumed_at)
        part.into_place(self._wanted.mode)
        self._world.progress(fetched.size, fetched.size, self._wanted.path)
        return fetched


# --- words and small judgements ---------------------------------------------------------------------


def _status_failure(head: Fetched, where: str, now: float) -> Failure:
    """What a status without a body for us means."""
    status = head.status
    if status in (408, 425, 429) or status >= 500:
        return Transient(
            f"{where} answered {status}", fault="platform", retry_after_s=_retry_after(head, now)
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


def _retry_after(head: Fetched, now: float) -> float | None:
    """Seconds of ``Retry-After``, by RFC 9110 (10.2.3) a number or a date."""
    text = (head.header("retry-after") or "").strip()
    if re.fullmatch(r"[0-9]{1,9}", text):
        return float(text)
    date = seconds(text)
    return None if date is None else max(0.0, date - now)


class _Server(NamedTuple):
    scheme: str
    host: str
    port: int


def _server(url: str) -> _Server:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return _Server(parts.scheme, parts.hostname or "", port)


def _same_server(one: str, other: str) -> bool:
    """Whether what may be told to the first may be told to the other."""
    a, b = _server(one), _server(other)
    upgraded = a.host == b.host and (a[0], a[2], b[0], b[2]) == ("http", 80, "https", 443)
    return a == b or upgraded


def _host(url: str) -> str:
    return urlsplit(url).hostname or "the server"
