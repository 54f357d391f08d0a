"""How PID 1 starts pairun as a child process and exchanges data with it.

The data are in memory files (memfd_create(2)): they are never on disk, never block their writer,
and disappear with the last process that has them open.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Self, TypeVar

from pairun.base.fields import BadField, decode
from pairun.base.foreignjson import MAX_BYTES, parse_json, parse_record
from pairun.base.forwarding import CATCHABLE
from pairun.base.paths import KEY_FILE, PLACE_FILE
from pairun.base.system import BUNDLED
from pairun.volume.door import Door

T = TypeVar("T")


def own_command(*args: str) -> list[str]:
    """The argv that starts pairun with ``args``.

    Uses ``-P``: the working directory is the user's and must not affect imports.
    """
    if BUNDLED:
        return [sys.executable, *args]
    return [sys.executable, "-P", "-m", "pairun", *args]


class State(NamedTuple):
    """The end of the tasks before the user's command.

    Attributes:
        outcome: success, failure or signal.
        exit_code: the phase's, unless the outcome is success.
        script_code: exit code of the plugin's script that failed the phase, or None.
        registered: ids of the exit handlers that must run.
        results: of the tasks, for the exit handlers.
        environment: the variables that tasks exported; None removes one.
        secrets: the secrets that tasks have learned.
    """

    outcome: Literal["success", "failure", "signal"]
    exit_code: int
    message: str = ""
    script_code: int | None = None
    registered: tuple[str, ...] = ()
    results: Mapping[str, Any] = {}
    environment: Mapping[str, str | None] = {}
    secrets: tuple[str, ...] = ()


class HandlersEnd(NamedTuple):
    """The end of the exit handlers.

    Attributes:
        failed: whether one failed that may fail the phase.
        script_code: exit code of the plugin's script that it ran, or None.
        secrets: the secrets that handlers have learned.
    """

    failed: bool
    script_code: int | None = None
    message: str = ""
    secrets: tuple[str, ...] = ()


class MemoryFile:
    """A memory file that a child inherits; leaving the ``with`` block closes our descriptor.

    Args:
        content: what the child reads; None if the child writes.

    Raises:
        OSError: file descriptors or memory ran out.
    """

    def __init__(self, content: Mapping[str, Any] | None = None) -> None:
        self.fd = os.memfd_create("pairun")
        try:
            os.set_inheritable(self.fd, True)
            if content is not None:
                with open(self.fd, "w", encoding="utf-8", closefd=False) as f:
                    json.dump(content, f)
                os.lseek(self.fd, 0, os.SEEK_SET)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, kind: type[T]) -> T | None:
        """Read the record that the child wrote, and close the file; None if it wrote no such record."""
        try:
            os.lseek(self.fd, 0, os.SEEK_SET)
            with open(self.fd, "rb", closefd=False) as f:
                # `read` allocates what it is asked for.
                return decode(kind, parse_json(f.read(min(os.fstat(self.fd).st_size, MAX_BYTES))))
        except (ValueError, BadField):
            return None
        finally:
            self.close()

    def close(self) -> None:
        """Close our descriptor of the file."""
        os.close(self.fd)


_MAX_PLACE_BYTES = 1024 * 1024


def serve_peers(door: Door, env: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Start the server if this instance leads its job and has the job's key.

    The server ends with the container.
    """
    if not _leads(door) or not door.is_file(os.path.join(door.root, KEY_FILE)):
        return
    argv = own_command("rendezvous", door.root)
    try:
        os.posix_spawn(argv[0], argv, env, setsid=True, setsigmask=(), setsigdef=CATCHABLE)
    except OSError as e:
        say(f"the server for the job's other instances could not be started: {e.strerror}")


def _leads(door: Door) -> bool:
    try:
        place = parse_record(door.read(os.path.join(door.root, PLACE_FILE), _MAX_PLACE_BYTES))
    except OSError:
        return False
    return place is not None and place.get("rank") == 0
