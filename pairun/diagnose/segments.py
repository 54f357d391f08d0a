"""The attempts in a log: a restarted job appends to the same log.

A log is cut where a launcher starts after an attempt ended. A banner alone starts no attempt: eight
ranks print it eight times. An exception alone ends none: a program may handle it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from pairun.diagnose.lines import HEADER, Line, Log
from pairun.diagnose.surroundings import is_progress

_MAX_ENDS = 16
_WINDOW = 1 << 16
_LAG = 2

_ENDED = re.compile(
    r"\bfailed \(exitcode: -?\d+\) local_rank|ChildFailedError|\[launch\.py:\d+:sigkill_handler\]"
    r"|exits with return code = |(?:mpirun|prterun|mpiexec) (?:detected|noticed) that"
    r"|^={5,}=* *BAD TERMINATION|srun: (?:error: .{0,200}: tasks? |[Ff]orcing job|[Tt]erminating)"
    r"|slurmstepd: error: \*\*\* |^Exited with exit code \d|^TERM_[A-Z]+:|^PS:\s*$"
    r"|=>> PBS: job killed|\bline \d+: +\d+ (?:Killed|Terminated|Aborted|Segmentation fault|Bus error)"
    r"|^wandb: (?:Synced|Find logs at)|Worker group \S+ FAILED|^(?:Command )?exited with (?:non-zero )?(?:status|code) "
)
"""A launcher, a scheduler or a shell reports that an attempt ended."""

_RAISED = re.compile(r"(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Interrupt)\b(?:: |\s*$)")
"""An exception: the attempt may have ended."""

_RESTARTED = re.compile(
    r"(?P<left>\d+)/\d+ attempts left; will restart worker group"
    r"|\brestart_count=(?P<count>[1-9]\d*)\b|\bRestarting (?:the )?(?:job|training|run)\b.{0,40}\b(?P<n>\d+)"
)
"""A launcher restarts the job in place; the number distinguishes the restarts."""

_LAUNCHED = re.compile(
    r"Setting OMP_NUM_THREADS environment variable for each process"
    r"|Starting elastic_operator with launch configs|\[(?:runner|launch)\.py:\d+:main\] (?:cmd = |WORLD INFO)"
    r"|The following values were not passed to `accelerate launch`|Started a local Ray instance"
    r"|^SLURM_JOB_?ID\s?[=:]|(?i:begin (?:of )?(?:slurm|pbs|torque|sge) pro?logue?)"
    r"|srun: job \d+ has been allocated resources|salloc: Granted job allocation"
)
"""A launcher or a scheduler starts an attempt."""

_BEGAN = re.compile(
    r"\*{3,} Running training \*{3,}|NCCL version \d|vLLM API server version|server_args=ServerArgs\("
    r"|Initializing distributed: GLOBAL_RANK: 0|^using world size: \d|Started server process \[\d+\]"
    r"|wandb: (?:Tracking run|Currently logged in)|-+ start training -+|This TensorFlow binary is optimized"
)
"""A framework starts; each rank may print it."""

_COUNTER = re.compile(
    rb"\b(?P<name>[Gg]lobal_step|[Ss]tep|[Ii]ter(?:ation)?|[Ee]poch)\b['\"]?\W{0,4}(?P<at>\d{1,12})\b"
)

WORDS = (
    "exitcode", "childfailed", "sigkill_handler", "return code", "detected that", "noticed that",
    "bad termination", "srun: ", "slurmstepd", "exited with", "term_", "pbs: job", " killed", "terminated",
    "aborted", "segmentation", "bus error", "wandb: ", "worker group", "error", "exception", "interrupt",
    "restart", "omp_num_threads", "elastic_operator", "runner.py", "launch.py", "accelerate launch",
    "ray instance", "slurm_job", "begin ", "salloc",
    "running training", "nccl version", "server version", "server_args", "global_rank", "world size",
    "server process", "start training", "tensorflow binary",
)  # fmt: skip
"""Lower-case words; a line with a mark contains one of them."""


_HEAD_LINES, _BLOCK_LINES, _MIN_BLOCK, _MIN_TEXT = 12, 16, 3, 8
_MAX_REPEATS = 64
_VALUES = re.compile(r"\b(?=[a-f]*\d)[\da-f]{6,}\b|\d+")
_VARIES = re.compile(r"[Tt]raceback|^\W+$|\b[A-Z]\w*Error\b|^ ")
"""Lines that do not distinguish a program's start from its failure."""


class Segment(NamedTuple):
    """One attempt.

    Attributes:
        start: offset of its first byte.
        end: offset after its last byte.
        why: why the log is cut at its start; empty for the first.
        anew: whether the whole job starts again, not its processes in place.
    """

    start: int
    end: int
    why: str
    anew: bool = False


class Mark(NamedTuple):
    """A line about the start or the end of an attempt.

    Attributes:
        at: offset of the line, or of the next one after a restart.
        kind: ``end``, ``header`` (of a traceback), ``raised``, ``restart``, ``launch`` or ``begin``.
        why: for people.
        key: distinguishes restarts; may be empty.
        source: the prefix of the line's writer; may be empty.
    """

    at: int
    kind: str
    why: str = ""
    key: str = ""
    source: str = ""


