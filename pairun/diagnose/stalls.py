"""Where each rank of a job waits, by stacks, watchdogs and flight recorders; and who is elsewhere.

Stacks are those of Python's ``faulthandler`` (a watchdog, or a signal) and of ``py-spy dump``. PyTorch numbers
the collectives of a process group: a rank whose last number is lower than the others' is behind. Sources:
ProcessGroupNCCL.cpp (the watchdog's lines, versions 2.0 to 2.9), FlightRecorder.hpp (versions 1 to 2.10).
"""

from __future__ import annotations

import io
import pickle
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pairun.base.foreignjson import parse_json
from pairun.diagnose.diagnosis import of_line
from pairun.diagnose.lines import Line, Log
from pairun.diagnose.testimony import STACK, WAITING, Report
from pairun.diagnose.tracebacks import Frame

_TIMEOUT = re.compile(
    rb"(?:\[PG (?:ID )?(?P<group>\S+)[^\]\n]{0,80}\])?[^\n]{0,60}\[?Rank (?P<rank>\d+)\]?[^\n]{0,40}"
    rb"Watchdog caught collective operation timeout: Work\w+\((?:SeqNum=(?P<number>\d+), )?OpType=(?P<operation>\w+)"
    rb"[^\n]{0,160}?Timeout\(ms\)="
)
_STATUS = re.compile(
    rb"(?:\[PG ID (?P<group>\d+)[^\]\n]{0,80}?)?Rank (?P<rank>\d+)\][^\n]{0,300}?"
    rb"[Ll]ast enqueued (?:\w+ )?work: (?P<entered>-?\d+), last completed "
)
_GROUP = "0"
"""The group of watchdogs that name none."""

_RANK = re.compile(r"(\d+)(?:\.(?:pkl|pickle|json|bin))?$")

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

_PACKAGES = re.compile(
    r"(?:torch|jax|jaxlib|ray|mpi4py|horovod|deepspeed|accelerate|transformers|lightning|numpy"
    r"|pytorch_lightning|tensorflow|megatron|vllm|sglang)/"
)
"""How py-spy begins the path of a library: it leaves out the folder that Python searches."""

_OF_GROUP = re.compile(r"(?:^|/)(?:torch/distributed|horovod|deepspeed/comm|jax/experimental)/")
"""Where libraries wait for the other ranks."""


class Stall(NamedTuple):
    """What the ranks waited for.

    Attributes:
        number: the collective that the missing ranks did not enter.
        operation: its operation; may be empty.
        waiting: the ranks that entered it.
        missing: the ranks that did not; empty if all known ranks entered it, and none finished it.
        words: the fact for people.
        mismatch: whether the missing rank entered another kind of collective instead.
    """

    number: int
    operation: str
    waiting: tuple[int, ...]
    missing: tuple[int, ...]
    words: str
    mismatch: bool = False


def waits_in(log: Log) -> list[Report]:
    """What a log's watchdog lines report: one report for each rank and group."""
    words = (b"Watchdog caught", b"ast enqueued")
    if not any(word in log.data for word in words):
        return []
    lines = [line for line in log.data.split(b"\n") if any(word in line for word in words)]
    waits: dict[tuple[int, str], Report] = {}
    for match in filter(None, map(_TIMEOUT.search, lines)):
        rank, group = int(match["rank"]), _group(match)
        number = int(match["number"]) if match["number"] else None
        wait = Report(WAITING, rank, match["operation"].decode("ascii"), group, number=number)
        waits.setdefault((rank, group), wait)
    for match in filter(None, map(_STATUS.search, lines)):
        rank, group = int(match["rank"]), _group(match)
        if (rank, group) not in waits and (rank, _GROUP) in waits:
            group = _GROUP  # older watchdogs do not name the group
        wait = waits.get((rank, group), Report(WAITING, rank, "", group))
        waits[rank, group] = wait._replace(entered=int(match["entered"]))
    return list(waits.values())


def _group(match: re.Match[bytes]) -> str:
    return match["group"].decode("ascii", "replace") if match["group"] else _GROUP


