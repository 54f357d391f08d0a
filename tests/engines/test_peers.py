"""Instances that know each other: one runs a task for all, and the user's code has barriers."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

# Whole jobs, phase by phase: `make test` leaves them to `make test-slow`.
pytestmark = pytest.mark.slow


def test_one_runs_a_task_for_all(job: Any, start: Any) -> None:
    """With `run_on: first_of_job` one command runs; every instance has the verdict before its own."""
    look = {"append": None, "id": "look", "name": "Somebody looks", "run_on": "first_of_job"}
    job.document["extras"] = {
        "pairun": {"runtime": [{**look, "cmd": {"script": "echo I looked in $PWD"}}]}
    }
    job.role("chief", "pairun barrier wait end")
    job.role("worker", "pairun barrier wait end", instances=2)
    run = start()
    assert run.end() == 0, run.text
    assert [i for i in ("chief-0", "worker-0", "worker-1") if _looked(run, i)] == ["chief-0"]
    for worker in ("worker-0", "worker-1"):
        said = "\n".join(run.said(worker))
        assert "look | chief-0 runs it for the others" in said
        assert "ok       look" in said


def _looked(run: Any, instance: str) -> bool:
    return any("I looked in" in line for line in run.said(instance))


def test_one_failure_is_everybodys(job: Any, start: Any, tmp_path: pathlib.Path) -> None:
    """What the first of the job finds wrong fails the others in the same way."""
    outputs = [tmp_path / f"pairun-run/test/worker-{n}/output.log" for n in (0, 1)]
    heard = " && ".join(f"grep -q 'chief-0: ' {path}" for path in outputs)
    stay = {
        "name": "Stay until the others have heard", "event": "failure",
        "cmd": {"script": f"until {heard}; do sleep 0.02; done"}, "deadline": "30s",
    }  # fmt: skip
    look = {"append": None, "id": "look", "name": "Somebody looks", "run_on": "first_of_job"}
    task = {**look, "cmd": {"script": "exit 9"}, "on_exit": [stay]}
    job.document["extras"] = {"pairun": {"runtime": [task]}}
    never = {"minFailedInstances": -1}
    job.role("chief", "true", completion=never)
    job.role("worker", "true", instances=2, completion=never)
    run = start()
    assert run.end() == 0, run.text  # nobody's failure fails this job
    for worker in ("worker-0", "worker-1"):
        said = "\n".join(run.said(worker))
        assert "failed   look" in said
        assert "chief-0: the script ended with exit code 9" in said
        assert any(line.startswith(worker) and " exit 255 (" in line for line in run.lines)


def test_a_barrier_for_the_users_code(job: Any, start: Any) -> None:
    """Nobody goes on before all have come; a barrier that has opened stays open."""
    job.role(
        "chief", "echo before; pairun barrier wait ready; pairun barrier wait ready; echo past"
    )
    job.role("worker", "echo before; pairun barrier wait ready; echo past", instances=2)
    job.document["taskRoles"]["chief"]["completion"] = {"minSucceededInstances": 1}
    run = start()
    assert run.end() == 0, run.text
    lines = [line.split("|")[1].strip() for line in run.lines if "|" in line]
    order = [line for line in lines if line in ("before", "past")]
    assert order[:3] == ["before"] * 3


def test_who_comes_to_a_barrier_alone(job: Any, start: Any) -> None:
    """After the time given it ends with 124 and says how many were waited for."""
    job.role("chief", "pairun barrier wait ready --timeout 200ms || echo it ended with $?")
    job.role("worker", "sleep 60")
    run = start()
    assert run.end() == 0, run.text
    said = "\n".join(run.said("chief-0"))
    assert "it ended with 124" in said
    assert "[PR775]" in said
    assert "not all 2 members reached the barrier" in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("ready --count 3", "--count must be from 1 to 2"),
        ("ready --timeout 20", "did you mean '20s'?"),
        ("''", "NAME must have from 1 to 253 characters"),
    ],
)
def test_wrong_words(job: Any, start: Any, words: str, says: str) -> None:
    """What cannot be is said at once, with exit code 2."""
    job.role("w", f"pairun barrier wait {words} || echo it ended with $?", instances=2)
    run = start()
    assert run.end() == 0, run.text
    assert says in run.text
    assert "it ended with 2" in run.text


def test_alone_there_is_nobody_to_meet(job: Any, start: Any) -> None:
    """A job of one instance says so, instead of waiting."""
    job.role("w", "pairun barrier wait ready || echo it ended with $?")
    run = start()
    assert run.end() == 0, run.text
    assert "[PR779]" in run.text
    assert "it ended with 1" in run.text


def test_who_failed_first_is_named(job: Any, start: Any, tmp_path: pathlib.Path) -> None:
    """One that only hears of it names the other and its reason; so does the summary of the run."""
    never = {"minFailedInstances": -1}
    output = tmp_path / "pairun-run/test/worker-0/output.log"
    timeout = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE)"
    job.role("chief", f"until grep -q 'do: ' {output}; do sleep 0.02; done",
             f"echo '[rank0]: {timeout}' >&2; exit 1", completion=never)  # fmt: skip
    job.role("worker", "python3 -c 'import frobnicate'", completion=never)
    run = start()
    assert run.end() == 0, run.text
    said = "\n".join(run.said("chief-0"))
    assert "(nccl_timeout, " in said
    reason = "the Python package frobnicate is missing (module_not_found)"
    assert f"worker-0 failed first: {reason}" in said
    assert "first to fail: worker-0" in " ".join(run.text.split())


def test_the_barrier_of_the_living_fork(job: Any, launch: Any) -> None:
    """Its program is where jobs call it, with or without bash in front, as often as they like."""
    barrier = "/usr/local/pai/runtime.d/barrier"
    calls = f"bash {barrier} --timeout=60; echo first; {barrier}; echo second"
    job.role("chief", f"sleep 0.2; {calls}")
    job.role("worker", f"{calls}; {barrier} --timeout=1 || echo alone", instances=2)
    run = launch()
    assert run.end() == 0, run.text
    for instance in ("chief-0", "worker-0", "worker-1"):
        lines = run.said(instance)
        assert [x for x in lines if x in ("first", "second", "alone")][:2] == ["first", "second"]


def test_the_barrier_of_one_instance(job: Any, launch: Any) -> None:
    """A job of one instance waits for nobody; a word that the program does not know is refused."""
    barrier = "/usr/local/pai/runtime.d/barrier"
    job.role("only", f"{barrier}; {barrier} --nope || echo refused with $?")
    run = launch()
    assert run.end() == 0, run.text
    assert "refused with 2" in run.said("only-0")
