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
        rank: the rank; None if the line names its process or executor.
        kind: `ENDED`: its process ended; `MISSING`: the others wait for it.
        words: the fact for people.
        exit_code: as a shell reports it; None if the line has none.
        first: whether the launcher or library saw no earlier failure.
        by_launcher: whether a launcher reports it, which is none of the ranks.
        name: what the line names instead of a rank: ``pid 702``, ``executor-4``.
    """

    rank: int | None
    kind: str
    words: str
    exit_code: int | None = None
    first: bool = False
    by_launcher: bool = False
    name: str = ""

    @property
    def label(self) -> str:
        """What the line names, for people."""
        return f"rank {self.rank}" if self.rank is not None else self.name


_SIGNALS = {
    b"Killed": 9,
    b"Terminated": 15,
    b"Segmentation fault": 11,
    b"Aborted": 6,
    b"Out Of Memory": 9,
    b"Bus error": 7,
}


class _Form(NamedTuple):
    """How a launcher or a library reports that a rank's process ended.

    Attributes:
        word: what each match contains: most logs have none of the words.
        text: an expression; it names the rank or a process number, and a code or a signal.
        is_launcher: whether a launcher reports it; else a library in a rank's own process.
        is_first: whether it reports the failure that it saw first.
    """

    word: bytes
    text: bytes
    is_launcher: bool = True
    is_first: bool = True

    def matches(self, data: bytes) -> list[re.Match[bytes]]:
        """The reports in a log."""
        return list(re.finditer(self.text, data)) if self.word in data else []


_ROOT_CAUSE = _Form(
    b"Root Cause",
    rb"Root Cause \(first observed failure\):(?:.|\n){0,400}?rank +: (?P<rank>\d+) \(local_rank: \d+\)"
    rb"(?:.|\n){0,200}?exitcode +: (?P<code>-?\d+)",
)
_ELASTIC = _Form(
    b"exitcode", rb"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<rank>\d+) \(pid: \d+\)"
)
_DEEPSPEED = _Form(
    b"exits with return code",
    rb"'--local_rank=(?P<rank>\d+)'[^\n]{0,4000}\] exits with return code = (?P<code>-?\d+)",
    is_first=False,
)
_DEEPSPEED_NODE = re.compile(rb"num_local_procs=(?P<size>\d+), node_rank=(?P<node>\d+)")
_RAY_RAISED = _Form(
    b"RayTaskError(",
    rb"RayTaskError\([^\n]{0,400}\brepr=[\w.<>-]{0,80}\((?:[^()\n]{0,80}\b)?rank=(?P<rank>\d+)"
    rb"|RayTaskError\([^\n]{0,200}\(pid=(?P<pid>\d+), ",
    is_launcher=False,
)
_ENDED = (
    _ROOT_CAUSE,
    _Form(b"noticed that process",
          rb"(?:mpirun|mpiexec|prterun|prun|orterun) noticed that process (?:rank )?(?:\[[^\]]*,)?(?P<rank>\d+)\]?"
          rb" with PID \d+ on node \S+ exited on\s+signal (?P<signal>\d+)"),
    _Form(b"Process name", rb"Process name: \[(?:\[[\d,]+\]|[^\],]+),(?P<rank>\d+)\]\s+Exit code: +(?P<code>\d+)"),
    _Form(b"RUNNING AT",
          rb"= +RANK (?P<rank>\d+) PID \d+ RUNNING AT \S+(?:.|\n){0,80}?"
          rb"(?:EXIT CODE: (?P<code>\d+)|KILLED BY SIGNAL: (?P<signal>\d+))"),
    _Form(b"MPI_A",
          rb"(?:MPI_ABORT was invoked on rank|application called MPI_Abort\([^)\n]*\) - process) (?P<rank>\d+)",
          is_launcher=False),
    _Form(b"srun: error",
          rb"srun: error: \S+: tasks? (?P<rank>\d+): (?:Exited with exit code (?P<code>\d+)"
          rb"|(?P<words>Killed|Terminated|Segmentation fault|Aborted|Out Of Memory|Bus error))"),
    _Form(b"Child process", rb"\[rank: (?P<rank>\d+)\] Child process with PID \d+ terminated with code (?P<code>-?\d+)",
          is_launcher=False),
    # torch's spawn; the process whose exception it prints may have lost the first one
    _Form(b"terminated with",
          rb"process (?P<rank>\d+) terminated with (?:signal (?P<name>SIG[A-Z0-9]+)|exit code (?P<code>\d+))"
          rb"|-- Process (?P<raised>\d+) terminated with the following error:"),
    _DEEPSPEED,
    _Form(b"worker with rank", rb"The worker with rank (?P<rank>\d+) (?:died|failed)", is_launcher=False),
    _Form(b" task ",
          rb"(?:Killing worker with task [^\n]{0,300}?\bpid[:=] ?|where the task \([^\n]{0,200}?\bpid=)(?P<pid>\d+)"),
    _Form(b"Lost executor", rb"Lost executor (?P<executor>\d+) on [\w.-]+:"),
    _RAY_RAISED,
    _Form(b"actor_id: ",
          rb"class_name: [^\n]{1,200}\n\s*actor_id: \w+\n(?:\s*name: [^\n]{0,200}\n)?\s*pid: (?P<pid>\d+)",
          is_launcher=False),
    _ELASTIC,
    # launchers of jobs' own
    _Form(b" with ",
          rb"(?i)(?<![\w-])(?:rank|worker|process|trainer|replica|task|node|child)[ #:=_-]{0,2}\[?(?P<rank>\d{1,6})\]?"
          rb"(?: ?\([^()\n]{1,60}\))?[ :,-]{1,3}(?:has |was |unexpectedly )?"
          rb"(?:exited|died|ended|terminated|failed|crashed|killed|finished|returned)"
          rb"[^\n]{0,30}?(?:\b(?:code|status|rc)[ =:]{1,3}(?P<code>-?[1-9]\d{0,2})\b|\bsignal[ =:]{1,3}(?P<signal>\d{1,2})\b)"),
)  # fmt: skip

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

_ABSENT = (
    (b"monitoredBarrier", _BARRIER, "did not reach the barrier in time"),
    (b"lagging ranks", _NEVER_JOINED, "never joined a collective"),
    (b"finished collective", _DID_NOT_JOIN, "did not join collective {number}"),
)
_UNHEARD = (
    (b"ask", _JAX, "stopped answering the coordinator"),
    (b" ranks:", _HOROVOD, "is missing in a collective"),
)


def testimonies(log: Log) -> Iterator[Testimony]:
    """What a log's lines report about ranks."""
    data = log.data
    seen: set[int | str] = set()
    has_summary = bool(_ROOT_CAUSE.matches(data))
    for form in _ENDED:
        if form is _ELASTIC and has_summary:
            continue  # it has the number on the node only
        # an error of a task that another task met: the innermost is printed last
        for match in form.matches(data)[-1 if form is _RAY_RAISED else 0 :]:
            who = _rank_of(form, match, data)
            if who not in seen:
                seen.add(who)
                yield _ended(who, form, match)
    if b"dump signal" in data and (match_ := _DUMP_FROM.search(data)):
        words = f"rank {int(match_['rank'])} was the first whose collective timed out"
        yield Testimony(int(match_["rank"]), "waiting", words, first=True)
    for word, pattern, words in _ABSENT:
        for match in pattern.finditer(data) if word in data else ():
            ranks = [int(r) for r in match["ranks"].split(b",")]
            number = match.groupdict().get("number") or b""
            text = words.format(number=number.decode())
            if len(ranks) <= 8:
                for rank in ranks:
                    yield Testimony(rank, MISSING, f"rank {rank} {text}")
    for word, pattern, words in _UNHEARD:
        if word in data and (match_ := pattern.search(data)):
            rank = int(match_["rank"] or match_.groupdict().get("task") or 0)
            yield Testimony(rank, MISSING, f"rank {rank} {words}")


