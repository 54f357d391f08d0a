"""Reads dumps of stacks: where a rank's main thread was when somebody looked, and who was elsewhere.

Formats: Python's ``faulthandler`` (a watchdog, or a signal) and ``py-spy dump``.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pairun.diagnose.diagnosis import Evidence, of_line
from pairun.diagnose.lines import Line, Log
from pairun.diagnose.tracebacks import Frame
from pairun.incident.waitingplaces import WaitingPlace, odd_rank

_MAX_FRAMES = 120
_THREAD = re.compile(
    rb"(?:Current t|T)hread 0x[0-9a-f]+[^\n]{0,80}\(most recent call first\):"
    rb"|Thread (?:0x)?[0-9A-Fa-f]+ \((?:idle|active)[^)\n]{0,40}\)(?:: \"[^\"\n]{0,80}\")?"
)
_FRAME = re.compile(
    r'\s+File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>.+)'
    r"|\s+(?P<spied>\S.*?) \((?P<path>[^():]+):(?P<at>\d+)\)$"
)
_PROCESS = re.compile(rb"(?m)^Process (\d{1,8}): ")
"""How py-spy begins the dump of a process; with ``--subprocesses``, first that of the parent."""

_RANKS_PID = re.compile(rb"\blocal_rank: (?P<rank>\d{1,6}) \(pid: (?P<pid>\d{1,8})\)")
_OWN_PID = re.compile(
    rb"(?m)^\S{1,64}:(\d{1,8}):\d{1,8} \[\d+\] NCCL |\b[Pp][Ii][Dd][ =:]{1,2}(\d{2,8})\b"
)
_HEAD_BYTES = 1 << 16

_MAIN = "<module>"
_CRASHED = "Fatal Python error"
_PACKAGES = re.compile(
    r"(?:torch|jax|jaxlib|ray|mpi4py|horovod|deepspeed|accelerate|transformers|lightning|numpy"
    r"|pytorch_lightning|tensorflow|megatron|vllm|sglang)/"
)
"""How py-spy begins the path of a library: it leaves out the folder that Python searches."""

_OF_GROUP = re.compile(r"(?:^|/)(?:torch/distributed|horovod|deepspeed/comm|jax/experimental)/")
"""Where libraries wait for the other ranks."""


class Stack(NamedTuple):
    """Where the main thread of a rank was.

    Attributes:
        place: the innermost line of the job's own code.
        in_group: whether it waited for other ranks, in a library.
        shown: the line of the dump with that place.
        pids: the numbers of the processes in the dump; empty if it does not show them.
    """

    place: WaitingPlace
    in_group: bool
    shown: Evidence
    pids: tuple[int, ...] = ()


def last_stack(log: Log) -> Stack | None:
    """Where the main thread was at the last dump of a log; None if it has none.

    Of several processes in a dump, the first one counts: the others are its children.
    """
    data = log.data
    if b"(most recent call first)" not in data and b"Thread " not in data:
        return None
    processes = [(match.start(), int(match[1])) for match in _PROCESS.finditer(data)]
    last, first_pid = None, None
    for match in _THREAD.finditer(data):
        pid = next((pid for at, pid in reversed(processes) if at < match.start()), None)
        if last is not None and pid != first_pid:
            continue
        frames = _frames_after(log, match.start())
        is_main = bool(frames) and frames[-1][0].function == _MAIN
        if is_main and not any(_CRASHED in each.text for each in log.before(match.start(), 3)):
            last, first_pid = frames, pid
    pids = tuple(dict.fromkeys(pid for _, pid in processes))
    return None if last is None else _stack_of(last, pids, log)


class OddStack(NamedTuple):
    """The rank whose main thread was elsewhere.

    Attributes:
        label: its label.
        words: the fact for people.
    """

    label: str
    words: str


def odd_stack(stacks: Mapping[str, Stack]) -> OddStack | None:
    """The one rank that did something else while the others waited; None unless there is exactly one.

    Ranks that wait for others in a library do not hold them up. If all do, or none does, the one at
    another line than all others counts.

    Args:
        stacks: where each rank was, by label.
    """
    busy = [label for label, stack in stacks.items() if not stack.in_group]
    if len(busy) == 1 and len(stacks) > 1:
        others = Counter(s.place.words() for s in stacks.values() if s.in_group)
        where = stacks[busy[0]].place.words()
        return OddStack(busy[0], f"{busy[0]} is at {where}, the others wait at {_most(others)}")
    if odd := odd_rank({label: stack.place for label, stack in stacks.items()}):
        return OddStack(odd.label, odd.words)
    return None


def _most(counts: Counter[str]) -> str:
    return counts.most_common(1)[0][0]


def _frames_after(log: Log, at: int) -> list[tuple[Frame, Line]]:
    """The frames of the thread whose header is at an offset, each with its line, innermost first."""
    frames: list[tuple[Frame, Line]] = []
    start = log.data.rfind(b"\n", 0, at)
    header = next(log.after(start, 1), None) if start >= 0 else log.first()
    for line in log.after(at, _MAX_FRAMES):
        if header is not None and line.source != header.source:
            continue
        if (match := _FRAME.match(line.text)) is None:
            break
        file, number = match["file"] or match["path"], match["line"] or match["at"]
        frames.append((Frame(file, int(number), match["function"] or match["spied"]), line))
    return frames


def _stack_of(
    frames: Sequence[tuple[Frame, Line]], pids: tuple[int, ...], log: Log
) -> Stack | None:
    own = next((n for n, (frame, _) in enumerate(frames) if not _is_library(frame)), None)
    if own is None:
        return None
    frame, line = frames[own]
    place = WaitingPlace(frame.file, frame.line, frames[0][0].function)
    in_group = any(_OF_GROUP.search(inner.file) for inner, _ in frames[:own])
    return Stack(place, in_group, of_line(log, line), pids)


def _is_library(frame: Frame) -> bool:
    if frame.is_library or _PACKAGES.match(frame.file):
        return True
    return "/" not in frame.file and frame.file.removesuffix(".py") in sys.stdlib_module_names


def pids_in(log: Log, rank: int | None) -> tuple[tuple[int, int], ...]:
    """The process numbers of ranks that a log prints: the number and the rank.

    Args:
        log: of a rank, or of a launcher.
        rank: of its writer; None for a launcher.
    """
    if rank is None:
        if b"local_rank: " not in log.data:
            return ()
        return tuple((int(m["pid"]), int(m["rank"])) for m in _RANKS_PID.finditer(log.data))
    own = {each for pair in _OWN_PID.findall(log.data[:_HEAD_BYTES]) for each in pair if each}
    return ((int(own.pop()), rank),) if len(own) == 1 else ()
