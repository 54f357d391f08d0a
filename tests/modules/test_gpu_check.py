"""The module gpu_check, with programs that play nvidia-smi and dmesg, after several drivers' formats."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pairun.contract.loading import load_module
from pairun.host.worlds import ReviewContext
from pairun.plan import Task
from pairun.review.taskreview import judge

if TYPE_CHECKING:
    from tests.modules.conftest import Harness

FILE = Path(__file__).parents[2] / "modules" / "gpu_check.py"

HEAD = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v{}.dtd">\n'


def report(driver: str, *gpus: str, dtd: str = "12") -> str:
    """A whole report."""
    return (
        f"{HEAD.format(dtd)}<nvidia_smi_log>\n\t<timestamp>Mon Jan  1 00:00:00 2024</timestamp>\n"
        f"\t<driver_version>{driver}</driver_version>\n\t<attached_gpus>{len(gpus)}</attached_gpus>\n"
        + "".join(gpus)
        + "</nvidia_smi_log>\n"
    )


def gpu(number: int, *parts: str) -> str:
    """One GPU; its address and its names come from its number."""
    at = f"00000000:{number + 16:02X}:00.0"
    return (
        f'\t<gpu id="{at}">\n\t\t<product_name>Test &amp; Co</product_name>\n'
        f"\t\t<serial>13200000000{number:02d}</serial>\n"
        f"\t\t<uuid>GPU-0000000{number}-1111-2222-3333-444444444444</uuid>\n"
        + "".join(parts)
        + f"\t\t<pci><pci_bus_id>{at}</pci_bus_id></pci>\n\t\t<processes>\n\t\t</processes>\n\t</gpu>\n"
    )


NO_MIG = """
<mig_mode><current_mig>N/A</current_mig><pending_mig>N/A</pending_mig></mig_mode>
<mig_devices>
None
</mig_devices>
"""


def old(volatile: str = "0", aggregate: str = "0", pending: str = "No") -> str:
    """Memory errors as drivers before 450 tell them."""
    kinds = ("device_memory", "register_file", "l1_cache", "l2_cache", "texture_memory", "cbu")

    def errors(total: str) -> str:
        each = "".join(f"<{k}>{total if k == 'device_memory' else 0}</{k}>" for k in kinds)
        return f"<single_bit>{each}<total>7</total></single_bit><double_bit>{each}<total>{total}</total></double_bit>"

    return (
        "<ecc_mode><current_ecc>Enabled</current_ecc></ecc_mode>"
        f"<ecc_errors><volatile>{errors(volatile)}</volatile>"
        f"<aggregate>{errors(aggregate)}</aggregate></ecc_errors>"
        "<retired_pages><double_bit_retirement><retired_count>1</retired_count>"
        "<retired_page_addresses><retired_page_address>0x00000000000a</retired_page_address>"
        "</retired_page_addresses></double_bit_retirement>"
        f"<pending_retirement>{pending}</pending_retirement></retired_pages>"
    )


def new(dram: str = "0", sram: str = "0", life: str = "0", pending: str = "No", failed: str = "No") -> str:  # fmt: skip
    """As drivers from 450 on do."""

    def errors(n: str) -> str:
        return (
            f"<sram_correctable>9</sram_correctable><sram_uncorrectable>{sram}</sram_uncorrectable>"
            f"<dram_correctable>9</dram_correctable><dram_uncorrectable>{n}</dram_uncorrectable>"
        )

    return NO_MIG + (
        f"<ecc_errors><volatile>{errors(dram)}</volatile><aggregate>{errors(life)}</aggregate></ecc_errors>"
        "<retired_pages><pending_blacklist>N/A</pending_blacklist>"
        "<pending_retirement>N/A</pending_retirement></retired_pages>"
        "<remapped_rows><remapped_row_corr>1</remapped_row_corr><remapped_row_unc>1</remapped_row_unc>"
        f"<remapped_row_pending>{pending}</remapped_row_pending>"
        f"<remapped_row_failure>{failed}</remapped_row_failure></remapped_rows>"
    )


def newest(parity: str = "0", threshold: str = "No", tpc: str = "No", action: str = "None") -> str:
    """As drivers from 550 on do."""
    deprecated = "Requested functionality has been deprecated"
    return NO_MIG + (
        f"<gpu_reset_status><reset_required>{deprecated}</reset_required></gpu_reset_status>"
        f"<gpu_recovery_action>{action}</gpu_recovery_action>"
        "<ecc_errors><volatile><sram_correctable>0</sram_correctable>"
        f"<sram_uncorrectable_parity>{parity}</sram_uncorrectable_parity>"
        "<sram_uncorrectable_secded>0</sram_uncorrectable_secded>"
        "<dram_correctable>0</dram_correctable><dram_uncorrectable>0</dram_uncorrectable></volatile>"
        "<aggregate><dram_uncorrectable>0</dram_uncorrectable>"
        f"<sram_threshold_exceeded>{threshold}</sram_threshold_exceeded></aggregate>"
        "<aggregate_uncorrectable_sram_sources><sram_l2>5</sram_l2></aggregate_uncorrectable_sram_sources>"
        f"<channel_repair_pending>No</channel_repair_pending><tpc_repair_pending>{tpc}</tpc_repair_pending>"
        "</ecc_errors><remapped_rows><remapped_row_pending>No</remapped_row_pending>"
        "<remapped_row_failure>No</remapped_row_failure></remapped_rows>"
    )


NOTHING_COUNTED = NO_MIG + (
    "<ecc_errors><volatile><sram_uncorrectable>N/A</sram_uncorrectable>"
    "<dram_uncorrectable>N/A</dram_uncorrectable></volatile></ecc_errors>"
    "<remapped_rows>N/A</remapped_rows><display/>"
)
DIVIDED = (
    "<mig_mode><current_mig>Enabled</current_mig><pending_mig>Enabled</pending_mig></mig_mode>"
    "<mig_devices><mig_device><index>0</index><ecc_error_count><volatile_count>"
    "<sram_uncorrectable>0</sram_uncorrectable></volatile_count></ecc_error_count></mig_device>"
    "<mig_device><index>1</index></mig_device></mig_devices>"
)
EIGHT = [new("0") for _ in range(8)]
LAUGHS = report("1", gpu(0)).replace(
    'SYSTEM "nvsmi_device_v12.dtd">',
    '[<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>',
)


def fake(folder: Path, name: str, output: str, code: int = 0, before: str = "") -> None:
    """Put a program there that prints a text."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_text(output)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{before}\n/bin/cat {folder / name}.txt\nexit {code}\n")
    program.chmod(0o755)


