"""Facts from Slurm: why slurmstepd ended a job, and the states in sacct, scontrol and seff.

The states are from https://slurm.schedmd.com/job_state_codes.html, the messages from slurmstepd.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pairun.diagnose.facts.fact import DECISIVE, HINT, LIKELY, STRONG, Fact, Reader
from pairun.diagnose.lines import Line, Log

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
_SIGNALS: Mapping[int, tuple[str, int, str]] = {
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


def _read(line: Line, log: Log) -> Sequence[Fact] | None:
    text = line.text
    if match := _CANCELLED.search(text):
        why = match["why"].removesuffix(" AND SIGNAL")
        return [_fact(_DUE_TO[why], line)] if why in _DUE_TO else None
    if match := _REJECTED.search(text):
        return _rejected(match["why"], line)
    if _STEP.search(text):
        return [_fact(_of_step(line, log), line)]
    if _DETECTED.search(text):
        return [_fact(_STATES["OUT_OF_ME"], line)]
    if _PEAKED.search(text):
        words = "the job's memory reached its limit at some point"
        return [_fact(("host_oom", LIKELY, words), line)]
    if match := _STATE.search(text):
        return _of_state(match, line)
    return [] if _COMPLETED.search(text) else None


def _of_step(line: Line, log: Log) -> tuple[str, int, str]:
    """Slurm also cancels a step whose task failed; srun reports if a signal made it give up."""
    if any(_FORCED.match(before.text) for before in log.before(line.at, _NEAR)):
        return "cancelled_by_user", LIKELY + 8, "srun was told to end the job"
    return "terminated_sigterm", HINT + 2, "a step of the job was cancelled"


def _rejected(why: str, line: Line) -> Sequence[Fact] | None:
    for text, (klass, retry) in _REJECTIONS.items():
        if why.startswith(text):
            fact = _fact((klass, STRONG, f"Slurm does not start the job: {why.strip()}"), line)
            return [fact._replace(retry=retry)]
    return None


def _of_state(match: re.Match[str], line: Line) -> Sequence[Fact]:
    state = match["state"] or match["state2"]
    key = next(key for key in _STATES if state.startswith(key))
    if key == "FAILED":
        signal = int(match["signal"] or 0)
        if signal in _SIGNALS:
            return [_fact(_SIGNALS[signal], line)]
        code = match["code"] or match["code2"]
        klass, weight, words = _STATES[key]
        return [_fact((klass, weight, f"{words} with exit code {code}" if code else words), line)]
    return [_fact(_STATES[key], line)]


def _fact(what: tuple[str, int, str], line: Line) -> Fact:
    klass, weight, words = what
    return Fact(klass, weight, words, SOURCE, line.at)


SLURM = Reader(
    (
        "cancelled at", "submission failed", "allocate resources", "create step", "oom-kill", "oom_kill", "out-of-memory handler", "memory limit", "out of memory",
        "out_of_me", "timeout", "deadline", "preempted", "node_fail", "boot_fail", "requeued",
        "cancelled by", "failed", "completed",
    ),
    _read,
)  # fmt: skip
