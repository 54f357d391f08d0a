"""How an instance is set apart from this machine: namespaces of its own, or rewritten paths."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable

import attrs

from pairun.engines.kernel import end_with_parent

PROBE_S = 20.0
_SEPARATE = [
    "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc",
]  # fmt: skip


@attrs.frozen(kw_only=True)
class Isolation:
    """What the kernel lets us do.

    Attributes:
        unshare: the command that makes the namespaces (unshare(1)), or None without them.
        because: why there are none, in words.
    """

    unshare: tuple[str, ...] | None
    because: str = ""

    @property
    def namespaces(self) -> bool:
        """Whether instances have namespaces of their own."""
        return self.unshare is not None

    def wrap(self, command: list[str], volume: str, scratch: str, *, is_pid1: bool) -> list[str]:
        """The argv that runs a command in an instance.

        Args:
            command: its argv.
            volume: what ``/usr/local/pai`` is to show.
            scratch: an empty directory of the instance.
            is_pid1: the command does the duties of PID 1 itself.
        """
        if self.unshare is None:
            return command
        enter = [sys.executable, "-P", "-m", "pairun.engines.enter"]
        return [
            *self.unshare,
            *enter,
            volume,
            scratch,
            "exec" if is_pid1 else "supervise",
            *command,
        ]

    def before_exec(self) -> Callable[[], None]:
        """What a child does between fork and exec, so that it does not outlive us."""
        engine = os.getpid()
        # Namespaces end with their first process, at once. Without them only the runtime itself
        # knows what it has started, so it is asked to end in order.
        number = signal.SIGKILL if self.namespaces else signal.SIGTERM

        def prepare() -> None:
            end_with_parent(number)
            if os.getppid() != engine:
                os._exit(1)
            if self.namespaces:
                # PID 1 does not get a signal it has no handler for; blocked, it waits for it.
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})

        return prepare


def find_isolation(scratch: str, *, wanted: bool = True) -> Isolation:
    """Try once what the instances will need.

    Args:
        scratch: an empty directory for the trial.
        wanted: false to do without namespaces.
    """
    if not wanted:
        return Isolation(unshare=None, because="--no-namespace")
    program = shutil.which("unshare")
    if program is None:
        return Isolation(unshare=None, because="there is no unshare(1) here")
    with_user = ["--user", "--map-root-user"]
    because = ""
    for extra in ([], with_user) if os.geteuid() == 0 else (with_user,):
        found = Isolation(unshare=(program, *extra, *_SEPARATE))
        because = _try(found, scratch)
        if not because:
            return found
    return Isolation(unshare=None, because=because)


def _try(isolation: Isolation, scratch: str) -> str:
    """Run nothing in such an instance; why it does not work, or empty."""
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
    return lines[-1] if lines else f"unshare ended with {done.returncode}"
