"""What systems report in a log: the kernel, the GPU's tools, Slurm, Kubernetes, launchers.

Each system has forms, of which the first that matches a line counts. Readers never guess from free text; rules do that.
Sources: NVIDIA's catalogue of Xid numbers (https://docs.nvidia.com/deploy/xid-errors/), ``dcgm_errors.h``; Linux'
``mm/oom_kill.c``, ``kernel/hung_task.c``, ``drivers/pci/pcie/aer.c``, ``drivers/edac``, ``mm/memory-failure.c``;
https://slurm.schedmd.com/job_state_codes.html and slurmstepd; the kubelet's, the scheduler's and the controllers'
reasons (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/, kubelet/events/event.go).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pairun.diagnose.lines import Line, Log
from pairun.diagnose.signals import EFFECT, KUBERNETES, PREVIOUS_LOG, SLURM, SYSTEM, Signal

_Why = Callable[["_Seen"], Sequence[Signal] | None]


class _Seen(NamedTuple):
    """The match of a form in a line of a log."""

    match: re.Match[str]
    line: Line
    log: Log


class _System(NamedTuple):
    """A system that reports failures.

    Attributes:
        source: its name.
        words: lower-case words; each line that it reports has one.
        forms: expressions, each with what it reports: a signal, None for no failure, or a function.
    """

    source: str
    words: Sequence[str]
    forms: Sequence[tuple[re.Pattern[str], Signal | _Why | None]]


def _signal(
    klass: str, words: str, source: str, weight: int = SYSTEM,
    *, fault: str = "", retry: str = "", advice: str = "",
) -> Signal:  # fmt: skip
    return Signal(klass, weight, words, source, fault, retry, advice)


_KERNEL, _TOOLS, _LAUNCHER = "kernel", "GPU tools", "launcher"

_XIDS: Mapping[str, tuple[str, frozenset[int]]] = {
    "cuda_kernel_error": (
        "a program made a GPU fail",
        frozenset((13, 31, 32, 43, 44, 68, 69, 137)),
    ),
    "gpu_ecc_error": ("a GPU's memory failed", frozenset((48, 63, 64, 92, 94, 95, 140, 156))),
    "nvlink_error": ("a link between GPUs failed", frozenset((74, 136, *range(144, 151), 155))),
    "gpu_lost": (
        "a GPU or its driver stopped working",
        frozenset((38, 46, 61, 62, 79, 109, 110, 119, 120, 143, 154, 158)),
    ),
}
"""Meaning and numbers of the Xids of a class; all others, such as 45, follow from another failure."""

_MILD_XIDS = frozenset((32, 43, 44, 63, 68, 92, 137, 156))
"""Xids that allow other explanations."""

_FATAL_XIDS = frozenset((48, 62, 64, 74, 79, 94, 95, 119, 120, 140, 143))
"""Xids that no other one causes."""


def _of_xid(seen: _Seen) -> Sequence[Signal]:
    number = int(seen.match["a"] or seen.match["b"])
    weight = SYSTEM if number in _FATAL_XIDS else EFFECT if number in _MILD_XIDS else SYSTEM - 6
    return [
        _signal(klass, f"{words} (Xid {number})", _KERNEL, weight)
        for klass, (words, numbers) in _XIDS.items()
        if number in numbers
    ]


def _of_killed(seen: _Seen) -> Sequence[Signal]:
    said = f"the kernel killed {seen.match['task']} for memory"
    if seen.match["limit"] in ("Memory cgroup ", "MEMCG"):
        return [_signal("host_oom", f"{said}: the container's limit", _KERNEL)]
    said = f"{said}: the node had none left"
    return [_signal("host_oom", said, _KERNEL, fault="platform", retry="retry_elsewhere")]


_STORAGE_FRAME = re.compile(
    r"\w+\+0x[0-9a-f]+/0x[0-9a-f]+ \[(?P<system>nfs(?:v[34])?|lustre|ceph|cifs|beegfs|fuse|mmfs\w*)\]"
)
_TRACE_LINES, _NEAR = 40, 6


def _of_stuck(seen: _Seen) -> Sequence[Signal]:
    task = seen.match["task"]
    for each in seen.log.after(seen.line.at, _TRACE_LINES) if task else ():
        if each.text.startswith(("INFO: task ", "</TASK>")):
            break
        if frame := _STORAGE_FRAME.search(each.text):
            words = f"the kernel reports that {task} waits for a file system ({frame['system']})"
            return [_signal("storage_io_error", words, _KERNEL)]
    words = f"the kernel reports that {task} hangs" if task else "the kernel hangs"
    return [_signal("node_stuck", words, _KERNEL)]


_CORRECTED = re.compile(r"severity=Correct|\bCorrect(?:ed|able) error", re.IGNORECASE)


def _of_bus(seen: _Seen) -> Sequence[Signal]:
    """A PCIe error that the bus corrected is no failure; nearby lines name the severity."""
    log, at = seen.log, seen.line.at
    around = [seen.line, *log.before(at, _NEAR), *log.after(at, _NEAR)]
    severities = [each.text for each in around if "severity=" in each.text or "orrect" in each.text]
    if not severities or any(map(_CORRECTED.search, severities)):
        return []
    return [_signal("pcie_error", "a device's PCIe link failed", _KERNEL)]


def _of_counter(seen: _Seen) -> Sequence[Signal]:
    """Use counters since the last reboot; ignore those of the GPU's whole life."""
    above = (before.text.strip() for before in seen.log.before(seen.line.at, 30))
    head = next((text for text in above if text.startswith(("Aggregate", "Volatile"))), "")
    if not int(seen.match["count"]) or not head.startswith("Volatile"):
        return []
    words = f"nvidia-smi counts {seen.match['count']} memory errors that cannot be corrected"
    return [_signal("gpu_ecc_error", words, _TOOLS)]


