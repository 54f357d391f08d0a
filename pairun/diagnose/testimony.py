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

from pairun.diagnose.diagnosis import Evidence
from pairun.diagnose.lines import Log

ENDED, MISSING, WAITING, STACK = "ended", "missing", "waiting", "stack"


class Report(NamedTuple):
    """What a log reports about a rank.

    Attributes:
        kind: `ENDED`: its process ended; `MISSING`: the others wait for it; `WAITING`: how far it got in the
            collectives of a process group; `STACK`: where its main thread is.
        rank: the rank; None if the line names another thing, or for the rank whose log it is.
        words: the fact for people; of `WAITING` the operation, of `STACK` the place.
        name: what the line names instead of a rank: ``pid 702``, ``executor-4``; of `WAITING` the process group.
        exit_code: as a shell reports it; None if the line has none.
        first: whether the launcher or library saw no earlier failure.
        by_launcher: whether a launcher reports it, which is none of the ranks.
        number: the collective in which it waits; None if it waits in none.
        entered: the last collective that it entered; -1 if it entered none, None if unknown.
        in_group: of `STACK`, whether it waits for other ranks, in a library.
        shown: the line; None if the report itself is the evidence.
    """

    kind: str
    rank: int | None
    words: str
    name: str = ""
    exit_code: int | None = None
    first: bool = False
    by_launcher: bool = False
    number: int | None = None
    entered: int | None = None
    in_group: bool = False
    shown: Evidence | None = None

    @property
    def label(self) -> str:
        """What the line names, for people."""
        return f"rank {self.rank}" if self.rank is not None else self.name


_ALL, _FIRST, _LAST = slice(None), slice(0, 1), slice(-1, None)
_MOST_RANKS = 8
"""How many ranks a line may name; more say nothing about one of them."""

_BY_WORDS = {signal.strsignal(each): int(each) for each in signal.valid_signals()}


class _Form(NamedTuple):
    """How a launcher or a library reports a rank.

    Attributes:
        word: what each match contains: most logs have none of the words.
        text: an expression; it names ranks, a process or an executor, and a code or a signal.
        words: the fact for people.
        by_launcher: whether a launcher reports it; else a library in a rank's own process.
        first: whether it reports the failure that it saw first.
        kind: of the report.
        which: the matches that count.
    """

    word: bytes
    text: bytes
    words: str = "the launcher saw {who} end{how}"
    by_launcher: bool = True
    first: bool = True
    kind: str = ENDED
    which: slice = _ALL

    def matches(self, data: bytes) -> list[re.Match[bytes]]:
        """The reports in a log."""
        return list(re.finditer(self.text, data))[self.which] if self.word in data else []


def _missing(word: bytes, text: bytes, words: str, which: slice = _ALL) -> _Form:
    return _Form(word, text, f"{{who}} {words}", False, False, MISSING, which)


