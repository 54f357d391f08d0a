"""The container's working directory: children start in it, PID 1 leaves it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

_OUTSIDE = "/"


class WorkingDirectory:
    """The directory in which the container starts its first process.

    A process in a directory keeps its file system from being unmounted (umount(2), EBUSY). PID 1
    therefore moves to ``/``, if it can return.

    Attributes:
        path: the directory; ``/`` if it has been removed.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.path = _current()
        self._is_left = _can_enter(self.path)
        if self._is_left:
            os.chdir(_OUTSIDE)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Enter the directory for a block; ``/`` if the directory no longer exists."""
        if not self._is_left:
            yield
            return
        try:
            os.chdir(self.path)
        except OSError as e:
            self._say(f"the working directory {self.path} cannot be entered: {e.strerror}; using /")
        try:
            yield
        finally:
            os.chdir(_OUTSIDE)


def _current() -> str:
    try:
        return os.getcwd()
    except OSError:
        return _OUTSIDE


def _can_enter(path: str) -> bool:
    """Whether this user can return to its working directory: the engine may have more rights."""
    try:
        os.chdir(path)
    except OSError:
        return False
    return True