_DUE_TO: Mapping[str, tuple[str, str]] = {
    "TIME": ("time_limit", "the job reached its time limit"),
    "DEADLINE": ("time_limit", "the job reached its deadline"),
    "PREEMPT": ("terminated_sigterm", "Slurm preempted the job for another one"),
    "NODE": ("node_stuck", "a node of the job failed"),
    "BOOT_FAIL": ("node_stuck", "a node of the job did not start"),
    "OUT_OF_ME": ("host_oom", "the job used more memory than it asked for"),
    "JOB REQUEUE": ("terminated_sigterm", "the job was requeued"),
    "REQUEUED": ("terminated_sigterm", "the job was requeued"),
}
"""Why Slurm cancels a job, and its states, by their first letters."""


def _of_slurm(seen: _Seen) -> Sequence[Signal]:
    for start, (klass, words) in _DUE_TO.items():
        if seen.match["why"].startswith(start):
            return [_signal(klass, words, SLURM)]
    return [_signal("child_failed", "the job's script failed", SLURM, EFFECT)]


_REJECTED_LATER = re.compile(
    r"Job violates|Requested (?:nodes are busy|partition)|Required node|Reservation|Slurm temporarily"
)


def _of_rejection(seen: _Seen) -> Sequence[Signal]:
    why = seen.match["why"].strip()
    retry = "retry" if _REJECTED_LATER.match(why) else "after_fix"
    return [_signal("unschedulable", f"Slurm does not start the job: {why}", SLURM, retry=retry)]


_SIGNALS: Mapping[int, str] = {
    4: "illegal_instruction", 6: "native_abort", 7: "shm_too_small", 8: "native_abort", 9: "host_oom", 11: "segfault",
}  # fmt: skip
"""The meaning of the signal that ended a process; launchers end the others with 2 and 15."""


