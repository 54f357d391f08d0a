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
_HEAD_LINES, _BLOCK_LINES, _MIN_BLOCK, _MIN_TEXT = 12, 16, 3, 8
_MAX_REPEATS = 64

_MARKS = {
    # a launcher restarts the job in place; the number distinguishes the restarts
    "restart": re.compile(
        r"(\d+)/\d+ attempts left; will restart worker group|\brestart_count=([1-9]\d*)\b"
        r"|\bRestarting (?:the )?(?:job|training|run)\b.{0,40}\b(\d+)"
    ),
    # a launcher, a scheduler or a shell reports that an attempt ended
    "end": re.compile(
        r"\bfailed \(exitcode: -?\d+\) local_rank|ChildFailedError|\[launch\.py:\d+:sigkill_handler\]"
        r"|exits with return code = |(?:mpirun|prterun|mpiexec) (?:detected|noticed) that"
        r"|^={5,}=* *BAD TERMINATION|srun: (?:error: .{0,200}: tasks? |[Ff]orcing job|[Tt]erminating)"
        r"|slurmstepd: error: \*\*\* |^Exited with exit code \d|^TERM_[A-Z]+:|^PS:\s*$|=>> PBS: job killed"
        r"|\bline \d+: +\d+ (?:Killed|Terminated|Aborted|Segmentation fault|Bus error)"
        r"|^wandb: (?:Synced|Find logs at)|Worker group \S+ FAILED"
        r"|^(?:Command )?exited with (?:non-zero )?(?:status|code) "
    ),
    # a launcher or a scheduler starts an attempt
    "launch": re.compile(
        r"Setting OMP_NUM_THREADS environment variable for each process"
        r"|Starting elastic_operator with launch configs|\[(?:runner|launch)\.py:\d+:main\] (?:cmd = |WORLD INFO)"
        r"|The following values were not passed to `accelerate launch`|Started a local Ray instance"
        r"|^SLURM_JOB_?ID\s?[=:]|(?i:begin (?:of )?(?:slurm|pbs|torque|sge) pro?logue?)"
        r"|srun: job \d+ has been allocated resources|salloc: Granted job allocation"
    ),
    # a framework starts; each rank may print it
    "begin": re.compile(
        r"\*{3,} Running training \*{3,}|NCCL version \d|vLLM API server version|server_args=ServerArgs\("
        r"|Initializing distributed: GLOBAL_RANK: 0|^using world size: \d|Started server process \[\d+\]"
        r"|wandb: (?:Tracking run|Currently logged in)|-+ start training -+|This TensorFlow binary is optimized"
    ),
    # an exception: the attempt may have ended
    "raised": re.compile(
        r"^(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Interrupt)\b(?:: |\s*$)|" + re.escape(HEADER)
    ),
}

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

_COUNTER = re.compile(
    rb"\b([Gg]lobal_step|[Ss]tep|[Ii]ter(?:ation)?|[Ee]poch)\b['\"]?\W{0,4}(\d{1,12})\b"
)
_VALUES = re.compile(r"\b(?=[a-f]*\d)[\da-f]{6,}\b|\d+")
_VARIES = re.compile(r"[Tt]raceback|^\W+$|\b[A-Z]\w*Error\b|^ ")
"""Lines that do not distinguish a program's start from its failure."""


class Segment(NamedTuple):
    """One attempt.

    Attributes:
        start: offset of its first byte.
        end: offset after its last byte.
        anew: whether the whole job starts again, not its processes in place.
    """

    start: int
    end: int
    anew: bool = False


class Mark(NamedTuple):
    """A line about the start or the end of an attempt.

    Attributes:
        at: offset of the line, or of the next one after a restart.
        kind: ``end``, ``raised``, ``restart``, ``launch`` or ``begin``.
        key: distinguishes restarts; of other kinds the prefix of the line's writer; may be empty.
    """

    at: int
    kind: str
    key: str = ""


def mark_of(line: Line, end: int) -> Mark | None:
    """The mark that a line makes; None if it makes none.

    Args:
        line: the line.
        end: offset after it.
    """
    for kind, pattern in _MARKS.items():
        if match := pattern.search(line.text):
            if kind == "restart":
                return Mark(end + 1, kind, f"{match.lastindex} {match[match.lastindex or 0]}")
            return Mark(line.at, kind, line.source)
    return None


def cut(size: int, marks: Iterable[Mark]) -> list[Segment]:
    """Cut a log into its attempts.

    Args:
        size: of the log, in bytes.
        marks: of its lines, in any order.

    Returns:
        The attempts; they cover the log without gaps, and none is empty. None for an empty log.
    """
    starts = [(0, False)]
    stopped: set[str] = set()
    ended, restart = False, ""
    for mark in sorted(marks):
        if not 0 < mark.at < size:
            continue
        # of several nodes, one may fail while others start
        anew = mark.kind == "launch" and any(not s or s.startswith(mark.key) for s in stopped)
        restarts = mark.kind == "restart" and mark.key != restart
        if anew or restarts or (mark.kind == "begin" and ended):
            if mark.at > starts[-1][0]:
                starts.append((mark.at, anew))
            ended, stopped = False, set()
            restart = mark.key if restarts else restart
        ended = ended or mark.kind == "end"
        if mark.kind in ("end", "raised"):
            stopped.add(mark.key)
    ends = [start for start, _ in starts[1:]] + [size]
    return [
        Segment(start, end, anew)
        for (start, anew), end in zip(starts, ends, strict=True)
        if end > start
    ]


def setbacks(log: Log, marks: Iterable[Mark]) -> list[Mark]:
    """Marks where a step counter decreases after an attempt ended.

    Other ranks may lag by a step, and may start the next epoch after one rank failed.
    """
    out = []
    ends = [mark.at for mark in marks if mark.kind in ("end", "restart")]
    for at in ends[-_MAX_ENDS:]:
        before = _COUNTER.findall(log.data, max(0, at - _WINDOW), at)
        after = _COUNTER.search(log.data, at, at + _WINDOW)
        if not before or not after or before[-1][0] != after[1]:
            continue
        if int(after[2]) + _LAG < int(before[-1][1]):
            out.append(Mark(log.data.find(b"\n", at) + 1, "begin"))
    return out


def recurrences(log: Log, marks: Iterable[Mark]) -> list[Mark]:
    """Marks where the first lines of the log repeat: a job script that runs again prints them again.

    Args:
        log: the log.
        marks: of its lines; the first end among them ends the log's first lines.
    """
    until = min((m.at for m in marks if m.kind in ("end", "raised")), default=len(log.data))
    lines = [line for line in [log.line(0), *log.after(0, _HEAD_LINES)] if line.at < until]
    head = {shape: line for line in reversed(lines) if (shape := _shape(line))}
    out = []
    for first in head.values():
        piece = max(_VALUES.split(first.text.strip()), key=len).encode()
        at = len(log.data)
        for _ in range(_MAX_REPEATS if len(piece) >= _MIN_TEXT else 0):
            at = log.data.rfind(piece, first.at + 1, at)
            line = log.line(at)
            if at < 0 or line.at == first.at:
                break
            block = {_shape(each) for each in [line, *log.after(line.at, _BLOCK_LINES)]}
            if len(block & head.keys()) >= _MIN_BLOCK and line.source == first.source:
                out.append(Mark(line.at, "launch"))
    return out


def _shape(line: Line) -> str:
    """A line's text without its numbers; empty if it cannot distinguish a program's start."""
    text = line.text.strip()
    if len(text) < _MIN_TEXT or _VARIES.search(line.text) or is_progress(line):
        return ""
    return _VALUES.sub("0", text)
