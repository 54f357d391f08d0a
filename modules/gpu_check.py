"""Check that the GPUs of this container are present and healthy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from pairun.module import (
    CheckModule,
    Completed,
    Conflict,
    Context,
    Duration,
    Failure,
    GpuReportElement,
    Permanent,
    Result,
    Skip,
    TimedOut,
    arg,
    define,
    format_duration,
    parse_gpu_report,
    uncorrectable_errors,
)

_LARGEST_REPORT = 16 * 1024 * 1024
_SHOWN = 4
_KERNEL_LOG_S = 5.0
_RECENT_S = 24 * 3600.0

# nvidia-smi(1), "RETURN VALUE".
_CODES = {
    4: "it may not access the driver",
    6: "it found no GPU",
    8: "a GPU's power cable is not attached",
    9: "the driver is not loaded",
    10: "the kernel has trouble with a GPU's interrupts",
    12: "the driver's library was not found in this container",
    13: "the driver's library is of another version",
    14: "a GPU's infoROM is corrupted",
    15: "a GPU has fallen off the bus, or cannot be reached",
}

# Fields of a report whose Yes requires a person; names from several driver generations.
_FLAGS = (
    ("remapped_rows/remapped_row_pending", "a row remapping waits for a reset"),
    ("remapped_rows/remapped_row_failure", "a row remapping has failed"),
    ("retired_pages/pending_retirement", "a page retirement waits for a reset"),
    ("retired_pages/pending_blacklist", "a page retirement waits for a reset"),
    ("ecc_errors/aggregate/sram_threshold_exceeded", "it has had too many SRAM errors"),
    ("ecc_errors/channel_repair_pending", "a repair of a memory channel waits for a reset"),
    ("ecc_errors/tpc_repair_pending", "a repair of a processing cluster waits for a reset"),
    ("ecc_errors/unrepairable_memory", "its memory cannot be repaired"),
    ("gpu_reset_status/reset_required", "it must be reset"),
)
_RECOVERY = re.compile("(GPU )?Reset|(Node )?Reboot|Drain( P2P| and Reset)?", re.IGNORECASE)
_GONE = re.compile("(GPU )?(is lost|requires reset)", re.IGNORECASE)

# NVIDIA, "XID Errors": those caused by the machine, not by the program that ran on it.
_XIDS = {
    48: "a double-bit memory error",
    62: "a halt of its controller",
    64: "a row remapping that failed",
    74: "an NVLink error",
    79: "fallen off the bus",
    95: "an uncontained memory error",
    119: "its processor did not answer",
    120: "an error of its processor",
    140: "an unrecovered memory error",
}
_XID = re.compile(
    r"^\[ *([0-9]{1,12}\.[0-9]{1,9})\] NVRM: Xid \((?:PCI:)?([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):"
    r"([0-9a-fA-F]{2})[^)]{0,20}\): ([0-9]{1,4})\b",
    re.MULTILINE,
)
_Address = tuple[int, int, int]


class _Gpu(NamedTuple):
    """One GPU of the report."""

    number: int
    element: GpuReportElement

    @property
    def address(self) -> _Address | None:
        """Domain, bus and device on the PCI bus."""
        match = re.search("([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})", self._bus)
        return _address(*match.groups()) if match else None

    @property
    def _bus(self) -> str:
        named = re.search('id="([^"]*)"', self.element.attributes)
        return named[1] if named else self.element.value("pci/pci_bus_id")

    @property
    def devices(self) -> int:
        """The number of GPUs that a job can use: the parts of a GPU that is divided."""
        if self.element.value("mig_mode/current_mig") != "Enabled":
            return 1
        parts = self.element.at("mig_devices")
        return len(parts.all("mig_device")) if parts else 0

    def __str__(self) -> str:
        facts = (
            ("uuid", self.element.value("uuid")),
            ("serial", self.element.value("serial")),
            ("at", self._bus),
        )
        known = [f"{name} {_plain(value)}" for name, value in facts if value not in ("", "N/A")]
        return f"GPU {self.number}" + (f" ({', '.join(known)})" if known else "")


@define
class GpuCheck(CheckModule):
    """Check that the container has the GPUs that the job requests, and that they are healthy.

    It reads `nvidia-smi -q -x`: uncorrectable memory errors, repairs that wait for a reset or have
    failed, lost GPUs. If the kernel's log is readable, it also finds the Xids of these GPUs that mean
    broken hardware.
    """

    privileges = "what nvidia-smi needs; for Xids, the kernel's log"
    example = "gpu_check: {gpus: 8, policy: retry}"

    gpus: int | None = arg(
        "The number that the instance requests, such as job.role.resources.gpu; 0: no check.",
        default=None,
    )
    policy: Literal["fail", "retry", "warn"] = arg(
        "What a bad GPU causes: a failure, a conflict so that another node is tried, or a warning.",
        default="fail",
    )
    max_aggregate: int | None = arg(
        "The most uncorrectable errors in a GPU's whole life; they are not counted by default.",
        default=None,
    )
    answer_within: Duration = arg("The longest time for nvidia-smi.", default=Duration(30.0))

    def require(self) -> Iterator[str]:
        """The numbers are valid."""
        if min(self.gpus or 0, self.max_aggregate or 0) < 0 or self.answer_within <= 0:
            yield "'gpus', 'max_aggregate' and 'answer_within' may not be negative"

    def check(self, ctx: Context) -> Result:
        """Read the report, compare, and name the bad GPU."""
        if self.gpus == 0:
            raise Skip("this instance asks for no GPU")
        if ctx.which("nvidia-smi") is None:
            if self.gpus is None:
                raise Skip("nvidia-smi is missing")
            return self._judged(ctx, ["nvidia-smi is missing: check the driver on this node"])
        asked, problems = self._ask(ctx)
        if asked is None:
            return self._judged(ctx, problems)
        try:
            log = parse_gpu_report(asked.stdout[:_LARGEST_REPORT].decode("utf-8", "replace"))
        except ValueError as e:
            if not problems:
                problems = [f"cannot read the output of nvidia-smi: {e}"]
            return self._judged(ctx, problems)
        return self._compare(ctx, log, problems)

    def _ask(self, ctx: Context) -> tuple[Completed | None, list[str]]:
        try:
            asked = ctx.query(["nvidia-smi", "-q", "-x"], timeout_s=self.answer_within)
        except TimedOut:
            waited = format_duration(self.answer_within)
            return None, [f"nvidia-smi did not answer within {waited}: the driver hangs"]
        except Permanent as e:
            return None, [e.message]
        if asked.code == 0:
            return asked, []
        words = _CODES.get(asked.code) or _first_line(asked)
        return asked, [f"nvidia-smi ended with {asked.code}: {words}"]

    def _compare(self, ctx: Context, log: GpuReportElement, problems: list[str]) -> Result:
        gpus = [_Gpu(number, e) for number, e in enumerate(log.all("gpu"))]
        xids = _xids(ctx)
        devices = sum(gpu.devices for gpu in gpus)
        if devices < (self.gpus or 0):
            problems.append(f"{devices} of {self.gpus} GPUs are present")
            # The kernel log may still name a GPU that the driver has lost.
            known = {gpu.address for gpu in gpus}
            gone = {a: codes for a, codes in (xids or {}).items() if a not in known}
            problems += [f"{_shown(a)}, which is missing: {_in_words(c)}" for a, c in gone.items()]
        for gpu in gpus:
            wrong = list(self._wrong(gpu.element))
            if gpu.address and (codes := (xids or {}).get(gpu.address)):
                wrong.append(_in_words(codes))
            problems += [f"{gpu}: {', '.join(wrong)}"] if wrong else []
        driver = _plain(log.value("driver_version")) or "of an unknown version"
        count = f"{devices} GPU{'s' if devices != 1 else ''}, driver {driver}"
        unread = "; the kernel's log cannot be read" if xids is None else ""
        values = {"gpus": devices, "driver": driver, "problems": problems}
        return self._judged(ctx, problems, Result(values=values, message=f"{count}{unread}"))

    def _wrong(self, gpu: GpuReportElement) -> Iterator[str]:
        """The problems of one GPU."""
        if any(_GONE.search(text) for text in gpu.texts()):
            yield "the driver has lost it, or it must be reset"
        if volatile := uncorrectable_errors(gpu, "volatile"):
            yield f"{volatile} uncorrectable memory errors since the driver was loaded"
        aggregate = uncorrectable_errors(gpu, "aggregate")
        if self.max_aggregate is not None and aggregate > self.max_aggregate:
            yield f"{aggregate} uncorrectable memory errors in its life"
        yield from dict.fromkeys(words for path, words in _FLAGS if gpu.value(path) == "Yes")
        if _RECOVERY.fullmatch(action := gpu.value("gpu_recovery_action")):
            yield f"the driver asks for: {action}"

    def _judged(self, ctx: Context, problems: list[str], result: Result | None = None) -> Result:
        """The result, or the policy's answer to problems."""
        if not problems:
            return result or Result()
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        message = "; ".join(problems[:_SHOWN]) + more
        if self.policy == "warn" or more:
            for problem in problems:
                ctx.log(problem)
        if self.policy == "warn":
            values = result.values if result else {"problems": problems}
            return Result(values=values, message=f"only a warning: {message}")
        kind: type[Failure] = Conflict if self.policy == "retry" else Permanent
        hint = "report the node to its operator; another node may work"
        raise kind(message, fault="platform", hint=hint)