def stall(waits: Sequence[Report], silent: Sequence[int] = ()) -> Stall | None:
    """Find the ranks that did not enter the collective in which the others wait.

    Args:
        waits: of all ranks; of the same rank and group the last one counts.
        silent: ranks whose logs report neither a collective nor an error.

    Returns:
        None if no group shows a stall.
    """
    groups = Counter(each.name for each in waits)
    ranked = (
        {w.rank or 0: w for w in waits if w.name == group} for group, _ in groups.most_common()
    )
    return next(filter(None, (_stall(each, silent) for each in ranked)), None)


def _stall(waits: Mapping[int, Report], silent: Sequence[int]) -> Stall | None:
    numbers = {rank: w.number for rank, w in waits.items() if w.number is not None}
    if not numbers:
        return None
    # a rank has entered the collective that it waits in and those that it enqueued
    entered: dict[int, int] = {}
    for rank, wait in waits.items():
        if known := [n for n in (wait.number, wait.entered) if n is not None]:
            entered[rank] = max(known)
    last = min(entered.values())
    is_behind = last < max(numbers.values())
    missing = [r for r in entered if is_behind and entered[r] == last]
    missing = sorted(missing or set(silent) - entered.keys())
    awaited = min(n for n in numbers.values() if n > last or not is_behind)
    waiting = sorted(numbers.keys() - set(missing))
    operation = next((waits[r].words for r in waiting if numbers[r] == awaited), "")
    if missing:
        named = f"rank{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))}"
        words = f"{named} never entered collective {awaited}"
        words += f" ({operation})" if operation else ""
        is_known = len(missing) <= max(1, len(waiting))
        return (
            Stall(awaited, operation, tuple(waiting), tuple(missing), words) if is_known else None
        )
    if len(set(numbers.values())) > 1 or len(numbers) < 2:
        return None
    (usual, _), *others = Counter(waits[rank].words for rank in numbers).most_common()
    if len(numbers) > 2 and len(others) == 1 and others[0][1] == 1:
        odd = next(rank for rank in waiting if waits[rank].words != usual)
        words = f"rank {odd} entered {others[0][0]} as collective {awaited}, the others {usual}"
        waiting.remove(odd)
        return Stall(awaited, usual, tuple(waiting), (odd,), words, mismatch=True)
    words = f"all known ranks entered collective {awaited} ({operation}), and none finished it"
    return Stall(awaited, operation, tuple(waiting), (), words)