def mark_of(line: Line, end: int) -> Mark | None:
    """The mark that a line makes.

    Args:
        line: the line.
        end: offset after it.

    Returns:
        None if the line makes no mark.
    """
    text = line.text
    if match := _RESTARTED.search(text):
        key = next((f"{name}{value}" for name, value in match.groupdict().items() if value), "")
        return Mark(end + 1, "restart", "the launcher restarts the job", key)
    if _ENDED.search(text):
        return Mark(line.at, "end", source=line.source)
    if _LAUNCHED.search(text):
        why = f"a launcher starts: {text.strip()[:80]}"
        return Mark(line.at, "launch", why, source=line.source)
    if _BEGAN.search(text):
        return Mark(line.at, "begin", f"a program starts: {text.strip()[:80]}")
    if HEADER in text:
        return Mark(line.at, "header")
    if _RAISED.match(text):
        return Mark(line.at, "raised", source=line.source)
    return None


def phases(log: Log) -> list[Mark]:
    """Marks where pairun started the job's command again, as after a restart in place."""
    return [
        Mark(at, "restart", "pairun starts the command", str(at)) for at in log.command_starts[1:]
    ]


def setbacks(log: Log, marks: Iterable[Mark]) -> list[Mark]:
    """Marks where a step counter decreases after an attempt ended.

    Other ranks may lag by a step, and may start the next epoch after one rank failed.
    """
    out = []
    ends = [mark.at for mark in marks if mark.kind in ("end", "restart")]
    for at in ends[-_MAX_ENDS:]:
        before = _last_counter(log.data[max(0, at - _WINDOW) : at])
        after = _COUNTER.search(log.data, at, at + _WINDOW)
        if before and after and after["name"] == before[0] and int(after["at"]) + _LAG < before[1]:
            start = log.data.find(b"\n", at) + 1
            name = before[0].decode()
            why = f"{name} goes back from {before[1]} to {int(after['at'])}"
            out.append(Mark(start, "begin", why))
    return out


def _last_counter(data: bytes) -> tuple[bytes, int] | None:
    counters = [(each["name"], int(each["at"])) for each in _COUNTER.finditer(data)]
    return counters[-1] if counters else None


def _is_anew(launch: Mark, stopped: Iterable[str]) -> bool:
    """Whether what starts had stopped before: of several nodes, one may fail while others start."""
    return any(not source or source.startswith(launch.source) for source in stopped)


def cut(size: int, marks: Iterable[Mark]) -> list[Segment]:
    """Cut a log into its attempts.

    Args:
        size: of the log, in bytes.
        marks: of its lines, in any order.

    Returns:
        The attempts; they cover the log without gaps, and none is empty. None for an empty log.
    """
    starts: list[tuple[int, str, bool]] = [(0, "", False)]
    ended = False
    stopped: set[str] = set()
    restart = ""
    for mark in sorted(marks):
        if not 0 < mark.at < size:
            continue
        is_restart = mark.kind == "restart" and mark.key != restart
        if (
            is_restart
            or (mark.kind == "launch" and _is_anew(mark, stopped))
            or (mark.kind == "begin" and ended)
        ):
            if mark.at > starts[-1][0]:
                starts.append((mark.at, mark.why, mark.kind == "launch"))
            ended = False
            stopped.clear()
            restart = mark.key or restart
        ended = ended or mark.kind == "end"
        if mark.kind in ("end", "raised"):
            stopped.add(mark.source)
    ends = [start for start, _, _ in starts[1:]] + [size]
    return [
        Segment(start, end, why, anew)
        for (start, why, anew), end in zip(starts, ends, strict=True)
        if end > start
    ]


def recurrences(log: Log, marks: Iterable[Mark]) -> list[Mark]:
    """Marks where the first lines of the log repeat: a job script that runs again prints them again.

    Args:
        log: the log.
        marks: of its lines; the first end among them ends the log's first lines.
    """
    ends = (mark.at for mark in marks if mark.kind in ("end", "raised", "header"))
    until = min(ends, default=len(log.data))
    lines = [line for line in [log.line(0), *log.after(0, _HEAD_LINES)] if line.at < until]
    head = {shape: line for line in reversed(lines) if (shape := _shape(line))}
    out = []
    for first in reversed(head.values()):
        piece = max(_VALUES.split(first.text.strip()), key=len).encode()
        at = len(log.data)
        for _ in range(_MAX_REPEATS if len(piece) >= _MIN_TEXT else 0):
            at = log.data.rfind(piece, first.at + 1, at)
            line = log.line(at)
            if at < 0 or line.at == first.at:
                break
            block = {_shape(each) for each in [line, *log.after(line.at, _BLOCK_LINES)]}
            if len(block & head.keys()) >= _MIN_BLOCK and line.source == first.source:
                why = f"it begins again: {first.text.strip()[:80]}"
                out.append(Mark(line.at, "launch", why))
    return out


def _shape(line: Line) -> str:
    """A line's text without its numbers; empty if it cannot distinguish a program's start."""
    text = line.text.strip()
    if len(text) < _MIN_TEXT or _VARIES.search(line.text) or is_progress(line):
        return ""
    return _VALUES.sub("0", text)
