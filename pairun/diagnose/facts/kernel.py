"""Facts from a node: the kernel's log, nvidia-smi and DCGM.

Xid numbers are from NVIDIA's catalogue (https://docs.nvidia.com/deploy/xid-errors/), the kernel's formats from
``mm/oom_kill.c``, ``kernel/hung_task.c``, ``drivers/pci/pcie/aer.c``; DCGM's codes from ``dcgm_errors.h``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pairun.diagnose.lines import Line, Log
from pairun.diagnose.signals import DECISIVE, HINT, LIKELY, STRONG, Reader, Signal

_PROGRAM, _DRIVER, _ECC, _LINK = "cuda_kernel_error", "gpu_lost", "gpu_ecc_error", "nvlink_error"

_XIDS: Mapping[int, tuple[str, int, str]] = {
    13: (_PROGRAM, STRONG, "a program made a GPU's graphics engine fail"),
    31: (_PROGRAM, STRONG, "a program accessed memory that its GPU does not map"),
    32: (_PROGRAM, LIKELY, "the driver sent the GPU a corrupted command"),
    38: (_DRIVER, STRONG, "the GPU driver's firmware failed"),
    43: (_PROGRAM, LIKELY, "a GPU stopped a program's work"),
    44: (_PROGRAM, LIKELY, "a GPU failed during a context switch"),
    46: (_DRIVER, STRONG, "a GPU stopped working"),
    48: (_ECC, DECISIVE, "a GPU's memory has an error that cannot be corrected"),
    61: (_DRIVER, STRONG, "a GPU's microcontroller stopped"),
    62: (_DRIVER, DECISIVE, "a GPU's microcontroller halted"),
    63: (_ECC, LIKELY, "a GPU replaces damaged memory, which a reset completes"),
    64: (_ECC, DECISIVE, "a GPU cannot replace damaged memory"),
    68: (_PROGRAM, LIKELY, "a GPU's video decoder failed"),
    69: (_PROGRAM, STRONG, "a program made a GPU's graphics engine fail"),
    74: (_LINK, DECISIVE, "an NVLink failed"),
    79: (_DRIVER, DECISIVE, "a GPU has fallen off the bus"),
    92: (_ECC, LIKELY, "a GPU corrects many memory errors"),
    94: (_ECC, DECISIVE, "a GPU's memory error ended a program"),
    95: (_ECC, DECISIVE, "a GPU's memory error ended all its programs"),
    109: (_DRIVER, STRONG, "a GPU's context switch timed out"),
    110: (_DRIVER, STRONG, "a GPU reports a security fault"),
    119: (_DRIVER, DECISIVE, "a GPU's system processor does not answer"),
    120: (_DRIVER, DECISIVE, "a GPU's system processor failed"),
    136: (_LINK, STRONG, "the training of an NVLink failed"),
    137: (_PROGRAM, LIKELY, "a program accessed memory of another GPU that is not mapped"),
    140: (_ECC, DECISIVE, "a GPU's memory has an error that was not recovered"),
    143: (_DRIVER, DECISIVE, "a GPU cannot be initialised"),
    154: (_DRIVER, STRONG, "a GPU needs a reset or its node a reboot"),
    155: (_LINK, STRONG, "an NVLink failed"),
    156: (_ECC, LIKELY, "a GPU retires a damaged part"),
    158: (_DRIVER, STRONG, "a GPU timed out"),
    **dict.fromkeys(range(144, 151), (_LINK, STRONG, "an NVLink failed")),
}
"""Class, weight and meaning of an Xid; all others, such as 45, follow from another failure."""

_CAUSE = re.compile(r"caused by previous Xid (?P<a>\d{1,3})(?P<b>)")
_XID = re.compile(
    r"NVRM: Xid \([^()]{0,80}(?:\([^()]*\))?[^()]{0,40}\): (?P<a>\d{1,3})\b"
    r"|\b[Xx][Ii][Dd](?: ?(?:error|code|event))?[ =:#]{1,3}(?P<b>\d{1,3})\b"
)
_KILLED = re.compile(
    r"(?P<cgroup>Memory cgroup )?[Oo]ut of memory(?: \(oom_kill_allocating_task\))?: "
    r"Kill(?:ed)? process (?P<pid>\d+) \((?P<task>[^)]*)\)"
)
_CONSTRAINT = re.compile(r"oom-kill:constraint=CONSTRAINT_(?P<kind>\w+).*?,task=(?P<task>[^,]+)")
_INVOKED = re.compile(r"\S.{0,40} invoked oom-killer: ")
_STUCK = re.compile(
    r"INFO: task (?P<task>.{1,40}):\d+ blocked for more than (?P<seconds>\d+) seconds"
    r"|task:(?P<task2>\S{1,40}) +state:D\b"
    r"|BUG: soft lockup - CPU#\d+ stuck for|hard LOCKUP|self-detected stall on CPU"
    r"|rcu: INFO: rcu_\w+ detected stalls|Kernel panic - not syncing"
)
_DRIVER_FRAME = re.compile(
    r"\w+\+0x[0-9a-f]+/0x[0-9a-f]+ \[(?P<driver>nvidia\w*|amdgpu|habanalabs)\]"
)
_STORAGE_FRAME = re.compile(
    r"\w+\+0x[0-9a-f]+/0x[0-9a-f]+ \[(?P<system>nfs(?:v[34])?|lustre|ceph|cifs|beegfs|fuse|mmfs\w*)\]"
)
_NEXT_TASK = re.compile(r"INFO: task |</TASK>")
_TRACE_LINES = 40
_UNINTERRUPTIBLE = re.compile(
    r"\S+ +\d+ +\d[\d.]* +\d[\d.]* +\d+ +\d+ +\S+ +D[\w+<]* +\S+ +\S+ +(?P<task>\S+)"
)
_AER = re.compile(
    r"(?:AER: )?PCIe Bus Error: severity=(?P<severity>\w+)"
    r"|AER: .{0,40}\b(?P<kind>Correct\w+|Uncorrect\w+)\b.{0,20} error|AER: +device \["
    r"|AER: +\[ ?\d+\] |pcieport \S+: +\[ ?\d+\] \w|device \[[0-9a-f:]{9}\] error status/mask"
)
_CORRECTED = re.compile(r"severity=Correct|\bCorrect(?:ed|able) error", re.IGNORECASE)
_NEAR = 6
_POISONED = re.compile(
    r"Memory failure: 0x[0-9a-f]+: (?:Killing|Sending SIGBUS to) (?P<task>\S{1,40}):\d+"
)
_MACHINE = re.compile(
    r"\[Hardware Error\]: CPU \d+: Machine Check Exception|\bEDAC \S+: \d+ UE |Machine check: Processor context corrupt"
    r"|\[Hardware Error\]: event severity: (?:fatal|recoverable)"
)
_MACHINE_CORRECTED = re.compile(
    r"Machine check events logged|\bEDAC \S+: \d+ CE |\[Hardware Error\]: (?:event severity: corrected|Corrected error)"
)
"""Formats: ``arch/x86/kernel/cpu/mce``, ``drivers/edac``, ``drivers/acpi/apei/ghes.c``, ``mm/memory-failure.c``."""


def _read(line: Line, log: Log) -> Sequence[Signal] | None:
    text = line.text
    if match := _CAUSE.search(text) or _XID.search(text):
        return _xid(int(match["a"] or match["b"]))
    if match := _KILLED.search(text):
        return [_killed(match["task"], in_container=match["cgroup"] is not None)]
    if match := _CONSTRAINT.search(text):
        return [_killed(match["task"], in_container=match["kind"] == "MEMCG")]
    if _INVOKED.search(text):
        return []  # the next lines name the killed process
    if match := _STUCK.search(text):
        task = match["task"] or match["task2"]
        if task and (system := _storage_of(line, log)):
            words = f"the kernel reports that {task} waits for a file system ({system})"
            return [_fact("storage_io_error", STRONG + 2, words)]
        words = f"the kernel reports that {task} hangs" if task else "the kernel hangs"
        return [_fact("node_stuck", STRONG + 2, words)]
    if match := _DRIVER_FRAME.search(text):
        words = f"the kernel shows a stack in the driver {match['driver']}"
        return [_fact("node_stuck", HINT + 8, words)]
    if match := _UNINTERRUPTIBLE.match(text):
        words = f"{match['task']} is in uninterruptible sleep"
        return [_fact("node_stuck", LIKELY, words)]
    if match := _AER.search(text):
        return _bus_error(line, log)
    return _of_machine(line)


def _storage_of(line: Line, log: Log) -> str:
    """The network's file system in which a stuck task waits, by its call trace; else empty."""
    for each in log.after(line.at, _TRACE_LINES):
        if _NEXT_TASK.match(each.text):
            break
        if match := _STORAGE_FRAME.search(each.text):
            return match["system"]
    return ""


