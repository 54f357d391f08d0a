"""Which rank a kernel's report is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from pairun.diagnose.table import Table
from tests.incident.clusterdata import as_json, pod
from tests.incident.jobs import KEY_ERROR, incident_of, watchdog, write

UID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
QUIET = "2026-03-01 12:04:16,000 step 120 loss 0.71\n"
KILLED = (
    "[ 9120.100000] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task_memcg={cgroup},task=python3,"
    "pid={pid},uid=0\n[ 9120.200000] Memory cgroup out of memory: Killed process {pid} (python3) total-vm:9kB\n"
)


def logs(quiet: tuple[int, ...], text: str = QUIET) -> dict[str, str | bytes]:
    """Logs of four ranks: some end without an error, the others time out."""
    return {f"rank{n}.log": text if n in quiet else watchdog(n, "12:14:20") for n in range(4)}


@pytest.mark.parametrize(
    ("cgroup", "more"),
    [
        (f"/kubepods/burstable/pod{UID}/4f5a", {"pods.json": as_json(pod("rank-2", phase="Running") | {
            "metadata": {"name": "w-2", "uid": UID}})}),
        (f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-4f.scope", {
            "pods.json": as_json(pod("w-2") | {"metadata": {"name": "w-2", "uid": UID}})}),
        ("/slurm/uid_1000/job_17/step_0/task_2", {}),
        ("/user.slice", {"torchrun.log":
            "E1201 api.py:138] failed (exitcode: -9) local_rank: 2 (pid: 4711) of binary: python\n"}),
    ],
)  # fmt: skip
def test_the_killed_process_is_a_rank(
    cgroup: str, more: dict[str, str | bytes], tmp_path: Path, table: Table
) -> None:
    """By the Pod or Slurm's task in its cgroup, or by its number; two ranks end without an error."""
    files = {**logs((1, 2)), **more, "node-a-dmesg.txt": KILLED.format(cgroup=cgroup, pid=4711)}

    incident = incident_of(write(tmp_path, files), table)

    assert incident.first is not None
    assert incident.first.rank == 2
    assert (incident.diagnosis.klass, incident.diagnosis.source) == ("host_oom", "kernel")
    assert "dmesg" in incident.diagnosis.evidence[0].file


@pytest.mark.parametrize(
    ("line", "klass"),
    [
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python3, GPU has fallen off the bus.", "gpu_lost"),
        ("INFO: task python3:4711 blocked for more than 120 seconds.", "node_stuck"),
        ("Memory failure: 0x12ab: Killing python3:4711 due to hardware memory corruption", "node_stuck"),
    ],
)  # fmt: skip
def test_a_rank_prints_its_process_number(
    line: str, klass: str, tmp_path: Path, table: Table
) -> None:
    """NCCL begins its lines with host and process number."""
    files = logs((1, 2))
    files["rank1.log"] = "node-a:4700:4701 [0] NCCL INFO Bootstrap\n" + QUIET
    files["rank2.log"] = "node-a:4711:4712 [0] NCCL INFO Bootstrap\n" + QUIET
    files["dmesg.txt"] = f"[ 9120.100000] {line}\n"

    incident = incident_of(write(tmp_path, files), table)

    assert incident.first is not None
    assert (incident.first.rank, incident.diagnosis.klass) == (2, klass)


@pytest.mark.parametrize(
    "anchor",
    [
        "[    2.100000] rtc_cmos 00:01: setting system clock to 2026-03-01T09:33:40 UTC (1772357620)\n",
        "[    2.100000] audit: type=2000 audit(1772357620.031:1): state=initialized\n",
    ],
)
def test_seconds_since_boot_become_a_time(anchor: str, tmp_path: Path, table: Table) -> None:
    """The log shows when the clock was set: the kill came at 12:05:38 UTC."""
    files = logs((2,), "2026-03-01T12:05:38.000Z step 120 loss 0.71\n")
    cgroup = "/slurm/uid_1000/job_17/step_0/task_2"
    files["dmesg.txt"] = anchor + KILLED.format(cgroup=cgroup, pid=4711)

    incident = incident_of(write(tmp_path, files), table)

    assert incident.first is not None
    assert incident.first.at is not None
    assert incident.first.at.clock() == "12:05:38"


def test_a_kill_has_the_kernels_time(tmp_path: Path, table: Table) -> None:
    """The log of the killed process ends before another rank raises; the kernel kills it after that."""
    files: dict[str, str | bytes] = {"rank0.log": KEY_ERROR}
    files["rank1.log"] = "2026-03-01 11:58:50,000 INFO step 90 loss 0.71\n"
    kill = KILLED.format(cgroup="/slurm/uid_1000/job_17/step_0/task_1", pid=4711)
    files["dmesg.txt"] = kill.replace("[ 9120.100000]", "[Sun Mar  1 12:09:00 2026]").replace(
        "[ 9120.200000]", "[Sun Mar  1 12:09:00 2026]"
    )

    incident = incident_of(write(tmp_path, files), table)

    assert incident.first is not None
    assert incident.first.rank == 0
    assert [c.after_s for c in incident.consequences] == [283.13]


def test_another_jobs_process_is_nobodys(tmp_path: Path, table: Table) -> None:
    """A kill whose process belongs to no rank leaves the order of the ranks alone."""
    files = {**logs((2,)), "dmesg.txt": KILLED.format(cgroup="/system.slice/cron.service", pid=77)}

    incident = incident_of(write(tmp_path, files), table)

    assert incident.first is not None
    assert incident.first.rank == 2
    assert len(incident.first.findings) == 1
