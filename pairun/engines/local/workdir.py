"""The work directory of a run: locked, and reset without changing other people's files."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import stat
import time
import uuid
from collections.abc import Callable

from pairun.base.folder import LISTED, open_folder
from pairun.base.machine import MACHINE
from pairun.base.runfolders import MARKER, OUTCOME, PREVIOUS
from pairun.base.system import mount_points
from pairun.errors import PairunError, Problem

TRASH = ".trash"
"""The folder for files to remove; belongs to pairun in every work directory."""

KEEPING = ".keeping"
"""The folder that becomes `PREVIOUS`; belongs to pairun in every work directory."""

GANG = "gang"
TRIAL = "trial"
_PREPARATION = (GANG, TRIAL)
"""What a run creates before its instances; not worth keeping without them."""

_EXPLANATION = "# made by pairun run; it removes what is listed here and nothing else"
SURVIVORS_S = 5.0


class WorkDir:
    """A locked work directory; moves the last run's files to `PREVIOUS`, removes earlier ones.

    Args:
        path: the directory; created if missing.
        say: prints one line for people when files move to `PREVIOUS`.

    Raises:
        PairunError: the directory cannot be used (PR701).
    """

    def __init__(self, path: str, say: Callable[[str], None] = lambda _: None) -> None:
        self.path = os.path.realpath(path)
        self._shown = path
        self._marker: int | None = None
        try:
            self._open()
            self._lock()
            end_survivors(self.path)
            if (began := self._reset()) is not None:
                say(f"moved the {_clock(began)} run to {os.path.join(path, PREVIOUS)}")
        except OSError as e:
            self.close()
            name = e.filename if isinstance(e.filename, str) else path
            raise self._unusable(f"{name}: {e.strerror or e}") from e
        except PairunError:
            self.close()
            raise

    def make(self, name: str) -> str:
        """Create a directory directly below and record it as pairun's; returns its path.

        Raises:
            PairunError: the directory cannot be created.
        """
        path = os.path.join(self.path, name)
        assert self._marker is not None
        if os.path.lexists(path):
            raise self._unusable(f"{path} exists, and pairun run did not create it")
        try:
            # write the record first: a run that is killed here leaves no unknown directory
            os.write(self._marker, f"{name}\n".encode())
            os.mkdir(path)
        except OSError as e:
            raise self._unusable(f"{path}: {e.strerror}") from e
        return path

    def record(self, *, succeeded: bool, because: str) -> None:
        """Write how the job ended; without it `pairun report` knows only the instances.

        Args:
            succeeded: whether the job succeeded.
            because: why, as text.
        """
        # a full disk must not change the run's outcome
        with contextlib.suppress(OSError):
            file = MACHINE.open_new(os.path.join(self.path, OUTCOME))
            with open(file, "w", encoding="utf-8") as f:
                json.dump({"succeeded": succeeded, "because": because}, f)

    def close(self) -> None:
        """Release the lock."""
        if self._marker is not None:
            os.close(self._marker)
            self._marker = None

    def _open(self) -> None:
        if not os.path.isdir(self.path):
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            # job secrets are written here, so only this user has access
            os.mkdir(self.path, 0o700)
        marker = os.path.join(self.path, MARKER)
        if not os.path.lexists(marker) and os.listdir(self.path):
            raise self._unusable(
                f"{self._shown} is not empty, and pairun run did not create it",
                hint="name a new or empty directory with --workdir",
            )
        self._marker = MACHINE.open_append(marker, 0o600)

    def _lock(self) -> None:
        assert self._marker is not None
        try:
            fcntl.flock(self._marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._unusable(
                f"another pairun run uses {self._shown}",
                hint="wait until it ends, or name another directory with --workdir",
            ) from None

    def _reset(self) -> float | None:
        """Move the last run's files away; returns when that run began, or None if there are none.

        If a run is killed here, nothing is lost: the next run continues the reset.
        """
        assert self._marker is not None
        began = os.fstat(self._marker).st_mtime
        made = [n for n in self._made() if self._is_there(n)]
        # files that an interrupted reset has already moved belong to the same run
        keep = self._is_there(KEEPING) or any(n not in _PREPARATION for n in made)
        self._refuse_mounts([*made, TRASH, *((KEEPING, PREVIOUS) if keep else ())])
        if self._is_there(TRASH):
            self.discard(TRASH)
        if keep:
            self._keep(made)
        for name in [] if keep else made:
            self.discard(name)
        os.ftruncate(self._marker, 0)
        os.write(self._marker, f"{_EXPLANATION}\n{OUTCOME}\n".encode())
        return began if keep else None

    def _keep(self, made: list[str]) -> None:
        """Make `PREVIOUS` from the last run's files, in steps that the next run can continue."""
        previous, keeping = os.path.join(self.path, PREVIOUS), os.path.join(self.path, KEEPING)
        if self._is_there(PREVIOUS) and not _is_previous(previous):
            raise self._unusable(f"{previous} exists, and pairun run did not create it")
        if os.path.islink(keeping):
            raise self._unusable(f"{keeping} is a symbolic link, and pairun run did not create it")
        if not self._is_there(KEEPING):
            os.mkdir(keeping, 0o700)
        os.close(MACHINE.open_append(os.path.join(keeping, MARKER), 0o600))
        for name in made:
            os.rename(os.path.join(self.path, name), os.path.join(keeping, name))
        if self._is_there(PREVIOUS):
            self.discard(PREVIOUS)
        os.rename(keeping, previous)

    def _refuse_mounts(self, names: list[str]) -> None:
        """Refuse to move or remove a folder that is or contains a mount point."""
        for point in mount_points():
            if any(f"{point}/".startswith(f"{self.path}/{name}/") for name in names):
                raise self._unusable(f"something is mounted at {point}", hint=f"umount {point}")

    def _is_there(self, name: str) -> bool:
        return os.path.lexists(os.path.join(self.path, name))

    def discard(self, name: str) -> None:
        """Remove a directory that `make` created.

        Raises:
            OSError: a file cannot be removed.
            PairunError: a symbolic link is in the way.
        """
        trash = os.path.join(self.path, TRASH)
        if not os.path.lexists(trash):
            os.mkdir(trash, 0o700)
        if os.path.islink(trash):
            raise self._unusable(f"{trash} is a symbolic link, and pairun run did not create it")
        if name != TRASH:
            # Move it away first: a process that still runs there cannot disturb the new run.
            os.rename(os.path.join(self.path, name), os.path.join(trash, str(uuid.uuid4())))
        empty(trash)
        os.rmdir(trash)

    def _made(self) -> list[str]:
        assert self._marker is not None
        size = os.fstat(self._marker).st_size
        lines = os.pread(self._marker, size, 0).decode("utf-8", "replace").splitlines()
        # ignore any name that leads out of the directory
        names = [n for n in lines if n and n[0] != "#" and "/" not in n and n not in (".", "..")]
        return [n for n in dict.fromkeys(names) if n not in (MARKER, TRASH, KEEPING, PREVIOUS)]

    def _unusable(self, message: str, hint: str | None = None) -> PairunError:
        return PairunError(
            Problem(
                "PR701",
                message,
                hint=hint or "name another one with --workdir, or correct this one",
            )
        )


