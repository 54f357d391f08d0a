"""One answer for the logs of a job: who failed first, why, and what followed."""

from __future__ import annotations

import os
from pathlib import Path

from pairun.diagnose.gathering import answer
from pairun.diagnose.incident import incident_data, incident_lines
from pairun.diagnose.logfiles import files_in
from pairun.diagnose.table import Table
from tests.diagnose.jobs import KEY_ERROR, incident_of, watchdog, write

RUNNING = "2026-03-01 12:04:16,871 INFO step 120 loss 0.70\n"


def test_the_cause_comes_before_what_the_others_report(tmp_path: Path, table: Table) -> None:
    """One rank raises, seven wait for ten minutes: one sentence says both."""
    logs = {f"rank{n}.log": RUNNING + watchdog(n, "12:14:17") for n in range(8)}
    incident = incident_of(write(tmp_path, {**logs, "rank3.log": KEY_ERROR}), table)
    assert incident_lines(incident)[0] == (
        "rank 3 raised KeyError at 12:04:16; 7 others stopped waiting for it 10 min later"
    )
    assert incident.diagnosis.klass == "user_code_error"
    data = incident_data(incident)
    assert data["first"]["rank"] == 3
    assert data["first"]["at"] == "2026-03-01T12:04:16.870"
    assert [c["members"] for c in data["consequences"]] == [
        [f"rank {n}" for n in (0, 1, 2, 4, 5, 6, 7)]
    ]
    assert "  then: ranks 0-2, 4-7: " in "\n".join(incident_lines(incident))


def test_timeouts_before_the_cause_are_said_to_be_earlier(tmp_path: Path, table: Table) -> None:
    """The others stopped waiting nine minutes before the rank raised."""
    logs = {f"rank{n}.log": watchdog(n, "11:55:16") for n in (0, 1)} | {"rank2.log": KEY_ERROR}
    incident = incident_of(write(tmp_path, logs), table)
    assert incident_lines(incident)[0] == (
        "rank 2 raised KeyError at 12:04:16; 2 others stopped waiting for it 9 min earlier"
    )
    assert incident.consequences[0].after_s == -540.62


def test_the_earlier_of_two_causes_counts(tmp_path: Path, table: Table) -> None:
    """Two ranks of one host raise; the clock decides, not the order of files."""
    other = KEY_ERROR.replace("12:04:16,870", "12:04:11,100").replace(
        "KeyError: 'label'", "ValueError: no rows"
    )
    incident = incident_of(write(tmp_path, {"rank0.log": KEY_ERROR, "rank1.log": other}), table)
    assert incident.first is not None
    assert incident.first.rank == 1
    assert incident.decided_by == "its failure is the earliest of 2"


def test_close_times_of_two_hosts_leave_the_order_to_the_launcher(
    tmp_path: Path, table: Table
) -> None:
    """Half a second between hosts says nothing; torchrun's summary does."""
    launcher = (
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-03-01_12:04:20\n  host      : node2\n"
        "  rank      : 1 (local_rank: 0)\n  exitcode  : 1 (pid: 71)\n"
    )
    logs = {
        "node1/rank0.log": KEY_ERROR,
        "node2/rank1.log": KEY_ERROR.replace("16,870", "17,300"),
        "torchrun.log": launcher,
    }
    incident = incident_of(write(tmp_path, logs), table)
    assert incident.first is not None
    assert incident.first.rank == 1
    assert incident.decided_by == "the launcher saw it fail first"


def test_the_log_of_all_ranks_is_that_of_the_rank_that_the_launcher_names(
    tmp_path: Path, table: Table
) -> None:
    """One file without a column for ranks shows the cause, and the launcher's report names its rank."""
    log = (
        "[2026-03-01 12:04:16,000] [INFO] [logging.py:107:log_dist] [Rank 0] step=17, skipped=0\n"
        '[rank3]: Traceback (most recent call last):\n[rank3]:   File "/job/ds.py", line 66, in <module>\n'
        "[rank3]:     engine.backward(loss)\n[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to "
        "allocate 5.10 GiB. GPU 3 has a total capacity of 79.11 GiB of which 4.02 GiB is free.\n"
        "[2026-03-01 12:04:31,000] [ERROR] [launch.py:325:sigkill_handler] ['/usr/bin/python', '-u', 'ds.py', "
        "'--local_rank=3'] exits with return code = 1\n"
    )
    incident = incident_of(write(tmp_path, {"job.log": log}), table)
    data = incident_data(incident)
    assert data["first"]["label"] == "rank 3"
    assert (data["first"]["class"], data["first"]["clock"]) == ("gpu_oom", "12:04:16")
    assert data["first"]["logs"] == [str(tmp_path / "job.log")]
    assert data["consequences"] == []
    lines = incident_lines(incident)
    assert lines[0] == "rank 3 failed first at 12:04:16"
    assert "  decided by: the launcher saw rank 3 end with exit code 1" in lines


