"""Finds the rank that did not enter the collective in which the others wait.

PyTorch numbers the collectives of a process group. A rank whose last number is lower than the
others' is behind. A rank that reports none while the others wait is missing. Sources:
ProcessGroupNCCL.cpp (the watchdog's lines, versions 2.0 to 2.9), FlightRecorder.hpp.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pairun.diagnose.lines import Log

DEFAULT_GROUP = "0"

_TIMEOUT = re.compile(
    rb"(?:\[PG (?:ID )?(?P<group>\S+)[^\]\n]{0,80}\])?[^\n]{0,60}\[?Rank (?P<rank>\d+)\]?[^\n]{0,40}"
    rb"Watchdog caught collective operation timeout: Work\w+\((?:SeqNum=(?P<number>\d+), )?OpType=(?P<operation>\w+)"
    rb"[^\n]{0,160}?Timeout\(ms\)="
)
_STATUS = re.compile(
    rb"(?:\[PG ID (?P<group>\d+)[^\]\n]{0,80}?)?Rank (?P<rank>\d+)\][^\n]{0,300}?"
    rb"[Ll]ast enqueued (?:\w+ )?work: (?P<enqueued>-?\d+), last completed (?:\w+ )?work: (?P<completed>-?\d+)"
)


class RankState(NamedTuple):
    """How far a rank got in the collectives of one process group.

    Attributes:
        rank: the rank.
        group: the process group's number.
        waiting: the collective in which it waits; None if it waits in none.
        operation: its operation, such as ``ALLREDUCE``; may be empty.
        enqueued: the last collective that it entered; None if unknown.
        completed: the last one that it finished; None if unknown.
    """

    rank: int
    group: str = DEFAULT_GROUP
    waiting: int | None = None
    operation: str = ""
    enqueued: int | None = None
    completed: int | None = None


class Stall(NamedTuple):
    """What the ranks waited for.

    Attributes:
        number: the collective that the missing ranks did not enter.
        operation: its operation; may be empty.
        waiting: the ranks that entered it.
        missing: the ranks that did not.
        all_entered: whether every known rank entered it, but none finished it.
        mismatch: whether the missing rank entered another kind of collective instead.
        words: the fact for people.
    """

    number: int
    operation: str
    waiting: tuple[int, ...]
    missing: tuple[int, ...]
    all_entered: bool
    words: str
    mismatch: bool = False


def states_in(log: Log) -> list[RankState]:
    """The states that a log's watchdog lines report; one for each rank and group."""
    data = log.data
    if b"atchdog" not in data and b"enqueued" not in data:
        return []
    states: dict[tuple[int, str], RankState] = {}
    for match in matches_near(_TIMEOUT, b"Watchdog caught", data):
        rank, group = int(match["rank"]), _group(match)
        if (rank, group) in states:
            continue
        states[rank, group] = RankState(
            rank, group, int(match["number"]) if match["number"] else None, match["operation"].decode("ascii")
        )  # fmt: skip
    for match in matches_near(_STATUS, b"ast enqueued", data):
        rank, group = int(match["rank"]), _group(match)
        # older watchdogs do not name the group
        key = (
            (rank, group)
            if (rank, group) in states
            else next((k for k in states if k[0] == rank and k[1] == DEFAULT_GROUP), (rank, group))
        )
        before = states.get(key, RankState(rank, group))
        states[key] = before._replace(
            enqueued=int(match["enqueued"]), completed=int(match["completed"])
        )
    return list(states.values())


def stall(states: Sequence[RankState], silent: Sequence[int] = ()) -> Stall | None:
    """Find the ranks that did not enter the collective in which the others wait.

    Args:
        states: of all ranks.
        silent: ranks whose logs report neither a collective nor an error.

    Returns:
        None if the states do not show a stall.
    """
    groups = Counter(s.group for s in states)
    for group, _ in groups.most_common():
        in_group = {s.rank: s for s in states if s.group == group}
        if result := _stall(in_group, silent):
            return result
    return None


def _stall(states: Mapping[int, RankState], silent: Sequence[int]) -> Stall | None:
    numbers = {rank: s.waiting for rank, s in states.items() if s.waiting is not None}
    if not numbers:
        return None
    # a rank has entered the collective that it waits in and those that it enqueued
    entered = {
        rank: max(s.waiting or -1, -1 if s.enqueued is None else s.enqueued)
        for rank, s in states.items()
        if s.waiting is not None or s.enqueued is not None
    }
    lowest, highest = min(numbers.values()), max(numbers.values())
    awaited = lowest
    behind = sorted(r for r, n in entered.items() if n < awaited)
    if not behind and lowest != highest:
        # different collectives: the rank in the earlier one never reached the later one
        awaited = highest
        behind = sorted(r for r, n in numbers.items() if n < awaited and entered[r] < awaited)
    missing = behind or sorted(set(silent) - entered.keys())
    waiting = sorted(set(numbers) - set(missing))
    operation = next((states[r].operation for r in waiting if states[r].waiting == awaited), "")
    if missing and len(missing) <= max(1, len(waiting)):
        named = _named(missing)
        words = f"{named} never entered collective {awaited}" + (
            f" ({operation})" if operation else ""
        )
        return Stall(awaited, operation, tuple(waiting), tuple(missing), False, words)
    if not missing and lowest == highest and (other := _other_operation(states, numbers)):
        odd, usual = other
        words = f"rank {odd} entered {states[odd].operation} as collective {awaited}, the others {usual}"
        waiting = [rank for rank in waiting if rank != odd]
        return Stall(awaited, usual, tuple(waiting), (odd,), False, words, mismatch=True)
    if not missing and len(numbers) > 1 and lowest == highest:
        words = f"all known ranks entered collective {awaited} ({operation}), and none finished it"
        return Stall(awaited, operation, tuple(waiting), (), True, words)
    return None


def _other_operation(
    states: Mapping[int, RankState], numbers: Mapping[int, int]
) -> tuple[int, str] | None:
    """The one rank in another kind of collective than the others, and the others' kind."""
    operations = Counter(states[rank].operation for rank in numbers)
    if len(numbers) < 3 or len(operations) != 2 or min(operations.values()) != 1:
        return None
    usual = operations.most_common(1)[0][0]
    return next(r for r in numbers if states[r].operation != usual), usual


def _named(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"


def _group(match: re.Match[bytes]) -> str:
    return (match["group"] or DEFAULT_GROUP.encode()).decode("ascii", "replace")


def matches_near(pattern: re.Pattern[bytes], word: bytes, data: bytes) -> Iterator[re.Match[bytes]]:
    """The matches of an expression in the lines that contain a word.

    Args:
        pattern: matches within one line; each match contains the word.
        word: the word.
        data: the log.
    """
    at = data.find(word)
    while at >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        yield from pattern.finditer(data, start, end)
        at = data.find(word, end)