def _xids(ctx: Context) -> dict[_Address, list[int]] | None:
    """The last day's Xids of broken hardware, by address; None if the log cannot be read."""
    if ctx.which("dmesg") is None:
        return None
    try:
        asked = ctx.query(["dmesg"], timeout_s=_KERNEL_LOG_S)
        uptime = (ctx.read_file("/proc/uptime") or b"").split()
    except Failure:
        return None
    if asked.code != 0:
        return None
    # Older ones were handled by a reset, or by a person who kept the node in use.
    since = float(uptime[0]) - _RECENT_S if uptime else 0.0
    errors: dict[_Address, list[int]] = {}
    for match in _XID.finditer(asked.stdout.decode("utf-8", "replace")):
        code = int(match[5])
        codes = errors.setdefault(_address(*match.group(2, 3, 4)), [])
        if code in _XIDS and float(match[1]) >= since and code not in codes:
            codes.append(code)
    return {address: codes for address, codes in errors.items() if codes}


def _address(domain: str, bus: str, device: str) -> _Address:
    return int(domain, 16), int(bus, 16), int(device, 16)


def _shown(address: _Address) -> str:
    domain, bus, device = address
    return f"the GPU at {domain:04x}:{bus:02x}:{device:02x}"


def _in_words(codes: list[int]) -> str:
    return ", ".join(f"Xid {code} ({_XIDS[code]})" for code in codes)


def _first_line(asked: Completed) -> str:
    for line in (asked.stderr + b"\n" + asked.stdout).decode("utf-8", "replace").splitlines():
        if line.strip() and not line.lstrip().startswith("<"):
            return _plain(line)
    return "no reason given"


def _plain(text: str) -> str:
    """A text from outside, made fit for one line."""
    return "".join(c if c.isprintable() else " " for c in text.strip())[:160]
