"""One instance of a role on this machine: its folder, its two phases, its output, its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Literal

import attrs

from pairun.base.machine import MACHINE
from pairun.engines.local.isolation import Isolation
from pairun.engines.local.workdir import end_survivors
from pairun.secrets.masking import MaskedStream
from pairun.secrets.vault import RELEASE_S, Vault

PhaseName = Literal["init", "runtime"]

_DRAIN_S = 1.0
"""How long to read output after a phase's process has ended, in seconds."""


MAX_OUTPUT_LINE = 64 * 1024


class InstanceOutput:
    """Reads what one phase of an instance prints.

    Args:
        log_path: the file to append to.
        show: receives each complete line.
        vault: masks secrets.

    Attributes:
        fd: the file descriptor to read when the selector reports it.
        writer: the other end of the pipe, for the process.
    """

    def __init__(self, log_path: str, show: Callable[[bytes], None], vault: Vault) -> None:
        self.fd, self.writer = os.pipe()
        os.set_blocking(self.fd, False)
        self._show_line = show
        self._stream: MaskedStream = vault.stream()
        self._rest = b""
        self._read_at = 0.0
        self._log = MACHINE.open_append(log_path, 0o600)

    def close_writer(self) -> None:
        """Close the writer, so that only the process holds it."""
        os.close(self.writer)

    def read(self) -> bool:
        """Read the available output; returns whether the output has ended."""
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return False
        if data:
            self._read_at = time.monotonic()
            self._take(self._stream.feed(data))
        return not data

    def release(self) -> None:
        """Take the bytes that still wait in a pause of the output, if they reveal no secret."""
        if self._stream.has_release and time.monotonic() - self._read_at >= RELEASE_S:
            self._take(self._stream.release())

    def close(self) -> None:
        """Flush the last line, complete or not."""
        self._take(self._stream.close())
        if self._rest:
            self._show(self._rest)
        os.close(self.fd)
        os.close(self._log)

    def _take(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            kept = data
            while kept:
                kept = kept[os.write(self._log, kept) :]
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._show(line)
        if len(self._rest) > MAX_OUTPUT_LINE:
            self._show(self._rest)
            self._rest = b""

    def _show(self, line: bytes) -> None:
        self._show_line(line.removesuffix(b"\r"))


@attrs.frozen(kw_only=True)
class PhaseRun:
    """A phase that has ended."""

    code: int
    seconds: float


@attrs.define(kw_only=True)
class LocalInstance:
    """One instance of a role.

    Attributes:
        label: its name for people: role and number.
        role: name of the role.
        pod_uid: the uid of its simulated Pod.
        folder: the folder with all its files.
        environments: the environment of each phase.
        isolation: how it is isolated from this machine.
        open_output: opens the reader of a phase's output.
        ended: the phases that have ended.
        stopped: whether the engine stopped it.
    """

    label: str
    role: str
    pod_uid: str
    folder: str
    environments: Mapping[PhaseName, Mapping[str, str]]
    isolation: Isolation
    open_output: Callable[[], InstanceOutput]
    ended: dict[PhaseName, PhaseRun] = attrs.field(factory=dict)
    stopped: bool = False
    output: InstanceOutput | None = None
    _phase: PhaseName | None = None
    _process: subprocess.Popen[bytes] | None = None
    _began: float = 0.0
    _process_ended: float | None = None

    @property
    def volume(self) -> str:
        """The folder that the instance sees as ``/usr/local/pai``."""
        return os.path.join(self.folder, "pai")

    @property
    def last_phase(self) -> PhaseName:
        """The last phase that has ended, once the instance has ended."""
        return "runtime" if "runtime" in self.ended else "init"

    @property
    def code(self) -> int | None:
        """The exit code of the instance; None until it has ended."""
        if self._phase is not None or not self.ended:
            return None
        last = self.ended.get("runtime") or self.ended["init"]
        over = "runtime" in self.ended or last.code != 0 or self.stopped
        if not over:
            return None
        # init succeeded, but the command was not started any more
        return last.code or (128 + signal.SIGTERM if "runtime" not in self.ended else 0)

    def start(self, phase: PhaseName) -> InstanceOutput:
        """Start a phase; returns its output, which the caller reads."""
        self._phase, self._began = phase, time.monotonic()
        self.output = self.open_output()
        argv = self.isolation.wrap(
            [sys.executable, "-P", "-m", "pairun", phase],
            self.volume,
            os.path.join(self.folder, "mount"),
            is_pid1=phase == "runtime",
        )
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=self.output.writer,
            stderr=subprocess.STDOUT,
            cwd=os.path.join(self.folder, "work"),
            env=dict(self.environments[phase]),
            start_new_session=True,
            # safe here: there is one thread
            preexec_fn=self.isolation.before_exec(),  # noqa: PLW1509
        )
        self.output.close_writer()
        return self.output

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the running phase."""
        self.stopped = True
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    @property
    def is_draining(self) -> bool:
        """Whether its process has ended, but its output has not."""
        return self._process_ended is not None

    def is_over(self, *, no_more_output: bool) -> bool:
        """Whether the running phase has ended, its output included.

        Args:
            no_more_output: whether the output has ended.
        """
        if self._process is None or self._process.poll() is None:
            return False
        if self._process_ended is None:
            self._process_ended = time.monotonic()
            if not self.isolation.namespaces:
                end_survivors(self.folder)
        return no_more_output or time.monotonic() - self._process_ended >= _DRAIN_S

    def finish(self) -> None:
        """Record the phase that has ended."""
        assert self._phase is not None
        assert self._process is not None
        assert self._process_ended is not None
        assert self.output is not None
        self.output.close()
        status = self._process.returncode
        self.ended[self._phase] = PhaseRun(
            code=status if status >= 0 else 128 - status,
            seconds=self._process_ended - self._began,
        )
        self._phase = self._process = self._process_ended = self.output = None
