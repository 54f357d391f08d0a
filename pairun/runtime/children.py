"""How PID 1 starts pairun as a child process and exchanges data with it.

The data are in memory files (memfd_create(2)): they are never on disk, never block their writer,
and disappear with the last process that has them open.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import FileIO
from typing import Any, Literal, NamedTuple, TypeVar

from pairun.base.fields import BadField, decode
from pairun.base.foreignjson import MAX_JSON_BYTES, parse_json, parse_record
from pairun.base.forwarding import CATCHABLE, Forwarding
from pairun.base.paths import KEY_FILE, PLACE_FILE
from pairun.base.system import BUNDLED
from pairun.runtime.supervisor import Supervisor
from pairun.volume.door import Door

_T = TypeVar("_T")


def own_command(*args: str) -> list[str]:
    """The argv that starts pairun with ``args``.

    Uses ``-P``: the working directory is the user's and must not affect imports.
    """
    if BUNDLED:
        return [sys.executable, *args]
    return [sys.executable, "-P", "-m", "pairun", *args]


class PhaseEnd(NamedTuple):
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


def ask(
    supervisor: Supervisor,
    kind: type[_T],
    args: Sequence[str],
    env: Mapping[str, str],
    question: Mapping[str, Any],
    *,
    limit_s: Callable[[], float | None],
    forwarding: Forwarding,
    held: Iterable[int] = (),
    streams: tuple[int, int] | None = None,
) -> tuple[int, _T | None]:
    """Start pairun as a child, and wait for its answer.

    Args:
        kind: the record that the child writes to ``--state-out``.
        args: its arguments.
        question: what it reads from ``--state-in``.
        limit_s: as for `Supervisor.wait`, like ``forwarding``; the rest as for `Supervisor.start`.

    Returns:
        Its exit code and its answer; None if it wrote no such record.

    Raises:
        OSError: it cannot be started: file descriptors, processes or memory ran out.
    """
    with _memory_file(b"") as answer:
        with _memory_file(json.dumps(question).encode()) as asked:
            files = ("--state-in", str(asked.fileno()), "--state-out", str(answer.fileno()))
            child = supervisor.start(own_command(*args, *files), env, held=held, streams=streams)
        status = supervisor.wait(child, limit_s, forwarding=forwarding)
        # `pread` allocates what it is asked for.
        size = min(os.fstat(answer.fileno()).st_size, MAX_JSON_BYTES)
        try:
            return status, decode(kind, parse_json(os.pread(answer.fileno(), size, 0)))
        except (ValueError, BadField):
            return status, None


def _memory_file(content: bytes) -> FileIO:
    """A memory file that children inherit, with this content."""
    file = FileIO(os.memfd_create("pairun"), "r+")
    os.set_inheritable(file.fileno(), True)
    file.write(content)
    file.seek(0)
    return file


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