def _of_machine(line: Line) -> Sequence[Signal] | None:
    """Errors of the node's processor and memory; those that it corrected are no failure."""
    if match := _POISONED.search(line.text):
        words = f"the kernel ended {match['task']}: the node's memory is damaged"
        return [_of_hardware(DECISIVE, words)]
    if _MACHINE.search(line.text):
        words = "the node's processor or memory reports an error that it cannot correct"
        return [_of_hardware(STRONG + 2, words)]
    return [] if _MACHINE_CORRECTED.search(line.text) else None


def _of_hardware(weight: int, words: str) -> Signal:
    fact = _fact("node_stuck", weight, words)
    return fact._replace(fault="hardware", retry="retry_elsewhere")


def _fact(klass: str, weight: int, words: str) -> Signal:
    return Signal(klass, weight, words, "kernel")


def _xid(number: int) -> Sequence[Signal]:
    if number not in _XIDS:
        return []
    klass, weight, words = _XIDS[number]
    return [_fact(klass, weight, f"{words} (Xid {number})")]


def _killed(task: str, *, in_container: bool) -> Signal:
    where = "the container's limit" if in_container else "the node had none left"
    fact = _fact("host_oom", DECISIVE, f"the kernel killed {task} for memory: {where}")
    return fact if in_container else fact._replace(fault="platform", retry="retry_elsewhere")


