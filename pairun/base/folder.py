"""Files in a directory that others may write to: no link is followed, no open blocks.

The only code that opens, creates, moves or removes such files. The user's command may write to the
shared volume, even as root, and an init container runs again on the files of an earlier attempt. So
`Folder` trusts no path: it opens one component at a time, follows no symbolic link, never blocks in
open (for the other end of a FIFO), opens only regular files and directories, and bounds every read.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from typing import BinaryIO

from pairun.base.system import mount_points

FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Opens a directory to walk through, which needs no permission to list it."""

LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE

_MAX_BYTES = 256 * 1024 * 1024
"""The largest file that is read by default."""

_MAX_DEPTH = 400
"""Directories nested deeper are not removed: each level needs an open directory."""

_PIECE = 256 * 1024


class Folder:
    """A directory whose contents others may change.

    Paths are absolute, as people see them, and lie below the root; an open folder also takes names
    relative to it. All methods raise `OSError` with a readable reason, and `FileNotFoundError` if
    the path does not exist.

    Args:
        root: the directory; the path to it is trusted, everything below is not.
        fd: the directory, open; paths then stay in it, whatever takes its place. The caller closes
            it.
        survives: whether what is written must survive a crash of the machine.
    """

    follows_links = False
    """Whether the last name of a path that is read may be a link."""

    def __init__(self, root: str, fd: int | None = None, *, survives: bool = False) -> None:
        self.root = root
        self.fd = fd
        self.survives = survives
        self._place = os.path.abspath(root)

    # --- paths ---

    def __contains__(self, path: str) -> bool:
        """Whether a path lies below the root, by its names alone."""
        return self._whole(path).startswith(self._place.rstrip("/") + "/")

    @contextlib.contextmanager
    def holding(self, path: str) -> Iterator[tuple[Folder, str]]:
        """The open directory that holds a path's last name, and that name; no link is followed.

        Others can redirect a path after it was checked, but not an open directory. The last name
        may be anything, also a link.
        """
        with self._parent(path) as (fd, name):
            yield Folder(os.path.dirname(self._whole(path)), fd, survives=self.survives), name

    def _whole(self, path: str) -> str:
        return os.path.abspath(path if self.fd is None else os.path.join(self._place, path))

    def _parts(self, path: str) -> list[str]:
        """The names from the root to a path; none for the root itself.

        Raises:
            OSError: the path does not lie below the root, by its names alone.
        """
        whole, start = self._whole(path), self._place.rstrip("/") + "/"
        if "\0" in path:
            raise OSError(errno.EINVAL, "it contains a NUL", path)
        if whole == self._place:
            return []
        if whole.startswith(start):
            return whole[len(start) :].split("/")
        raise self._not_below(path)

    def _not_below(self, path: str) -> OSError:
        return OSError(errno.EINVAL, f"it is not below {self.root}", path)

    def _open_root(self, flags: int = FOLDER) -> int:
        if self.fd is not None:
            return os.open(".", flags, dir_fd=self.fd)
        return open_folder(None, self._place, self._place, flags)

    @contextlib.contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """The open directory that holds a path's last name, and that name; no link is followed."""
        parts = self._parts(path)
        if not parts:
            raise self._not_below(path)
        fd = self._open_root()
        try:
            for name in parts[:-1]:
                inner = open_folder(fd, name, path)
                os.close(fd)
                fd = inner
            with named(path):
                yield fd, parts[-1]
        finally:
            os.close(fd)

    def _source(self, path: str) -> contextlib.AbstractContextManager[tuple[int, str]]:
        """As `_parent`, for a path that is read."""
        return self._parent(path)

    # --- reading ---

    def open(self, path: str) -> BufferedReader:
        """Open a regular file to read."""
        with self._source(path) as (folder, name):
            fd = open_regular(name, os.O_RDONLY, folder=folder, follows_links=self.follows_links)
        return os.fdopen(fd, "rb")

    def read(self, path: str, max_bytes: int = _MAX_BYTES) -> bytes:
        """Read a whole file; one that is larger than ``max_bytes`` is an error."""
        with self.open(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= max_bytes:
                data = file.read(size + 1)
                while len(data) <= max_bytes:
                    if not (more := file.read(_PIECE)):
                        return data
                    data += more
        raise OSError(errno.EFBIG, f"it is larger than {max_bytes} bytes", path)

    def read_end(self, path: str, size: int) -> bytes:
        """Read the last ``size`` bytes of a file."""
        with self.open(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            return file.read(size)

    def stat(self, path: str) -> os.stat_result | None:
        """The status of a path, which may be a link; None if it does not exist."""
        try:
            with self._source(path) as (folder, name):
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

    def names(self, path: str) -> list[str]:
        """The sorted names in a directory, which may be the root."""
        if self._parts(path):
            with self._source(path) as (folder, name):
                fd = os.open(name, LISTED, dir_fd=folder)
        else:
            fd = self._open_root(LISTED)
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

        After an error the old file is unchanged.

        Args:
            path: the file; its directory must exist.
            owner: its owner's uid; default: this process's.
        """
        with self._parent(path) as (folder, name):
            temporary = f".pairun-{os.urandom(8).hex()}"
            fd = os.open(temporary, _NEW, 0o600, dir_fd=folder)
            try:
                with os.fdopen(fd, "wb") as file:
                    yield file
                    file.flush()
                    if owner is not None:
                        os.fchown(fd, owner, -1)
                    os.fchmod(fd, mode)
                    if self.survives:
                        os.fsync(fd)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise
            self._sync(folder)

    def _sync(self, folder: int) -> None:
        """Sync a directory to the disk, if its contents must survive a crash."""
        if self.survives:
            # Some network file systems cannot sync a directory; the file itself is already on disk.
            with contextlib.suppress(OSError):
                fd = os.open(".", LISTED, dir_fd=folder)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)

    def write(self, path: str, data: bytes, mode: int = 0o644, owner: int | None = None) -> None:
        """Write a whole file at once or not at all; the arguments are those of `replacing`."""
        with self.replacing(path, mode, owner) as file:
            file.write(data)

    def copy_in(self, source: str, path: str, mode: int = 0o644) -> None:
        """Copy a file from a trusted path, a piece at a time."""
        with open(source, "rb", buffering=0) as read, self.replacing(path, mode) as file:
            piece = bytearray(_PIECE)
            while size := read.readinto(piece):
                file.write(memoryview(piece)[:size])

    def open_new(self, path: str) -> int:
        """Create a file that only its owner can use; returns a descriptor to write to it."""
        with self._parent(path) as (folder, name):
            return os.open(name, _NEW, 0o600, dir_fd=folder)

    def open_new_folder(self, path: str) -> int:
        """Create a directory that only its owner can use; returns a descriptor to list it."""
        with self._parent(path) as (folder, name):
            os.mkdir(name, 0o700, dir_fd=folder)
            return open_folder(folder, name, path, LISTED)

    def open_append(self, path: str, mode: int = 0o644) -> int:
        """Open a regular file to append to; a missing one is created.

        Returns:
            A file descriptor that can also read.
        """
        with self._parent(path) as (folder, name):
            # O_RDWR: opening a FIFO only to write fails without a reader.
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
            return open_regular(name, flags, mode, folder=folder)

    def make_pipe(self, path: str, mode: int) -> int:
        """Create a FIFO, replacing whatever exists at the path, and open both of its ends.

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

    def make_folder(
        self, path: str, mode: int = 0o755, *, parents_mode: int | None = 0o755
    ) -> None:
        """Create a directory with exactly this mode; an existing one is unchanged.

        Args:
            parents_mode: of the directories above it that are created; None creates none.
        """
        parts = self._parts(path)
        fd = self._open_root()
        try:
            for number, name in enumerate(parts, 1):
                is_last, made = number == len(parts), False
                if is_last or parents_mode is not None:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=fd)
                        made = True
                inner = open_folder(fd, name, path, LISTED if made else FOLDER)
                os.close(fd)
                fd = inner
                if made:
                    # mkdir(2) subtracts the umask.
                    os.fchmod(fd, mode if is_last or parents_mode is None else parents_mode)
        finally:
            os.close(fd)

    def set_mode(self, path: str, mode: int) -> None:
        """Set the permissions of a path; a link is an error."""
        with self._parent(path) as (folder, name):
            # O_PATH needs no permission on it, and opens no device; chmod(2) follows a link.
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            try:
                if stat.S_ISLNK(os.fstat(fd).st_mode):
                    raise OSError(errno.ELOOP, "it is a symbolic link", path)
                os.chmod(f"/proc/self/fd/{fd}", mode)
            finally:
                os.close(fd)

    def rename(self, source: str, target: str, into: Folder | None = None) -> None:
        """Move an entry within one file system, atomically.

        Args:
            into: the folder of the target; default: this one.
        """
        new = into or self
        with self._parent(source) as (old_fd, old), new._parent(target) as (new_fd, name):
            os.rename(old, name, src_dir_fd=old_fd, dst_dir_fd=new_fd)
            new._sync(new_fd)

    def link(self, target: str, path: str) -> None:
        """Create a symbolic link; ``target`` is not checked."""
        with self._parent(path) as (folder, name):
            os.symlink(target, name, dir_fd=folder)

    def hard_link(self, target: str, path: str) -> None:
        """Give a file another name; a link at ``target`` is not followed."""
        with self._parent(target) as (source, old), self._parent(path) as (folder, name):
            os.link(old, name, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)

    def remove(self, *paths: str) -> None:
        """Remove entries and everything below them; missing ones are ignored.

        Keeps mount points and the directories above them. Ignores entries that disappear meanwhile.
        """
        mounts = self._mounts() if paths else frozenset()
        for path in paths:
            with (
                contextlib.suppress(FileNotFoundError, NotADirectoryError),
                self._parent(path) as (folder, name),
            ):
                # The mount table has paths without links.
                whole = os.path.join(os.path.realpath(f"/proc/self/fd/{folder}"), name)
                _remove(folder, name, whole, os.fstat(folder).st_dev, mounts, 0)

    def _mounts(self) -> frozenset[str]:
        """The current mount points."""
        return mount_points()


def open_regular(
    path: str,
    flags: int,
    mode: int = 0o644,
    *,
    folder: int | None = None,
    follows_links: bool = False,
) -> int:
    """Open a regular file: never through a link unless allowed, and never blocking.

    Args:
        path: the file; relative to the open directory ``folder`` if that is given.
        flags: those of open(2); the safety flags are always added.
        mode: of a file that is created.
        follows_links: whether the file may be a link.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    with contextlib.suppress(FileNotFoundError):
        # Opening a device may have effects, so check the type first.
        _require_regular(os.stat(path, dir_fd=folder, follow_symlinks=follows_links), path)
    safe = SAFE & ~os.O_NOFOLLOW if follows_links else SAFE
    fd = os.open(path, flags | safe, mode, dir_fd=folder)
    try:
        _require_regular(os.fstat(fd), path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _require_regular(found: os.stat_result, path: str) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, "it is a symbolic link, which is not followed", path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", path)


def open_folder(parent: int | None, name: str, path: str, flags: int = FOLDER) -> int:
    """Open a directory that is not a link.

    Args:
        parent: the open directory that holds it; None if ``name`` is a path.
        path: the path that errors name.

    Raises:
        OSError: it does not exist, or is not a directory.
    """
    try:
        return os.open(name, flags, dir_fd=parent)
    except OSError as e:
        if e.errno in (errno.ENOTDIR, errno.ELOOP):
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                raise OSError(
                    errno.ELOOP, f"'{name}' is a symbolic link, which is not followed", path
                ) from e
        raise type(e)(e.errno, e.strerror, path) from e


@contextlib.contextmanager
def named(path: str) -> Iterator[None]:
    """Make errors name the whole path, not only its last name."""
    try:
        yield
    except OSError as e:
        if e.filename is not None:
            e.filename, e.filename2 = path, None
        raise


def _remove(
    folder: int, name: str, path: str, device: int, mounts: frozenset[str], depth: int
) -> bool:
    """Remove one entry of an open directory and everything below it; returns whether it is gone.

    `_MAX_DEPTH` bounds stack frames and open directories.
    """
    if path in mounts:
        return False
    if depth > _MAX_DEPTH:
        raise OSError(errno.ENAMETOOLONG, "the directories are nested too deeply")
    try:
        entry = os.stat(name, dir_fd=folder, follow_symlinks=False)
        # Only the table shows a bind mount within one file system. The device number shows other
        # mounts, even if the table cannot be read.
        if entry.st_dev != device:
            return False
        if not stat.S_ISDIR(entry.st_mode):
            os.unlink(name, dir_fd=folder)
            return True
        inner = os.open(name, LISTED, dir_fd=folder)
        try:
            all_gone = True
            for child in os.listdir(inner):
                below = os.path.join(path, child)
                all_gone &= _remove(inner, child, below, device, mounts, depth + 1)
        finally:
            os.close(inner)
        if all_gone:
            os.rmdir(name, dir_fd=folder)
    except FileNotFoundError:
        return True
    except OSError as e:
        if e.errno == errno.ENOTEMPTY:
            raise OSError(errno.ENOTEMPTY, "a process keeps writing into it", path) from e
        raise
    return all_gone
