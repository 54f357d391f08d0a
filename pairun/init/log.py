"""``init.log``: the output of the init phase, written to a file and printed.

The phase runs in a child. This process is PID 1 of the init container: it copies the child's
output, forwards signals, and exits with the child's exit code. So the log is complete even if the
child crashes or is killed for its memory.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import sys
import time
from collections.abc import Mapping

from pairun.base.paths import DEFAULT_PAI_DIR, log_dir, runtime_file
from pairun.base.signals import STOP_SIGNALS, Signals, block_stop_signals
from pairun.volume.door import Door
from pairun.volume.logfile import LogFile
from pairun.volume.podlogs import INIT_LOG
from pairun.volume.reader import ENVIRONMENT_FILE

STALL_S = 10.0
"""Seconds that the end waits for a stalled reader of our output."""

EARLY_BYTES = 1024 * 1024
"""How many bytes of output are kept until the log's folder exists."""

WAITING_BYTES = 4 * 1024 * 1024
"""How many bytes of output may wait for the reader of one of our streams."""

_WRITE_BYTES = 4096
"""A pipe that poll(2) reports as writable accepts this much without blocking (PIPE_BUF)."""


def run_under_log(pai_dir: str, env: Mapping[str, str]) -> int | None:
    """Continue in a child whose output goes to ``init.log``.

    Returns:
        None in the child, or if no child can be forked. In the parent, the child's exit code.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    # Blocked until the process that handles them takes them.
    block_stop_signals()
    pipes = [os.pipe(), os.pipe()]
    try:
        child = os.fork()
    except OSError:
        # Run the phase without its log.
        for end in (end for pipe in pipes for end in pipe):
            os.close(end)
        return None
    if child == 0:
        for number, (reader, writer) in enumerate(pipes, 1):
            os.dup2(writer, number)
            os.close(reader)
            os.close(writer)
        # Python's own streams may assume that they are seekable files.
        for number, name in ((1, "stdout"), (2, "stderr")):
            old = getattr(sys, name)
            how = {"encoding": old.encoding, "errors": old.errors, "line_buffering": True}
            setattr(sys, name, io.TextIOWrapper(open(number, "wb", closefd=False), **how))  # noqa: SIM115
        return None
    for _, writer in pipes:
        os.close(writer)
    log = _Log(pai_dir, env)
    return _Tee(child, [reader for reader, _ in pipes], log).run()


class _Log:
    """The log file; keeps its content in memory until its folder exists."""

    def __init__(self, pai_dir: str, env: Mapping[str, str]) -> None:
        self._pai_dir = pai_dir
        self._door = Door(pai_dir)
        self._folder = log_dir(pai_dir, env)
        self._early = b""
        self._has_folder = False
        self._file = LogFile(self._door, os.path.join(self._folder, INIT_LOG), self._complain)

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self._has_folder = self._has_folder or self._door.is_folder(self._folder)
        if not self._has_folder:
            self._early = (self._early + data)[-EARLY_BYTES:]
            return
        self._file.write(self._early + data)
        self._early = b""

    def add_environment(self) -> None:
        """Append the variables of the job, as OpenPAI's runtime does; they hold no secret."""
        with contextlib.suppress(OSError):
            data = self._door.read(runtime_file(self._pai_dir, ENVIRONMENT_FILE))
            self.write(f"\n{ENVIRONMENT_FILE} has:\n".encode() + data)

    def end(self) -> None:
        """Write the rest; makes the folder if the phase has not made it."""
        # Make nothing in a folder that is not a volume.
        if self._door.is_folder(os.path.join(self._pai_dir, "logs")) or (
            self._pai_dir == DEFAULT_PAI_DIR and os.path.isdir(self._pai_dir)
        ):
            with contextlib.suppress(OSError):
                self._door.make_folder(self._folder)
        self.write(b"")

    def _complain(self, text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(2, f"[pairun] {text}\n".encode("utf-8", "surrogateescape"))


class _Tee:
    """Copies the child's standard output and error to ours, and both to the log.

    Args:
        readers: the read ends of the child's standard output and error.
    """

    def __init__(self, child: int, readers: list[int], log: _Log) -> None:
        self._child = child
        self._log = log
        self._status: int | None = None
        # reader to our own stream; and the output that waits for that stream
        self._streams = dict(zip(readers, (1, 2), strict=True))
        self._pending = dict.fromkeys((1, 2), b"")
        for reader in readers:
            os.set_blocking(reader, False)

    def run(self) -> int:
        """Copy until the child ends; returns its exit code."""
        signals = Signals()
        signals.install()
        try:
            while not self._has_ended():
                self._turn(signals, None)
            # Read the rest from the pipes; background processes may hold them open forever.
            for reader, stream in list(self._streams.items()):
                while self._read(reader, stream):
                    pass
            code = self._exit_code()
            if code == 0:
                self._log.add_environment()
            self._log.end()
            self._show_rest()
        finally:
            block_stop_signals()
            signals.restore()
        return code

    def _has_ended(self) -> bool:
        """Whether the child has ended; reaps adopted orphans, too."""
        with contextlib.suppress(ChildProcessError):
            while (reaped := os.waitpid(-1, os.WNOHANG))[0] != 0:
                if reaped[0] == self._child:
                    self._status = reaped[1]
        return self._status is not None

    def _turn(self, signals: Signals, timeout_ms: int | None) -> bool:
        """Wait for events and handle them; returns whether there were any."""
        poll = select.poll()
        poll.register(signals.fd, select.POLLIN)
        for reader, stream in self._streams.items():
            if self._pending[stream]:
                poll.register(stream, select.POLLOUT)
            # A slow reader delays the phase only after much output: a phase that waits for its
            # reader does not react to a stop signal.
            if len(self._pending[stream]) < WAITING_BYTES:
                poll.register(reader, select.POLLIN)
        ready = dict(poll.poll(timeout_ms))
        if signals.fd in ready:
            self._pass_on(signals.take())
        for reader, stream in list(self._streams.items()):
            if reader in ready:
                self._read(reader, stream)
            if stream in ready:
                self._show(stream)
        return bool(ready)

    def _pass_on(self, numbers: list[int]) -> None:
        for number in numbers:
            if number in STOP_SIGNALS:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._child, number)

    def _read(self, reader: int, stream: int) -> bytes:
        try:
            data = os.read(reader, 65536)
        except BlockingIOError:
            return b""
        if not data:
            del self._streams[reader]
            os.close(reader)
            return b""
        self._log.write(data)
        self._pending[stream] += data
        return data

    def _show(self, stream: int) -> bool:
        """Write what our stream accepts now; returns whether it accepted anything."""
        data = self._pending[stream]
        try:
            written = os.write(stream, data[:_WRITE_BYTES])
        except BlockingIOError:
            return False
        except OSError:
            # The stream has no reader, or its disk is full; the output is in the log.
            written = len(data)
        self._pending[stream] = data[written:]
        return True

    def _show_rest(self) -> None:
        stop = time.monotonic() + STALL_S
        while time.monotonic() < stop and (left := [s for s, d in self._pending.items() if d]):
            poll = select.poll()
            for stream in left:
                poll.register(stream, select.POLLOUT)
            for stream, _ in poll.poll(100):
                if self._show(stream):
                    stop = time.monotonic() + STALL_S

    def _exit_code(self) -> int:
        assert self._status is not None
        code = os.waitstatus_to_exitcode(self._status)
        if code >= 0:
            return code
        hint = ": perhaps out of memory" if -code == signal.SIGKILL else ""
        text = (
            f"[pairun] the init phase was killed by {signal.Signals(-code).name}{hint}\n".encode()
        )
        self._log.write(text)
        self._pending[2] += text
        return 128 - code
