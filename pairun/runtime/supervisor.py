"""The supervisor: runs one child at a time, and ends all its descendants.

All signals stay blocked and one loop takes them (sigwaitinfo(2)), so no code runs in a signal
handler. The supervisor forwards signals to the child's process group.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pairun.base.forwarding import (
    CATCHABLE,
    EVERYTHING,
    LATEST_STEP,
    OF_OWN_WRITES,
    Forwarding,
)
from pairun.base.grace import Grace
from pairun.base.processes import (
    child_stopped,
    descendants,
    group_lives,
    group_stopped,
    session_groups,
)
from pairun.base.signals import GRACE_SIGNALS
from pairun.runtime.workingdirectory import WorkingDirectory

_DRAIN_S = 3.0
"""Seconds that the command's background processes may run after the command's end."""

TERM_S = 5.0
"""Seconds between TERM and KILL for background processes."""

KILL_S = 1.0
"""Seconds to wait for killed processes; the kernel may hold them."""

_POLL_S = 0.25
"""Seconds between two checks for processes whose SIGCHLD goes to another parent."""

SWEEP_S = 2.0
"""Seconds between TERM and KILL for processes that remain when PID 1 exits."""

SPAWN_S = 5.0
"""Seconds for which to retry the start of a child while the process limit is reached."""

SPAWN_POLL_S = 0.05

_MAX_SHOWN = 120
"""How many characters of a signal's sender's command line are shown."""

EXIT_S = 0.1
"""The part of the grace time that PID 1's exit needs, in seconds."""


def block_signals() -> None:
    """Block every signal that the loop takes."""
    signal.pthread_sigmask(signal.SIG_BLOCK, CATCHABLE)


