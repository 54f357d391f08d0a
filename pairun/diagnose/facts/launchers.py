"""Facts from launchers and Slurm: a process that they started ended, or they ended it.

An exit code is an effect: its fact weighs so little that the log's cause outranks it. Slurm's states are from
https://slurm.schedmd.com/job_state_codes.html, its messages from slurmstepd.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pairun.diagnose.lines import Line, Log
from pairun.diagnose.signals import DECISIVE, HINT, LIKELY, STRONG, Reader, Signal

_ENDED = re.compile(
    r"\bfailed \(exitcode: (?P<torchrun>-?\d+)\) local_rank: \d+"
    r"|^ +exitcode +: (?P<summary>-?\d+) +\(pid: \d+\)"
    r"|\bexits with return code = (?P<deepspeed>-?\d+)"
    r"|\b[Rr]ank \d+ (?:crashed|exited|failed|died) with (?:exit )?code:? (?P<rank>-?\d+)"
    r"|: tasks? [\d,-]+: Exited with exit code (?P<srun>\d+)"
    r"|\b[Pp]rocess \S{1,40} (?:terminated|exited|failed) with (?:exit )?code:? (?P<process>-?\d+)"
    r"|\breturned non-zero exit status (?P<called>\d+)"
    r"|\bcontainer \S{1,80} exited \((?P<compose>\d+)\)|^\S{1,80} exited with code (?P<service>\d+)\s*$"
    r"|\bMain process exited, code=exited, status=(?P<systemd>\d+)/"
    r"|\bexited: \S{1,80} \(exit status (?P<supervisor>\d+); not expected\)"
    r"|\bentrypoint command failed with exit code (?P<ray>\d+)"
    r"|\bwith errorcode (?P<openmpi>-?\d+)\.?\s*$|\bMPI_Abort\(\w+, (?P<mpich>-?\d+)\)"
    r"|\bPrimary job  ?terminated normally, but (?P<words>\d) process(?:es)? returned"
    r"|\bexit(?:ed)? with (?:exit )?(?:status|code):? (?P<plain>[1-9]\d{0,2})\b[^\w]*$"
)
_WITHOUT_CODE = re.compile(
    r"\bthe trainer process with rank=\[[\d, ]+\] was aborted"
    r"|has failed because \d+ \w+ replica\(s\) failed|\bis failed because \d+ \w+ replica\(s\) failed"
    r"|\[launch\.py:\d+:sigkill_handler\] Killing subprocess|^\S+ FAILED\s*$"
    r"|\bprocess exited with an unknown status"
)
_SIGNALS: Mapping[int, tuple[str, int]] = {
    4: ("illegal_instruction", LIKELY + 3),
    6: ("native_abort", LIKELY - 5),
    7: ("shm_too_small", HINT + 3),
    8: ("native_abort", LIKELY - 5),
    9: ("host_oom", LIKELY + 2),
    11: ("segfault", LIKELY + 3),
}
"""The meaning of the signal that ended a process."""

_CONSEQUENCES = (2, 15)
"""The signals with which launchers end the other processes."""


def _read(line: Line, _log: Log) -> Sequence[Signal] | None:
    if match := _ENDED.search(line.text):
        code = int(next(value for value in match.groups() if value is not None))
        facts = _of_code(code)
        return facts and [fact._replace(start=match.start()) for fact in facts]
    if _WITHOUT_CODE.search(line.text):
        return [_fact("child_failed", HINT - 1, "a process of the job failed")]
    return None


def _of_code(code: int) -> Sequence[Signal] | None:
    signal = -code if code < 0 else code - 128
    if code == 0 or signal in _CONSEQUENCES:
        return None
    if signal in _SIGNALS:
        klass, weight = _SIGNALS[signal]
        fact = _fact(klass, weight, f"a process of the job was ended by signal {signal}")
        # the sender of SIGKILL is unknown
        return [fact._replace(retry="retry") if signal == 9 else fact]
    return [_fact("child_failed", HINT, f"a process of the job failed with exit code {code}")]


def _fact(klass: str, weight: int, words: str) -> Signal:
    return Signal(klass, weight, words, "launcher")


LAUNCHERS = Reader(
    (
        "exitcode", "exits with return code", "exit code", "exited", "exit status", "errorcode",
        "mpi_abort", "crashed with", "terminated with", "was aborted", "replica(s) failed",
        "killing subprocess", " failed", "unknown status", "with code", "main process exited",
        "terminated normally",
    ),
    _read,
)  # fmt: skip


SOURCE = "Slurm"
"""The source of these facts."""

_DUE_TO: Mapping[str, tuple[str, int, str]] = {
    "TIME LIMIT": ("time_limit", STRONG + 2, "the job reached its time limit"),
    "PREEMPTION": ("terminated_sigterm", STRONG + 3, "Slurm preempted the job for another one"),
    "NODE FAILURE": ("node_stuck", STRONG + 3, "a node of the job failed"),
    "JOB REQUEUE": ("terminated_sigterm", STRONG, "the job was requeued"),
    "REQUEUE": ("terminated_sigterm", STRONG, "the job was requeued"),
}
_STATES: Mapping[str, tuple[str, int, str]] = {
    "OUT_OF_ME": ("host_oom", DECISIVE, "the job used more memory than it asked for"),
    "TIMEOUT": _DUE_TO["TIME LIMIT"],
    "DEADLINE": ("time_limit", STRONG + 2, "the job reached its deadline"),
    "PREEMPTED": _DUE_TO["PREEMPTION"],
    "NODE_FAIL": _DUE_TO["NODE FAILURE"],
    "BOOT_FAIL": ("node_stuck", STRONG + 3, "a node of the job did not start"),
    "REQUEUED": _DUE_TO["REQUEUE"],
    "CANCELLED by": ("cancelled_by_user", STRONG - 12, "a user cancelled the job"),
    "FAILED": ("child_failed", HINT, "the job's script failed"),
}
_SCRIPT_SIGNALS: Mapping[int, tuple[str, int, str]] = {
    6: ("native_abort", LIKELY, "the job's script aborted (SIGABRT)"),
    7: ("shm_too_small", LIKELY, "the job's script ended with SIGBUS"),
    9: ("host_oom", HINT + 3, "the job's script was killed (SIGKILL)"),
    11: ("segfault", LIKELY + 3, "the job's script crashed (SIGSEGV)"),
    15: ("terminated_sigterm", LIKELY, "the job's script was stopped (SIGTERM)"),
}
"""The meaning of the state FAILED, by the signal after its exit code."""

_CANCELLED = re.compile(
    r"\*\*\* (?:JOB|STEP) .{1,200} CANCELLED AT \S+ DUE [Tt][Oo] (?P<why>[A-Z ]+[A-Z])"
)
_STEP = re.compile(r"\*\*\* STEP \S+ (?:ON \S+ )?CANCELLED AT [^ ]+ \*\*\*")
_FORCED = re.compile(r"srun: forcing job termination|srun: interrupt ")
_NEAR = 12
_REJECTED = re.compile(
    r"(?:Batch job submission failed|Unable to allocate resources|Unable to create step for job \d+): (?P<why>.{1,160})"
)
_REJECTIONS: Mapping[str, tuple[str, str]] = {
    "Job violates accounting/QOS policy": ("unschedulable", "retry"),
    "Requested node configuration is not available": ("unschedulable", "after_fix"),
    "Requested nodes are busy": ("unschedulable", "retry"),
    "Requested partition configuration not available now": ("unschedulable", "retry"),
    "Required node not available": ("unschedulable", "retry"),
    "Job dependency": ("unschedulable", "after_fix"),
    "Reservation or partition": ("unschedulable", "retry"),
    "Access/permission denied": ("permission_denied", "after_fix"),
    "Slurm temporarily unable to accept job": ("unschedulable", "retry"),
}
"""Why Slurm rejects a job or step; its other messages report mistakes in the command line."""

_DETECTED = re.compile(
    r"[Dd]etected \d+ oom[-_]kill event|Detected oom_kill|cgroup out-of-memory handler"
    r"|oom-kill(?:er)? event.{0,40}(?:StepId|step)|error: Exceeded job memory limit"
    r"|exceeded (?:job )?memory limit.{0,60}being killed|: Out Of Memory\s*$"
)
_PEAKED = re.compile(r"Exceeded (?:job|step) memory limit at some point")
_STATE = re.compile(
    r"(?:^|\s|\|)(?P<state>OUT_OF_ME\w*|TIMEOUT|DEADLINE|PREEMPTED|NODE_FAIL\w*|BOOT_FAIL|REQUEUED"
    r"|CANCELLED by|FAILED)\+?(?: \d+)?[\s|]+(?:\S+[\s|]+)?(?P<code>\d{1,3}):(?P<signal>\d{1,3})\b"
    r"|\b(?:Job)?State[:=] ?(?P<state2>OUT_OF_ME\w*|TIMEOUT|DEADLINE|PREEMPTED|NODE_FAIL|BOOT_FAIL"
    r"|REQUEUED|FAILED)\b(?: \(exit code (?P<code2>\d{1,3})\))?"
)
_COMPLETED = re.compile(
    r"(?:^|\s|\|)COMPLETED[\s|]+(?:\S+[\s|]+)?0:0\b|\b(?:Job)?State[:=] ?COMPLETED\b"
)


def _read_slurm(line: Line, log: Log) -> Sequence[Signal] | None:
    text = line.text
    if match := _CANCELLED.search(text):
        why = match["why"].removesuffix(" AND SIGNAL")
        return [_of_slurm(_DUE_TO[why])] if why in _DUE_TO else None
    if match := _REJECTED.search(text):
        return _rejected(match["why"])
    if _STEP.search(text):
        return [_of_slurm(_of_step(line, log))]
    if _DETECTED.search(text):
        return [_of_slurm(_STATES["OUT_OF_ME"])]
    if _PEAKED.search(text):
        words = "the job's memory reached its limit at some point"
        return [_of_slurm(("host_oom", LIKELY, words))]
    if match := _STATE.search(text):
        return _of_state(match)
    return [] if _COMPLETED.search(text) else None


def _of_step(line: Line, log: Log) -> tuple[str, int, str]:
    """Slurm also cancels a step whose task failed; srun reports if a signal made it give up."""
    if any(_FORCED.match(before.text) for before in log.before(line.at, _NEAR)):
        return "cancelled_by_user", LIKELY + 8, "srun was told to end the job"
    return "terminated_sigterm", HINT + 2, "a step of the job was cancelled"


def _rejected(why: str) -> Sequence[Signal] | None:
    for text, (klass, retry) in _REJECTIONS.items():
        if why.startswith(text):
            fact = _of_slurm((klass, STRONG, f"Slurm does not start the job: {why.strip()}"))
            return [fact._replace(retry=retry)]
    return None


def _of_state(match: re.Match[str]) -> Sequence[Signal]:
    state = match["state"] or match["state2"]
    key = next(key for key in _STATES if state.startswith(key))
    if key == "FAILED":
        signal = int(match["signal"] or 0)
        if signal in _SCRIPT_SIGNALS:
            return [_of_slurm(_SCRIPT_SIGNALS[signal])]
        code = match["code"] or match["code2"]
        klass, weight, words = _STATES[key]
        return [_of_slurm((klass, weight, f"{words} with exit code {code}" if code else words))]
    return [_of_slurm(_STATES[key])]


def _of_slurm(what: tuple[str, int, str]) -> Signal:
    return Signal(*what, SOURCE)


SLURM = Reader(
    (
        "cancelled at", "submission failed", "allocate resources", "create step", "oom-kill", "oom_kill", "out-of-memory handler", "memory limit", "out of memory",
        "out_of_me", "timeout", "deadline", "preempted", "node_fail", "boot_fail", "requeued",
        "cancelled by", "failed", "completed",
    ),
    _read_slurm,
)  # fmt: skip