def test_a_host_whose_ranks_never_wrote_is_named(tmp_path: Path, table: Table) -> None:
    """The lines of the other hosts show ranks; the host has none, and is no launcher."""
    log = "[pod/h2/main] bob@h2: Permission denied (publickey).\n"
    for rank in range(4):
        host = f"[pod/h{1 + rank // 2 * 2}/main] "
        log += (
            f"{host}[rank{rank}]: loading\n{host}[rank{rank}]: Traceback (most recent call last):\n"
        )
        log += f"{host}[rank{rank}]: torch.distributed.DistNetworkError: The client socket has timed out after 1800000ms while trying to connect to (10.0.0.1, 29500).\n"
    incident = incident_of(write(tmp_path, {"launch.log": log}), table)
    assert incident.first is not None
    assert incident.first.host == "h2"
    assert incident.diagnosis.klass == "remote_auth"


def test_a_healthy_job_has_no_first_failure(tmp_path: Path, table: Table) -> None:
    """Logs that end with progress give no false alarm."""
    incident = incident_of(write(tmp_path, {f"rank{n}.log": RUNNING * 5 for n in range(4)}), table)
    assert incident.first is None
    assert incident.diagnosis.klass == "none"
    assert incident_lines(incident)[0].startswith("nothing is wrong")


def test_a_cause_outranks_the_numbers_of_collectives(tmp_path: Path, table: Table) -> None:
    """All ranks in one file, and the exception without a prefix: its line of the code is shown."""
    text = "".join(
        KEY_ERROR if n == 3 else RUNNING + watchdog(n, "12:14:17", 412) for n in range(8)
    )
    incident = incident_of(write(tmp_path, {"all.log": text}), table)
    assert incident.diagnosis.klass == "user_code_error"
    shown = "\n".join(incident_lines(incident))
    assert "train.py:41: KeyError: 'label'" in shown
    assert f"all.log:{text[: text.index('KeyError')].count(chr(10)) + 1}: KeyError" in shown
    assert "412" not in shown


def test_files_without_a_log_are_named(tmp_path: Path, table: Table) -> None:
    """What cannot be read, and what holds no text; core dumps and settings are no members."""
    noise = bytes(range(256)) * 8
    logs: dict[str, str | bytes] = {
        "rank0.log": RUNNING,
        "rank1.log": noise,
        "rank2.log": KEY_ERROR,
        "rank3.log": "",
        "rank4/stdout.log": "",
        "rank4/stderr.log": RUNNING,
        "bad.log.gz": b"\x1f\x8b\x08\x00",
        "core": noise,
        "core.12": noise,
        "dump": noise,
        "config.json": '{"lr": 1}',
        "metrics.csv": "step,loss\n1,2\n",
    }
    write(tmp_path, logs)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "gone.log").symlink_to("nowhere")
    (tmp_path / "latest.log").symlink_to("rank0.log")
    incident = incident_of(tmp_path, table)
    unread = [Path(each.partition(": ")[0]).name for each in incident.unread]
    assert sorted(unread) == ["bad.log.gz", "dump", "gone.log", "pipe", "rank1.log", "rank3.log"]
    assert [m.label for m in incident.members] == [f"rank {n}" for n in range(5)]
    assert sum("not read: " in line for line in incident_lines(incident)) == 6


def test_a_folder_that_holds_no_file_to_read_is_an_error(tmp_path: Path, table: Table) -> None:
    """The reason of each file is given."""
    (tmp_path / "gone.log").symlink_to("nowhere")
    result = answer(files_in([str(tmp_path)]), table, 60)
    assert result.incident is None
    assert [why for _, why in result.failed] == ["it is a dangling link"]


def test_a_spawned_process_with_a_cause_is_the_first(tmp_path: Path, table: Table) -> None:
    """One log of all has no prefixes; torch's spawn names the process."""
    text = f"epoch 1\n-- Process 2 terminated with the following error:\n{KEY_ERROR}"
    incident = incident_of(write(tmp_path, {"main.log": text}), table)
    assert incident.first is not None
    assert incident.first.rank == 2
    assert incident.diagnosis.klass == "user_code_error"