def _of_code(seen: _Seen) -> Sequence[Signal] | None:
    code = int(next(value for value in seen.match.groups() if value is not None))
    number = -code if code < 0 else code - 128
    if code == 0 or number in (2, 15):
        return None
    if number in _SIGNALS:
        words = f"a process of the job was ended by signal {number}"
        signal = _signal(_SIGNALS[number], words, _LAUNCHER, EFFECT + 1)
        # the sender of SIGKILL is unknown
        signal = signal._replace(retry="retry" if number == 9 else "")
    else:
        words = f"a process of the job failed with exit code {code}"
        signal = _signal("child_failed", words, _LAUNCHER, EFFECT)
    return [signal._replace(start=seen.match.start())]


_FINITE = re.compile(
    r"(?i)\bloss\w{0,12}['\"]?(?: \([\w ]{1,20}\))?\s{0,4}[:=]?\s{0,4}(?:tensor\()?[+-]?\d"
)
_AFTER = 200


def _of_loss(seen: _Seen) -> Sequence[Signal]:
    # mixed precision skips a step whose loss overflows; later losses are finite again
    if any(_FINITE.search(after.shown) for after in seen.log.after(seen.line.at, _AFTER)):
        return []
    words = "the training reports a loss that is not a number"
    return [_signal("loss_nan", words, "training", EFFECT + 2)]


def _system(source: str, words: Sequence[str], *forms: tuple[str, object]) -> _System:
    def what(reported: object) -> Signal | _Why | None:
        if not isinstance(reported, tuple):
            return reported  # type: ignore[return-value]
        klass, said, *more = reported
        return _signal(klass, said, source)._replace(**(more[0] if more else {}))

    return _System(source, words, [(re.compile(regex), what(each)) for regex, each in forms])


REASONS: Mapping[str, tuple[str, int, str]] = {
    "OOMKilled": ("host_oom", SYSTEM, "the container used more memory than its limit"),
    "Evicted": ("evicted", SYSTEM, "the kubelet evicted the Pod"),
    "DeadlineExceeded": ("time_limit", SYSTEM, "the Pod or its Job reached its deadline"),
    **dict.fromkeys(
        ("Preempting", "Preempted", "PreemptionByScheduler", "PreemptionByKubeScheduler"),
        ("evicted", SYSTEM, "the scheduler preempted the Pod for another one"),
    ),
    "EvictionByEvictionAPI": ("evicted", SYSTEM, "the Pod was evicted, as when its node is drained"),
    **dict.fromkeys(
        ("DeletionByTaintManager", "TaintManagerEviction"),
        ("evicted", SYSTEM, "the Pod was deleted because of a taint of its node"),
    ),
    "TerminationByKubelet": ("evicted", SYSTEM, "the kubelet ended the Pod: eviction or shutdown"),
    "DeletionByPodGC": ("node_stuck", SYSTEM, "the Pod was deleted because its node is gone"),
    "NodeShutdown": ("terminated_sigterm", SYSTEM, "the Pod's node was shut down"),
    "NodeLost": ("node_stuck", SYSTEM, "the Pod's node does not answer"),
    "NodeNotReady": ("node_stuck", SYSTEM - 1, "the Pod's node is not ready"),
    "KubeletNotReady": ("node_stuck", SYSTEM, "the node's kubelet is not ready"),
    "NodeStatusUnknown": ("node_stuck", SYSTEM, "the node's kubelet does not report"),
    "Unschedulable": ("unschedulable", SYSTEM, "no node fits the Pod"),
    "FailedScheduling": ("unschedulable", SYSTEM - 1, "no node fits the Pod"),
    "SchedulingGated": ("unschedulable", SYSTEM, "the Pod waits for its scheduling gates"),
    "UnexpectedAdmissionError": ("unschedulable", SYSTEM, "the kubelet refused the Pod"),
    "NodeAffinity": ("unschedulable", SYSTEM, "the kubelet refused the Pod: its node does not fit"),
    "ErrImageNeverPull": ("image_missing", SYSTEM, "the node lacks the image, and may not pull it"),
    "InvalidImageName": ("image_missing", SYSTEM, "the image's name is invalid"),
    **dict.fromkeys(
        ("ImageInspectError", "ErrImagePull", "ImagePullBackOff"),
        ("image_missing", EFFECT, "the image could not be pulled"),
    ),
    "RegistryUnavailable": ("registry_unavailable", SYSTEM, "the registry does not answer"),
    "CreateContainerConfigError": ("container_setup_error", SYSTEM, "the container's settings name what is missing"),
    **dict.fromkeys(
        ("CreateContainerError", "RunContainerError", "ContainerCannotRun", "StartError"),
        ("container_setup_error", SYSTEM, "the container could not be started"),
    ),
    "ContainerStatusUnknown": ("node_stuck", EFFECT, "the container's node lost its state"),
    **dict.fromkeys(("CrashLoopBackOff", "BackOff"), ("child_failed", EFFECT, "the container fails repeatedly")),
    "BackoffLimitExceeded": ("child_failed", EFFECT, "the Job's Pods failed too often"),
    "OOMKilling": ("host_oom", SYSTEM, "the kernel killed a process for memory"),
    "SystemOOM": ("host_oom", EFFECT, "the node had no memory left"),
}  # fmt: skip
"""Class, weight and meaning of a reason of a Pod, a container, a condition or an Event."""

