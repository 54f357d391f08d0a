"""The directory into which an archive is unpacked; no name in the archive leads outside of it."""

from __future__ import annotations

import contextlib
import errno
import os
import stat as stat_bits
from collections.abc import Callable, Iterator

import attrs

from pairun.host.failures import failure, os_failures
from pairun.module import Permanent, format_size

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""The flags with which a directory is opened: links are not followed."""

_MAX_DEPTH = 100
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LIMIT_HINT = "if this is expected, raise max_unpacked_bytes or max_members"


@attrs.frozen
class Limits:
    """How much may be unpacked from an archive."""

    max_bytes: int
    max_members: int


class Tree:
    """The target directory. No name in the archive can change anything outside of it.

    Attributes:
        members: number of members unpacked.
        size: bytes of their files.
    """

    def __init__(self, root: int, archive: str, limits: Limits) -> None:
        self.members = 0
        self.size = 0
        self._root = root
        self._archive = archive
        self._limits = limits

    def refuse(self, why: str, name: str | None = None, hint: str | None = None) -> Permanent:
        """The failure for a rejected archive."""
        member = f": {name[:200]!r}" if name is not None else ""
        return Permanent(f"{self._archive}{member} {why}", fault="user", hint=hint)

    def count(self) -> None:
        """Count one more member."""
        self.members += 1
        if self.members > self._limits.max_members:
            raise self.refuse(f"has more than {self._limits.max_members} members", hint=_LIMIT_HINT)

    def directory(self, name: str, mode: int) -> None:
        """Make a directory; an existing one gets the mode."""
        with self._opened(name, self._parts(name)) as fd, os_failures(f"unpack {name[:200]!r}"):
            if self._parts(name):
                os.fchmod(fd, mode & 0o755 | 0o700)

    def file(self, name: str, mode: int, read: Callable[[], bytes]) -> None:
        """Write a file; ``read`` returns the next piece, and empty bytes at the end."""
        *above, last = self._parts(name) or self._nameless(name)
        with self._opened(name, above) as parent:
            with self._in_words(name):
                fd = os.open(last, _NEW_FILE, 0o600, dir_fd=parent)
            with open(fd, "wb", buffering=0) as out:
                for piece in iter(read, b""):
                    self.size += len(piece)
                    if self.size > self._limits.max_bytes:
                        limit = format_size(self._limits.max_bytes)
                        raise self.refuse(f"holds more than {limit}", hint=_LIMIT_HINT)
                    with self._in_words(name):
                        view = memoryview(piece)
                        while view:
                            view = view[out.write(view) or 0 :]
                with self._in_words(name):
                    os.fchmod(fd, mode & 0o755 | 0o600)

    def link(self, name: str, target: str) -> None:
        """Make a symbolic link that stays within the tree, regardless of other links in it.

        It may go up only at its start, and only from a real directory. So it reaches a real
        directory, and every link on its way down also stays within the tree.
        """
        *above, last = self._parts(name) or self._nameless(name)
        steps = [s for s in target.split("/") if s not in ("", ".")]
        ups = 0
        while ups < len(steps) and steps[ups] == "..":
            ups += 1
        if not target or target.startswith("/") or ups > len(above) or ".." in steps[ups:]:
            raise self.refuse(f"is a link that leads outside, to {target[:200]!r}", name)
        with self._opened(name, above) as parent, self._in_words(name):
            os.symlink(target, last, dir_fd=parent)

    def hard_link(self, name: str, target: str) -> None:
        """Give a file that is already unpacked a second name."""
        *above, last = self._parts(name) or self._nameless(name)
        *target_above, target_last = self._parts(target) or self._nameless(target)
        with self._opened(name, above) as parent, self._opened(name, target_above) as source:
            try:
                target_status = os.stat(target_last, dir_fd=source, follow_symlinks=False)
            except (OSError, ValueError):
                target_status = None
            if target_status is None or not stat_bits.S_ISREG(target_status.st_mode):
                raise self.refuse(
                    f"is a link to {target[:200]!r}, which is not an earlier file of the archive",
                    name,
                )
            with self._in_words(name):
                os.link(
                    target_last, last, src_dir_fd=source, dst_dir_fd=parent, follow_symlinks=False
                )

    def _parts(self, name: str) -> list[str]:
        parts = [p for p in name.split("/") if p not in ("", ".")]
        if name.startswith("/") or ".." in parts or "\0" in name:
            raise self.refuse("leads outside of the directory it is unpacked into", name)
        if len(parts) > _MAX_DEPTH:
            raise self.refuse(f"is more than {_MAX_DEPTH} directories deep", name)
        return parts

    def _nameless(self, name: str) -> list[str]:
        raise self.refuse("has no name", name)

    @contextlib.contextmanager
    def _opened(self, name: str, parts: list[str]) -> Iterator[int]:
        """A directory of the tree, opened; makes it and its parents if they are missing."""
        fd = os.dup(self._root)
        try:
            for part in parts:
                with self._in_words(name):
                    try:
                        below = os.open(part, FOLDER, dir_fd=fd)
                    except FileNotFoundError:
                        os.mkdir(part, 0o700, dir_fd=fd)
                        below = os.open(part, FOLDER, dir_fd=fd)
                        os.fchmod(below, 0o755)
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def _in_words(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileExistsError:
            raise self.refuse("appears twice", name) from None
        except OSError as e:
            if e.errno in (errno.ENOTDIR, errno.ELOOP):
                raise self.refuse("is below a path that is not a directory", name) from None
            raise failure(e, f"unpack {name[:200]!r}") from e
        except ValueError as e:
            raise failure(e, f"unpack {name[:200]!r}") from e
