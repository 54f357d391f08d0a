"""The door: the only access to paths on the shared volume and in the log directory.

The user's command may write to the volume, even as root, and an init container runs again on the
files of an earlier attempt. So the door trusts no path: it opens one component at a time, follows
no symbolic link, never blocks in open (for the other end of a FIFO), opens only regular files and
directories, and bounds every read.

Paths that the platform mounts are different. It mounts Secrets and ConfigMaps into the volume, as
links to ``..data/``. The door accepts such a path only below a mount point; it follows links there,
and they must stay below that mount point. A laptop has no such mounts: an engine that writes these
files to a new volume declares it with `PLAIN_FILES`, and they must then be regular files of the
user who runs the phase.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from typing import BinaryIO

from pairun.base.removal import remove_entry
from pairun.volume.opening import (
    FOLDER,
    LISTED,
    SAFE,
    open_folder,
    open_regular,
)
from pairun.volume.way import NotMounted, Way

MAX_BYTES = 256 * 1024 * 1024
"""The largest file that is read by default."""

_PIECE = 256 * 1024


class Door(Way):
    """The only access to a directory that others may write to.

    Paths are absolute, as people see them, and lie below the root. All methods raise `OSError` with
    a readable reason, and `FileNotFoundError` if the path does not exist.

    Args:
        root: the shared volume; the path to it is trusted, everything below is not.
    """

    # --- reading ---

    def open(self, path: str, *, mounted: bool = False) -> BufferedReader:
        """Open a regular file to read.

        Args:
            path: the file.
            mounted: the platform must have mounted it; always required for paths in `MOUNTED`.

        Raises:
            OSError: it does not exist, or cannot be opened.
        """
        with self._source(path, mounted=mounted) as (folder, name):
            fd = open_regular(name, os.O_RDONLY, folder=folder)
        if self._is_plain(path) and os.fstat(fd).st_uid != os.geteuid():
            os.close(fd)
            raise NotMounted(errno.ENOENT, "it belongs to another user, and is not mounted", path)
        return os.fdopen(fd, "rb")

    def read(self, path: str, max_bytes: int = MAX_BYTES, *, mounted: bool = False) -> bytes:
        """Read a whole file; the arguments are those of `open`, and the limit.

        Raises:
            OSError: it does not exist, cannot be read, or is larger than ``max_bytes``.
        """
        with self.open(path, mounted=mounted) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= max_bytes:
                data = file.read(size + 1)
                while len(data) <= max_bytes:
                    if not (more := file.read(_PIECE)):
                        return data
                    data += more
        raise OSError(errno.EFBIG, f"it is larger than {max_bytes} bytes", path)

    def read_end(self, path: str, size: int) -> bytes:
        """Read the last ``size`` bytes of a file.

        Raises:
            OSError: it does not exist, or cannot be read.
        """
        with self.open(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            return file.read(size)

    def stat(self, path: str, *, mounted: bool = False) -> os.stat_result | None:
        """The status of a path; None if it does not exist, or must be mounted and is not.

        Raises:
            OSError: the path cannot be followed.
        """
        try:
            with self._source(path, mounted=mounted) as (folder, name):
                return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def is_file(self, path: str) -> bool:
        """Whether a path leads to a regular file."""
        return self._is(path, stat.S_IFREG)

    def is_folder(self, path: str) -> bool:
        """Whether a path leads to a directory."""
        return self._is(path, stat.S_IFDIR)

    def _is(self, path: str, kind: int) -> bool:
        with contextlib.suppress(OSError):
            found = self.stat(path)
            return found is not None and stat.S_IFMT(found.st_mode) == kind
        return False

    def names(self, path: str, *, mounted: bool = False) -> list[str]:
        """The sorted names in a directory.

        Raises:
            OSError: it does not exist, or cannot be listed.
        """
        with self._source(path, mounted=mounted) as (folder, name):
            fd = os.open(name, LISTED, dir_fd=folder)
        try:
            return sorted(os.listdir(fd))
        finally:
            os.close(fd)

    def root_names(self) -> list[str]:
        """The sorted names in the root itself.

        Raises:
            OSError: it cannot be listed.
        """
        fd = open_folder(None, self._place, self._place, LISTED)
        try:
            return sorted(os.listdir(fd))
        finally:
            os.close(fd)

    # --- writing ---

    @contextlib.contextmanager
    def replacing(
        self, path: str, mode: int = 0o644, owner: int | None = None
    ) -> Iterator[BinaryIO]:
        """Write a new file, and move it to its path at the end; it replaces all but a directory.

        Args:
            path: the file; its directory must exist.
            mode: its permissions.
            owner: its owner's uid; default: this process's.

        Raises:
            OSError: it cannot be written; the old file is unchanged.
        """
        with self._parent(path) as (folder, name):
            temporary = f".pairun-{os.urandom(8).hex()}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE
            fd = os.open(temporary, flags, 0o600, dir_fd=folder)
            try:
                with os.fdopen(fd, "wb") as file:
                    yield file
                    file.flush()
                    if owner is not None:
                        os.fchown(fd, owner, -1)
                    os.fchmod(fd, mode)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise

    def write(self, path: str, data: bytes, mode: int = 0o644, owner: int | None = None) -> None:
        """Write a whole file at once or not at all; the arguments are those of `replacing`.

        Raises:
            OSError: it cannot be written.
        """
        with self.replacing(path, mode, owner) as file:
            file.write(data)

    def copy_in(self, source: str, path: str, mode: int = 0o644) -> None:
        """Copy a file from outside the volume, a piece at a time.

        Raises:
            OSError: the source cannot be read, or the target cannot be written.
        """
        with open(source, "rb", buffering=0) as read, self.replacing(path, mode) as file:
            piece = bytearray(_PIECE)
            while size := read.readinto(piece):
                file.write(memoryview(piece)[:size])

    def open_append(self, path: str, mode: int = 0o644) -> int:
        """Open a regular file to append to; a missing one is created.

        Returns:
            A file descriptor that can also read.

        Raises:
            OSError: it cannot be opened.
        """
        with self._parent(path) as (folder, name):
            # O_RDWR: opening a FIFO only to write fails without a reader.
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
            return open_regular(name, flags, mode, folder=folder)

    def make_pipe(self, path: str, mode: int) -> int:
        """Create a FIFO, replacing whatever exists at the path, and open both of its ends.

        Args:
            path: the FIFO; its directory must exist.
            mode: its permissions.

        Returns:
            A descriptor that reads and writes (fifo(7)): no writer ever blocks or gets an error.
            Its reads do not block.

        Raises:
            OSError: it cannot be created, or another process replaced it.
        """
        self.remove(path)
        with self._parent(path) as (folder, name):
            os.mkfifo(name, 0o600, dir_fd=folder)
            fd = os.open(name, os.O_RDWR | SAFE, dir_fd=folder)
            made = os.fstat(fd)
            if not stat.S_ISFIFO(made.st_mode) or made.st_uid != os.geteuid():
                os.close(fd)
                raise OSError(errno.EINVAL, "it is not the FIFO that pairun made", path)
            # mkfifo(3) subtracts the umask.
            os.fchmod(fd, mode)
        return fd

    def make_folder(self, path: str, mode: int = 0o755, *, parents: bool = True) -> None:
        """Create a directory with exactly this mode; an existing one is unchanged.

        Args:
            path: the directory.
            mode: its permissions.
            parents: also create the directories above it, readable for all.

        Raises:
            OSError: a directory cannot be created.
        """
        parts = self._parts(path)
        fd = self._open_root()
        try:
            for number, name in enumerate(parts, 1):
                is_last, made = number == len(parts), False
                if is_last or parents:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=fd)
                        made = True
                inner = open_folder(fd, name, path, LISTED if made else FOLDER)
                os.close(fd)
                fd = inner
                if made:
                    # mkdir(2) subtracts the umask.
                    os.fchmod(fd, mode if is_last else 0o755)
        finally:
            os.close(fd)

    def make_root(self) -> None:
        """Create the root itself if it is missing.

        Raises:
            OSError: it cannot be created.
        """
        os.makedirs(self._place, exist_ok=True)

    def protect_root(self) -> None:
        """Let only the owner write to the root, if this process's user owns it.

        Kubernetes creates an emptyDir that all may write to. Who may write to a directory can
        replace its entries, whatever their modes.

        Raises:
            OSError: the root does not exist.
        """
        fd = open_folder(None, self._place, self._place, LISTED)
        try:
            found = os.fstat(fd)
            if found.st_uid == os.geteuid() and found.st_mode & 0o022:
                os.fchmod(fd, stat.S_IMODE(found.st_mode) & ~0o022)
        finally:
            os.close(fd)

    def set_mode(self, path: str, mode: int) -> None:
        """Set the permissions of a regular file or a directory.

        Raises:
            OSError: it is something else, or another user owns it.
        """
        with self._parent(path) as (folder, name):
            fd = os.open(name, os.O_RDONLY | SAFE, dir_fd=folder)
            try:
                found = os.fstat(fd).st_mode
                if not (stat.S_ISREG(found) or stat.S_ISDIR(found)):
                    raise OSError(errno.EINVAL, "it is neither a file nor a directory", path)
                os.fchmod(fd, mode)
            finally:
                os.close(fd)

    def rename(self, source: str, target: str) -> None:
        """Move an entry within one file system.

        Raises:
            OSError: it cannot be moved.
        """
        with self._parent(source) as (old, name), self._parent(target) as (new, new_name):
            os.rename(name, new_name, src_dir_fd=old, dst_dir_fd=new)

    def link(self, target: str, path: str) -> None:
        """Create a symbolic link; ``target`` is not checked.

        Raises:
            OSError: it cannot be created.
        """
        with self._parent(path) as (folder, name):
            os.symlink(target, name, dir_fd=folder)

    def remove(self, *paths: str) -> None:
        """Remove entries and everything below them, except mount points; missing ones are ignored.

        Raises:
            OSError: something cannot be removed.
        """
        mounts = self._mounts() if paths else frozenset()
        for path in paths:
            whole = os.path.join(os.path.realpath(self._place), *self._parts(path))
            with (
                contextlib.suppress(FileNotFoundError, NotADirectoryError),
                self._parent(path) as (folder, name),
            ):
                remove_entry(folder, name, whole, mounts)
