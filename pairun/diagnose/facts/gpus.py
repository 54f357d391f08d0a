"""Facts from nvidia-smi and DCGM: lost, missing or damaged GPUs.

Formats: ``nvidia-smi``, ``nvidia-smi -q`` and ``dcgmi diag``; DCGM's codes are from
``dcgm_errors.h``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pairun.diagnose.facts.fact import DECISIVE, LIKELY, STRONG, Fact, Reader
from pairun.diagnose.lines import Line, Log

_BROKEN_ROW = re.compile(r"^\|.{0,60}\bERR!.{0,80}\|")
_UNSEEN = re.compile(r"^No devices were found\s*$")
_HANDLE = re.compile(r"Unable to determine the device handle for (?i:gpu)\s?\S*: (?P<why>.{1,100})")
_COUNT = re.compile(
    r"^\s+(?:Double Bit|(?:DRAM|SRAM) Uncorrectable(?: \w+)?|Uncorrectable)\s+: (?P<count>\d{1,9})\s*$"
)
_PENDING = re.compile(r"^\s+(?:Remapping Failure Occurred|Pending Page Blacklist)\s+: Yes\s*$")
_ACTION = re.compile(r"^\s+GPU Recovery Action\s+: (?P<action>(?!None)\w.*)$")
_DCGM = re.compile(r"\bDCGM_FR_(?P<code>[A-Z_]{3,60})\b")
_CODES: Mapping[str, str] = {
    "DBE": "gpu_ecc_error", "UNCORRECT": "gpu_ecc_error", "RETIRE": "gpu_ecc_error",
    "ROW_REMAP": "gpu_ecc_error", "NVLINK": "nvlink_error", "NVSWITCH": "nvlink_error",
    "PCI": "pcie_error", "FALLEN_OFF": "gpu_lost",
}  # fmt: skip
_DIAGNOSED = re.compile(r"^\|\s*(?P<test>[A-Za-z][\w /]{2,40}?)\s*\|\s*Fail\b")


def _read(line: Line, log: Log) -> Sequence[Fact] | None:
    text = line.text
    if _BROKEN_ROW.match(text):
        return [_fact("gpu_lost", STRONG + 3, "nvidia-smi cannot read a GPU (ERR!)", line)]
    if _UNSEEN.match(text):
        return [_fact("gpu_not_available", STRONG, "nvidia-smi finds no GPU", line)]
    if match := _HANDLE.search(text):
        return [_fact("gpu_lost", DECISIVE, f"nvidia-smi cannot reach a GPU: {match['why']}", line)]
    if match := _COUNT.match(text):
        return _uncorrectable(int(match["count"]), line, log)
    if _PENDING.match(text):
        return [_fact("gpu_ecc_error", STRONG, "a GPU has damaged memory to replace", line)]
    if match := _ACTION.match(text):
        return [_fact("gpu_lost", STRONG, f"a GPU needs recovery: {match['action']}", line)]
    if match := _DCGM.search(text):
        klass = next((k for part, k in _CODES.items() if part in match["code"]), "gpu_lost")
        return [_fact(klass, STRONG, f"DCGM reports {match['code']}", line)]
    if match := _DIAGNOSED.match(text):
        return [_fact("gpu_lost", LIKELY, f"DCGM's test {match['test']} failed", line)]
    return None


def _uncorrectable(count: int, line: Line, log: Log) -> Sequence[Fact]:
    """Use counters since the last reboot; ignore those of the GPU's whole life."""
    if not count:
        return []
    for before in log.before(line.at, 30):
        if before.text.strip().startswith("Aggregate"):
            return []
        if before.text.strip().startswith("Volatile"):
            words = f"nvidia-smi counts {count} memory errors that cannot be corrected"
            return [_fact("gpu_ecc_error", STRONG, words, line)]
    return []


def _fact(klass: str, weight: int, words: str, line: Line) -> Fact:
    return Fact(klass, weight, words, "GPU tools", line.at)


GPUS = Reader(
    (
        "err!", "no devices were found", "unable to determine the device handle", "double bit",
        "uncorrectable", "remapping failure", "pending page", "gpu recovery action", "dcgm_fr_", "| fail",
    ),
    _read,
)  # fmt: skip
