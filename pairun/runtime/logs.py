"""The container's logs in OpenPAI's layout, and PID 1's own lines.

The user command's output goes to the container's streams and to three rotated logs. The tasks'
output, the data from ``$RUNTIME_LOG_PIPE`` and our own lines go to ``runtime.log`` and to the
container's standard error. Failures here never end the job: bytes that cannot be written are
counted, and the last lines report the count.
"""

from __future__ import annotations

import collections
import errno
import os
import time
from collections.abc import Callable

from pairun.base.paths import USER_LOGS
from pairun.base.processes import SPARE, sparing
from pairun.runtime.pump import BRIEFLY_S, PIPE_BYTES, Pump, complete, wait_for
from pairun.runtime.sinks import ContainerStream, Raw, SharedFile, Sink, Speaker, StampedLines
from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.logfile import (
    LOG_BYTES,
    LOG_BYTES_VARIABLE,
    AppendedFile,
    RotatedLog,
    parse_size,
)

LOG_PIPE = "RUNTIME_LOG_PIPE"
"""The variable with the path of the pipe to ``runtime.log``; OpenPAI's name."""

_PERMANENT = frozenset(
    {
        errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.ELOOP,
        errno.EMFILE,
    }
)  # fmt: skip

_UNMASKED = b"[pairun] a line is left out: its secrets cannot be masked\n"

Streams = tuple[int, int]


def dated(text: str, now: float) -> str:
    """A line of ``runtime.log``: the date in date(1)'s format, the writer, the text."""
    return f"{_stamp(now)}{text}\n"


def _stamp(now: float) -> str:
    date = time.strftime("%a %b %e %H:%M:%S %Z %Y", time.localtime(now))
    return f"[{date}] [openpai-runtime] "