class Supervisor:
    """Starts one child after the other, and ends every descendant.

    Args:
        grace: the grace time, which the first stop signal starts.
        say: takes one line for people.
        record: takes a journal record: its type and its fields.
        directory: where children start; None for this process's directory.
        outside: who stops this container from outside, for people; None if unknown.

    Attributes:
        grace: the same clock.
        child: the running child, or None.
        terminated_from_outside: whether a SIGTERM came from outside the PID namespace.
    """

    def __init__(
        self,
        grace: Grace,
        say: Callable[[str], None],
        record: Callable[..., None] = lambda _type, **_fields: None,
        directory: WorkingDirectory | None = None,
        outside: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.grace = grace
        self.child: int | None = None
        self.terminated_from_outside = False
        self._say = say
        self._record = record
        self._directory = directory
        self._outside = outside
        self._ended: dict[int, int] = {}
        self._alone = True
        self._later: list[tuple[float, int, int]] = []
        self._is_paused = False

    # --- one child ---

    def start(
        self,
        argv: list[str],
        env: Mapping[str, str],
        *,
        held: Iterable[int] = (),
        streams: tuple[int, int] | None = None,
    ) -> int:
        """Start a child in a new session, with default signal handling.

        While the process limit is reached, it reaps ended processes and retries.

        Args:
            argv: the program and its arguments.
            env: its whole environment.
            held: signals that stay blocked until the child unblocks them.
            streams: its standard output and error; None for ours.

        Raises:
            OSError: the program cannot be executed.
        """
        actions = [(os.POSIX_SPAWN_DUP2, fd, n) for n, fd in enumerate(streams or (), 1)]
        self._later.clear()
        self._is_paused = False
        until = time.monotonic() + SPAWN_S
        while True:
            try:
                with self._directory.entered() if self._directory else contextlib.nullcontext():
                    self.child = os.posix_spawn(
                        argv[0], argv, env,
                        file_actions=actions, setsid=True, setsigmask=held, setsigdef=CATCHABLE,
                    )  # fmt: skip
            except OSError as e:
                out_of_time = time.monotonic() >= until or self.grace.for_handlers_s() == 0.0
                if e.errno not in (errno.EAGAIN, errno.ENOMEM) or out_of_time:
                    raise
                signal.sigtimedwait({signal.SIGCHLD}, SPAWN_POLL_S)
                self._reap()
            else:
                return self.child

    def wait(
        self,
        child: int,
        limit_s: Callable[[], float | None],
        *,
        forwarding: Forwarding = EVERYTHING,
    ) -> int:
        """Wait for a child, forward signals to it, and kill its group at the time limit.

        Args:
            child: the PID that `start` returned.
            limit_s: returns the seconds until KILL, None for no limit; called after every event.
            forwarding: which signals to forward, and how.

        Returns:
            Its exit code; 128+n if signal n ended it.
        """
        killed = False
        while (status := self._take(child)) is None:
            left = limit_s()
            if left == 0.0:
                if not killed:
                    self._say("time is up: killed what is still running")
                elif self.grace.left_s() == 0.0:
                    self._say("the kernel holds a killed process; not waiting for it")
                    status = -signal.SIGKILL
                    break
                killed = True
                _signal_groups((child,), signal.SIGKILL)
                left = min(KILL_S, self.grace.left_s() or KILL_S)
            self._turn(left, child, forwarding)
        self.child = None
        return status if status >= 0 else 128 - status

    def settle(self, session: int, *, forwarding: Forwarding = EVERYTHING) -> None:
        """End the background processes of a child's session: drain, TERM, KILL.

        During a stop they got TERM together with the child, and keep the command's whole time: a
        shell dies at once of the TERM on which its program saves a checkpoint.

        Args:
            session: the PID that `start` returned.
            forwarding: which signals to forward; they go to the group, since the child has ended.
        """
        to_group = forwarding._replace(to_group=True)
        stage, until = "drain", time.monotonic() + _DRAIN_S
        while groups := self._living_groups(session):
            now, left = time.monotonic(), self.grace.for_command_s()
            if stage == "drain" and left is not None:
                # other groups of the session have not received TERM yet; if only the child has,
                # no group has
                _terminate(groups - ({session} if forwarding.to_group else set()))
                stage, until = "asked", now + left
            elif now >= until or (stage == "asked" and left == 0.0):
                if stage == "killed":
                    return
                if stage == "drain":
                    self._say("the command has ended; ending its background processes")
                    _terminate(groups)
                else:
                    _signal_groups(groups, signal.SIGKILL)
                stage, until = (
                    ("asked", now + TERM_S) if stage == "drain" else ("killed", now + KILL_S)
                )
            self._turn(min(_POLL_S, max(0.0, until - now)), session, to_group)

    def sweep(self) -> None:
        """End every remaining descendant: TERM, a short wait, KILL."""
        self._reap()
        for number, longest_s in ((signal.SIGTERM, SWEEP_S), (signal.SIGKILL, KILL_S)):
            if self._alone or not self._signal_all(number):
                return
            left = self.grace.left_s()
            # half of the time for processes that end on TERM, half for the others
            share_s = longest_s if left is None else max(0.0, left - EXIT_S) / 2
            self._reap_until(time.monotonic() + min(longest_s, share_s), number)

    def pending_stop(self) -> bool:
        """Whether a stop signal has arrived."""
        while (info := _next_signal(0.0)) is not None:
            self._note(info)()
        return self.grace.signal is not None

    # --- signals and children ---

    def _turn(self, limit_s: float | None, child: int, forwarding: Forwarding) -> None:
        """Wait for the next signal or the next step of an earlier one, and forward it."""
        if self._later:
            due_s = max(0.0, self._later[0][0] - time.monotonic())
            limit_s = due_s if limit_s is None else min(limit_s, due_s)
        info = _next_signal(limit_s)
        if info is not None and info.si_signo == signal.SIGCHLD:
            self._continue_own(child, forwarding)
        elif info is not None and not _of_own_write(info):
            self._pass_on(info, child, forwarding)
        while self._later and self._later[0][0] <= time.monotonic():
            _, origin, number = self._later.pop(0)
            self._say(f"sending {_name(number)}, the next step of {_name(origin)}")
            self._send(number, child, forwarding, wake=origin in GRACE_SIGNALS)

    def _pass_on(self, info: signal.struct_siginfo, child: int, forwarding: Forwarding) -> None:
        origin = info.si_signo
        # Look up the sender first, because the signal may end it. Report it last, because the
        # reader of our lines may be slow.
        report = self._note(info)
        left = self.grace.for_command_s()
        longest = float("inf") if left is None else LATEST_STEP * left
        repeated = any(first == origin for _, first, _ in self._later)
        now = time.monotonic()
        for after_s, number in forwarding.steps(origin):
            if after_s == 0.0:
                self._send(number, child, forwarding, wake=origin in GRACE_SIGNALS)
            elif not repeated:
                # A second signal does not change the steps of the first one.
                self._later.append((now + min(after_s, longest), origin, number))
        self._later.sort()
        report()

    def _continue_own(self, child: int, forwarding: Forwarding) -> None:
        """Continue a process of pairun that another process has stopped: no one else does."""
        if forwarding.only is not None and not self._is_paused and child_stopped(child):
            self._say("continued a process of pairun that was stopped (SIGSTOP)")
            _signal_groups((child,), signal.SIGCONT)

    def _send(self, number: int, child: int, forwarding: Forwarding, *, wake: bool) -> None:
        if number in (signal.SIGSTOP, signal.SIGCONT):
            self._is_paused = number == signal.SIGSTOP
        if forwarding.to_group or child != self.child:
            _signal_groups((child,), number)
        else:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, number)
        if wake and group_stopped(child):
            _signal_groups((child,), signal.SIGCONT)

    def _note(self, info: signal.struct_siginfo) -> Callable[[], None]:
        """Start the grace time with the first stop signal; returns a function that reports it."""
        number = info.si_signo
        if number not in GRACE_SIGNALS:
            return lambda: None
        words, fields = _sender_of(info)
        # Outside is another PID namespace: the platform, not the job.
        if number == signal.SIGTERM and fields["sender"] == "outside":
            self.terminated_from_outside = True
        first = self.grace.signal is None
        self.grace.begin(number)

        def report() -> None:
            grace = f"is {self.grace.seconds:g} s" if first else "has started already"
            stopper = self._outside() if fields["sender"] == "outside" else None
            whence = words if stopper is None else f"from {stopper}"
            self._say(f"received {_name(number)} {whence}; the grace time {grace}")
            self._record("stop", signal=_name(number), **fields)

        return report

    def _take(self, child: int) -> int | None:
        self._reap()
        return self._ended.pop(child, None)

    def _reap_until(self, until: float, number: int) -> None:
        """Reap until there are no descendants or the time is over."""
        self._reap()
        while not self._alone and (left := until - time.monotonic()) > 0:
            info = _next_signal(min(left, _POLL_S) if number == signal.SIGKILL else left)
            if info is not None:
                self._note(info)()
            elif number == signal.SIGKILL and not self._signal_all(number):
                # processes forked during the first KILL are gone now, too
                return
            self._reap()

    def _reap(self) -> None:
        """Reap all ended processes, including adopted orphans."""
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
        """Signal every descendant; returns whether there are any."""
        numbers = [number] if number == signal.SIGKILL else [number, signal.SIGCONT]
        # As PID 1 we own every process; otherwise the PID namespace contains other processes.
        pids = {-1} if os.getpid() == 1 else descendants(os.getpid())
        for pid in pids:
            with contextlib.suppress(OSError):
                for each in numbers:
                    os.kill(pid, each)
        return bool(pids)


