"""Finds where in its code each rank was, by a dump of its stacks, and who was elsewhere.

Formats of dumps: Python's ``faulthandler`` (a watchdog, or a signal) and ``py-spy dump``.
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

_MAIN = "<module>"
_CRASHED = "Fatal Python error"
_PACKAGES = re.compile(
    r"(?:torch|jax|jaxlib|ray|mpi4py|horovod|deepspeed|accelerate|transformers|lightning|numpy"
    r"|pytorch_lightning|tensorflow|megatron|vllm|sglang)/"
)
"""How py-spy begins the path of a library: it leaves out the folder that Python searches."""

_OF_GROUP = re.compile(r"(?:^|/)(?:torch/distributed|horovod|deepspeed/comm|jax/experimental)/")
"""Where libraries wait for the other ranks."""


class WaitingPlace(NamedTuple):
    """Where a rank waited.

    Attributes:
        file: the file of the job's own code.
        line: the line in it.
        function: the innermost function, of a library, such as ``barrier``.
    """

    file: str
    line: int
    function: str

    def words(self) -> str:
        """The place for people."""
        file = self.file.rpartition("/")[2]
        return f"{file}:{self.line} ({self.function})" if self.function else f"{file}:{self.line}"


class Stack(NamedTuple):
    """Where the main thread of a rank was.

    Attributes:
        place: the innermost line of the job's own code.
        in_group: whether it waited for other ranks, in a library.
        shown: the line of the dump with that place.
    """

    place: WaitingPlace
    in_group: bool
    shown: Evidence


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
    return None if last is None else _stack_of(last, log)


def odd_stack(stacks: Mapping[str, Stack]) -> tuple[str, str] | None:
    """The label of the one rank that did something else while the others waited, and the fact for people.

    Ranks that wait for others in a library do not hold them up. If all do, or none does, the one at
    another line than all others counts.

    Args:
        stacks: where each rank was, by label.

    Returns:
        None unless there is exactly one.
    """
    usual = Counter(s.place.words() for s in stacks.values() if s.in_group) or Counter(
        s.place.words() for s in stacks.values()
    )
    busy = [label for label, stack in stacks.items() if not stack.in_group]
    if len(busy) != 1:
        lines = Counter((s.place.file, s.place.line) for s in stacks.values())
        alone = [each for each, s in stacks.items() if lines[s.place.file, s.place.line] == 1]
        busy = alone if len(lines) == 2 and len(stacks) > 2 else []
    if len(busy) != 1 or len(stacks) < 2:
        return None
    where = stacks[busy[0]].place.words()
    others = next(words for words, _ in usual.most_common() if words != where)
    return busy[0], f"{busy[0]} is at {where}, the others wait at {others}"


def _frames_after(log: Log, at: int) -> list[tuple[Frame, Line]]:
    """The frames of the thread whose header is at an offset, each with its line, innermost first."""
    frames: list[tuple[Frame, Line]] = []
    header = log.line(at)
    for line in log.after(at, _MAX_FRAMES):
        if line.source != header.source:
            continue
        if (match := _FRAME.match(line.text)) is None:
            break
        file, number = match["file"] or match["path"], match["line"] or match["at"]
        frames.append((Frame(file, int(number), match["function"] or match["spied"]), line))
    return frames


def _stack_of(frames: Sequence[tuple[Frame, Line]], log: Log) -> Stack | None:
    own = next((n for n, (frame, _) in enumerate(frames) if not _is_library(frame)), None)
    if own is None:
        return None
    frame, line = frames[own]
    place = WaitingPlace(frame.file, frame.line, frames[0][0].function)
    in_group = any(_OF_GROUP.search(inner.file) for inner, _ in frames[:own])
    return Stack(place, in_group, of_line(log, line))


def _is_library(frame: Frame) -> bool:
    if frame.is_library or _PACKAGES.match(frame.file):
        return True
    return "/" not in frame.file and frame.file.removesuffix(".py") in sys.stdlib_module_names