def _bus_error(line: Line, log: Log) -> Sequence[Signal]:
    """A PCIe error that the bus corrected is no failure; nearby lines name the severity."""
    around = [line, *log.before(line.at, _NEAR), *log.after(line.at, _NEAR)]
    severities = [each.text for each in around if "severity=" in each.text or "orrect" in each.text]
    if not severities or any(map(_CORRECTED.search, severities)):
        return []
    return [_fact("pcie_error", STRONG + 2, "a device's PCIe link failed")]


KERNEL = Reader(
    (
        "xid", "out of memory: kill", "oom-kill", "blocked for more than", "state:d",
        "soft lockup", "hard lockup", "detected stall", "self-detected stall", "kernel panic",
        "[nvidia", "[amdgpu", "[habanalabs", "pcie bus error", "aer: ", "pcieport", "error status/mask",
        "hardware error", "machine check", "edac ", "memory failure",
        " d  ", " ds ", " dl ", " dsl ", " d+ ", " dl+ ",
    ),
    _read,
)  # fmt: skip


_BROKEN_ROW = re.compile(r"^\|.{0,60}\bERR!.{0,80}\|")
_UNSEEN = re.compile(r"^No devices were found\s*$")
_HANDLE = re.compile(r"Unable to determine the device handle for (?i:gpu)\s?\S*: (?P<why>.{1,100})")
_COUNT = re.compile(
    r"^\s+(?:Double Bit|(?:DRAM|SRAM) Uncorrectable(?: \w+)?|Uncorrectable)\s+: (?P<count>\d{1,9})\s*$"
)
_PENDING = re.compile(r"^\s+(?:Remapping Failure Occurred|Pending Page Blacklist)\s+: Yes\s*$")
_ACTION = re.compile(r"^\s+GPU Recovery Action\s+: (?P<action>(?!None)\w.*)$")
_DCGM = re.compile(r"\bDCGM_FR_(?P<code>[A-Z_]{3,60})\b")
_DCGM_CODES: Mapping[str, str] = {
    "DBE": "gpu_ecc_error", "UNCORRECT": "gpu_ecc_error", "RETIRE": "gpu_ecc_error",
    "ROW_REMAP": "gpu_ecc_error", "NVLINK": "nvlink_error", "NVSWITCH": "nvlink_error",
    "PCI": "pcie_error", "FALLEN_OFF": "gpu_lost",
}  # fmt: skip
_DIAGNOSED = re.compile(r"^\|\s*(?P<test>[A-Za-z][\w /]{2,40}?)\s*\|\s*Fail\b")


def _read_report(line: Line, log: Log) -> Sequence[Signal] | None:
    text = line.text
    if _BROKEN_ROW.match(text):
        return [_of_tool("gpu_lost", STRONG + 3, "nvidia-smi cannot read a GPU (ERR!)")]
    if _UNSEEN.match(text):
        return [_of_tool("gpu_not_available", STRONG, "nvidia-smi finds no GPU")]
    if match := _HANDLE.search(text):
        return [_of_tool("gpu_lost", DECISIVE, f"nvidia-smi cannot reach a GPU: {match['why']}")]
    if match := _COUNT.match(text):
        return _uncorrectable(int(match["count"]), line, log)
    if _PENDING.match(text):
        return [_of_tool("gpu_ecc_error", STRONG, "a GPU has damaged memory to replace")]
    if match := _ACTION.match(text):
        return [_of_tool("gpu_lost", STRONG, f"a GPU needs recovery: {match['action']}")]
    if match := _DCGM.search(text):
        klass = next((k for part, k in _DCGM_CODES.items() if part in match["code"]), "gpu_lost")
        return [_of_tool(klass, STRONG, f"DCGM reports {match['code']}")]
    if match := _DIAGNOSED.match(text):
        return [_of_tool("gpu_lost", LIKELY, f"DCGM's test {match['test']} failed")]
    return None


def _uncorrectable(count: int, line: Line, log: Log) -> Sequence[Signal]:
    """Use counters since the last reboot; ignore those of the GPU's whole life."""
    if not count:
        return []
    for before in log.before(line.at, 30):
        if before.text.strip().startswith("Aggregate"):
            return []
        if before.text.strip().startswith("Volatile"):
            words = f"nvidia-smi counts {count} memory errors that cannot be corrected"
            return [_of_tool("gpu_ecc_error", STRONG, words)]
    return []


def _of_tool(klass: str, weight: int, words: str) -> Signal:
    return Signal(klass, weight, words, "GPU tools")


GPUS = Reader(
    (
        "err!", "no devices were found", "unable to determine the device handle", "double bit",
        "uncorrectable", "remapping failure", "pending page", "gpu recovery action", "dcgm_fr_", "| fail",
    ),
    _read_report,
)  # fmt: skip