def _next_signal(timeout_s: float | None) -> signal.struct_siginfo | None:
    if timeout_s is None:
        return signal.sigwaitinfo(CATCHABLE)
    return signal.sigtimedwait(CATCHABLE, timeout_s)


def _of_own_write(info: signal.struct_siginfo) -> bool:
    """Whether our own write raised the signal: the kernel names the writer as its sender."""
    return info.si_signo in OF_OWN_WRITES and info.si_pid == os.getpid()


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _signal_groups(groups: Iterable[int], number: int) -> None:
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _terminate(groups: Iterable[int]) -> None:
    _signal_groups(groups, signal.SIGTERM)
    # a stopped process handles TERM only after it is continued
    _signal_groups(groups, signal.SIGCONT)


def _sender_of(info: signal.struct_siginfo) -> tuple[str, dict[str, Any]]:
    """The sender of a signal (sigaction(2): si_code, si_pid, si_uid): for people, for the journal.

    A sender in another PID namespace, such as the container's engine, has the PID 0.
    """
    if info.si_code > 0:
        return "from the kernel", {"sender": "kernel"}
    if info.si_pid == 0:
        return "from outside this container", {"sender": "outside", "uid": info.si_uid}
    fields: dict[str, Any] = {"sender": "process", "pid": info.si_pid, "uid": info.si_uid}
    cmdline = b""
    with contextlib.suppress(OSError), open(f"/proc/{info.si_pid}/cmdline", "rb") as f:
        cmdline = f.read(4096)
    text = cmdline.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    text = "".join(c if c.isprintable() else "?" for c in text)
    if len(text) > _MAX_SHOWN:
        text = text[: _MAX_SHOWN - 3] + "..."
    if text:
        fields["command"] = text
    return f"from process {info.si_pid} ({text or 'command unknown'})", fields
