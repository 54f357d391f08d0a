"""Runs that are stopped, killed, or run again."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from pairun.volume.journal import read_journal
from tests.engines.conftest import BOTH_MODES

# Whole jobs, phase by phase: `make test` leaves them to `make test-slow`.
pytestmark = pytest.mark.slow

LOOP = "while :; do sleep 0.1; done"


def test_interrupt(job: Any, start: Any) -> None:
    """Ctrl-C tells every instance to end, waits for them, and ends with 130."""
    job.role("w", f"trap 'echo tidied; exit 0' TERM; echo up; : {job.mark}; {LOOP}", instances=2)
    run = start()
    for index in range(2):
        run.wait_for(f"w-{index} | up")
    run.signal(signal.SIGINT)
    assert run.end() == 130
    for index in range(2):
        assert "tidied" in run.said(f"w-{index}")
    assert "failed: stopped by Ctrl-C (SIGINT)" in run.text


def test_a_run_that_is_interrupted_names_ctrl_c(job: Any, start: Any) -> None:
    """Console, termination message and report say that a person stopped it, not the platform."""
    job.role("w", f"echo up; {LOOP}", instances=2)
    run = start()
    for index in range(2):
        run.wait_for(f"w-{index} | up")
    run.signal(signal.SIGINT)
    assert run.end() == 130
    assert "platform" not in run.text
    for index in range(2):
        said = "\n".join(run.said(f"w-{index}"))
        assert "[pairun] `pairun run` was stopped by Ctrl-C (SIGINT) (cancelled_by_user, " in said
    why = diagnosis_of(job, "w-0")
    assert (why["class"], why["fault"]) == ("cancelled_by_user", "user")
    report = subprocess.run(
        [sys.executable, "-m", "pairun", "report", str(job.folder / "pairun-run/test")],
        capture_output=True, text=True, timeout=60,
    ).stdout  # fmt: skip
    assert report.startswith(
        "2 instances: 2 stopped\n`pairun run` was stopped by Ctrl-C (SIGINT)\n"
    )
    assert "platform" not in report


def diagnosis_of(job: Any, instance: str) -> Mapping[str, Any]:
    """The diagnosis in the termination message of an instance."""
    (file,) = (job.folder / "pairun-run/test" / instance).glob("pai/logs/*/pai-termination-log")
    why: Mapping[str, Any] = yaml.safe_load(file.read_text().split("\n", 1)[1].rsplit("\n", 2)[0])
    return dict(why["diagnosis"])


@pytest.mark.parametrize(
    ("roles", "named"),
    [
        (
            ("w", "bad"),
            "bad-0 failed first: the Python package frobnicate is missing (module_not_found)",
        ),
        # The first instance leads the job's rendezvous, which ends with it.
        (("bad", "w"), "bad-0 ended with 1"),
    ],
    ids=["another", "the leader"],
)
def test_a_stopped_sibling_names_the_one_that_failed_first(
    job: Any, start: Any, roles: tuple[str, str], named: str
) -> None:
    """Its console and its termination message name it; the platform is not blamed."""
    up = job.folder / "up"
    commands = {
        "bad": f"until [ -e {up} ]; do sleep 0.05; done; python3 -c 'import frobnicate'",
        "w": f"touch {up}; {LOOP}",
    }
    for role in roles:
        job.role(role, commands[role])
    run = start()
    assert run.end() == 1
    said = "\n".join(run.said("w-0"))
    assert f"[pairun] stopped because {named} (terminated_sigterm, " in said
    assert "platform" not in said
    why = diagnosis_of(job, "w-0")
    assert (why["headline"], why["fault"]) == (f"stopped because {named}", "unknown")
    assert "stopped: bad-0 ended with 1" in " ".join(run.text.split())


@BOTH_MODES
def test_terminate(job: Any, start: Any) -> None:
    """SIGTERM does the same, and ends with 143."""
    job.role("w", f"echo up; {LOOP}")
    run = start()
    run.wait_for("| up")
    run.signal(signal.SIGTERM)
    assert run.end() == 143


def test_interrupt_at_once(job: Any, start: Any) -> None:
    """A stop during start-up is not lost: nothing waits for the grace time."""
    job.role("w", LOOP, instances=2)
    run = start()
    run.wait_for("[pairun] 2 instances")
    run.signal(signal.SIGINT)
    assert run.end() == 130
    assert "up" not in run.said("w-0")


def test_interrupt_in_init(job: Any, start: Any) -> None:
    """A stop while instances are in init is told as that, and that no command was started."""
    (job.folder / "root/playbooks").mkdir(parents=True)
    (job.folder / "root/playbooks/init.yaml").write_text(
        "phase: init\ntasks:\n  - {id: slow, name: Slow, cmd: {script: 'echo in init; sleep 100'}}\n"
    )
    job.role("w", "echo the command ran", instances=2)
    run = start("--root", str(job.folder / "root"))
    for index in range(2):
        run.wait_for(f"w-{index} | " + "  slow | in init")
    run.signal(signal.SIGINT)
    assert run.end() == 130
    assert "failed: stopped by Ctrl-C (SIGINT) during init: no command was started" in run.lines
    assert " ".join(run.text.split()).count("the command was not started") == 2
    (journal,) = (job.folder / "pairun-run/test/w-0").glob("pai/logs/*/journal.jsonl")
    end = read_journal(str(journal))[-1]
    assert end["message"] == "stopped by SIGTERM: `pairun run` was stopped by Ctrl-C (SIGINT)"


@BOTH_MODES
def test_second_interrupt_kills(job: Any, start: Any, eventually: Any) -> None:
    """A second Ctrl-C ends everything at once."""
    job.role("w", f"trap '' TERM; echo up; bash -c '{LOOP}' {job.mark}")
    run = start()
    run.wait_for("| up")
    eventually(lambda: bool(job.running()))
    run.signal(signal.SIGINT)
    run.wait_for("received SIG")
    run.signal(signal.SIGINT)
    assert run.end() == 130
    eventually(lambda: not job.running())


def test_grace(job: Any, start: Any, eventually: Any) -> None:
    """What does not end within the grace time is killed."""
    job.role("w", f"trap '' TERM; echo up; bash -c '{LOOP}' {job.mark}")
    run = start("--grace", "2s")
    run.wait_for("| up")
    run.signal(signal.SIGTERM)
    assert run.end() == 143
    eventually(lambda: not job.running())


def _slow(job: Any) -> None:
    job.role(
        "w",
        f"trap '' TERM; bash -c \"echo up; trap '' TERM; [ -e {job.folder}/go ] || {LOOP}\" {job.mark}",
        "echo worked > result; echo finished",
        instances=2,
    )


@BOTH_MODES
def test_engine_killed(job: Any, start: Any, eventually: Any) -> None:
    """No process of a run outlives its engine, and the next run ends as if nothing had been."""
    _slow(job)
    run = start("--grace", "3s")
    for index in range(2):
        run.wait_for(f"w-{index} | up")
    run.signal(signal.SIGKILL)
    assert run.end() == -signal.SIGKILL
    (job.folder / "go").touch()
    again = start()
    assert again.end() == 0
    assert "finished" in again.said("w-0")
    assert "finished" in again.said("w-1")
    eventually(lambda: not job.running())


@BOTH_MODES
@pytest.mark.parametrize("victim", ["runtime", "tasks child", "init"])
def test_process_killed(job: Any, start: Any, eventually: Any, victim: str) -> None:
    """When a process of an instance is killed the run ends, leaves nothing, and can be repeated."""
    if victim == "init":
        # the second one is missing to the gang until it starts; the first one is killed meanwhile
        job.document["extras"] = {}
    _slow(job)
    run = start("--grace", "3s")
    if victim == "runtime":
        run.wait_for("w-0 | up")
        assert _kill(run, "pairun", "runtime")
    elif victim == "init":
        run.wait_for("[pairun] 2 instances")
        eventually(lambda: _kill(run, "pairun", "init"))
    else:
        run.wait_for("w-0 | up")
        os.kill(job.running()[0], signal.SIGKILL)
    _ends_and_can_be_repeated(run, job, start, eventually)


def test_parent_of_pid1_killed(job: Any, start: Any, eventually: Any) -> None:
    """An instance ends with the process that waits outside of its namespaces."""
    _slow(job)
    run = start("--grace", "3s")
    run.wait_for("w-0 | up")
    assert _kill(run, "pairun.engines.local.enter")
    _ends_and_can_be_repeated(run, job, start, eventually)


def _ends_and_can_be_repeated(run: Any, job: Any, start: Any, eventually: Any) -> None:
    assert run.end() in (137, 143)
    eventually(lambda: not job.running())
    (job.folder / "go").touch()
    again = start()
    assert again.end() == 0, f"{run.text}\n\nagain:\n{again.text}"


def _kill(run: Any, *module: str) -> bool:
    """Kill the first process of a run that is ``python -P -m`` and these words.

    The search goes down from the engine, so that a phase is found before what it forks. The
    working directory does not tell whose a process is: PID 1 leaves it.

    Returns:
        Whether there was one.
    """
    generation = [run.process.pid]
    while generation:
        for pid in generation:
            if _command_line(pid)[1 : len(module) + 3] == ["-P", "-m", *module]:
                os.kill(pid, signal.SIGKILL)
                return True
        generation = [child for pid in generation for child in _children(pid)]
    return False


def _command_line(pid: int) -> list[str]:
    """The argv of a process; empty once it has ended."""
    try:
        return os.fsdecode(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()).split("\0")
    except OSError:
        return []


def _children(pid: int) -> list[int]:
    """The children of all threads of a process; none once it has ended."""
    children: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                text = pathlib.Path(f"/proc/{pid}/task/{thread}/children").read_text()
                children += map(int, text.split())
    return children


@BOTH_MODES
def test_repeated(job: Any, start: Any) -> None:
    """A second run in the same directory sees nothing of the first."""
    job.role("w", "test ! -e trace; touch trace; mkdir -p locked/in; chmod 0 locked; echo done")
    assert start().end() == 0
    run = start()
    assert run.end() == 0
    assert "done" in run.said("w-0")


def test_a_deep_line_in_its_journal_changes_no_exit_code(job: Any, launch: Any) -> None:
    """A command can write to its own journal; the run and the diagnosis after it skip the line."""
    deep = "\"import sys; sys.stdout.write('[' * 100000 + chr(10))\""
    job.role("w", f"python3 -c {deep} >> /usr/local/pai/logs/*/journal.jsonl; exit 7")
    run = launch()
    assert run.end() == 7, run.text
    assert "pairun itself failed" not in run.text
    done = subprocess.run(
        [sys.executable, "-m", "pairun", "diagnose", str(job.folder / "pairun-run/test")],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