_ELASTIC = _Form(
    b"exitcode", rb"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<rank>\d+) \(pid: \d+\)"
)
_DEEPSPEED = _Form(
    b"exits with return code",
    rb"'--local_rank=(?P<rank>\d+)'[^\n]{0,4000}\] exits with return code = (?P<code>-?\d+)",
    first=False,
)
_DEEPSPEED_NODE = re.compile(rb"num_local_procs=(?P<size>\d+), node_rank=(?P<node>\d+)")
_FORMS = (
    _Form(b"Root Cause",
          rb"Root Cause \(first observed failure\):(?:.|\n){0,400}?rank +: (?P<rank>\d+) \(local_rank: \d+\)"
          rb"(?:.|\n){0,200}?exitcode +: (?P<code>-?\d+)"),
    _Form(b"noticed that process",
          rb"(?:mpirun|mpiexec|prterun|prun|orterun) noticed that process (?:rank )?(?:\[[^\]]*,)?(?P<rank>\d+)\]?"
          rb" with PID \d+ on node \S+ exited on\s+signal (?P<signal>\d+)"),
    _Form(b"Process name", rb"Process name: \[(?:\[[\d,]+\]|[^\],]+),(?P<rank>\d+)\]\s+Exit code: +(?P<code>\d+)"),
    _Form(b"RUNNING AT",
          rb"= +RANK (?P<rank>\d+) PID \d+ RUNNING AT \S+(?:.|\n){0,80}?"
          rb"(?:EXIT CODE: (?P<code>\d+)|KILLED BY SIGNAL: (?P<signal>\d+))"),
    _Form(b"MPI_A",
          rb"(?:MPI_ABORT was invoked on rank|application called MPI_Abort\([^)\n]*\) - process) (?P<rank>\d+)",
          by_launcher=False),
    _Form(b"srun: error",
          rb"srun: error: \S+: tasks? (?P<rank>\d+): (?:Exited with exit code (?P<code>\d+)"
          rb"|(?P<signal>Killed|Terminated|Segmentation fault|Aborted|Out Of Memory|Bus error))"),
    _Form(b"Child process", rb"\[rank: (?P<rank>\d+)\] Child process with PID \d+ terminated with code (?P<code>-?\d+)",
          by_launcher=False),
    _Form(b"terminated with",
          rb"process (?P<rank>\d+) terminated with (?:signal (?P<signal>SIG[A-Z0-9]+)|exit code (?P<code>\d+))"),
    # torch's spawn; the process whose exception it prints may have lost the first one
    _Form(b"terminated with", rb"-- Process (?P<rank>\d+) terminated with the following error:", first=False),
    _DEEPSPEED,
    _Form(b"worker with rank", rb"The worker with rank (?P<rank>\d+) (?:died|failed)", by_launcher=False),
    _Form(b" task ",
          rb"(?:Killing worker with task [^\n]{0,300}?\bpid[:=] ?|where the task \([^\n]{0,200}?\bpid=)(?P<pid>\d+)"),
    _Form(b"Lost executor", rb"Lost executor (?P<executor>\d+) on [\w.-]+:"),
    # of an error of a task that another task met, Ray prints the innermost last
    _Form(b"RayTaskError(",
          rb"RayTaskError\([^\n]{0,400}\brepr=[\w.<>-]{0,80}\((?:[^()\n]{0,80}\b)?rank=(?P<rank>\d+)"
          rb"|RayTaskError\([^\n]{0,200}\(pid=(?P<pid>\d+), ",
          by_launcher=False, which=_LAST),
    _Form(b"actor_id: ",
          rb"class_name: [^\n]{1,200}\n\s*actor_id: \w+\n(?:\s*name: [^\n]{0,200}\n)?\s*pid: (?P<pid>\d+)",
          by_launcher=False),
    # launchers of jobs' own
    _Form(b" with ",
          rb"(?i)(?<![\w-])(?:rank|worker|process|trainer|replica|task|node|child)[ #:=_-]{0,2}\[?(?P<rank>\d{1,6})\]?"
          rb"(?: ?\([^()\n]{1,60}\))?[ :,-]{1,3}(?:has |was |unexpectedly )?"
          rb"(?:exited|died|ended|terminated|failed|crashed|killed|finished|returned)"
          rb"[^\n]{0,30}?(?:\b(?:code|status|rc)[ =:]{1,3}(?P<code>-?[1-9]\d{0,2})\b|\bsignal[ =:]{1,3}(?P<signal>\d{1,2})\b)"),
    _ELASTIC,
    _Form(b"dump signal", rb"dump signal due to a collective timeout from +rank (?P<rank>\d+)",
          "{who} was the first whose collective timed out", by_launcher=False, kind="timed out", which=_FIRST),
    _missing(b"monitoredBarrier", rb"Ranks? (?P<ranks>\d+(?:, ?\d+)*) failed to pass monitoredBarrier in \d+ ms",
             "did not reach the barrier in time"),
    _missing(b"lagging ranks", rb"ranks \[(?P<ranks>\d+(?:, ?\d+)*)\] are the lagging ranks that caused this timeout",
             "never joined a collective"),
    _missing(b"finished collective",
             rb"\[(?P<ranks>\d+(?:, ?\d+)*)\] finished collective #\d+, but didn't join collective #(?P<number>\d+)",
             "did not join collective {number}"),
    _missing(b"ask",
             rb"Task (?P<rank>\d+) heartbeat timeout"
             rb"|(?:unhealthy|stopped sending heartbeats|timed out task names|has disconnected|not (?:yet )?(?:joined|reached))"
             rb"[^/\n]{0,200}\n?[^/\n]{0,80}/job:[\w-]+/replica:\d+/task:(?P<task>\d+)",
             "stopped answering the coordinator", _FIRST),
    _missing(b" ranks:", rb"(?:Missing|Stalled) ranks:\s*\n?(?:[^\n]*\n)?\s*(?P<rank>\d+):? ",
             "is missing in a collective", _FIRST),
)  # fmt: skip


def reports_in(log: Log) -> Iterator[Report]:
    """What launchers and libraries report about ranks; each rank's end once."""
    ended: set[int | str] = set()
    for form in _FORMS:
        if form is _ELASTIC and ended:
            continue  # it has the number on the node only
        for match in form.matches(log.data):
            names = {k: v.decode("ascii") for k, v in match.groupdict().items() if v is not None}
            ranked = _named_in(form, match, names, log.data)
            for who in ranked if len(ranked) <= _MOST_RANKS else ():
                if form.kind == ENDED and who in ended:
                    continue
                if form.kind == ENDED:
                    ended.add(who)
                yield _report(form, who, names)


def _named_in(
    form: _Form, match: re.Match[bytes], names: dict[str, str], data: bytes
) -> list[int | str]:
    """The ranks that a report names, or the name of the process or executor."""
    if pid := names.get("pid"):
        known = _rank_of_actor(pid.encode(), data)
        return [f"pid {int(pid)}" if known is None else known]
    if executor := names.get("executor"):
        return [f"executor-{int(executor)}"]
    text = names.get("rank") or names.get("ranks") or names["task"]
    ranks: list[int | str] = [int(each) for each in text.split(",")]
    if form is _DEEPSPEED:
        # it counts on its node; its line about the node comes before
        for node in _DEEPSPEED_NODE.finditer(data, 0, match.start()):
            ranks = [int(text) + int(node["size"]) * int(node["node"])]
    return ranks


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


def _report(form: _Form, who: int | str, names: dict[str, str]) -> Report:
    rank, name = (who, "") if isinstance(who, int) else (None, who)
    code = _exit_code(names)
    how = "" if code is None else f" with exit code {code}"
    if code is not None and 128 < code < 160:
        how = f" by signal {code - 128}"
    words = form.words.format(who=name or f"rank {rank}", how=how, number=names.get("number"))
    return Report(form.kind, rank, words, name, code, form.first, form.by_launcher)


def _exit_code(names: dict[str, str]) -> int | None:
    """The exit code in a report, as a shell shows it."""
    if code := names.get("code"):
        return int(code) if int(code) >= 0 else 128 - int(code)
    if (by := names.get("signal")) is None:
        return None
    if by.isdigit():
        return 128 + int(by)
    number = getattr(signal, by, None) or _BY_WORDS.get(by)
    return 128 + (number or signal.SIGKILL)  # Slurm's "Out Of Memory"