_OTHER_NODE = "run it again, on another node; `kubectl describe node` shows the taints of this one"
_ADVICE: Mapping[str, str] = {
    **dict.fromkeys(("BackOff", "CrashLoopBackOff"), PREVIOUS_LOG),
    **dict.fromkeys(("DeletionByTaintManager", "TaintManagerEviction", "EvictionByEvictionAPI"), _OTHER_NODE),
}  # fmt: skip
"""The advice for a reason, where that of its class does not fit."""

_WHY_CHARS = 200
_NODES = re.compile(rf"\b0/\d+ nodes are available: (?P<why>.{{1,{_WHY_CHARS}}})")
_LOW = re.compile(
    r"(?:The )?[Nn]ode was low on resource: \[?(?P<resource>[\w.-]+)|The node had condition: \[(?P<condition>\w+)"
)
_OVER = re.compile(
    r"[Pp]od ephemeral local storage usage exceeds the total limit"
    r"|[Cc]ontainer \S+ exceeded its local ephemeral storage limit"
    r"|[Uu]sage of EmptyDir volume \"?(?P<volume>[\w.-]+)\"? exceeds the limit"
)
_REASON = re.compile(
    r"""\b(?:OOM\w+|(?!OutOf)[A-Z]\w*[a-z][A-Z]\w+)|(?:[Rr]eason\W{1,40}|Warning\s+)(?P<word>[A-Z][\w./-]*\w)"""
)
"""A reason in a text: a word in CamelCase, or one that is called so."""

_STARTED = re.compile(r"Successfully (?:assigned|pulled)\b|\bStarted container\b")
"""A later event of a Pod that had waited for its node or its image."""

BEFORE_START = frozenset(("unschedulable", "image_missing", "registry_unavailable"))
"""Classes that no longer hold once the Pod's container has started."""

_NEXT_EVENTS = 40


def of_event(reason: str, message: str) -> Signal | None:
    """What an Event states; None if neither reason nor message is known."""
    if reason == "FailedScheduling" and message and not _NODES.search(message):
        return _signal("unschedulable", f"no node fits the Pod: {message[:_WHY_CHARS]}", KUBERNETES)
    return of_message(message) or of_reason(reason)


def of_reason(reason: str) -> Signal | None:
    """What a reason of a Pod, a container or a condition states, a word in CamelCase; None for any other."""
    if reason in REASONS:
        klass, weight, words = REASONS[reason]
        advice = _ADVICE.get(reason, "")
        return _signal(klass, f"{words} ({reason})", KUBERNETES, weight, advice=advice)
    if match := re.match(r"OutOf([\w./-]{2,80})$", reason):
        return _signal("unschedulable", f"the node has no {match[1]} left", KUBERNETES)
    return None