ONE = "GPU 0 (uuid GPU-00000000-1111-2222-3333-444444444444, serial 1320000000000, at 00000000:10:00.0): "
TABLE: list[dict[str, Any]] = [
    {"what": "390, well", "smi": report("390.46", gpu(0, old()), gpu(1, old()), dtd="10"),
     "values": {"gpus": 2, "driver": "390.46", "problems": []}},
    {"what": "390, a double-bit error", "smi": report("390.46", gpu(0, old("2")), dtd="10"),
     "failure": "permanent", "fault": "platform",
     "says": ONE + "2 uncorrectable memory errors since the driver was loaded"},
    {"what": "418, a page retirement waits", "smi": report("418.67", gpu(0, old(pending="Yes"))),
     "failure": "permanent", "says": ONE + "a page retirement waits for a reset"},
    {"what": "450, well with corrected errors", "smi": report("450.80.02", gpu(0, new())),
     "values": {"gpus": 1, "driver": "450.80.02", "problems": []}},
    {"what": "535, DRAM and SRAM", "smi": report("535.104.05", gpu(0, new("3", sram="1"))),
     "failure": "permanent", "says": ONE + "4 uncorrectable memory errors"},
    {"what": "535, a row remapping waits", "smi": report("535.104.05", gpu(0, new(pending="Yes"))),
     "failure": "permanent", "says": ONE + "a row remapping waits for a reset"},
    {"what": "535, a row remapping has failed", "smi": report("535.104.05", gpu(0, new(failed="Yes"))),
     "failure": "permanent", "says": ONE + "a row remapping has failed"},
    {"what": "the errors of a GPU's life count where that is asked for",
     "smi": report("535.104.05", gpu(0, new(life="6"))), "args": {"max_aggregate": 5},
     "failure": "permanent", "says": ONE + "6 uncorrectable memory errors in its life"},
    {"what": "and do not where it is not", "smi": report("535.104.05", gpu(0, new(life="6"))),
     "values": {"gpus": 1, "driver": "535.104.05", "problems": []}},
    {"what": "570, well, with words of what is no more", "smi": report("570.86.10", gpu(0, newest())),
     "values": {"gpus": 1, "driver": "570.86.10", "problems": []}},
    {"what": "570, parity", "smi": report("570.86.10", gpu(0, newest("1"))),
     "failure": "permanent", "says": ONE + "1 uncorrectable memory errors"},
    {"what": "570, several", "smi": report("570.86.10", gpu(0, newest("1", "Yes", "Yes", "Reset"))),
     "failure": "permanent",
     "says": "driver was loaded, it has had too many SRAM errors, a repair of a processing cluster "
             "waits for a reset, the driver asks for: Reset"},
    {"what": "525, a reset is required",
     "smi": report("525.1", gpu(0, new(), "<gpu_reset_status><reset_required>Yes</reset_required></gpu_reset_status>")),
     "failure": "permanent", "says": ONE + "it must be reset"},
    {"what": "a GPU that is lost",
     "smi": report("535.1", gpu(0, "<fan_speed>[GPU is lost]</fan_speed>", new("N/A"))),
     "failure": "permanent", "says": ONE + "the driver has lost it"},
    {"what": "a GPU that counts nothing is well", "smi": report("535.1", gpu(0, NOTHING_COUNTED)),
     "values": {"gpus": 1, "driver": "535.1", "problems": []}},
    {"what": "one of eight is bad, and it is named",
     "smi": report("535.1", *(gpu(n, new("1" if n == 5 else "0")) for n in range(8))),
     "args": {"gpus": 8}, "failure": "permanent",
     "says": "GPU 5 (uuid GPU-00000005-1111-2222-3333-444444444444, serial 1320000000005, at 00000000:15:00.0): 1 unc"},
    {"what": "retry elsewhere is a conflict", "smi": report("535.1", gpu(0, new("1"))),
     "args": {"policy": "retry"}, "failure": "conflict", "fault": "platform", "says": ONE},
    {"what": "a warning is a result", "smi": report("535.1", gpu(0, new("1"))), "args": {"policy": "warn"},
     "values": {"gpus": 1, "driver": "535.1",
                "problems": [ONE + "1 uncorrectable memory errors since the driver was loaded"]}},
    {"what": "fewer than asked for", "smi": report("535.1", gpu(0, new())), "args": {"gpus": 2},
     "failure": "permanent", "says": "1 of 2 GPUs are present"},
    {"what": "more than asked for is no fault", "smi": report("535.1", gpu(0, new()), gpu(1, new())),
     "args": {"gpus": 1}, "values": {"gpus": 2, "driver": "535.1", "problems": []}},
    {"what": "none is asked for", "smi": report("535.1", gpu(0, new("1"))), "args": {"gpus": 0},
     "skipped": True, "says": "asks for no GPU"},
    {"what": "the parts of a divided GPU count", "smi": report("535.1", gpu(0, DIVIDED), gpu(1, new())),
     "args": {"gpus": 3}, "values": {"gpus": 3, "driver": "535.1", "problems": []}},
    {"what": "no nvidia-smi where GPUs are asked for", "args": {"gpus": 1}, "failure": "permanent",
     "fault": "platform", "says": "nvidia-smi is missing"},
    {"what": "no nvidia-smi where nobody asked", "skipped": True, "says": "nvidia-smi is missing"},
    {"what": "no driver", "smi": "NVIDIA-SMI has failed because it couldn't communicate\n", "code": 9,
     "failure": "permanent", "fault": "platform", "says": "nvidia-smi ended with 9: the driver is not loaded"},
    {"what": "a code that nobody knows", "smi": "Failed to \x1b[1mtry\n", "code": 77,
     "failure": "permanent", "says": "nvidia-smi ended with 77: Failed to  [1mtry"},
    {"what": "a corrupted infoROM beside a whole report",
     "smi": "WARNING: infoROM is corrupted at gpu 0000:10:00.0\n" + report("535.1", gpu(0, new())),
     "code": 14, "failure": "permanent", "says": "nvidia-smi ended with 14: a GPU's infoROM is corrupted"},
    {"what": "a report that is cut off", "smi": report("535.1", gpu(0, new()))[:-80],
     "failure": "permanent", "says": "nvidia-smi: it is incomplete"},
    {"what": "no XML", "smi": "hello\n", "failure": "permanent", "says": "it is not an XML report"},
    {"what": "entities that grow", "smi": LAUGHS, "failure": "permanent", "says": "declares entities"},
    {"what": "elements without end", "smi": report("1", "<a>" * 100), "failure": "permanent",
     "says": "it is nested too deeply"},
    {"what": "elements that cross", "smi": report("1", "<gpu><a></gpu></a>"), "failure": "permanent",
     "says": "</gpu> has no opening tag"},
    {"what": "an Xid of the hardware", "smi": report("535.1", gpu(0, new())),
     "dmesg": "[{now}] NVRM: Xid (PCI:0000:10:00): 79, pid=1, GPU has fallen off the bus.\n",
     "failure": "permanent", "says": ONE + "Xid 79 (fallen off the bus)"},
    {"what": "an Xid of another GPU, one of a program, and one of the day before yesterday",
     "smi": report("535.1", gpu(0, new())),
     "dmesg": "[{now}] NVRM: Xid (PCI:0000:99:00): 79, x\n[{now}] NVRM: Xid (PCI:0000:10:00): 31, x\n"
              "[   -1.5] NVRM: Xid (0000:10:00): 48, x\n[{old}] NVRM: Xid (0000:10:00): 48, x\n",
     "values": {"gpus": 1, "driver": "535.1", "problems": []}},
    {"what": "the last words of a GPU that is gone", "smi": report("535.1", gpu(0, new())),
     "dmesg": "[{now}] NVRM: Xid (0000:99:00): 79, x\n", "args": {"gpus": 2}, "failure": "permanent",
     "says": "1 of 2 GPUs are present; the GPU at 0000:99:00, which is missing: Xid 79"},
    {"what": "a kernel's log that may not be read", "smi": report("535.1", gpu(0, new())),
     "dmesg": "dmesg: read kernel buffer failed: Operation not permitted\n", "dmesg_code": 1,
     "values": {"gpus": 1, "driver": "535.1", "problems": []}},
]  # fmt: skip


