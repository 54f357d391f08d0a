"""Lines in which a launcher, a scheduler or a library names the rank that failed or is missing.

Sources: torch/distributed/elastic/multiprocessing/errors (the summary of a ChildFailedError) and api.py;
Open MPI's and PRRTE's help texts; MPICH's hydra; srun of Slurm; Lightning's child processes; DeepSpeed's
launcher/launch.py; torch/multiprocessing/spawn.py; torch's monitoredBarrier and TraceUtils.h; JAX's coordination service; Horovod's stall check.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from typing import NamedTuple

from pairun.diagnose.lines import Log

ENDED, MISSING = "ended", "missing"


class Testimony(NamedTuple):
    """What a line reports about a rank.

    Attributes:
        rank: the rank; None if the line names its process, host or executor.
        kind: `ENDED`: its process ended; `MISSING`: the others wait for it.
        words: the fact for people.
        exit_code: as a shell reports it; None if the line has none.
        at: offset of the line, in bytes.
        first: whether the launcher or library saw no earlier failure.
        by_launcher: whether a launcher reports it, which is none of the ranks.
        by_system: whether Kubernetes recorded it, with its time.
        name: what the line names instead of a rank: ``pid 702``, a host, ``executor-4``.
    """

    rank: int | None
    kind: str
    words: str
    exit_code: int | None = None
    at: int = 0
    first: bool = False
    by_launcher: bool = False
    name: str = ""
    by_system: bool = False

    @property
    def label(self) -> str:
        """What the line names, for people."""
        return f"rank {self.rank}" if self.rank is not None else self.name


_MAX_WORLD = 1 << 20
_SIGNALS = {
    b"Killed": 9,
    b"Terminated": 15,
    b"Segmentation fault": 11,
    b"Aborted": 6,
    b"Out Of Memory": 9,
    b"Bus error": 7,
}

_ROOT_CAUSE = re.compile(
    rb"Root Cause \(first observed failure\):(?:.|\n){0,400}?rank +: (?P<rank>\d+) \(local_rank: \d+\)"
    rb"(?:.|\n){0,200}?exitcode +: (?P<code>-?\d+)"
)
_ELASTIC = re.compile(
    rb"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<rank>\d+) \(pid: \d+\)"
)
_ELASTIC_LIST = re.compile(rb"\[\d+\]: time=\S+ worker_id=(?P<rank>\d+) exit_code=(?P<code>-?\d+)")
_OPEN_MPI_SIGNAL = re.compile(
    rb"(?:mpirun|mpiexec|prterun|prun|orterun) noticed that process (?:rank )?(?:\[[^\]]*,)?(?P<rank>\d+)\]? with PID \d+"
    rb" on node (?P<host>\S+) exited on\s+signal (?P<signal>\d+)"
)
_OPEN_MPI_CODE = re.compile(
    rb"Process name: \[(?:\[[\d,]+\]|[^\],]+),(?P<rank>\d+)\]\s+Exit code: +(?P<code>\d+)"
)
_HYDRA = re.compile(
    rb"= +RANK (?P<rank>\d+) PID \d+ RUNNING AT (?P<host>\S+)(?:.|\n){0,80}?"
    rb"(?:EXIT CODE: (?P<code>\d+)|KILLED BY SIGNAL: (?P<signal>\d+))"
)
_MPI_ABORT = re.compile(
    rb"(?:MPI_ABORT was invoked on rank|application called MPI_Abort\([^)\n]*\) - process) (?P<rank>\d+)"
)
_SRUN = re.compile(
    rb"srun: error: (?P<host>\S+): tasks? (?P<rank>\d+): (?:Exited with exit code (?P<code>\d+)"
    rb"|(?P<words>Killed|Terminated|Segmentation fault|Aborted|Out Of Memory|Bus error))"
)
_LIGHTNING = re.compile(
    rb"\[rank: (?P<rank>\d+)\] Child process with PID \d+ terminated with code (?P<code>-?\d+)"
)
_DEEPSPEED = re.compile(
    rb"'--local_rank=(?P<rank>\d+)'[^\n]{0,4000}\] exits with return code = (?P<code>-?\d+)"
)
_DEEPSPEED_NODE = re.compile(rb"num_local_procs=(?P<size>\d+), node_rank=(?P<node>\d+)")
_SPAWN = re.compile(
    rb"process (?P<rank>\d+) terminated with (?:signal (?P<name>SIG[A-Z0-9]+)|exit code (?P<code>\d+))"
    rb"|-- Process (?P<raised>\d+) terminated with the following error:"
)
_RAY_RAISED = re.compile(
    rb"RayTaskError\([^\n]{0,400}\brepr=[\w.<>-]{0,80}\((?:[^()\n]{0,80}\b)?rank=(?P<rank>\d+)"
    rb"|RayTaskError\([^\n]{0,200}\(pid=(?P<pid>\d+), "
)
_RAY_DIED = re.compile(
    rb"class_name: [^\n]{1,200}\n\s*actor_id: \w+\n(?:\s*name: [^\n]{0,200}\n)?\s*pid: (?P<pid>\d+)"
)
_RAY_KILLED = re.compile(
    rb"(?:Killing worker with task [^\n]{0,300}?\bpid[:=] ?|where the task \([^\n]{0,200}?\bpid=)(?P<pid>\d+)"
)
_EXECUTOR = re.compile(rb"Lost executor (?P<executor>\d+) on (?P<host>[\w.-]+):")
_NAMED_CHILD = re.compile(
    rb"(?i)\b(?:child|worker|process|actor|task|program|instance)(?: process)? (?:exited|died|ended|terminated|crashed|failed|killed)\b"
    rb"[^\n]{0,80}?\bname=(?P<name>[a-z][\w-]{0,40}\d)\b[^\n]{0,80}?\b(?:return_?code|exit_?code|status|rc)=(?P<code>-?[1-9]\d{0,2})\b"
)
"""How supervisors with structured logs report an end."""

_UNREACHED = re.compile(rb"target node: +(?P<host>[\w.-]+)")
_RAY_RANK = re.compile(rb"The worker with rank (?P<rank>\d+) (?:died|failed)")
_ANY_LAUNCHER = re.compile(
    rb"(?i)(?<![\w-])(?:rank|worker|process|trainer|replica|task|node|child)[ #:=_-]{0,2}\[?(?P<rank>\d{1,6})\]?"
    rb"(?: ?\([^()\n]{1,60}\))?[ :,-]{1,3}(?:has |was |unexpectedly )?"
    rb"(?:exited|died|ended|terminated|failed|crashed|killed|finished|returned)"
    rb"[^\n]{0,30}?(?:\b(?:code|status|rc)[ =:]{1,3}(?P<code>-?[1-9]\d{0,2})\b|\bsignal[ =:]{1,3}(?P<signal>\d{1,2})\b)"
)
"""How launchers of jobs' own report an end; the words of all others are known."""

