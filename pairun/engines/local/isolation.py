"""How instances are isolated from this machine: namespaces, or else rewritten paths."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Literal

import attrs

from pairun.base.signals import block_stop_signals
from pairun.base.system import PR_SET_PDEATHSIG, prctl

PROBE_S = 20.0


@attrs.frozen(kw_only=True)
class Isolation:
    """The isolation that the kernel allows.

    Attributes:
        who: ``root`` to make namespaces with our own rights, ``user`` to make a user namespace
            first, None for no namespaces.
        because: why there are none, as text.
    """

    who: Literal["root", "user"] | None
    because: str = ""

    @property
    def namespaces(self) -> bool:
        """Whether each instance gets its own namespaces."""
        return self.who is not None

    def wrap(self, command: list[str], volume: str, scratch: str, *, is_pid1: bool) -> list[str]:
        """The argv that runs a command in an instance.

        Args:
            volume: what ``/usr/local/pai`` shows.
            scratch: an empty directory of the instance.
            is_pid1: whether the command itself does the duties of PID 1.
        """
        if self.who is None:
            return command
        enter = [sys.executable, "-P", "-m", "pairun.engines.local.enter"]
        return [*enter, self.who, volume, scratch, "exec" if is_pid1 else "supervise", *command]

    def before_exec(self) -> Callable[[], None]:
        """What a child does between fork and exec, so that it ends when this process ends."""
        engine = os.getpid()
        # A PID namespace ends at once with its first process. Without one, only the runtime knows
        # which processes it started, so it gets SIGTERM and stops them in order.
        number = signal.SIGKILL if self.namespaces else signal.SIGTERM

        def prepare() -> None:
            prctl(PR_SET_PDEATHSIG, number)
            if os.getppid() != engine:
                os._exit(1)
            if self.namespaces:
                # Without a handler PID 1 ignores a signal; a blocked signal stays pending.
                block_stop_signals()

        return prepare


def find_isolation(scratch: str, *, wanted: bool = True) -> Isolation:
    """Find the isolation that works, by one trial.

    Args:
        scratch: an empty directory for the trial.
        wanted: false for no namespaces.
    """
    if not wanted:
        return Isolation(who=None, because="--no-namespace")
    because = ""
    candidates: tuple[Literal["root", "user"], ...] = ("root", "user")
    for who in candidates if os.geteuid() == 0 else candidates[1:]:
        isolation = Isolation(who=who)
        because = _try(isolation, scratch)
        if not because:
            return isolation
    return Isolation(who=None, because=because)


def _try(isolation: Isolation, scratch: str) -> str:
    """Run a no-op in such an instance; returns why it failed, or an empty text."""
    volume, empty = os.path.join(scratch, "pai"), os.path.join(scratch, "empty")
    os.makedirs(volume, exist_ok=True)
    os.makedirs(empty, exist_ok=True)
    nothing = [sys.executable, "-I", "-S", "-c", ""]
    try:
        done = subprocess.run(
            isolation.wrap(nothing, volume, empty, is_pid1=True),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        return str(e)
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"the trial ended with {done.returncode}"