@pytest.mark.parametrize("row", TABLE, ids=[str(row["what"]) for row in TABLE])
def test_table(harness: Harness, row: dict[str, Any]) -> None:
    """Every row holds, and holds again."""
    programs = harness.tmp / "bin"
    programs.mkdir()
    given = dict(row)
    smi, code = given.pop("smi", None), given.pop("code", 0)
    if smi is not None:
        fake(programs, "nvidia-smi", smi, code)
    log, log_code = given.pop("dmesg", None), given.pop("dmesg_code", 0)
    if log is not None:
        now = float(Path("/proc/uptime").read_text().split()[0])
        fill = {"{now}": f"{now:12.6f}", "{old}": f"{max(0.0, now - 2 * 86400):12.6f}"}
        if now < 2 * 86400:
            # This machine has not run that long: the line would be of today.
            log = re.sub(r"\[{old}\].*\n", "", log)
        fake(programs, "dmesg", re.sub("{now}|{old}", lambda m: fill[m[0]], log), log_code)
    case = {"args": {}, **given, "env": {"PATH": str(programs)}}
    first = harness.table("gpu_check", case)
    again = harness.run("gpu_check", case["args"], case["env"])
    assert str(first.failure) == str(again.failure)
    assert first.result == again.result


def test_a_driver_that_hangs(harness: Harness) -> None:
    """nvidia-smi is killed when its time is up, also where it does not listen."""
    programs = harness.tmp / "bin"
    fake(programs, "nvidia-smi", "", before="trap '' TERM; while :; do /bin/sleep 0.1; done")
    began = time.monotonic()
    args = {"gpus": 1, "answer_within": "300ms", "policy": "retry"}
    outcome = harness.run("gpu_check", args, {"PATH": str(programs)})
    assert time.monotonic() - began < 20
    assert outcome.failure is not None
    assert outcome.failure.kind == "conflict"
    assert outcome.failure.message == "nvidia-smi did not answer within 300ms: the driver hangs"


