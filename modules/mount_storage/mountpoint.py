"""The state of a storage's mount point."""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Sequence
from typing import NamedTuple

from pairun.module import Context, Failure, Mount, Permanent, TimedOut, Transient

from .refusals import error_text
from .storage import Storage

NOT_OURS_HINT = "choose another mount point, or leave the mount to the platform"
_KINDS = {"nfs": ("nfs", "nfs4"), "samba": ("cifs", "smb3"), "azurefile": ("cifs", "smb3")}
"""The file systems in the mount table by type of storage; of all other types, rclone's."""


class MountPoint(NamedTuple):
    """A storage and the state of its mount point.

    Attributes:
        storage: the storage.
        target: the mount point without links.
        mounted: whether the storage is mounted there.
        dead: whether a mount is still there although its server has exited.
    """

    storage: Storage
    target: str
    mounted: bool
    dead: bool = False


class Looker:
    """Compares the mount table with storages.

    Args:
        absent: whether the storages must not be mounted.
        answer_s: the timeout of a mounted storage's answer, in seconds.
    """

    def __init__(self, ctx: Context, *, absent: bool, answer_s: float) -> None:
        self._ctx, self._absent, self._answer_s = ctx, absent, answer_s
        self._table = ctx.mounts()

    def look(self, storage: Storage, outer: Sequence[MountPoint]) -> MountPoint:
        """The state of a storage's mount point.

        Args:
            outer: the mount points before it; it may be inside one that is not mounted yet.

        Raises:
            Permanent: the mount point is in use, not empty or not a directory.
            TimedOut: the mounted storage does not respond.
            Transient: the mounted storage does not work.
        """
        try:
            target = self._ctx.real_path(storage.path, timeout_s=self._answer_s)
        except TimedOut:
            raise self._silent(storage, storage.path) from None
        mount = next((m for m in reversed(self._table) if m.target == target), None)
        if self._absent:
            # This task mounted the storage read-only; a writable mount existed before.
            ours = (
                mount is not None
                and mount.read_only >= storage.read_only
                and self._is_storage(mount, storage)
            )
            return MountPoint(storage, target, mounted=ours)
        is_below = any(not p.mounted and target.startswith(p.target + "/") for p in outer)
        if mount is None or is_below:
            if not is_below:
                require_free(self._ctx, storage, target)
            return MountPoint(storage, target, mounted=False)
        self._require_ours(storage, mount)
        return self._answering(storage, target)

    def _require_ours(self, storage: Storage, mount: Mount) -> None:
        """Reject a mount of something else, or in another mode."""
        if not self._is_storage(mount, storage):
            inner = "" if mount.root == "/" or mount.kind.startswith("nfs") else mount.root
            source = f"{mount.kind} {mount.source}{inner}"
            message = f"{storage.path} is already mounted from elsewhere: {source}"
            raise Permanent(message, fault="user", hint=NOT_OURS_HINT)
        # A directory in a read-only mount is always read-only.
        only_read = storage.type == "local" and self._home(storage)[1].read_only
        if (storage.read_only or only_read) != mount.read_only:
            how = "read-only" if mount.read_only else "for writing"
            message = f"{storage} is already mounted {how} at {storage.path}"
            raise Permanent(message, fault="user", hint=NOT_OURS_HINT)

    def _answering(self, storage: Storage, target: str) -> MountPoint:
        try:
            self._ctx.free_bytes(target, timeout_s=self._answer_s)
        except TimedOut:
            raise self._silent(storage, target) from None
        except OSError as e:
            # The rclone that served it has exited.
            if storage.by_rclone and e.errno in (errno.ENOTCONN, errno.ECONNABORTED):
                return MountPoint(storage, target, mounted=False, dead=True)
            reason = error_text(e.errno or 0)
            message = f"{storage} at {storage.path} is mounted, but does not work: {reason}"
            raise Transient(message, fault="platform") from e
        return MountPoint(storage, target, mounted=True)

    def _silent(self, storage: Storage, target: str) -> Failure:
        message = f"{storage}, mounted at {target}, does not answer within {self._answer_s:g}s"
        return TimedOut(
            message, fault="platform", hint="its server, or the network path to it, hangs"
        )

    def _home(self, storage: Storage) -> tuple[str, Mount]:
        """The directory to mount a second time, and the mount that contains it."""
        source = self._ctx.real_path(posixpath.join(storage.text("source"), storage.subdir))
        homes = (m for m in self._table if posixpath.commonpath((m.target, source)) == m.target)
        return source, max(homes, key=lambda m: len(m.target))

    def _is_storage(self, mount: Mount, storage: Storage) -> bool:
        """Whether a line of the mount table is this storage."""
        if storage.type == "local":
            source, home = self._home(storage)
            root = posixpath.join(home.root, posixpath.relpath(source, home.target))
            shown = (mount.source, mount.kind, mount.root)
            return shown == (home.source, home.kind, posixpath.normpath(root))
        if mount.kind not in _KINDS.get(storage.type, ("fuse.rclone",)):
            return False
        source = storage.source().rstrip("/")
        if storage.type == "nfs":
            # The table shows the source with the mounted directory.
            return mount.source.rstrip("/") == posixpath.join(source, storage.subdir).rstrip("/")
        # If the share is a directory in a share, the table shows it in one of two ways.
        inner = "" if storage.by_rclone else storage.subdir
        above = storage.share().partition("/")[2]
        roots = (inner, posixpath.join(above, inner).strip("/"))
        return mount.source.rstrip("/") == source and mount.root.strip("/") in roots


def require_free(ctx: Context, storage: Storage, target: str) -> None:
    """Reject a mount point where a mount would hide something.

    Raises:
        Permanent: it is not empty, or not a directory.
    """
    stat = ctx.stat(target)
    if stat is None:
        return
    if stat.kind != "directory":
        raise Permanent(f"the mount point {storage.path} is not a directory", fault="user")
    if names := ctx.list_dir(target):
        message = f"the mount point {storage.path} is not empty: {names[0]!r} is in it"
        raise Permanent(message, fault="user", hint=NOT_OURS_HINT)
