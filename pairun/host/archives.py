"""Unpacks archives into directories; no member can lead outside of them.

Streams members into a temporary directory next to the target, and opens each step by step from
there, without following links. Does not use the library's extraction: not every Python 3.11 has
the filters that make it safe.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import lzma
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO, NamedTuple, TypeVar

from pairun.base.folder import Folder
from pairun.host.archivemembers import decompressed, unpack_tar, unpack_zip
from pairun.host.failures import failure, os_failures, removing
from pairun.host.files import hidden_name
from pairun.module import Permanent, Unpacked, format_size

_DAMAGED = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError,
    OverflowError, struct.error, RecursionError, LookupError, NotImplementedError, RuntimeError,
)  # fmt: skip
_MAX_DEPTH = 100
_LIMIT_HINT = "if this is expected, raise max_unpacked_bytes or max_members"

_Made = TypeVar("_Made")


class ArchiveLimits(NamedTuple):
    """How much may be unpacked from an archive."""

    max_bytes: int
    max_members: int


class TargetTree:
    """The target directory. No name in the archive can change anything outside of it.

    Attributes:
        members: number of members unpacked.
        size: bytes of their files.
    """

    def __init__(self, folder: Folder, archive: str, limits: ArchiveLimits) -> None:
        self.members = 0
        self.size = 0
        self._folder = folder
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
        if path := "/".join(self._parts(name)):
            with self._refusing(name):
                self._folder.make_folder(path)
                self._folder.set_mode(path, mode & 0o755 | 0o700)

    def file(self, name: str, mode: int, read: Callable[[], bytes]) -> None:
        """Write a file; ``read`` returns the next piece, and empty bytes at the end."""
        with open(self._place(name, self._folder.open_new), "wb", buffering=0) as out:
            for piece in iter(read, b""):
                self.size += len(piece)
                if self.size > self._limits.max_bytes:
                    limit = format_size(self._limits.max_bytes)
                    raise self.refuse(f"holds more than {limit}", hint=_LIMIT_HINT)
                with self._refusing(name):
                    view = memoryview(piece)
                    while view:
                        view = view[out.write(view) or 0 :]
            with self._refusing(name):
                os.fchmod(out.fileno(), mode & 0o755 | 0o600)

    def link(self, name: str, target: str) -> None:
        """Make a symbolic link that stays within the tree, regardless of other links in it.

        It may go up only at its start, and only from a real directory. So it reaches a real
        directory, and every link on its way down also stays within the tree.
        """
        steps = [s for s in target.split("/") if s not in ("", ".")]
        ups = 0
        while ups < len(steps) and steps[ups] == "..":
            ups += 1
        depth = len(self._parts(name)) - 1
        if not target or target.startswith("/") or ups > depth or ".." in steps[ups:]:
            raise self.refuse(f"is a link that leads outside, to {target[:200]!r}", name)
        self._place(name, lambda path: self._folder.link(target, path))

    def hard_link(self, name: str, target: str) -> None:
        """Give a file that is already unpacked a second name."""
        source = "/".join(self._parts(target))
        if not self._folder.is_file(source):
            why = f"is a link to {target[:200]!r}, which is not an earlier file of the archive"
            raise self.refuse(why, name)
        self._place(name, lambda path: self._folder.hard_link(source, path))

    def _parts(self, name: str) -> list[str]:
        parts = [p for p in name.split("/") if p not in ("", ".")]
        if name.startswith("/") or ".." in parts or "\0" in name:
            raise self.refuse("leads outside of the directory it is unpacked into", name)
        if len(parts) > _MAX_DEPTH:
            raise self.refuse(f"is more than {_MAX_DEPTH} directories deep", name)
        return parts

    def _place(self, name: str, make: Callable[[str], _Made]) -> _Made:
        """Make a member at its path; makes the directories above it if they are missing."""
        if not (path := "/".join(self._parts(name))):
            raise self.refuse("has no name", name)
        with self._refusing(name):
            try:
                return make(path)
            except FileNotFoundError:
                self._folder.make_folder(os.path.dirname(path))
                return make(path)

    @contextlib.contextmanager
    def _refusing(self, name: str) -> Iterator[None]:
        """Turn an error of the operating system into the failure for a member."""
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


def unpack(
    file: BinaryIO,
    archive: str,
    folder: Folder,
    name: str,
    limits: ArchiveLimits,
    extra: Mapping[str, bytes],
) -> Unpacked:
    """Unpack an archive; the directory appears complete or not at all.

    Args:
        file: the archive, open: tar, also with gzip, bzip2 or xz, or zip.
        archive: its path, for messages.
        folder: the open directory that holds the target.
        name: the target's name in it; an existing directory is replaced.
        limits: how much may be unpacked.

    Raises:
        Failure: see `pairun.module.Context.unpack`.
    """
    shown = os.path.join(folder.root, name)
    staging, old = (hidden_name(name, f".pairun-{x}") for x in ("unpack", "old"))
    with removing(shown):
        folder.remove(staging, old)
    with os_failures(f"unpack into {shown}"):
        root = folder.open_new_folder(staging)
    try:
        tree = TargetTree(
            Folder(os.path.join(folder.root, staging), root), os.path.basename(archive), limits
        )
        for inner, data in extra.items():
            tree.file(inner, 0o644, io.BytesIO(data).read)
        done = Unpacked(*_members(file, archive, tree))
        os.fchmod(root, 0o755)
        with os_failures(f"unpack into {shown}"):
            _into_place(folder, staging, name, old)
    except BaseException:
        with contextlib.suppress(Exception):
            folder.remove(staging)
        raise
    finally:
        os.close(root)
    with removing(shown):
        folder.remove(old)
    return done


def _into_place(folder: Folder, staging: str, name: str, old: str) -> None:
    try:
        folder.rename(staging, name)  # also onto an empty directory
    except OSError as e:
        if e.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
    else:
        return
    folder.rename(name, old)
    try:
        folder.rename(staging, name)
    except OSError:
        folder.rename(old, name)
        raise


def _members(file: BinaryIO, archive: str, tree: TargetTree) -> tuple[int, int]:
    """Unpack every member into the tree; returns their number and size in bytes."""
    before = tree.size
    start = file.read(6)
    file.seek(0)
    try:
        if start.startswith((b"PK\3\4", b"PK\5\6")):
            unpack_zip(file, tree)
        elif start.startswith(b"\x28\xb5\x2f\xfd"):
            raise tree.refuse("is packed with zstandard", hint="tar, .gz, .bz2, .xz, or zip")
        else:
            unpack_tar(decompressed(file, start), tree)
    except _DAMAGED as e:
        if isinstance(e, OSError) and not isinstance(e, gzip.BadGzipFile) and e.errno:
            raise failure(e, f"read {archive}") from e
        why = f"is not an archive, or is damaged: {type(e).__name__}: {e}"
        raise tree.refuse(why, hint="tar, also with .gz, .bz2 or .xz, or zip") from e
    return tree.members, tree.size - before
