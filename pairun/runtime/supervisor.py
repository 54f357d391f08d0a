"""The supervisor: one child at a time, and every process that descends from us.

All signals are blocked for good and taken from one loop (sigwaitinfo(2)), so nothing ever runs in
a signal handler. What is not ours to decide goes to the child's process group.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping

from pairun.runtime.grace import Grace
from pairun.runtime.processes import descendants, group_lives, session_groups

STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})
"""Tell us to end; the grace time starts with the first."""

DRAIN_S = 3.0
"""What the command left in the background may still do after the command's own end."""

TERM_S = 5.0
"""Between TERM and KILL, for what outlives its drain."""

KILL_S = 1.0
"""How long we wait for what was killed; the kernel may hold it."""

POLL_S = 0.25
"""How often we look for the end of processes that are not our children."""

SWEEP_S = 2.0
"""Between TERM and KILL, for whatever is left when we end."""

# A fault in our own process must end it, and the two that Python ignores would come back to us
# from our own writes. A background process of a terminal is stopped by the last two: not us.
_OURS = {
    signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS,
    signal.SIGABRT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTTIN, signal.SIGTTOU,
}  # fmt: skip
_CATCHABLE = frozenset(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
TAKEN = frozenset(_CATCHABLE - _OURS)
"""The signals that wait for the loop; each but SIGCHLD goes to the child's group."""


def block_signals() -> None:
    """Keep every signal for the loop, from the first moment on."""
    signal.pthread_sigmask(signal.SIG_BLOCK, TAKEN)
    for number in (signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)


class Supervisor:
    """Starts children one after the other and leaves none behind.

    Args:
        grace: the clock that the first stop signal starts.
        say: takes one line for people.
    """

    def __init__(self, grace: Grace, say: Callable[[str], None]) -> None:
        self.grace = grace
        self.child: int | None = None
        self._say = say
        self._ended: dict[int, int] = {}
        self._alone = True

    # --- one child ---

    def start(self, argv: list[str], env: Mapping[str, str], *, held: Iterable[int] = ()) -> int:
        """Start a child in a session of its own, with signals as a program expects them.

        Args:
            argv: the program and its arguments.
            env: its whole environment.
            held: signals that stay blocked until the child itself is ready for them.

        Raises:
            OSError: the program cannot be executed.
        """
        self.child = os.posix_spawn(
            argv[0], argv, env, setsid=True, setsigmask=held, setsigdef=_CATCHABLE
        )
        return self.child

    def wait(self, child: int, limit_s: Callable[[], float | None], *, group: bool = True) -> int:
        """Wait for a child, pass signals on, and kill its group when its time is over.

        Args:
            child: what `start` returned.
            limit_s: seconds until KILL, None for no limit; asked again after every event.
            group: signals go to the whole group, else to the child alone.

        Returns:
            Its exit code, 128+n when signal n ended it.
        """
        killed = False
        while (status := self._take(child)) is None:
            left = limit_s()
            if left == 0.0:
                if not killed:
                    self._say("the time is over: killed what is still running")
                killed = True
                _signal_groups((child,), signal.SIGKILL)
                left = KILL_S
            number = self._next_signal(left)
            if number is not None:
                self._pass_on(number, child, group=group)
        self.child = None
        return status if status >= 0 else 128 - status

    def settle(self, session: int) -> None:
        """See the rest of an ended child's session out: drain, TERM, KILL.

        When we were told to stop, the rest got its TERM with the child and keeps the whole time
        that the command has: a shell dies at once of the signal for which its program saves
        a checkpoint.
        """
        stage, until = "drain", time.monotonic() + DRAIN_S
        while groups := self._living_groups(session):
            now, left = time.monotonic(), self.grace.for_command_s()
            if stage == "drain" and left is not None:
                # groups of their own within the session have not heard of it yet
                _terminate(groups - {session})
                stage, until = "asked", now + left
            elif now >= until or (stage == "asked" and left == 0.0):
                if stage == "killed":
                    return
                if stage == "drain":
                    self._say("the command is over; ending what it left in the background")
                    _terminate(groups)
                else:
                    _signal_groups(groups, signal.SIGKILL)
                stage, until = (
                    ("asked", now + TERM_S) if stage == "drain" else ("killed", now + KILL_S)
                )
            number = self._next_signal(min(POLL_S, max(0.0, until - now)))
            if number is not None:
                self._pass_on(number, session, group=True)

    def sweep(self) -> None:
        """End every process that still descends from us: TERM, a short wait, KILL."""
        self._reap()
        left = self.grace.left_s()
        until = time.monotonic() + (SWEEP_S if left is None else min(SWEEP_S, left / 2))
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._alone or not self._signal_all(number):
                return
            self._reap_until(until)
            until = time.monotonic() + KILL_S

    def pending_stop(self) -> bool:
        """Whether we were told to stop, up to this moment."""
        while (number := self._next_signal(0.0)) is not None:
            if number in STOP_SIGNALS:
                self._note_stop(number)
        return self.grace.signal is not None

    # --- signals and children ---

    def _next_signal(self, timeout_s: float | None) -> int | None:
        if timeout_s is None:
            return int(signal.sigwait(TAKEN))
        taken = signal.sigtimedwait(TAKEN, timeout_s)
        return None if taken is None else taken.si_signo

    def _pass_on(self, number: int, child: int, *, group: bool) -> None:
        if number == signal.SIGCHLD:
            return
        if number in STOP_SIGNALS:
            self._note_stop(number)
        if group:
            _signal_groups((child,), number)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)

    def _note_stop(self, number: int) -> None:
        if self.grace.signal is None:
            self.grace.begin(number)
            self._say(
                f"told to stop by {signal.Signals(number).name}; "
                f"the grace time is {self.grace.seconds:g} s"
            )

    def _take(self, child: int) -> int | None:
        self._reap()
        return self._ended.pop(child, None)

    def _reap_until(self, until: float) -> None:
        """Go on reaping until nothing descends from us, or the time has come."""
        self._reap()
        while not self._alone and (left := until - time.monotonic()) > 0:
            self._next_signal(left)
            self._reap()

    def _reap(self) -> None:
        """Wait for everything that has ended, orphans that fell to us included."""
        self._alone = False
        while True:
            try:
                # without WUNTRACED: a stopped process has not ended
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._alone = True
                return
            if pid == 0:
                return
            if pid == self.child:
                self._ended[pid] = os.waitstatus_to_exitcode(status)

    # --- groups ---

    def _living_groups(self, session: int) -> set[int]:
        self._reap()
        if self._alone and not group_lives(session):
            return set()
        return session_groups(session)

    def _signal_all(self, number: int) -> bool:
        """Signal all that descends from us; false when there is nothing."""
        if os.getpid() == 1:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, number)
            return True
        found = descendants(os.getpid())
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        return bool(found)


def _signal_groups(groups: Iterable[int], number: int) -> None:
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _terminate(groups: Iterable[int]) -> None:
    _signal_groups(groups, signal.SIGTERM)
    # a stopped process acts on it only when it is continued
    _signal_groups(groups, signal.SIGCONT)
