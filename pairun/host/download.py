"""Downloads a file completely or not at all, and continues an earlier attempt's download.

A partial file (`pairun.host.part`) is continued only with ``If-Range``: the server then confirms
that the content is still the same (RFC 9110, 13.1.5).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from urllib.parse import urljoin, urlsplit

import attrs

from pairun.base.folder import Folder
from pairun.base.linklocal import is_link_local
from pairun.base.retryafter import is_worth_a_retry, retry_after_s
from pairun.host.part import PartFile, PartNote
from pairun.module import (
    Context,
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
from pairun.net.session import Deadline, Session, may_share_headers

_MAX_STARTS = 3
_MAX_REDIRECTS = 10
# Ends before the executor stops the attempt, to report how many bytes have arrived.
_MARGIN_S = 0.25


class _StartOver(Exception):
    """The partial file is useless; download the whole file."""


@attrs.frozen(kw_only=True)
class Download:
    """A download; see `pairun.module.Context.fetch_file` for the fields.

    Attributes:
        ctx: the world, with the task's environment for proxies and authorities.
        folder: the open directory that holds the file.
        name: the file's name in it.
    """

    ctx: Context
    url: str
    folder: Folder
    name: str
    headers: Mapping[str, str | Secret]
    mode: int
    sha256: str | None
    max_bytes: int | None
    stall_s: float

    @property
    def _path(self) -> str:
        return os.path.join(self.folder.root, self.name)

    def run(self) -> FetchedFile:
        """Download the file.

        Raises:
            Failure: see `pairun.module.Context.fetch_file`.
        """
        with PartFile(self.folder, self.name, self.url) as part:
            for _ in range(_MAX_STARTS):
                try:
                    return self._complete(part)
                except _StartOver:
                    part.forget()
        host = urlsplit(self.url).hostname or "the server"
        raise Transient(
            f"{host} keeps changing the content while it is downloaded", fault="platform"
        )

    def _complete(self, part: PartFile) -> FetchedFile:
        """Complete the partial file and move it to its final path.

        Raises:
            _StartOver: the partial file is useless.
            Failure: the download fails.
        """
        resumed_at = part.resume()
        # An earlier attempt may have got all bytes, and failed before the rename.
        is_whole = part.size == part.note.total and part.digest() == self.sha256
        if not (resumed_at and is_whole):
            with self._follow(part.conditions()) as (session, head):
                resumed_at = self._continue(part, head, session.where)
                self._check_size(part, part.note.total, session.where)
                part.write_note()
                self._take(part, session)
                expected = part.note.total
                # Without a length, an empty body means that the connection broke after the headers.
                cut_off = not part.size and not head.header("transfer-encoding")
                if part.size != expected if expected is not None else cut_off:
                    why = f"{session.where} sent less than it announced"
                    raise Transient(_so_far(part, why), fault="platform")
            self._check_sum(part, resumed_at, session.where)
        fetched = FetchedFile(part.size, part.digest(), resumed_at)
        part.into_place(self.mode)
        self.ctx.progress(fetched.size, fetched.size, self._path)
        return fetched

    # --- the request ---

    @contextlib.contextmanager
    def _follow(self, conditions: Mapping[str, str]) -> Iterator[tuple[Session, Fetched]]:
        """Send a GET request and follow redirects; yields the session and the response's head.

        Raises:
            Failure: a server does not respond, or a redirect has no usable address.
        """
        url, headers = self.url, self.headers
        for _ in range(_MAX_REDIRECTS + 1):
            with Session.to(url, self.ctx.env) as session:
                deadline = Deadline(self._limit_s())
                head = session.ask("GET", url, deadline, {**headers, **conditions})
                if head.status not in (301, 302, 303, 307, 308):
                    yield session, head
                    return
            target = _target(url, head, session.where, may_downgrade=self.sha256 is not None)
            if not may_share_headers(url, target):
                # Permanently: a second server may redirect back to the first one.
                headers = {}
            url = target
        first = urlsplit(self.url).hostname or "the server"
        raise Permanent(f"{first} redirects more than {_MAX_REDIRECTS} times", fault="platform")

    def _continue(self, part: PartFile, head: Fetched, where: str) -> int:
        """Check status and headers, and prepare the part; returns the body's offset in it.

        Raises:
            _StartOver: the response does not continue the part.
            Failure: the status is an error.
        """
        if head.status == 206 and part.size:
            span = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", head.header("content-range") or "")
            total, etag = part.note.total, head.header("etag")
            if (
                span is None
                or int(span[1]) != part.size
                or int(span[2]) < part.size
                or (span[3] != "*" and total is not None and int(span[3]) != total)
                or (etag is not None and part.note.etag and etag != part.note.validator)
            ):
                raise _StartOver
            if total is None and span[3] != "*":
                part.note.total = int(span[3])
            return part.size
        if head.status == 416 and part.size:
            raise _StartOver
        if head.status != 200:
            raise _status_failure(head, where, self.ctx.now())
        part.forget()
        part.note = PartNote.of(self.url, head)
        return 0

    def _check_size(self, part: PartFile, total: int | None, where: str) -> None:
        """Fail early if the file is too large for its limit or for the disk."""
        limit = self.max_bytes
        if limit is not None and max(total or 0, part.size) > limit:
            part.forget()
            size = format_size(total) if total else "its body"
            message = f"{where}: {size} is more than the {format_size(limit)} that are allowed"
            raise Permanent(message, fault="user")
        if total is None:
            return
        with contextlib.suppress(OSError):
            disk = os.fstatvfs(part.fd)
            free = disk.f_bavail * disk.f_frsize
            if total - part.size > free:
                raise Transient(
                    f"not enough space for {self._path}: it needs {format_size(total - part.size)}"
                    f" more, and its file system has {format_size(free)} free",
                    hint="free space on that file system, or download to another",
                )

    # --- the body ---

    def _take(self, part: PartFile, session: Session) -> None:
        expected = part.note.total
        piece = b""
        while True:
            self.ctx.progress(part.size, expected, self._path)
            limit = self._limit_s()
            try:
                piece = session.read(Deadline(limit))
            except TimedOut:
                why = f"sent nothing for {format_duration(limit)}"
                if limit < self.stall_s:
                    why = "is too slow for the time of this attempt"
                why = _so_far(part, f"{session.where} {why}")
                raise TimedOut(why, fault="platform") from None
            except Transient as e:
                raise Transient(_so_far(part, e.message), fault="platform") from None
            if not piece:
                return
            part.append(piece)
            if self.max_bytes is not None and part.size > self.max_bytes:
                self._check_size(part, None, session.where)
            if expected is not None and part.size > expected:
                part.forget()
                raise Transient(f"{session.where} sent more than it announced", fault="platform")

    def _limit_s(self) -> float:
        """The timeout for the next byte, in seconds."""
        left = self.ctx.remaining_s()
        return self.stall_s if left is None else min(self.stall_s, max(left - _MARGIN_S, 0.001))

    def _check_sum(self, part: PartFile, resumed_at: int, where: str) -> None:
        if self.sha256 is None or (sha256 := part.digest()) == self.sha256:
            return
        part.forget()
        if resumed_at:
            # An earlier attempt's part may be wrong.
            raise _StartOver
        message = f"{where} sent different content: its SHA-256 is {sha256}, not {self.sha256}"
        raise Permanent(message, fault="user", hint="correct sha256, or check why the file changed")


def _so_far(part: PartFile, why: str) -> str:
    """A reason with the bytes that have arrived, and what the next attempt does."""
    total = part.note.total
    of = f" of {format_size(total)}" if total is not None else ""
    then = "continues from there" if part.note.validator else "starts over (no strong ETag)"
    return f"{why}: {format_size(part.size)}{of} arrived; the next attempt {then}"


def _status_failure(head: Fetched, where: str, now: float) -> Failure:
    """The failure for a status other than success."""
    status = head.status
    if is_worth_a_retry(status):
        message = f"{where} answered {status}"
        return Transient(
            message, fault="platform", retry_after_s=retry_after_s(head.header("retry-after"), now)
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


def _target(url: str, head: Fetched, where: str, *, may_downgrade: bool) -> str:
    """The address that a redirect leads to.

    Raises:
        Permanent: it is invalid, or must not be followed.
    """
    try:
        target = urljoin(url, (head.header("location") or "").strip())
        # Encodes spaces and umlauts byte by byte, as curl does.
        target = re.sub(
            r"[^!-~]", lambda m: "".join(f"%{b:02X}" for b in m[0].encode("latin-1", "replace")),
            target,
        )  # fmt: skip
        parts = urlsplit(target)
        _ = parts.port  # raises if it is not a number
        scheme = parts.scheme
    except ValueError:
        scheme = ""
    if not head.header("location") or scheme not in ("http", "https"):
        raise Permanent(
            f"{where} redirects to an invalid address (status {head.status})", fault="platform"
        )
    if is_link_local(parts.hostname or ""):
        raise Permanent(
            f"{where} redirects to an address of this machine's link, which pairun does not follow",
            fault="platform",
            hint="clouds serve credentials there; use the final address if this is intended",
        )
    if urlsplit(url).scheme == "https" and scheme == "http" and not may_downgrade:
        message = f"{where} redirects from https to http, where others can change the content"
        raise Permanent(message, fault="platform", hint="give its sha256, or the final address")
    return target
