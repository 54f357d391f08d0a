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
import stat as stat_bits
from collections.abc import Iterator

import attrs

from pairun.base.foreignjson import parse_json
from pairun.base.retryafter import http_date_s
from pairun.host.failures import failure, os_failures
from pairun.host.place import Place
from pairun.module import Conflict, Fetched
from pairun.volume.opening import open_regular

_TRIES = 3
_NOTE_BYTES = 64 * 1024
# A date is a strong validator if it is well before the response's date (RFC 9110, 8.8.2.2).
_STRONG_AFTER_S = 60.0


@attrs.define(kw_only=True)
class Note:
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
    def of(cls, url: str, head: Fetched) -> Note:
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
    def parsed(cls, data: bytes) -> Note | None:
        """Parse a note; None if it is invalid."""
        try:
            note = cls(**parse_json(data))
        except (ValueError, TypeError):
            return None
        texts = (note.url, note.validator, note.boot)
        sound = all(isinstance(t, str) for t in texts) and isinstance(note.total, int | None)
        return note if sound and not re.search(r"[\r\n\0]", note.validator) else None


class Part:
    """The open and locked part.

    Attributes:
        fd: its descriptor.
        size: its bytes so far.
        note: the download that it belongs to.
    """

    def __init__(self, fd: int, target: Place, part: Place, url: str) -> None:
        self.fd = fd
        self.size = 0
        self.note = Note(url=_digest_of(url))
        self._target, self._part = target, part
        self._note_name = f"{part.name}.json"
        self._writing = f"write {target.path}"
        self._hash = hashlib.sha256()
        self._placed = False

    @classmethod
    @contextlib.contextmanager
    def opened(cls, target: Place, url: str) -> Iterator[Part]:
        """Open the part of a file, or make it; at the end remove it if it is empty.

        Raises:
            Conflict: another process is writing it.
            Failure: the directory is missing, read-only, …
        """
        # Its name leaves room for the note's suffix.
        suffix = ".json"
        place = target.beside(f".pairun-part{suffix}")
        place = place._replace(
            name=place.name.removesuffix(suffix), path=place.path.removesuffix(suffix)
        )
        with os_failures(f"write {target.path}"):
            part = cls(_open_part(place), target, place, url)
        try:
            yield part
        finally:
            if not part.size and not part._placed:
                part._remove(part._note_name, place.name)
            os.close(part.fd)

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

    def _written_note(self) -> Note | None:
        """An earlier attempt's note; None if this user owns none."""
        try:
            fd = open_regular(self._note_name, os.O_RDONLY, folder=self._part.folder)
        except OSError:
            return None
        with open(fd, "rb") as file:
            ours = os.fstat(fd).st_uid == os.geteuid()
            return Note.parsed(file.read(_NOTE_BYTES)) if ours else None

    def conditions(self) -> dict[str, str]:
        """The headers that request the rest."""
        if not self.size:
            return {}
        return {"Range": f"bytes={self.size}-", "If-Range": self.note.validator}

    def forget(self) -> None:
        """Empty the part; deletes the note first, so that it never describes other content."""
        with os_failures(self._writing):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._note_name, dir_fd=self._part.folder)
            os.ftruncate(self.fd, 0)
            os.lseek(self.fd, 0, os.SEEK_SET)
        self.size, self._hash = 0, hashlib.sha256()

    def write_note(self) -> None:
        """Write the note, if it lets a later attempt continue; half a note is invalid."""
        if not self.note.validator:
            return
        self._remove(self._note_name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os_failures(self._writing):
            fd = os.open(self._note_name, flags, 0o600, dir_fd=self._part.folder)
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
            self._part.rename(self._target)
        self._placed = True
        self._remove(self._note_name)

    def _remove(self, *names: str) -> None:
        for name in names:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=self._part.folder)


def _open_part(part: Place) -> int:
    """Open a part that this user alone owns, or make one; removes anything else at its path.

    Raises:
        Conflict: another process is writing it.
        OSError: it cannot be opened or made.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    for _ in range(_TRIES):
        try:
            fd = os.open(part.name, flags, 0o600, dir_fd=part.folder)
        except OSError as e:
            if e.errno not in (errno.ELOOP, errno.ENXIO):
                raise
            os.unlink(part.name, dir_fd=part.folder)
            continue
        try:
            status = os.fstat(fd)
            is_ours = stat_bits.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
            if not is_ours or status.st_nlink > 1:
                os.unlink(part.name, dir_fd=part.folder)
            else:
                _lock(fd, part)
                current = os.stat(part.name, dir_fd=part.folder, follow_symlinks=False)
                # Another process may have renamed or removed it before we got the lock.
                if os.path.samestat(os.fstat(fd), current):
                    os.fchmod(fd, 0o600)
                    return fd
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
    raise OSError(errno.EBUSY, "another process keeps replacing the file", part.path)


def _lock(fd: int, part: Place) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as e:
        raise Conflict(
            f"another download into {os.path.dirname(part.path)} has the same name",
            hint="give each task and each Pod a different file",
        ) from e
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