_DUMP_FROM = re.compile(rb"dump signal due to a collective timeout from +rank (?P<rank>\d+)")
_BARRIER = re.compile(
    rb"Ranks? (?P<ranks>\d+(?:, ?\d+)*) failed to pass monitoredBarrier in (?P<ms>\d+) ms"
)
_NEVER_JOINED = re.compile(
    rb"ranks \[(?P<ranks>\d+(?:, ?\d+)*)\] are the lagging ranks that caused this timeout"
)
_DID_NOT_JOIN = re.compile(
    rb"\[(?P<ranks>\d+(?:, ?\d+)*)\] finished collective #\d+, but didn't join collective #(?P<number>\d+)"
)
_JAX = re.compile(
    rb"Task (?P<task>\d+) heartbeat timeout"
    rb"|(?:unhealthy|stopped sending heartbeats|timed out task names|has disconnected|not (?:yet )?(?:joined|reached))"
    rb"[^/\n]{0,200}\n?[^/\n]{0,80}/job:[\w-]+/replica:\d+/task:(?P<rank>\d+)"
)
_HOROVOD = re.compile(rb"(?:Missing|Stalled) ranks:\s*\n?(?:[^\n]*\n)?\s*(?P<rank>\d+):? ")

_ENDED = (
    (b"Root Cause", _ROOT_CAUSE),
    (b"noticed that process", _OPEN_MPI_SIGNAL),
    (b"Process name", _OPEN_MPI_CODE),
    (b"RUNNING AT", _HYDRA),
    (b"MPI_A", _MPI_ABORT),
    (b"srun: error", _SRUN),
    (b"Child process", _LIGHTNING),
    (b"terminated with", _SPAWN),
    (b"exits with return code", _DEEPSPEED),
    (b"worker with rank", _RAY_RANK),
    (b" task ", _RAY_KILLED),
    (b"Lost executor", _EXECUTOR),
    (b" name=", _NAMED_CHILD),
    (b"target node:", _UNREACHED),
    (b"RayTaskError(", _RAY_RAISED),
    (b"actor_id: ", _RAY_DIED),
    (b"exit_code=", _ELASTIC_LIST),
    (b"exitcode", _ELASTIC),
    (b" with ", _ANY_LAUNCHER),
)
"""Expressions, each after a word that its matches contain: most logs have none of the words."""

_ORDERLESS = (_ELASTIC_LIST, _DEEPSPEED)
"""Reports on a rank that is one of several that failed, and not always the first.

So is the one whose exception torch's spawn prints: it may have lost the first one.
"""

_LAUNCHERS = (
    _ROOT_CAUSE, _ELASTIC, _ELASTIC_LIST, _OPEN_MPI_SIGNAL, _OPEN_MPI_CODE, _HYDRA, _SRUN, _DEEPSPEED,
    _SPAWN, _ANY_LAUNCHER, _RAY_KILLED, _EXECUTOR, _UNREACHED,
    _NAMED_CHILD,
)  # fmt: skip
"""Reports of launchers; the others are those of libraries in a rank's own process."""

_ABSENT = (
    (b"monitoredBarrier", _BARRIER, "did not reach the barrier in time"),
    (b"lagging ranks", _NEVER_JOINED, "never joined a collective"),
    (b"finished collective", _DID_NOT_JOIN, "did not join collective {number}"),
)
_UNHEARD = (
    (b"ask", _JAX, "stopped answering the coordinator"),
    (b" ranks:", _HOROVOD, "is missing in a collective"),
)


