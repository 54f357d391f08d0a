"""Which signals a child hears, and as what: the rewrite map, its stages, group or process."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pairun.base.durations import parse_duration
from pairun.base.signals import GRACE_SIGNALS

# A fault in our own process must end it, and the two that Python ignores would come back to us
# from our own writes. A background process of a terminal is stopped by the last two: not us.
_OURS = {
    signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS,
    signal.SIGABRT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTTIN, signal.SIGTTOU,
}  # fmt: skip
CATCHABLE = frozenset(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
TAKEN = frozenset(CATCHABLE - _OURS)
"""The signals that wait for our loop; each but SIGCHLD goes on to the child."""

LATEST_STEP = 0.8
"""The part of the command's time after which every step of a rewritten stop has been sent."""


class Step(NamedTuple):
    """A signal that is sent some seconds after the one that came."""

    after_s: float
    number: int


# The group of a session leader is an orphaned one: the kernel does not stop it for a SIGTSTP that
# it does not catch (setpgid(2)), so it is stopped for good, as dumb-init does.
_BY_DEFAULT: Mapping[int, tuple[Step, ...]] = {signal.SIGTSTP: (Step(0.0, signal.SIGSTOP),)}


class Forwarding(NamedTuple):
    """What becomes of a signal that came to us.

    Attributes:
        to_group: whether the child's whole group hears it, or the child alone.
        rewrite: signal to what is sent in its place, step by step; nothing for an empty one.
        only: the signals that are passed on at all, None for every one.
    """

    to_group: bool = True
    rewrite: Mapping[int, tuple[Step, ...]] = {}
    only: frozenset[int] | None = None

    def steps(self, number: int) -> tuple[Step, ...]:
        """What is sent for a signal, in order of time."""
        if self.only is not None and number not in self.only:
            return ()
        found = self.rewrite.get(number, _BY_DEFAULT.get(number))
        return (Step(0.0, number),) if found is None else found


# What our own processes know what to do with; the rest is for a command that is not there yet, or
# no more, and would end them.
_HEARD = GRACE_SIGNALS | {signal.SIGHUP, signal.SIGTSTP, signal.SIGCONT}
EVERYTHING = Forwarding()
TO_TASKS = Forwarding(only=_HEARD)
# A stop that comes now is news for the one who shares the time out, not for a handler.
TO_HANDLERS = Forwarding(to_group=False, only=_HEARD)
NOTHING = Forwarding(to_group=False, only=frozenset())
"""For a process of ours whose time is bounded anyway."""


def read_forwarding(signals: object, signals_to: object) -> Forwarding:
    """The forwarding that the arguments of ``user_command`` ask for.

    Args:
        signals: signal to a signal, or to a list of signals and waits; null for as it came.
        signals_to: ``group`` or ``process``, null for the group.

    Raises:
        ValueError: they make no sense; says why.
    """
    if signals_to not in (None, "group", "process"):
        raise ValueError(f"signals_to must be group or process, not {signals_to!r}")
    if not isinstance(signals, Mapping | None):
        raise ValueError(f"signals must be a mapping, not {signals!r}")  # noqa: TRY004 - of a file
    rewrite = {}
    for name, value in (signals or {}).items():
        number = _number(name)
        if number not in TAKEN or number == signal.SIGCHLD:
            raise ValueError(f"{name} is not passed on")
        if value is not None:
            rewrite[number] = tuple(_steps([value] if isinstance(value, str) else value))
    return Forwarding(signals_to != "process", rewrite)


def _steps(entries: object) -> Iterator[Step]:
    if not isinstance(entries, list) or (entries and _wait(entries[-1]) is not None):
        raise ValueError(f"{entries!r} is not a list of signals with waits between them")
    after_s = 0.0
    for entry in entries:
        wait = _wait(entry)
        if wait is None:
            yield Step(after_s, _number(entry))
        else:
            after_s += wait


def _wait(entry: object) -> float | None:
    return parse_duration(entry) if isinstance(entry, str) else None


def _number(name: object) -> int:
    if not isinstance(name, str) or name not in signal.Signals.__members__:
        raise ValueError(f"{name!r} is not a signal's name")
    return int(signal.Signals[name])