def _is_previous(path: str) -> bool:
    """Whether a path is a directory of pairun's, and not a link or a directory of the user's."""
    try:
        marker = os.lstat(os.path.join(path, MARKER))
    except OSError:
        return False
    return not os.path.islink(path) and stat.S_ISREG(marker.st_mode)


def _clock(began: float) -> str:
    """The time of day, with the date unless it is today."""
    then, now = time.localtime(began), time.localtime()
    return time.strftime("%H:%M" if then[:3] == now[:3] else "%Y-%m-%d %H:%M", then)


def end_survivors(folder: str) -> None:
    """Kill processes that an earlier run in a folder left, and wait until they are gone.

    Only a run without namespaces can leave processes; the volume in their environment marks them.
    """
    mark = f"\0PAIRUN_PAI_DIR={folder}/".encode()
    until = time.monotonic() + SURVIVORS_S
    while time.monotonic() < until:
        pids = {int(n) for n in os.listdir("/proc") if n.isdigit()} - {os.getpid()}
        if not (survivors := [pid for pid in pids if mark in _environment(pid)]):
            return
        for pid in survivors:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _environment(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            return b"\0" + f.read()
    except OSError:
        return b""


def empty(folder: str) -> None:
    """Remove everything in a folder.

    It moves nested directories up into the folder, so that no path grows long. An interruption
    loses only files that would have been removed.

    Args:
        folder: the folder; everything below it is on the same file system.

    Raises:
        OSError: a file cannot be removed.
    """
    top = open_folder(None, folder, folder, LISTED)
    try:
        while names := os.listdir(top):
            for name in names:
                _take_apart(top, name)
    finally:
        os.close(top)


def _take_apart(top: int, name: str) -> None:
    if not _is_directory(top, name):
        os.unlink(name, dir_fd=top)
        return
    inner = opened(top, name)
    try:
        for entry in os.listdir(inner):
            if _is_directory(inner, entry):
                # rename(2) changes a directory's `..` entry, so it needs write permission on it.
                os.close(opened(inner, entry))
                os.rename(entry, str(uuid.uuid4()), src_dir_fd=inner, dst_dir_fd=top)
            else:
                os.unlink(entry, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)


def opened(folder: int, name: str) -> int:
    """Open a directory in an open one, and give its owner every permission on it.

    A job may leave directories that even their owner cannot read or write. One of its processes may
    still run and replace the directory by a link: that is an error; the target does not change.

    Raises:
        OSError: it is not a directory, or cannot be opened.
    """
    # O_PATH needs no permission; chmod(2) by name would follow a link.
    fd = open_folder(folder, name, name)
    try:
        os.chmod(f"/proc/self/fd/{fd}", 0o700)
        return os.open(".", LISTED, dir_fd=fd)
    finally:
        os.close(fd)


def _is_directory(folder: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
