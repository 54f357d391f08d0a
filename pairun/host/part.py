"""The partial file of a download, which a later attempt continues.

The *part* is next to the file. Next to the part is a *note* with the address and a strong validator
of the content (RFC 9110, 8.8). A part is used only if this user alone owns it and the server
confirms that the content is still the same.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
from typing import Self

import attrs

from pairun.base.fields import BadField, decode
from pairun.base.folder import Folder
from pairun.base.foreignjson import parse_json
from pairun.base.retryafter import http_date_s
from pairun.host.failures import failure, os_failures
from pairun.host.files import hidden_name
from pairun.module import Conflict, Fetched

_TRIES = 3
_NOTE_BYTES = 64 * 1024
# A date is a strong validator if it is well before the response's date (RFC 9110, 8.8.2.2).
_STRONG_AFTER_S = 60.0


@attrs.define(kw_only=True)
class PartNote:
    """The download that a part belongs to.

    Attributes:
        url: digest of the address, which may contain a secret.
        validator: a strong ETag or date; may be empty.
        etag: whether the validator is an ETag.
        total: the length of the whole file in bytes, or None if unknown.
        boot: the machine's boot id; after another boot a crash may have damaged the part.
    """

    url: str
    validator: str = ""
    etag: bool = False
    total: int | None = None
    boot: str = ""

    @classmethod
    def of(cls, url: str, head: Fetched) -> PartNote:
        """The note for a complete response."""
        etag, length = head.header("etag"), head.header("content-length") or ""
        strong = etag is not None and re.fullmatch(r'"[!#-~]*"', etag) is not None
        # A weak ETag forbids the date as well (RFC 9110, 13.1.5).
        date = _strong_date(head) if etag is None else ""
        known = re.fullmatch("[0-9]{1,18}", length) and not head.header("transfer-encoding")
        return cls(
            url=_digest_of(url),
            validator=(etag or "") if strong else date,
            etag=strong,
            total=int(length) if known else None,
            boot=_boot(),
        )

    @classmethod
    def parsed(cls, data: bytes) -> PartNote | None:
        """Parse a note; None if it is invalid."""
        try:
            note = decode(cls, parse_json(data))
        except (ValueError, BadField):
            return None
        return None if re.search(r"[\r\n\0]", note.validator) else note


class PartFile:
    """The open and locked part, for a with statement, which removes it at the end if it is empty.

    Args:
        folder: the open directory of the file.

    Raises:
        Conflict: another process is writing it.
        Failure: the directory is missing, read-only, …

    Attributes:
        size: its bytes so far.
        note: the download that it belongs to.
    """

    def __init__(self, folder: Folder, name: str, url: str) -> None:
        self.size = 0
        self.note = PartNote(url=_digest_of(url))
        self._folder, self._target = folder, name
        # Its name leaves room for the note's suffix.
        self._note_name = hidden_name(name, ".pairun-part.json")
        self._name = self._note_name.removesuffix(".json")
        self._writing = f"write {os.path.join(folder.root, name)}"
        self._hash = hashlib.sha256()
        self._placed = False
        with os_failures(self._writing):
            self.fd = _open_part(folder, self._name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.size and not self._placed:
            self._remove(self._note_name, self._name)
        os.close(self.fd)

    def resume(self) -> int:
        """Use an earlier attempt's part, if possible; returns its size in bytes."""
        note = self._written_note()
        if note is None or note.url != self.note.url or note.boot != _boot() or not note.validator:
            return 0
        with os_failures(self._writing):
            os.lseek(self.fd, 0, os.SEEK_SET)
            while piece := os.read(self.fd, 1 << 20):
                self._hash.update(piece)
                self.size += len(piece)
        self.note = note
        return self.size

    def _written_note(self) -> PartNote | None:
        """An earlier attempt's note; None if this user owns none."""
        try:
            with self._folder.open(self._note_name) as file:
                ours = os.fstat(file.fileno()).st_uid == os.geteuid()
                return PartNote.parsed(file.read(_NOTE_BYTES)) if ours else None
        except OSError:
            return None

    def conditions(self) -> dict[str, str]:
        """The headers that request the rest."""
        if not self.size:
            return {}
        return {"Range": f"bytes={self.size}-", "If-Range": self.note.validator}

    def forget(self) -> None:
        """Empty the part; deletes the note first, so that it never describes other content."""
        with os_failures(self._writing):
            self._folder.remove(self._note_name)
            os.ftruncate(self.fd, 0)
            os.lseek(self.fd, 0, os.SEEK_SET)
        self.size, self._hash = 0, hashlib.sha256()

    def write_note(self) -> None:
        """Write the note, if it lets a later attempt continue; half a note is invalid."""
        if not self.note.validator:
            return
        self._remove(self._note_name)
        with os_failures(self._writing):
            fd = self._folder.open_new(self._note_name)
            with open(fd, "w", encoding="utf-8") as file:
                json.dump(attrs.asdict(self.note), file)

    def append(self, piece: bytes) -> None:
        """Write the next bytes."""
        view = memoryview(piece)
        try:
            while view:
                view = view[os.write(self.fd, view) :]
        except OSError as e:
            if e.errno in (errno.ENOSPC, errno.EDQUOT):
                # Free the space for others.
                self.forget()
            raise failure(e, self._writing) from e
        self._hash.update(piece)
        self.size += len(piece)

    def digest(self) -> str:
        """The SHA-256 of the part."""
        return self._hash.hexdigest()

    def into_place(self, mode: int) -> None:
        """Rename the part to the file."""
        with os_failures(self._writing):
            os.fchmod(self.fd, mode)
            os.fsync(self.fd)
            self._folder.rename(self._name, self._target)
        self._placed = True
        self._remove(self._note_name)

    def _remove(self, *names: str) -> None:
        with contextlib.suppress(OSError):
            self._folder.remove(*names)


def _open_part(folder: Folder, name: str) -> int:
    """Open a part that this user alone owns, or make one; removes anything else at its path.

    Raises:
        Conflict: another process is writing it.
        OSError: it cannot be opened or made.
    """
    for _ in range(_TRIES):
        try:
            fd = folder.open_append(name, 0o600)
        except OSError as e:
            # a link, or no regular file
            if e.errno not in (errno.ELOOP, errno.EINVAL):
                raise
            folder.remove(name)
            continue
        try:
            opened = os.fstat(fd)
            if opened.st_uid != os.geteuid() or opened.st_nlink > 1:
                folder.remove(name)
            else:
                _lock(fd, folder)
                # Another process may have renamed or removed it before we got the lock.
                current = folder.stat(name)
                if current is not None and os.path.samestat(opened, current):
                    os.fchmod(fd, 0o600)
                    return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
    path = os.path.join(folder.root, name)
    raise OSError(errno.EBUSY, "another process keeps replacing the file", path)


def _lock(fd: int, folder: Folder) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as e:
        message = f"another download into {folder.root} has the same name"
        raise Conflict(message, hint="give each task and each Pod a different file") from e
    except OSError:
        pass  # some network file systems have no locks


def _strong_date(head: Fetched) -> str:
    """``Last-Modified`` if it is a strong validator, else an empty text."""
    modified = head.header("last-modified") or ""
    modified_s, answered_s = http_date_s(modified), http_date_s(head.header("date") or "")
    if modified_s is None or answered_s is None:
        return ""
    return modified if answered_s - modified_s >= _STRONG_AFTER_S else ""


def _digest_of(url: str) -> str:
    return hashlib.sha256(url.encode("utf-8", "surrogateescape")).hexdigest()


def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