class _PlainUnpickler(pickle.Unpickler):
    """Builds numbers, texts, lists and mappings only: a pickle can call any function."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"a dump names no class: {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("a dump refers to nothing outside")


def is_dump(head: bytes) -> bool:
    """Whether a file that begins with these bytes is a dump of PyTorch's flight recorder."""
    is_json = head.lstrip()[:1] == b"{" and b'"entries"' in head and b'"pg_config"' in head
    return is_json or (head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05")


def read_dump(data: bytes, name: str) -> list[Report]:
    """How far a flight recorder's rank got in each process group.

    Args:
        data: the dump: a pickle of plain values, or JSON.
        name: the file's name; it ends with the rank: ``nccl_trace_rank_3``.

    Raises:
        ValueError: it is not a dump, or it names objects.
    """
    try:
        is_json = data.lstrip()[:1] == b"{"
        dump = parse_json(data) if is_json else _PlainUnpickler(io.BytesIO(data)).load()
    except (
        pickle.UnpicklingError, ValueError, EOFError, AttributeError, LookupError, TypeError,
        RecursionError, MemoryError, ImportError, OverflowError,
    ) as e:  # fmt: skip
        raise ValueError(f"no flight recorder's dump: {e}") from e
    entries = dump.get("entries") if isinstance(dump, dict) else None
    if not isinstance(entries, list):
        raise ValueError("no flight recorder's dump: it has no entries")  # noqa: TRY004
    ranks = [dump[key] for key in ("rank", "global_rank") if isinstance(dump.get(key), int)]
    ranks += map(int, _RANK.findall(name))
    groups: dict[str, dict[int, dict[str, Any]]] = {}
    for entry in entries:
        if isinstance(entry, dict) and not entry.get("is_p2p"):
            group = entry.get("process_group")
            named = group[0] if isinstance(group, (list, tuple)) and group else None
            named = entry.get("pg_name", entry.get("pg_id", 0)) if named is None else named
            number = entry.get("collective_seq_id", entry.get("seq_id"))
            if isinstance(number, int):
                groups.setdefault(str(named), {})[number] = entry
    status = dump.get("pg_status")
    counts = status if isinstance(status, dict) else {}
    return [_wait(ranks[0], g, works, counts.get(g)) for g, works in groups.items() if ranks]


def _wait(rank: int, group: str, works: Mapping[int, Mapping[str, Any]], counts: Any) -> Report:
    """How far a rank got in a group.

    Args:
        rank: the rank.
        group: the group.
        works: its collectives, by number.
        counts: of the group, if the dump has them; gloo's collectives lack whether they have completed.
    """
    done = counts.get("last_completed_collective") if isinstance(counts, dict) else None
    if isinstance(done, int):
        left = [number for number in works if number > done]
    else:
        left = [number for number in works if works[number].get("state") != "completed"]
    waiting = min(left, default=None)
    name = str(works[waiting].get("profiling_name") or "") if waiting is not None else ""
    operation = name.rpartition(":")[2].upper()
    return Report(WAITING, rank, operation, group, number=waiting, entered=max(works))


def last_stack(log: Log) -> Report | None:
    """Where the main thread was at the last dump of a log; None if it has none.

    Of several processes in a dump, the first one counts: the others are its children.
    """
    if b"hread " not in log.data:
        return None
    processes = [(match.start(), match[1]) for match in _PROCESS.finditer(log.data)]
    last = None
    for match in _THREAD.finditer(log.data):
        pid = next((pid for at, pid in reversed(processes) if at < match.start()), None)
        if pid is not None and pid != processes[0][1]:
            continue
        frames = _frames_after(log, match.start())
        is_main = bool(frames) and frames[-1][0].function == "<module>"
        is_crash = any("Fatal Python error" in each.text for each in log.before(match.start(), 3))
        if is_main and not is_crash:
            last = frames
    own = next((n for n, (frame, _) in enumerate(last or ()) if not _is_library(frame)), None)
    if last is None or own is None:
        return None
    frame, line = last[own]
    place = f"{frame.file.rpartition('/')[2]}:{frame.line} ({last[0][0].function})"
    in_group = any(_OF_GROUP.search(inner.file) for inner, _ in last[:own])
    return Report(STACK, None, place, in_group=in_group, shown=of_line(log, line))


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


def _is_library(frame: Frame) -> bool:
    if frame.is_library or _PACKAGES.match(frame.file):
        return True
    return "/" not in frame.file and frame.file.removesuffix(".py") in sys.stdlib_module_names


def odd_stack(stacks: Mapping[str, Report]) -> tuple[str, str] | None:
    """The label of the one rank that did something else while the others waited, and the fact for people.

    Ranks that wait for others in a library do not hold them up. If all do, or none does, the one at
    another line than all others counts.

    Args:
        stacks: where each rank was, by label.

    Returns:
        None unless there is exactly one.
    """
    odd = [label for label, stack in stacks.items() if not stack.in_group]
    lines = {label: stack.words.partition(" ")[0] for label, stack in stacks.items()}
    if len(odd) != 1 and len(stacks) > 2 and len(set(lines.values())) == 2:
        counts = Counter(lines.values())
        odd = [label for label, line in lines.items() if counts[line] == 1]
    others = Counter(stack.words for label, stack in stacks.items() if label not in odd)
    if len(odd) != 1 or not others:
        return None
    words, usual = stacks[odd[0]].words, others.most_common(1)[0][0]
    return odd[0], f"{odd[0]} is at {words}, the others wait at {usual}"
