"""What people read of an incident: nothing that is obvious, and nothing twice."""

from __future__ import annotations

from pathlib import Path

from pairun.diagnose.incident import incident_data, incident_lines
from pairun.diagnose.table import Table
from tests.diagnose.jobs import KEY_ERROR, incident_of, watchdog, write
from tests.incidents.score import RECORDED

DEEPSPEED = (
    "[2026-11-21 03:03:05,400] [ERROR] [launch.py:325:sigkill_handler] ['/usr/bin/python', '-u', 'ds.py', "
    "'--local_rank=3'] exits with return code = 1\n"
)


def test_one_log_of_no_rank_is_told_as_any_log(tmp_path: Path, table: Table) -> None:
    """Beside a file of another kind: neither who failed first, nor why that one."""
    incident = incident_of(write(tmp_path, {"main.log": KEY_ERROR, "config.txt": "a: 1\n"}), table)
    lines = incident_lines(incident)
    assert lines[0].startswith("the job's own code failed at /job/train.py:41")
    assert not [line for line in lines if "first" in line]
    assert incident_data(incident)["summary"] == ""


def test_one_log_of_all_ranks_has_no_other_log(tmp_path: Path, table: Table) -> None:
    """The rank is named; that no other log shows a failure goes without saying."""
    raising = "".join(f"[1,2]<stderr>:{line}\n" for line in KEY_ERROR.splitlines()[1:])
    log = "".join(f"[1,{n}]<stdout>:step 1\n" for n in range(4)) + raising
    lines = incident_lines(incident_of(write(tmp_path, {"mpirun.log": log}), table))
    assert lines[0] == "rank 2 raised KeyError"
    assert not [line for line in lines if "because" in line]


def test_one_of_several_logs_says_why_it_is_the_first(tmp_path: Path, table: Table) -> None:
    """Ranks have logs of their own, and those of the others are healthy."""
    logs = {"rank0.log": "step 1\n", "rank1.log": KEY_ERROR}
    lines = incident_lines(incident_of(write(tmp_path, logs), table))
    assert "  decided by: no other log shows a failure" in lines


def test_a_fact_that_is_the_headline_is_no_evidence_again(table: Table) -> None:
    """A rank that the coordinator lost has no line of its own."""
    text = "\n".join(incident_lines(incident_of(Path(RECORDED, "jax-lost"), table)))
    assert text.count("rank 3 stopped answering the coordinator") == 1


def test_the_summary_and_the_headline_are_two_sentences(tmp_path: Path, table: Table) -> None:
    """Where the summary says all, the next line names the class; data keep the cause in the summary."""
    logs = {"rank0.log": "step 1\n", "rank1.log": "torch.OutOfMemoryError: CUDA out of memory.\n"}
    incident = incident_of(write(tmp_path, logs), table)
    first, second, *_ = incident_lines(incident)
    assert first == "rank 1 failed first"
    assert incident.diagnosis.headline in second
    assert incident_data(incident)["summary"] == f"{first}: {incident.diagnosis.headline}"


def test_what_ranks_wait_for_is_said_once(tmp_path: Path, table: Table) -> None:
    """The rank that is behind is the summary; the class of the others' timeouts follows."""
    logs = {f"rank{n}.log": watchdog(n, "12:14:17", number=7) for n in range(3)}
    logs["rank3.log"] = watchdog(3, "12:14:18", number=6, enqueued=6)
    lines = incident_lines(incident_of(write(tmp_path, logs), table))
    assert sum("never entered collective 7" in line for line in lines) == 1


def test_the_log_that_shows_the_cause_is_no_consequence(tmp_path: Path, table: Table) -> None:
    """One log of all ranks, whose lines have no prefix; the launcher names the rank."""
    log = "step 1\ntorch.OutOfMemoryError: CUDA out of memory.\n" + DEEPSPEED
    incident = incident_of(write(tmp_path, {"deepspeed.log": log}), table)
    assert incident.first is not None
    assert incident.first.rank == 3
    assert incident.consequences == ()


def test_a_kernels_log_is_no_rank(tmp_path: Path, table: Table) -> None:
    """It shows the first failure, and does not fail itself."""
    xid = "[ 9.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python, GPU has fallen off the bus.\n"
    logs = {
        "dmesg.txt": xid,
        "train.log": "step 1\nRuntimeError: CUDA error: unspecified launch failure\n",
    }
    lines = incident_lines(incident_of(write(tmp_path, logs), table))
    assert lines[0] == "dmesg shows the first failure"


def test_a_stop_from_outside_has_no_first_rank(tmp_path: Path, table: Table) -> None:
    """Every process of a server is stopped; none of them is sought."""
    log = "".join(
        f"({name} pid={n}) INFO 11-21 03:19:0{n} [core.py:1] ready\n"
        for n, name in enumerate(("APIServer", "EngineCore_0", "Worker_TP0", "Worker_TP1"))
    )
    log += "(APIServer pid=0) INFO 11-21 03:20:00 [launcher.py:80] Received signal 15 SIGTERM\n"
    incident = incident_of(write(tmp_path, {"serve.log": log}), table)
    assert incident.diagnosis.klass == "terminated_sigterm"
    assert "failed first" not in "\n".join(incident_lines(incident))