def of_message(message: str) -> Signal | None:
    """What the scheduler or the kubelet states in a sentence; None for any other text."""
    if "failed liveness probe" in message:
        words = "the container did not answer its liveness probe"
        return _signal("hang", words, KUBERNETES, EFFECT)
    if re.search(r"[Bb]ack-off pulling image|ErrImagePull|ImagePullBackOff", message):
        return _signal("image_missing", "the image could not be pulled", KUBERNETES, EFFECT)
    if match := _OVER.search(message):
        volume = match["volume"]
        if volume and "shm" in volume:
            return _signal("shm_too_small", f"the volume {volume} is full", KUBERNETES)
        what = f"the volume {volume}" if volume else "the Pod's ephemeral storage"
        words = f"the kubelet evicted the Pod: {what} exceeds its limit"
        # the Pod exceeded its own limit: the job's fault, not the node's
        advice = "write less to the container's disk, or ask for more ephemeral storage"
        return _signal("evicted", words, KUBERNETES, fault="user", retry="after_fix", advice=advice)
    if match := _LOW.search(message):
        what = match["resource"] or match["condition"]
        return _signal("evicted", f"the node was low on {what}: Pods were evicted", KUBERNETES)
    if match := _NODES.search(message):
        why = match["why"].partition(" preemption: ")[0].rstrip(" .")
        return _signal("unschedulable", f"no node fits the Pod: {why}", KUBERNETES)
    return None


def _of_pod(seen: _Seen) -> Sequence[Signal] | None:
    reasons = (each["word"] or each[0] for each in _REASON.finditer(seen.line.text))
    stated = next(filter(None, (of_message(seen.line.text), *map(of_reason, reasons))), None)
    if stated is None or stated.klass not in BEFORE_START:
        return [stated] if stated else None
    is_over = any(
        _STARTED.search(after.text) for after in seen.log.after(seen.line.at, _NEXT_EVENTS)
    )
    return [] if is_over else [stated]