_JOINED = re.compile(
    rb"(?P<joined>\d+)/(?P<world>\d+) clients joined"
    rb"|world_size=(?P<size>\d+),[^\n]{0,40}num_workers_joined=(?P<workers>\d+)"
)


def expected_ranks(log: Log) -> int | None:
    """The number of ranks for which a log waits in vain while they join; None if unknown."""
    if b"joined" not in log.data:
        return None
    for match in _JOINED.finditer(log.data):
        world, joined = match["world"] or match["size"], match["joined"] or match["workers"]
        if int(joined) < int(world) < _MAX_WORLD:
            return int(world)
    return None


def testimonies(log: Log) -> Iterator[Testimony]:
    """What a log's lines report about ranks."""
    data = log.data
    seen: set[int | str] = set()
    has_summary = b"Root Cause" in data and _ROOT_CAUSE.search(data) is not None
    for word, pattern in _ENDED:
        if pattern is _ELASTIC and has_summary:
            continue  # it has the number on the node only
        matches = list(pattern.finditer(data)) if word in data else []
        # an error of a task that another task met: the innermost is printed last
        for match in matches[-1:] if pattern is _RAY_RAISED else matches:
            who = _rank_of(match, data)
            if who in seen:
                continue
            seen.add(who)
            is_first = pattern not in _ORDERLESS and not match.groupdict().get("raised")
            yield _ended(who, match, first=is_first)
    if b"dump signal" in data and (match_ := _DUMP_FROM.search(data)):
        words = f"rank {int(match_['rank'])} was the first whose collective timed out"
        yield Testimony(int(match_["rank"]), "waiting", words, at=match_.start())
    for word, pattern, words in _ABSENT:
        for match in pattern.finditer(data) if word in data else ():
            ranks = [int(r) for r in match["ranks"].split(b",")]
            number = match.groupdict().get("number") or b""
            text = words.format(number=number.decode())
            if len(ranks) <= 8:
                for rank in ranks:
                    yield Testimony(rank, MISSING, f"rank {rank} {text}", at=match.start())
    for word, pattern, words in _UNHEARD:
        if word in data and (match_ := pattern.search(data)):
            rank = int(match_["rank"] or match_.groupdict().get("task") or 0)
            yield Testimony(rank, MISSING, f"rank {rank} {words}", at=match_.start())


def _rank_of(match: re.Match[bytes], data: bytes) -> int | str:
    """The rank that a report on an ended process names, or the name of the process or its host."""
    names = match.groupdict()
    if pid := names.get("pid"):
        rank_ = _rank_of_actor(pid, data)
        return f"pid {int(pid)}" if rank_ is None else rank_
    if executor := names.get("executor"):
        return f"executor-{int(executor)}"
    if match.re is _NAMED_CHILD:
        return str(match["name"].decode("ascii", "replace"))
    if match.re is _UNREACHED:
        return str(match["host"].decode("ascii", "replace"))
    rank = int(match["rank"] or match["raised"])
    if match.re is _DEEPSPEED:
        for node in _DEEPSPEED_NODE.finditer(data, 0, match.start()):
            rank = int(match["rank"]) + int(node["size"]) * int(node["node"])
    return rank


def _rank_of_actor(pid: bytes, data: bytes) -> int | None:
    """The rank that the actor with a process id shows: in its name, or in a line that it printed."""
    named = re.search(rb"\brank=(\d+)[^()\n]{0,40}\) pid=%s\b" % pid, data)
    printed = re.search(
        rb"\([^()\n]{1,80}\bpid=%s\b[^()\n]{0,60}\)(?:\x1b\[0m)? [^\n]{0,80}?\b"
        rb"(?i:rank)[ =:]{1,3}(\d{1,6})\b" % pid,
        data,
    )
    match = named or printed
    return int(match[1]) if match else None


def _ended(who: int | str, match: re.Match[bytes], *, first: bool) -> Testimony:
    names = match.groupdict()
    code: int | None = None
    if names.get("code"):
        code = int(names["code"])
        code = 128 - code if code < 0 else code
    elif names.get("signal"):
        code = 128 + int(names["signal"])
    elif names.get("words"):
        code = 128 + _SIGNALS[names["words"]]
    elif match.re is _SPAWN and names.get("name"):
        number = getattr(signal, names["name"].decode("ascii"), None)
        code = None if number is None else 128 + number
    how = "" if code is None else f" with exit code {code}"
    if code is not None and 128 < code < 160:
        how = f" by signal {code - 128}"
    rank, name = (who, "") if isinstance(who, int) else (None, who)
    label = f"rank {rank}" if rank is not None else name
    words = f"the launcher saw {label} end{how}"
    if match.re is _UNREACHED:
        words = f"the launcher cannot reach {label}"
    is_launchers = match.re in _LAUNCHERS
    return Testimony(rank, ENDED, words, code, match.start(), first, is_launchers, name)