def test_a_program_for_another_machine(harness: Harness) -> None:
    """An nvidia-smi that cannot be executed is a problem of the platform."""
    programs = harness.tmp / "bin"
    programs.mkdir()
    (programs / "nvidia-smi").write_bytes(b"\x7fELF\x00")
    (programs / "nvidia-smi").chmod(0o755)
    outcome = harness.run("gpu_check", {"gpus": 1}, {"PATH": str(programs)})
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.failure.fault) == ("permanent", "platform")


def test_many_problems_are_all_in_the_log(harness: Harness) -> None:
    """The sentence names four, the log every one."""
    programs = harness.tmp / "bin"
    fake(programs, "nvidia-smi", report("535.1", *(gpu(n, new("1")) for n in range(8))))
    outcome = harness.run("gpu_check", {"gpus": 8}, {"PATH": str(programs)})
    assert outcome.failure is not None
    assert outcome.failure.message.endswith("; and 4 more")
    assert [line[:5] for line in harness.log] == [f"GPU {n}" for n in range(8)]


def test_wrong_arguments(harness: Harness) -> None:
    """Numbers below nothing."""
    for args in ({"gpus": -1}, {"max_aggregate": -1}, {"answer_within": "0s"}):
        assert "may not be negative" in harness.problems("gpu_check", args)[0].message


def test_a_review_asks_nobody() -> None:
    """In a review it is a check that runs when it runs."""
    task = Task(id="gpu_check", name="G", module="gpu_check", args={})
    verdict = judge(task, load_module("gpu_check", str(FILE)), ReviewContext({}, "/pai"))
    assert verdict.kind == "check"
