"""Tasks that one instance runs for the others."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import attrs
import pytest

from pairun.module import Transient
from pairun.plan import Group, PeerVerdict, RunOn


@attrs.define
class Folder:
    """Instances that tell each other their verdicts in a folder.

    Attributes:
        path: the folder.
        name: of this instance.
        leader: the one that runs tasks for all.
    """

    path: pathlib.Path
    name: str
    leader: str = "main-0"

    def first(self, run_on: RunOn) -> str | None:
        """The one leader runs everything."""
        return None if self.name == self.leader else self.leader

    def topic(self, run_on: RunOn, task: str) -> str:
        """A file."""
        return f"{run_on}-{task}"

    def take(self, topic: str, timeout_s: float) -> PeerVerdict:
        """What is there already."""
        try:
            verdict: PeerVerdict = json.loads((self.path / topic).read_text())
        except FileNotFoundError:
            raise Transient(f"nothing came in {timeout_s:g} s") from None
        return verdict

    def give(self, topic: str, verdict: PeerVerdict, timeout_s: float) -> None:
        """Leave it there."""
        (self.path / topic).write_text(json.dumps(verdict))


@pytest.fixture
def leader(tmp_path: pathlib.Path) -> Folder:
    """The instance that runs tasks for others."""
    return Folder(tmp_path, "main-0")


@pytest.fixture
def other(tmp_path: pathlib.Path) -> Folder:
    """Another instance."""
    return Folder(tmp_path, "main-1")


RESULT = "result = Result(message='all is well', values={'x': 1})"


def test_one_runs_it_and_the_others_take_the_verdict(
    here: Any, leader: Folder, other: Folder
) -> None:
    """The first runs the task once; another has its message and values, and runs nothing."""
    here.run(here.task(code=RESULT, run_on="first_of_job"), peers=leader)
    here.events.clear()
    outcome = here.run(here.task(code="raise Permanent('ran here')", run_on="first_of_job"),
                       peers=other)  # fmt: skip
    assert outcome.event == "success"
    assert here.of("attempt_begin") == []
    assert here.end()["message"] == "main-0: all is well"
    assert here.results["a"]["values"] == {"x": 1}


def test_a_failure_is_everyones(here: Any, leader: Folder, other: Folder) -> None:
    """The others fail with the same kind, words and exit code, without an attempt of their own."""
    code = "raise Permanent('no such image', fault='user', hint='name another')"
    task = here.task(code=code, run_on="first_of_role", retries=3, exit_codes={"permanent": 254})
    ends = []
    for peers in (leader, other):
        here.events.clear()
        assert here.run(task, peers=peers).exit_code == 254
        ends.append(here.end())
    assert [e["kind"] for e in ends] == ["permanent"] * 2
    assert ends[1]["message"] == "main-0: no such image"
    assert (ends[1]["fault"], ends[1]["hint"]) == ("user", "name another")


def test_what_the_first_ignores_each_judges_by_its_own_policy(
    here: Any, leader: Folder, other: Folder
) -> None:
    """A failure that is ignored where it happened is a failure to the others, and ignored too."""
    task = here.task(code="raise Permanent('x')", run_on="first_of_job", failure_policy="ignore")
    for peers in (leader, other):
        assert here.run(task, peers=peers).event == "success"
    assert [e["outcome"] for e in here.of("task_end")] == ["ignored", "ignored"]


def test_what_is_harmless_is_harmless_everywhere(here: Any, leader: Folder, other: Folder) -> None:
    """A kind that the module calls harmless fails no instance, wherever the task ran."""
    args = {"code": "raise Transient('x')"}
    task = here.task(module="lenient", args=args, run_on="first_of_job")
    for peers in (leader, other):
        assert here.run(task, peers=peers).event == "success"
    assert [e["outcome"] for e in here.of("task_end")] == ["ignored", "ignored"]
    assert here.of("task_end")[1]["message"] == "main-0: x"


def test_without_a_word_it_runs_here(here: Any, other: Folder) -> None:
    """An instance that hears nothing says so and runs the task itself, handlers and all."""
    handler = here.task("a.on_exit", code="print('undone')", events=("success",))
    task = here.task(code=RESULT, run_on="first_of_job", on_exit=(handler,))
    assert here.run(task, peers=other).event == "success"
    assert here.end()["message"] == "all is well"
    assert "no verdict from main-0 (nothing came in 600 s): running it here" in here.lines("a")
    assert here.lines("a.on_exit") == ["undone"]


def test_a_verdict_registers_no_handlers(here: Any, leader: Folder, other: Folder) -> None:
    """What was not done here is not undone here."""
    handler = here.task("a.on_exit", code="print('undone')", events=("success",))
    task = here.task(code=RESULT, run_on="first_of_job", on_exit=(handler,))
    here.run(task, peers=leader)
    here.events.clear()
    here.run(task, peers=other)
    assert here.lines("a.on_exit") == []


def test_a_first_that_gave_up_binds_nobody(here: Any, leader: Folder, other: Folder) -> None:
    """When the first was cancelled for a failure beside the task, the others run it themselves."""
    ready = leader.path / "ready"
    waits = f"import time, os\nopen({str(ready)!r}, 'w')\ntime.sleep(600)"
    fails = (
        f"import os, time\nwhile not os.path.exists({str(ready)!r}): time.sleep(0.01)\n"
        "raise Permanent('x')"
    )
    task = here.task(code=waits, run_on="first_of_job")
    group = Group(name="both", tasks=(task, here.task("b", code=fails)))
    assert here.run(group, peers=leader).failed == "b"
    here.events.clear()
    here.run(attrs.evolve(task, args={"code": RESULT}), peers=other)
    assert here.end()["message"] == "all is well"


def test_a_condition_is_each_instances_own(here: Any, leader: Folder, other: Folder) -> None:
    """An instance whose condition is false skips the task, and waits for nobody."""
    here.run(here.task(code=RESULT, run_on="first_of_job", when=False), peers=other)
    assert here.end()["outcome"] == "skipped"


def test_no_secret_travels(here: Any, leader: Folder) -> None:
    """Message, hint and values are masked before they leave; exported variables stay."""
    here.secrets = ["hunter22"]
    code = "result = Result(message='hunter22', values={'a': ['hunter22']}, environment={'E': '1'})"
    here.run(here.task(code=code, run_on="first_of_role"), peers=leader)
    told = (leader.path / "first_of_role-a").read_text()
    assert "hunter22" not in told
    assert "environment" not in json.loads(told)


def test_without_peers_everybody_runs_it(here: Any) -> None:
    """On a laptop and in a single Pod the task simply runs."""
    assert here.run(here.task(code=RESULT, run_on="first_of_job")).event == "success"
    assert len(here.of("attempt_begin")) == 1