def _rank_of(form: _Form, match: re.Match[bytes], data: bytes) -> int | str:
    """The rank that a report on an ended process names, or the name of the process."""
    names = match.groupdict()
    if pid := names.get("pid"):
        known = _rank_of_actor(pid, data)
        return f"pid {int(pid)}" if known is None else known
    if executor := names.get("executor"):
        return f"executor-{int(executor)}"
    rank = int(names.get("rank") or match["raised"])
    if form is _DEEPSPEED:
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


def _ended(who: int | str, form: _Form, match: re.Match[bytes]) -> Testimony:
    names = match.groupdict()
    code: int | None = None
    if names.get("code"):
        code = int(names["code"])
        code = 128 - code if code < 0 else code
    elif names.get("signal"):
        code = 128 + int(names["signal"])
    elif names.get("words"):
        code = 128 + _SIGNALS[names["words"]]
    elif names.get("name"):
        number = getattr(signal, names["name"].decode("ascii"), None)
        code = None if number is None else 128 + number
    how = "" if code is None else f" with exit code {code}"
    if code is not None and 128 < code < 160:
        how = f" by signal {code - 128}"
    rank, name = (who, "") if isinstance(who, int) else (None, who)
    words = f"the launcher saw {name or f'rank {rank}'} end{how}"
    is_first = form.is_first and not names.get("raised")
    return Testimony(rank, ENDED, words, code, is_first, form.is_launcher, name)