class Logs:
    """All logs of one runtime phase; opens ``runtime.log`` and makes the command's logs.

    Args:
        folder: the Pod's log directory, which init has made.
        size: the value of the variable `LOG_BYTES_VARIABLE`, or None.
    """

    def __init__(self, door: Door, folder: str, vault: Vault, size: str | None = None) -> None:
        self._door = door
        self._folder = folder
        self._vault = vault
        # open before file descriptors may run out
        self._devnull = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        self._complaints: set[str] = set()
        self._speaker = Speaker()
        self._files: list[AppendedFile] = []
        self._pumps: list[Pump] = []
        self._tasks: list[Pump] = []
        self._user: list[Pump] = []
        self._runtime: SharedFile | None = None
        self._limit = parse_size(size or "") or LOG_BYTES
        file = AppendedFile(door, os.path.join(folder, "runtime.log"), self._complain)
        if self._can(file):
            self._runtime = SharedFile(file, self._limit)
            self._files.append(file)
        if size and parse_size(size) is None:
            self.say(
                f"{LOG_BYTES_VARIABLE}={size!r} is not a size like 256Mi; using {LOG_BYTES} bytes"
            )
        # Before any task: log managers list the logs of a command that never started, too.
        self._user_files = {name: self._rotated(name) for name in USER_LOGS}

    def open_pipe(self, path: str) -> str:
        """Make the pipe to ``runtime.log``, and start to read it.

        Opens it once, for both directions, so that no writer waits or fails.

        Returns:
            The value of `LOG_PIPE`: the path, or /dev/null if there is no pipe.
        """
        try:
            with sparing():
                reader = self._door.make_pipe(path, 0o622)
        except OSError as e:
            self._complain(f"{LOG_PIPE} keeps nothing: {path}: {e.strerror}")
            return os.devnull
        if self._start([2], [self._stamped()], None, reader):
            return path
        os.close(reader)
        return os.devnull

    # --- our own lines ---

    def say(self, text: str, shown: str | None = None) -> None:
        """Write a line to ``runtime.log`` and to the container's standard error.

        Args:
            shown: the text for standard error, if it differs.
        """
        self._speaker.say(self._line(f"[pairun] {text}\n" if shown is None else shown))
        self.note(text)

    def show(self, line: str) -> None:
        """Write a line, with secrets already masked, only to the container's standard error."""
        self._speaker.say(f"{line}\n".encode())

    def note(self, text: str) -> None:
        """Write a line only to ``runtime.log``."""
        if self._runtime is not None:
            self._runtime.add(self._line(dated(text, time.time())))

    def _line(self, text: str) -> bytes:
        try:
            return self._vault.data(text.encode("utf-8", "surrogateescape"))
        except Exception:  # noqa: BLE001 - a failure to mask loses the line, never the job
            return _UNMASKED

    def _complain(self, text: str) -> None:
        """Report a pump's problem once, without waiting for a slow reader."""
        if text not in self._complaints:
            self._complaints.add(text)
            self._speaker.say(self._line(f"[pairun] {text}\n"), wait=False)
            self.note(text)

    # --- the pipes of processes ---

    def task_streams(self) -> Streams | None:
        """Standard output and error for tasks, or None for our own; both stay open."""
        if not self._tasks:
            self._tasks = self._start([2, 2], [self._stamped() for _ in (1, 2)], None)
        return self._writers(self._tasks)

    @property
    def discards_tasks(self) -> bool:
        """Whether the tasks' output is discarded, because it cannot be masked."""
        return not self._tasks and bool(self._vault)

    def _stamped(self) -> list[Sink]:
        """Lines of ``runtime.log`` with the same prefix as our own."""
        if self._runtime is None:
            return []
        return [StampedLines(self._runtime, lambda: _stamp(time.time()).encode())]

    def user_streams(self) -> Streams | None:
        """Standard output and error for the user's command, or None for our own."""
        *own, both = (self._user_files.get(name) for name in USER_LOGS)
        shared = None if both is None else SharedFile(both)
        sinks: list[list[Sink]] = [
            [*([Raw(file)] if file else []), *([shared.lines()] if shared else [])] for file in own
        ]
        self._files += [file for file in (*own, both) if file]
        self._user = self._start([1, 2], sinks, PIPE_BYTES)
        return self._writers(self._user)

    def command_started(self) -> None:
        """Close our copies of the pipes' write ends, so that the pumps see the end."""
        for pump in self._user:
            pump.close_writer()

    # --- the end ---

    def settle(self, seconds: float = BRIEFLY_S) -> None:
        """Wait briefly until the output so far is copied."""
        wait_for(self._pumps, lambda: seconds, stall_s=seconds)

    def complete(self, left_s: Callable[[], float | None]) -> None:
        """Complete the files of the user's command: write all output so far.

        Args:
            left_s: returns the seconds left for this, or None for our limit; called repeatedly.
        """
        complete(self._user, left_s)

    def close(self, left_s: Callable[[], float | None]) -> None:
        """Write the rest, report what was lost, and close the files.

        Args:
            left_s: as for `complete`.
        """
        for pump in self._pumps:
            pump.close_writer()
        wait_for(self._pumps, left_s)
        for pump in self._pumps:
            if not pump.ended.is_set():
                pump.take_over()
        for file in self._files:
            if file.lost:
                self.say(f"not logged: {file.lost} bytes of {file.path}")
        lost: collections.Counter[str] = collections.Counter()
        for pump in self._pumps:
            lost[pump.stream.name] += pump.stream.lost
        for name, count in lost.items():
            if count:
                self.say(f"not written: {count} bytes of {name}")
        self._speaker.close(BRIEFLY_S)

    # --- files ---

    def _writers(self, pumps: list[Pump]) -> Streams | None:
        """The write ends for a process; without pumps, output that may have secrets is lost."""
        if pumps:
            return pumps[0].writer, pumps[1].writer
        return (self._devnull, self._devnull) if self._vault else None

    def _start(
        self,
        fds: list[int],
        sinks: list[list[Sink]],
        pipe_bytes: int | None,
        reader: int | None = None,
    ) -> list[Pump]:
        """Start a pump for each of these streams of the container; none if one fails."""
        started: list[Pump] = []
        try:
            for fd, its in zip(fds, sinks, strict=True):
                stream = ContainerStream(fd, self._complain)
                # the write ends of the command's pipes are closed once it has started
                with sparing(SPARE if pipe_bytes is None else SPARE - len(fds)):
                    pump = Pump(stream, its, self._vault, self._complain, pipe_bytes, reader)
                started.append(pump)
                pump.start()
        except (OSError, RuntimeError, MemoryError) as e:
            # File descriptors, threads or memory ran out. The job can run without pumps.
            for pump in started:
                pump.close_writer()
            why = str(e) or type(e).__name__
            if self._vault:
                self._complain(f"secrets cannot be masked: output is discarded: {why}")
            else:
                self._complain(f"output is not logged: {why}")
            return []
        self._pumps += started
        return started

    def _rotated(self, name: str) -> RotatedLog | None:
        path = os.path.join(self._folder, name)
        log = RotatedLog(self._door, path, self._limit, self._complain)
        return log if self._can(log) else None

    def _can(self, file: AppendedFile) -> bool:
        """Whether a file can be written now or later; logs each reason once if not."""
        try:
            with sparing():
                file.create()
        except OSError as e:
            if e.errno in _PERMANENT:
                self._complain(f"cannot keep logs in {self._folder}: {e.strerror}")
                return False
        return True
