"""What nodes report about their GPUs, beside the errors that ranks notice."""

from __future__ import annotations

from pathlib import Path

import pytest

from pairun.diagnose.incident import Incident, incident_lines
from pairun.diagnose.table import Table
from tests.diagnose.jobs import incident_of, watchdog, write

STEP = "2026-03-01 12:04:16,000 INFO step 120 loss 0.71\n"
LOST = "NVRM: Xid (PCI:0000:3b:00): 79, pid=77123, name=python, GPU has fallen off the bus.\n"
CUDA = "RuntimeError: CUDA error: unspecified launch failure\n"


def diagnosed(
    folder: Path, table: Table, fact: str = f"[88211.120040] {LOST}", error: str = CUDA, **more: str
) -> Incident:
    """Diagnose a job of four ranks, one of which fails, with the log of a kernel."""
    logs = {f"rank{n}.log": STEP + watchdog(n, "12:14:17") for n in range(3)}
    files = logs | {"rank3.log": STEP + error, "dmesg.txt": fact}
    return incident_of(
        write(folder, files | {k.replace("__", "/"): v for k, v in more.items()}), table
    )


@pytest.mark.parametrize(
    ("fact", "klass"),
    [
        (f"[88211.120040] {LOST}", "gpu_lost"),
        (f"[Sun Mar  1 12:04:15 2026] {LOST}", "gpu_lost"),
        (f"Mar  1 20:04:15 gpu07 kernel: {LOST}", "gpu_lost"),
        ("[ 9.1] NVRM: Xid (PCI:0000:3b:00): 95, pid=7, Uncontained ECC error.\n", "gpu_ecc_error"),
        ("[ 9.1] NVRM: Xid (PCI:0000:3b:00): 74, pid=7, NVLink: fatal error detected\n", "nvlink_error"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "error",
    [
        CUDA,
        "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED\n",
        (
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, unhandled cuda "
            "error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.5\n"
        ),
    ],
)
def test_the_kernel_knows_why_cuda_failed(
    fact: str, klass: str, error: str, tmp_path: Path, table: Table
) -> None:
    """The rank prints no process number, so nothing but the node ties the fact to it."""
    incident = diagnosed(tmp_path, table, fact, error)
    assert incident.first is not None
    assert incident.first.rank == 3
    assert (incident.diagnosis.klass, incident.diagnosis.source) == (klass, "kernel")
    assert incident.diagnosis.retry == "retry_elsewhere"
    assert [e.file.rpartition("/")[2] for e in incident.diagnosis.evidence] == [
        "dmesg.txt",
        "rank3.log",
    ]


def test_a_gpu_tool_knows_it_too(tmp_path: Path, table: Table) -> None:
    """A saved report of nvidia-smi shows the lost GPU."""
    report = "Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU\n"
    assert diagnosed(tmp_path, table, report).diagnosis.klass == "gpu_lost"


def test_waiting_ranks_are_explained(tmp_path: Path, table: Table) -> None:
    """All ranks wait in the same collective, and a node has lost a GPU."""
    logs = {f"rank{n}.log": STEP + watchdog(n, "12:14:17") for n in range(4)}
    incident = incident_of(write(tmp_path, logs | {"dmesg.txt": f"[ 9.1] {LOST}"}), table)
    assert incident.diagnosis.klass == "gpu_lost"
    assert incident_lines(incident)[0].startswith("all known ranks entered collective 121")


@pytest.mark.parametrize(
    ("fact", "error", "klass"),
    [
        (f"[ 9.1] {LOST}", "KeyError: 5\n", "user_code_error"),
        ("[ 9.1] NVRM: Xid (PCI:0000:3b:00): 63, pid=7, Row Remapper: new row\n", CUDA, "cuda_kernel_error"),
    ],
)  # fmt: skip
def test_a_fact_that_explains_nothing_changes_nothing(
    fact: str, error: str, klass: str, tmp_path: Path, table: Table
) -> None:
    """The rank's own error, and a light fact."""
    assert diagnosed(tmp_path, table, fact, error).diagnosis.klass == klass


def test_another_nodes_gpu_explains_nothing(tmp_path: Path, table: Table) -> None:
    """The node of rank 0 lost a GPU, and rank 1 of another node raised."""
    logs = {
        "node1/rank0.log": STEP + watchdog(0, "12:14:17"),
        "node2/rank1.log": STEP + CUDA,
        "messages": f"Mar  1 12:04:15 node1 kernel: {LOST}",
    }
    assert incident_of(write(tmp_path / "a", logs), table).diagnosis.klass == "cuda_kernel_error"
    logs["messages"] = f"Mar  1 12:04:15 node2 kernel: {LOST}"
    assert incident_of(write(tmp_path / "b", logs), table).diagnosis.klass == "gpu_lost"


def test_a_job_that_finished_is_left_alone(tmp_path: Path, table: Table) -> None:
    """A node may lose a GPU that the job does not use."""
    logs = {f"rank{n}.log": STEP + "training completed successfully\n" for n in range(2)}
    incident = incident_of(write(tmp_path, logs | {"dmesg.txt": f"[ 9.1] {LOST}"}), table)
    assert incident.diagnosis.klass == "none"
