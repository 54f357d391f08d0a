"""The member that the others lost or waited for, and that shows no cause."""

from __future__ import annotations

from pathlib import Path

from pairun.diagnose.incident import Incident
from pairun.diagnose.table import Table
from tests.diagnose.jobs import incident_of, watchdog, write

RUNNING = "2026-03-01 12:04:16,871 INFO step 120 loss 0.70\n"
LOST = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:41\n"


def _incident(folder: Path, table: Table, logs: dict[str, str]) -> Incident:
    return incident_of(write(folder, logs), table)


def test_the_rank_without_a_log_is_named(tmp_path: Path, table: Table) -> None:
    """All seven others lost a peer."""
    logs = {f"rank{n}.log": RUNNING + LOST for n in range(8) if n != 2}
    incident = _incident(tmp_path, table, logs)
    assert incident.first is not None
    assert incident.first.rank == 2
    assert incident.decided_by.startswith("rank 2 has no log, and all others report")


def test_the_ranks_of_a_lost_host_are_named(tmp_path: Path, table: Table) -> None:
    """Their four logs just end."""
    lines = {n: RUNNING if n > 3 else RUNNING + LOST for n in range(8)}
    logs = {f"node-{n // 4}/rank{n}.log": text for n, text in lines.items()}
    incident = _incident(tmp_path, table, logs)
    assert incident.first is not None
    assert incident.first.rank == 4
    assert incident.decided_by.startswith("the logs of ranks 4-7, all on node-1, end without")


def test_quiet_ranks_of_several_hosts_are_not_named(tmp_path: Path, table: Table) -> None:
    """Any of them may be the first."""
    lines = {n: RUNNING if n in (1, 5) else RUNNING + LOST for n in range(8)}
    logs = {f"node-{n // 4}/rank{n}.log": text for n, text in lines.items()}
    assert _incident(tmp_path, table, logs).first is None


def test_a_cut_traceback_comes_before_lost_peers(tmp_path: Path, table: Table) -> None:
    """The end of its log was lost with its node."""
    cut = 'Traceback (most recent call last):\n  File "/job/train.py", line 41, in <module>\n'
    logs = {f"rank{n}.log": RUNNING + (cut if n == 1 else LOST) for n in range(4)}
    incident = _incident(tmp_path, table, logs)
    assert incident.first is not None
    assert incident.first.rank == 1


def test_an_exit_without_a_word_comes_before_lost_peers(tmp_path: Path, table: Table) -> None:
    """A wrapper prints every rank's exit code; only one has no reason."""
    logs = {f"rank{n}.log": RUNNING + LOST + "exited with code 1\n" for n in range(4)}
    incident = _incident(tmp_path, table, {**logs, "rank3.log": RUNNING + "exited with code 3\n"})
    assert incident.first is not None
    assert incident.first.rank == 3
    assert incident.diagnosis.klass == "child_failed"


def test_the_first_that_loses_a_peer_is_not_named(tmp_path: Path, table: Table) -> None:
    """It only noticed first; who was lost, no log says."""
    logs = {f"rank{n}.log": f"2026-03-01 12:04:1{n},000 ERROR {LOST}" for n in range(4)}
    assert _incident(tmp_path, table, logs).first is None


def test_a_failure_while_a_lost_peer_is_handled_is_no_cause(tmp_path: Path, table: Table) -> None:
    """The emergency checkpoints of three ranks fail, since the fourth was killed."""
    head = "Traceback (most recent call last):\n"
    loss = f'{head}  File "/job/train.py", line 9, in step\n    dist.all_reduce(x)\n{LOST}'
    chain = "\nDuring handling of the above exception, another exception occurred:\n\n"
    save = f'{head}  File "/job/train.py", line 12, in save\n    open(path)\n'
    text = f"{RUNNING}{loss}{chain}{save}FileNotFoundError: [Errno 2] No such file or directory: '/e'\n"
    logs = {f"rank{n}.log": text if n != 2 else RUNNING for n in range(4)}
    incident = _incident(tmp_path, table, logs)
    assert incident.first is not None
    assert (incident.first.rank, incident.diagnosis.klass) == (2, "peer_lost")
    assert incident.diagnosis.evidence[0].line in (5, 0)


def test_watchdogs_that_all_entered_name_nobody(tmp_path: Path, table: Table) -> None:
    """The rank whose log just ends may have been stopped."""
    logs = {f"rank{n}.log": RUNNING + watchdog(n, "12:14:17") for n in range(4)}
    assert _incident(tmp_path, table, logs).first is None


def test_the_rank_that_entered_no_collective_is_named(tmp_path: Path, table: Table) -> None:
    """Its watchdog has counted none, and those of the others wait in the first one."""
    logs = {f"rank{n}.log": RUNNING + watchdog(n, "12:14:17", number=0) for n in range(4)}
    status = logs["rank2.log"].splitlines(keepends=True)[-1]
    logs["rank2.log"] = RUNNING + status.replace("work: 0,", "work: -1,")
    incident = _incident(tmp_path, table, logs)
    assert incident.first is not None
    assert incident.first.rank == 2
    assert incident.decided_by == "rank 2 never entered collective 0 (ALLREDUCE)"


def test_a_rank_that_leaves_is_the_one_that_others_wait_for(tmp_path: Path, table: Table) -> None:
    """Another log only just ends."""
    logs = {f"rank{n}.log": RUNNING + LOST for n in range(4)}
    logs["rank1.log"] = RUNNING + "limit of 1312 iterations reached, leaving\n"
    logs["rank2.log"] = RUNNING
    incident = _incident(tmp_path, table, logs)
    assert incident.first is not None
    assert incident.first.rank == 1
    assert "ended by itself" in incident.decided_by
