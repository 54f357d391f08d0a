"""Files of this machine: bounded reads, atomic writes, removal that does not follow links."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat as stat_bits
from io import BufferedReader

from pairun.base.mounts import mount_points
from pairun.base.removal import remove_entry
from pairun.host.failures import os_failures, removing
from pairun.module import FileStat, Permanent

_MAX_NAME = 255


def stat(path: str) -> FileStat | None:
    """The properties of a path, or None if nothing exists there; links are not followed."""
    with os_failures(f"look at {path}"):
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
    return stat_of(status)


def stat_of(status: os.stat_result) -> FileStat:
    """The result of lstat(2) in the form for modules."""
    kinds = {stat_bits.S_IFREG: "file", stat_bits.S_IFDIR: "directory", stat_bits.S_IFLNK: "link"}
    kind = kinds.get(stat_bits.S_IFMT(status.st_mode), "other")
    mode = stat_bits.S_IMODE(status.st_mode)
    return FileStat(kind, mode, status.st_size, status.st_uid, status.st_gid)  # type: ignore[arg-type]


def read(path: str, max_bytes: int) -> bytes | None:
    """A regular file's content, or None if it does not exist.

    Raises:
        Permanent: it is not a regular file, larger than ``max_bytes``, or not readable.
    """
    with os_failures(f"read {path}"):
        try:
            file = open_file(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        with file:
            data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise Permanent(f"cannot read {path}: it is larger than {max_bytes} bytes", fault="user")
    return data


def open_file(path: str) -> BufferedReader:
    """Open a regular file for reading; follows links.

    Raises:
        Permanent: it is not a regular file.
        OSError: it cannot be opened.
    """
    # O_NONBLOCK: otherwise opening a named pipe would wait forever for a writer.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat_bits.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Permanent(f"cannot read {path}: it is not a regular file", fault="user")
    return open(fd, "rb")


Identity = tuple[int, ...]
"""Device, inode, size and times of a file; they change when its content changes."""


def identity_of(status: os.stat_result) -> Identity:
    """The identity of a file."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def digest(path: str, known: dict[Identity, str]) -> str | None:
    """The SHA-256 of a regular file, or None if it does not exist.

    Args:
        path: the file; links are followed.
        known: digests by identity, of files read or written earlier; this one is added.

    Raises:
        Permanent: it is not a regular file, or not readable.
    """
    with os_failures(f"read {path}"):
        try:
            file = open_file(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        with file:
            if (identity := identity_of(os.fstat(file.fileno()))) not in known:
                known[identity] = hashlib.file_digest(file, "sha256").hexdigest()
            return known[identity]


def remember(name: str, sha256: str, known: dict[Identity, str], *, folder: int) -> None:
    """Record the digest of a file that was just written into an open directory."""
    with contextlib.suppress(OSError):
        known[identity_of(os.stat(name, dir_fd=folder, follow_symlinks=False))] = sha256


def names(path: str) -> list[str] | None:
    """The sorted names in a directory, or None if it does not exist."""
    with os_failures(f"list {path}"):
        try:
            return sorted(os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return None


def write(path: str, data: bytes, mode: int) -> None:
    """Replace a file atomically; replaces a link at ``path``, and does not change its target.

    The file is on the disk when this returns, so it survives a crash of the machine.

    Args:
        path: the file.
        data: its new content.
        mode: its permissions.

    Raises:
        Failure: the directory is missing, read-only, full, or owned by another user.
    """
    directory = os.path.dirname(path) or "."
    temporary = os.path.join(directory, f".pairun-{os.urandom(8).hex()}")
    with os_failures(f"write {path}"):
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(fd, mode)
                os.fsync(fd)
            os.rename(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        _sync_directory(directory)


def _sync_directory(path: str) -> None:
    # Some network file systems cannot sync a directory; the file itself is already on disk.
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def make_directory(path: str, mode: int) -> None:
    """Make a directory with exactly this mode, and its parents; an existing one is not changed."""
    with os_failures(f"make the directory {path}"):
        if os.path.isdir(path):
            return
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        try:
            os.mkdir(path, mode)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
        else:
            os.chmod(path, mode)  # mkdir(2) subtracts the umask


def set_mode(path: str, mode: int) -> None:
    """Set the permissions of a path; a link is an error."""
    with os_failures(f"set the mode of {path}"):
        # O_PATH needs no permission; chmod(2) always follows a link.
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if stat_bits.S_ISLNK(os.fstat(fd).st_mode):
                raise OSError(errno.ELOOP, "it is a symbolic link")
            os.chmod(f"/proc/self/fd/{fd}", mode)
        finally:
            os.close(fd)


def beside(path: str, suffix: str) -> str:
    """A hidden name next to a path, for a temporary file that belongs to it."""
    directory, name = os.path.split(path)
    if len(os.fsencode(name)) + len(suffix) + 1 > _MAX_NAME:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return os.path.join(directory, f".{name}{suffix}")


def remove(path: str) -> None:
    """Remove a path and everything below it.

    Follows no links. Keeps mount points and the directories above them. Ignores entries that
    disappear meanwhile.

    Raises:
        Failure: something cannot be removed.
    """
    with removing(path):
        parent, name = os.path.split(os.path.abspath(path))
        # The mount table has paths without links.
        parent = os.path.realpath(parent)
        try:
            folder = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return
        try:
            remove_entry(folder, name, os.path.join(parent, name), mount_points())
        finally:
            os.close(folder)
