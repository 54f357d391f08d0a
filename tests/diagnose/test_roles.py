"""The ranks of Pods and processes whose number counts within a role, or on a node."""

from __future__ import annotations

from pathlib import Path

from pairun.diagnose.table import Table
from tests.diagnose.jobs import KEY_ERROR, incident_of, watchdog, write

RUNNING = "2026-03-01 12:04:16,871 INFO step 120 loss 0.70\n"
RAISED = "[rank{n}]: Traceback (most recent call last):\n[rank{n}]: RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:41\n"


def _ranks(folder: Path, table: Table) -> dict[str, int | None]:
    incident = incident_of(folder, table)
    return {f.rpartition("/")[2]: m.rank for m in incident.members for f in m.files}


def test_workers_come_after_the_master(tmp_path: Path, table: Table) -> None:
    """Kubeflow's worker-0 has rank 1; the first to fail is worker-1, so rank 2."""
    logs = {f"bert-{name}.log": RUNNING for name in ("master-0", "worker-0", "worker-1")}
    folder = write(tmp_path, {**logs, "bert-worker-1.log": KEY_ERROR})
    assert _ranks(folder, table) == {
        "bert-master-0.log": 0,
        "bert-worker-0.log": 1,
        "bert-worker-1.log": 2,
    }


def test_ranks_in_some_logs_correct_those_of_the_others(tmp_path: Path, table: Table) -> None:
    """A role whose Pods have the ranks 4 and 5 gives the silent third one 6."""
    logs = {f"job-ps-{n}.log": RUNNING + RAISED.format(n=n + 4) for n in (0, 1)}
    assert _ranks(write(tmp_path, {**logs, "job-ps-2.log": RUNNING}), table)["job-ps-2.log"] == 6


def test_a_worker_whose_log_shows_its_number_as_rank_keeps_it(tmp_path: Path, table: Table) -> None:
    """The names alone would move worker-0 to rank 1."""
    logs = {"a-master-0.log": RUNNING, "a-worker-0.log": RUNNING + RAISED.format(n=0)}
    logs["a-worker-1.log"] = RUNNING
    assert _ranks(write(tmp_path, logs), table)["a-worker-1.log"] == 1


def test_a_tees_numbers_are_those_of_a_node(tmp_path: Path, table: Table) -> None:
    """The second node's [default1] is rank 3, since its [default0] is rank 2."""
    lines = "".join(f"[default{n}]:{RUNNING}" for n in (0, 1, 0, 1))
    tracebacks = "".join(f"[default1]:{line}\n" for line in KEY_ERROR.splitlines())

    def raised(local: int, rank: int) -> str:
        return "".join(f"[default{local}]:{r}\n" for r in RAISED.format(n=rank).splitlines())

    logs = {
        "node-0.log": lines + raised(0, 0) + raised(1, 1),
        "node-1.log": lines + raised(0, 2) + tracebacks,
    }
    incident = incident_of(write(tmp_path, logs), table)
    assert incident.first is not None
    assert incident.first.rank == 3


def test_the_number_of_a_launchers_pod_is_no_rank(tmp_path: Path, table: Table) -> None:
    """The torchrun of rack-1 started ranks 2 and 3; it says that rank 2 failed."""
    summary = (
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-03-01_12:04:17\n"
        "  host      : rack-1\n  rank      : 2 (local_rank: 0)\n  exitcode  : -11 (pid: 14)\n"
    )
    other = summary.replace("2 (local", "1 (local").replace("-11", "1").replace(": 0)", ": 1)")
    logs = {"rack-0.log": RUNNING + other, "rack-1.log": RUNNING + summary}
    incident = incident_of(write(tmp_path, logs), table)
    assert {m.rank for m in incident.members} == {None}
    assert incident.first is not None
    assert incident.first.rank == 2


def test_numbers_of_hosts_are_ranks_if_no_log_names_one(tmp_path: Path, table: Table) -> None:
    """One process runs on each; a series that does not begin at 0 numbers nothing."""
    logs = {"node0.log": RUNNING, "node1.log": KEY_ERROR, "node2.log": RUNNING}
    assert _ranks(write(tmp_path / "a", logs), table)["node1.log"] == 1
    logs = {"node4.log": RUNNING, "node7.log": KEY_ERROR, "node9.log": RUNNING}
    assert _ranks(write(tmp_path / "b", logs), table)["node7.log"] is None


def _unprefixed(rank: int) -> str:
    """What a watchdog reports, in a log whose lines do not begin with the rank."""
    return watchdog(rank, "12:14:20").replace(f"[rank{rank}]:", "")


def test_the_number_of_an_address_is_no_rank(tmp_path: Path, table: Table) -> None:
    """Hosts may have the names of their addresses."""
    logs = {"ip-10-0-3-17.log": KEY_ERROR, "ip-10-0-3-18.log": RUNNING}
    assert set(_ranks(write(tmp_path, logs), table).values()) == {None}