_SYSTEMS = (
    _system(KUBERNETES,
        ("outof", "probe failed", "liveness probe", "low on resource", "node had condition", "nodes are available",
         "ephemeral local storage", "ephemeral storage limit", "emptydir volume", *(name.lower() for name in REASONS)),
        (r'OOMKilled"?: false|(?:Readiness|Startup) probe failed', None),
        ((rf"{_OVER.pattern.replace('?P<volume>', '')}|failed liveness probe|low on resource: |node had condition: "
         rf"|0/\d+ nodes are available: |\bOutOf\w|\b(?:{'|'.join(REASONS)})\b"), _of_pod)),
    _system(_KERNEL,
        ("xid", "out of memory: kill", "oom-kill", "blocked for more than", "soft lockup", "hard lockup", "detected stall",
         "kernel panic", "pcie bus error", "aer: ", "hardware error", "machine check", "edac ", "memory failure",
         "error status/mask"),
        (r"caused by previous Xid (?P<a>\d{1,3})(?P<b>)", _of_xid),
        ((r"NVRM: Xid \([^()]{0,80}(?:\([^()]*\))?[^()]{0,40}\): (?P<a>\d{1,3})\b"
         r"|\b[Xx][Ii][Dd](?: ?(?:error|code|event))?[ =:#]{1,3}(?P<b>\d{1,3})\b"), _of_xid),
        (r"(?P<limit>Memory cgroup )?[Oo]ut of memory(?: \(oom_kill_allocating_task\))?: Kill(?:ed)? process \d+ \((?P<task>[^)]*)\)",
         _of_killed),
        (r"oom-kill:constraint=CONSTRAINT_(?P<limit>\w+).*?,task=(?P<task>[^,]+)", _of_killed),
        (r"\S.{0,40} invoked oom-killer: ", None),  # the next lines name the killed process
        ((r"INFO: task (?P<task>.{1,40}):\d+ blocked for more than \d+ seconds|BUG: soft lockup - CPU#\d+ stuck for"
         r"|hard LOCKUP|self-detected stall on CPU|rcu: INFO: rcu_\w+ detected stalls|Kernel panic - not syncing"), _of_stuck),
        (r"PCIe Bus Error: severity=|AER: .{0,40}\b[Cc]?(?:Unc|C)orrect\w+\b.{0,20} error|error status/mask", _of_bus),
        ((r"Memory failure: 0x[0-9a-f]+: (?:Killing|Sending SIGBUS to)|\[Hardware Error\]: CPU \d+: Machine Check Exception"
         r"|\bEDAC \S+: \d+ UE |Machine check: Processor context corrupt|\[Hardware Error\]: event severity: (?:fatal|recov)"),
         ("node_stuck", "the node's processor or memory reports an error that it cannot correct",
          {"fault": "hardware", "retry": "retry_elsewhere"})),
        (r"Machine check events logged|\bEDAC \S+: \d+ CE |\[Hardware Error\]: (?:event severity: corr|Corr)", None)),
    _system(SLURM,
        ("cancelled at", "submission failed", "allocate resources", "create step", "oom-kill", "oom_kill",
         "out-of-memory handler", "forcing job", "memory limit", "out of memory", "out_of_me", "timeout", "deadline", "preempted",
         "node_fail", "boot_fail", "requeued", "failed", "completed"),
        (r"^srun: forcing job termination", ("cancelled_by_user", "srun was told to end the job", {"weight": EFFECT + 15})),
        (r"\*\*\* (?:JOB|STEP) .{1,200} CANCELLED AT \S+ DUE [Tt][Oo] (?P<why>TIME LIMIT|PREEMPTION|NODE FAILURE|JOB REQUEUE)", _of_slurm),
        ((r"(?:Batch job submission failed|Unable to allocate resources|Unable to create step for job \d+): (?P<why>(?:Job (?:violates|dep)"
         r"|Requested |Required node|Reservation or|Slurm temporarily).{1,160})"), _of_rejection),
        ((r"[Dd]etected \d+ oom[-_]kill event|Detected oom_kill|cgroup out-of-memory handler|error: Exceeded job memory limit"
         r"|exceeded (?:job )?memory limit.{0,60}being killed|: Out Of Memory\s*$"),
         ("host_oom", "the job used more memory than it asked for")),
        ((r"(?:^|\s|\|)(?P<why>OUT_OF_ME\w*|TIMEOUT|DEADLINE|PREEMPTED|NODE_FAIL\w*|BOOT_FAIL|REQUEUED"
         r"|FAILED)\+?[\s|]+(?:\S+[\s|]+)?\d{1,3}:\d{1,3}\b"), _of_slurm),
        (r"\b(?:Job)?State[:=] ?(?P<why>OUT_OF_ME\w*|TIMEOUT|DEADLINE|PREEMPTED|NODE_FAIL|BOOT_FAIL|REQUEUED|FAILED)\b", _of_slurm),
        (r"(?:^|\s|\|)COMPLETED[\s|]+(?:\S+[\s|]+)?0:0\b|\b(?:Job)?State[:=] ?COMPLETED\b", None)),
    _system(_TOOLS,
        ("err!", "no devices were found", "unable to determine the device handle", "double bit", "uncorrectable",
         "remapping failure", "pending page", "gpu recovery action", "dcgm_fr_"),
        (r"^\|.{0,60}\bERR!.{0,80}\|", ("gpu_lost", "nvidia-smi cannot read a GPU (ERR!)")),
        (r"^No devices were found\s*$", ("gpu_not_available", "nvidia-smi finds no GPU")),
        (r"Unable to determine the device handle for (?i:gpu)\s?\S*: ", ("gpu_lost", "nvidia-smi cannot reach a GPU")),
        (r"^\s+(?:Double Bit|(?:DRAM|SRAM) Uncorrectable(?: \w+)?|Uncorrectable)\s+: (?P<count>\d{1,9})\s*$", _of_counter),
        (r"^\s+(?:Remapping Failure Occurred|Pending Page Blacklist)\s+: Yes\s*$",
         ("gpu_ecc_error", "a GPU has damaged memory to replace")),
        (r"^\s+GPU Recovery Action\s+: (?!None)\w", ("gpu_lost", "a GPU needs recovery")),
        (r"\bDCGM_FR_\w*(?:DBE|UNCORRECT|RETIRE|ROW_REMAP)", ("gpu_ecc_error", "DCGM reports damaged memory")),
        (r"\bDCGM_FR_NV(?:LINK|SWITCH)", ("nvlink_error", "DCGM reports a failed link")),
        (r"\bDCGM_FR_[A-Z_]{3,60}\b", ("gpu_lost", "DCGM reports a failed GPU"))),
    _system(_LAUNCHER,
        ("exitcode", "exits with return code", "exit code", "exited", "exit status", "errorcode", "mpi_abort",
         "crashed with", "terminated with", " failed", "with code", "main process exited", "terminated normally"),
        ((r"\bfailed \(exitcode: (-?\d+)\) local_rank: \d+|^ +exitcode +: (-?\d+) +\(pid: \d+\)"
         r"|\bexits with return code = (-?\d+)|\b[Rr]ank \d+ (?:crashed|exited|failed|died) with (?:exit )?code:? (-?\d+)"
         r"|: tasks? [\d,-]+: Exited with exit code (\d+)"
         r"|\b[Pp]rocess \S{1,40} (?:terminated|exited|failed) with (?:exit )?code:? (-?\d+)"
         r"|\breturned non-zero exit status (\d+)|\bcontainer \S{1,80} exited \((\d+)\)|^\S{1,80} exited with code (\d+)\s*$"
         r"|\bMain process exited, code=exited, status=(\d+)/|\bexited: \S{1,80} \(exit status (\d+); not expected\)"
         r"|\bentrypoint command failed with exit code (\d+)|\bwith errorcode (-?\d+)\.?\s*$|\bMPI_Abort\(\w+, (-?\d+)\)"
         r"|\bPrimary job  ?terminated normally, but (\d) process(?:es)? returned"
         r"|\bexit(?:ed)? with (?:exit )?(?:status|code):? ([1-9]\d{0,2})\b[^\w]*$"), _of_code)),
    _system("training", ("loss",),
        ((r"(?i)\b(?:\w{1,30}[ _-])?loss\w{0,12}['\"]?(?: \([\w ]{1,20}\))?\s{0,4}[:=]?\s{1,4}(?:tensor\()?[+-]?nan\b"
         r"|(?i:\bloss\w{0,12}['\"]?[:=](?:tensor\()?[+-]?nan\b)"), _of_loss)),
)  # fmt: skip

WORDS = tuple(sorted({word for system in _SYSTEMS for word in system.words}))
"""Lower-case words; a line that a system reports contains one of them."""


def facts_of(line: Line, log: Log) -> Sequence[Signal] | None:
    """What a system reports in a line.

    Returns:
        None if the line is free text. An empty sequence if it reports no failure.
    """
    lower = line.shown.lower()
    for system in _SYSTEMS:
        if not any(word in lower for word in system.words):
            continue
        text = line.shown if system.source == "training" else line.text
        for pattern, reported in system.forms:
            if (match := pattern.search(text)) is None:
                continue
            if reported is None or isinstance(reported, Signal):
                return [reported] if reported else []
            if (signals := reported(_Seen(match, line, log))) is not None:
                return signals
    return None
