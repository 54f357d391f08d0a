"""``init.log``: the output of the init phase, written to a file and printed.

The phase runs in a child. This process is PID 1 of the init container: its pumps copy the child's
output, and it forwards signals and exits with the child's exit code. So the log is complete even if
the child crashes or is killed for its memory.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import sys
from collections.abc import Mapping

from pairun.base.paths import DEFAULT_PAI_DIR, log_dir, runtime_file
from pairun.base.processes import limit_cores
from pairun.base.signals import Signals, block_stop_signals
from pairun.runtime.pump import BRIEFLY_S, Pump, complete, wait_for
from pairun.runtime.sinks import ContainerStream, SharedFile, Speaker
from pairun.secrets.scanner import Data
from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.logfile import AppendedFile
from pairun.volume.podlogs import INIT_LOG
from pairun.volume.reader import ENVIRONMENT_FILE

EARLY_BYTES = 1024 * 1024
"""How many bytes of output are kept until the log's folder exists."""

STOP_STALL_S = 1.0
"""Seconds that output waits for a stalled reader after a stop signal."""


def run_under_log(pai_dir: str, env: Mapping[str, str]) -> int | None:
    """Continue in a child whose output goes to ``init.log``.

    Returns:
        None in the child, or if no child can be forked. In the parent, the child's exit code.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    limit_cores()
    # Blocked until the process that handles them takes them.
    block_stop_signals()
    log = _Log(pai_dir, env)
    shared = SharedFile(log)
    try:
        pumps = [_pump(number, shared) for number in (1, 2)]
        child = os.fork()
    except OSError:
        # Run the phase without its log.
        return None
    if child == 0:
        for number, name in ((1, "stdout"), (2, "stderr")):
            pumps[number - 1].attach(number)
            # Python's own streams may assume that they are seekable files.
            old = getattr(sys, name)
            how = {"encoding": old.encoding, "errors": old.errors, "line_buffering": True}
            setattr(sys, name, io.TextIOWrapper(open(number, "wb", closefd=False), **how))  # noqa: SIM115
        return None
    log.speaker = speaker = Speaker()
    for pump in pumps:
        pump.close_writer()
        pump.start()
    code = os.waitstatus_to_exitcode(_status_of(child, pumps))
    # Background processes may hold the pipes open forever.
    complete(pumps)
    if code < 0:
        hint = ": perhaps out of memory" if -code == signal.SIGKILL else ""
        name = signal.Signals(-code).name
        line = f"[pairun] the init phase was killed by {name}{hint}\n".encode()
        shared.add(line)
        speaker.say(line)
        code = 128 - code
    elif code == 0:
        log.add_environment()
    log.end()
    speaker.close(BRIEFLY_S)
    return code


def _pump(number: int, shared: SharedFile) -> Pump:
    """The pump of a stream; the phase masks its output itself, and the log has what is not shown."""
    stream = ContainerStream(number, lambda _: None)
    return Pump(stream, [shared.lines()], Vault(), lambda _: None)


def _status_of(child: int, pumps: list[Pump]) -> int:
    """Forward stop signals to the child until it ends; returns its wait status."""
    stopping = False
    with Signals() as signals:
        while (status := _reap(child)) is None:
            select.select([signals.fd], [], [], STOP_STALL_S if stopping else None)
            for number in signals.take_stops():
                stopping = True
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, number)
            # A phase that waits for its reader does not react to a stop signal.
            for pump in wait_for(pumps, stall_s=STOP_STALL_S) if stopping else ():
                pump.skip()
    return status


def _reap(child: int) -> int | None:
    """Reap adopted orphans and the child; returns its wait status, None while it runs."""
    with contextlib.suppress(ChildProcessError):
        while (reaped := os.waitpid(-1, os.WNOHANG))[0] != 0:
            if reaped[0] == child:
                return reaped[1]
    return None


class _Log(AppendedFile):
    """The log file; keeps its content in memory until its folder exists.

    Attributes:
        speaker: reports that the log cannot be written.
    """

    def __init__(self, pai_dir: str, env: Mapping[str, str]) -> None:
        self._pai_dir = pai_dir
        self._folder = log_dir(pai_dir, env)
        self._early = b""
        self._has_folder = False
        self.speaker: Speaker | None = None
        super().__init__(Door(pai_dir), os.path.join(self._folder, INIT_LOG), self._report)

    def write(self, data: Data) -> None:
        """Append bytes."""
        self._has_folder = self._has_folder or self._door.is_folder(self._folder)
        early, self._early = self._early + data, b""
        if self._has_folder:
            super().write(early)
        else:
            self._early = early[-EARLY_BYTES:]
            self.ends_whole = not early or early.endswith(b"\n")

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

    def _report(self, text: str) -> None:
        if self.speaker is not None:
            self.speaker.say(f"[pairun] {text}\n".encode("utf-8", "surrogateescape"))
