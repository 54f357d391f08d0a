"""Which signals are forwarded to a child, and how: rewritten, in steps, to its group or alone."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pairun.base.durations import parse_duration
from pairun.base.signals import GRACE_SIGNALS

CATCHABLE = frozenset(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
"""The signals that our loop takes; each except SIGCHLD is forwarded to the child.

A fault of our own process ends it even if its signal is blocked (sigprocmask(2)). If another
process sends such a signal, it is meant for the command.
"""

OF_OWN_WRITES = frozenset({signal.SIGPIPE, signal.SIGXFSZ})
"""The signals that our own writes raise: they come from our PID and are not forwarded."""

LATEST_STEP = 0.8
"""The part of the command's time within which all steps of a rewritten stop are sent."""


class SignalStep(NamedTuple):
    """A signal that is sent some seconds after the original one."""

    after_s: float
    number: int


# The group of a session leader is orphaned, and the kernel does not stop it on the terminal's
# signals (setpgid(2)), so it gets SIGSTOP, as with dumb-init.
_STOP = (SignalStep(0.0, signal.SIGSTOP),)
_BY_DEFAULT: Mapping[int, tuple[SignalStep, ...]] = {
    signal.SIGTSTP: _STOP, signal.SIGTTIN: _STOP, signal.SIGTTOU: _STOP,
}  # fmt: skip


class Forwarding(NamedTuple):
    """How signals are forwarded.

    Attributes:
        to_group: whether the child's whole group gets them, or only the child.
        rewrite: signal to the steps that replace it; an empty list drops it.
        only: the signals that are forwarded; None for all.
    """

    to_group: bool = True
    rewrite: Mapping[int, tuple[SignalStep, ...]] = {}
    only: frozenset[int] | None = None

    def steps(self, number: int) -> tuple[SignalStep, ...]:
        """The signals to send for a signal, in order of time."""
        if self.only is not None and number not in self.only:
            return ()
        steps = self.rewrite.get(number, _BY_DEFAULT.get(number))
        return (SignalStep(0.0, number),) if steps is None else steps


# The signals that our own processes handle; others are meant for the command and would end them.
_HANDLED = GRACE_SIGNALS | {signal.SIGHUP, signal.SIGTSTP, signal.SIGCONT}
EVERYTHING = Forwarding()
TO_TASKS = Forwarding(only=_HANDLED)
# Only the process that divides the time among handlers gets a stop signal, not the handlers.
TO_HANDLERS = Forwarding(to_group=False, only=_HANDLED)
NOTHING = Forwarding(to_group=False, only=frozenset())
"""For a process of pairun with a time limit."""


def read_forwarding(signals: object, signals_to: object) -> Forwarding:
    """Parse the forwarding from the arguments of ``user_command``.

    Args:
        signals: signal to a signal, or to a list of signals and waits; null forwards it unchanged.
        signals_to: ``group`` or ``process``; null for ``group``.

    Raises:
        ValueError: they are invalid; the message gives the reason.
    """
    if signals_to not in (None, "group", "process"):
        raise ValueError(f"signals_to must be group or process, not {signals_to!r}")
    if not isinstance(signals, Mapping | None):
        raise ValueError(f"signals must be a mapping, not {signals!r}")  # noqa: TRY004 - of a file
    rewrite = {}
    for name, value in (signals or {}).items():
        number = _number(name)
        if number not in CATCHABLE or number == signal.SIGCHLD:
            raise ValueError(f"{name} is not forwarded")
        if value is not None:
            rewrite[number] = tuple(_steps([value] if isinstance(value, str) else value))
    return Forwarding(signals_to != "process", rewrite)


def _steps(entries: object) -> Iterator[SignalStep]:
    if not isinstance(entries, list) or (entries and _wait(entries[-1]) is not None):
        raise ValueError(f"{entries!r} is not a list of signals with waits between them")
    after_s = 0.0
    for entry in entries:
        wait = _wait(entry)
        if wait is None:
            yield SignalStep(after_s, _number(entry))
        else:
            after_s += wait


def _wait(entry: object) -> float | None:
    return parse_duration(entry) if isinstance(entry, str) else None


def _number(name: object) -> int:
    if not isinstance(name, str) or name not in signal.Signals.__members__:
        raise ValueError(f"{name!r} is not the name of a signal")
    return int(signal.Signals[name])