def test_a_spawned_process_that_lost_another_is_not_the_first(tmp_path: Path, table: Table) -> None:
    """The traceback of the one that failed first was never printed."""
    lost = (
        "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:41\n"
    )
    text = f"epoch 1\n-- Process 1 terminated with the following error:\n{lost}"
    incident = incident_of(write(tmp_path, {"main.log": text}), table)
    assert incident.first is not None
    assert incident.first.rank is None


def test_lines_of_one_file_have_their_order(tmp_path: Path, table: Table) -> None:
    """Two Pods fail one after the other, and no line has a time."""
    error = KEY_ERROR.partition("\n")[2]
    first = "".join(f"[pod/train-5/main] {line}\n" for line in error.splitlines())
    then = "".join(
        f"[pod/train-1/main] {line}\n"
        for line in error.replace("KeyError: 'label'", "ValueError: no rows").splitlines()
    )
    steps = "".join(f"[pod/train-{n}/main] step {s}\n" for s in (1, 2) for n in (1, 5))
    end = "[pod/train-5/main] closing\n[pod/train-1/main] closing\n"
    incident = incident_of(write(tmp_path, {"pods.log": steps + first + then + end}), table)
    assert incident.first is not None
    assert incident.first.rank == 5
    assert incident.decided_by == "its failure is the first of 2 in pods.log"


def test_broken_connections_in_the_same_file_do_not_replace_the_cause(
    tmp_path: Path, table: Table
) -> None:
    """A rank crashes, and the others' lines about its connections are heavier."""
    lines = [f"[1,{n}]<stdout>:it {i} res 1e-{i}" for i in range(1, 5) for n in range(4)]
    lines += [
        "[1,2]<stderr>:[nodeb:77] *** Process received signal ***",
        "[1,2]<stderr>:[nodeb:77] Signal: Segmentation fault (11)",
        "[1,2]<stderr>:[nodeb:77] *** End of error message ***",
    ]
    reset = "pml_ucx.c:419  Error: ucx send failed: Connection reset by remote peer"
    lines += [f"[1,{n}]<stderr>:[nodea:7{n}] {reset}" for n in (0, 1, 3)]
    incident = incident_of(write(tmp_path, {"solve.out": "\n".join(lines) + "\n"}), table)
    assert incident.first is not None
    assert incident.first.rank == 2
    assert incident.diagnosis.klass == "segfault"


def test_a_launcher_that_sees_no_progress_says_less_than_the_ranks_that_wait(
    tmp_path: Path, table: Table
) -> None:
    """The class is that of the wait, also if the rank that the others wait for shows nothing."""
    logs = {f"rank{n}.log": RUNNING + watchdog(n, "12:14:17") for n in range(4)}
    logs["rank2.log"] = RUNNING
    logs["launcher.log"] = "watchdog: no step for 600 s, collecting the flight recorder\n"
    incident = incident_of(write(tmp_path, logs), table)
    assert incident.first is not None
    assert incident.first.rank == 2
    assert incident.diagnosis.klass == "nccl_timeout"


def test_a_journal_of_several_hosts_is_split(tmp_path: Path, table: Table) -> None:
    """Each host's lines are those of one member."""
    lines = [f"Mar  1 12:04:16 host-{n} train[4{n}]: step 1 loss 0.5" for n in range(3)]
    lines += [f"Mar  1 12:04:17 host-2 train[42]: {line}" for line in KEY_ERROR.splitlines()]
    incident = incident_of(write(tmp_path, {"journal.log": "\n".join(lines) + "\n"}), table)
    assert incident.first is not None
    assert incident.first.label == "host-2"


def test_ranks_of_an_earlier_attempt_are_not_named(tmp_path: Path, table: Table) -> None:
    """Rank 2 failed in the first attempt, rank 0 in the second."""

    def attempt(rank: int, error: str, run: int) -> str:
        steps = "".join(f"[rank{n}]: step {s} loss 0.5\n" for s in (1, 2) for n in range(3))
        trace = "".join(f"[rank{rank}]: {line}\n" for line in error.splitlines())
        agent = f"torch/distributed/elastic/agent/server/api.py:{run}] [default]"
        return f"I0301 12:0{run}:10.000000 7 {agent} starting workers for entrypoint: train.py\n{steps}{trace}"

    error = KEY_ERROR.partition("\n")[2]
    text = attempt(2, error.replace("KeyError: 'label'", "ValueError: no rows"), 1)
    text += "I0301 12:02:09.000000 7 torch/distributed/elastic/agent/server/api.py:9] [default] Worker group FAILED. 1/1 attempts left; will restart worker group\n"
    incident = incident_of(write(tmp_path, {"job.log": text + attempt(0, error, 2)}), table)
    assert incident.first is not None
    assert incident.first.rank == 0
