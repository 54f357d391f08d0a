"""What a page on a run shows."""

from __future__ import annotations

import pathlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pairun.report.journal.finding import JournalFile, read_instance
from pairun.report.journal.history import InstancePast
from pairun.report.page.lanes import MOST_LANES, MOST_OUTSTANDING, quantiles
from pairun.report.page.runpage import headline, model
from tests.report.page import stories


def instances_of(folder: pathlib.Path, journals: dict[str, Any]) -> list[InstancePast]:
    stories.write(folder, journals)
    return [
        read_instance(JournalFile(label=label, journal=str(folder / label / "journal.jsonl")))
        for label in journals
    ]


def test_the_cause_comes_before_what_follows_from_it(tmp_path: pathlib.Path) -> None:
    """The instance that raised failed first, though others are listed before it."""
    instances = instances_of(tmp_path / "logs", stories.gang(8, failing=5))
    shown = headline(instances, "job")
    assert shown["outcome"] == "failed"
    assert shown["sentence"] == (
        "worker-5 failed first: the program raised KeyError: 'loss'; 7 others stopped waiting for it 11 s later"
    )
    assert shown["advice"] == "correct train.py, line 41"
    assert ("exit codes", "1, 134 (7 times)") in shown["facts"]
    assert model(instances, ())["first"] == "worker-5"


def test_begins_are_on_one_axis(tmp_path: pathlib.Path) -> None:
    """Each task, attempt and wait stands where it began, seconds after the first record of all."""
    late = stories.Story(3.0)
    late.begin("init")
    late.task("fetch_code", 2.0, 1.0, wait_s=4.0)
    late.end()
    instances = instances_of(tmp_path / "logs", {"a-0": stories.success(), "a-1": late.records})
    lane = model(instances, ())["lanes"][1]
    (task,) = lane["phases"][0]["tasks"]
    assert (task["begin"], task["seconds"]) == (3.0, 7.0)
    assert [(a["begin"], a["seconds"]) for a in task["attempts"]] == [(3.0, 2.0), (9.0, 1.0)]
    assert [(w["begin"], w["seconds"]) for w in task["waits"]] == [(5.0, 4.0)]


def test_a_task_that_only_ended_stands_before_its_end(tmp_path: pathlib.Path) -> None:
    """A skipped task has one record, and begins where that was written."""
    story = stories.Story()
    story.begin("init")
    story.at = 2.0
    story.records.append({"time": stories.BEGAN + 2, "type": "task_end", "task": "never",
                          "outcome": "skipped", "attempts": 0, "seconds": 0.5})  # fmt: skip
    story.end()
    lane = model(instances_of(tmp_path / "logs", {"a-0": story.records}), ())["lanes"][0]
    assert lane["phases"][0]["tasks"][0]["begin"] == 1.5


def test_many_instances_are_folded(tmp_path: pathlib.Path) -> None:
    """Of too many instances each role and task is one band; the first failure keeps its lane."""
    count = MOST_LANES + 1
    shown = model(instances_of(tmp_path / "logs", stories.gang(count, failing=7)), ())
    assert shown["lanes"][0]["label"] == "worker-7"
    assert len(shown["lanes"]) <= MOST_OUTSTANDING
    band = next(b for b in shown["bands"] if b["task"] == "barrier")
    assert (band["role"], band["count"], band["outcomes"]) == ("worker", count, {"ok": count})
    assert band["begin"][0] == 0.0
    command = next(b for b in shown["bands"] if b["task"] == "user_command")
    assert command["seconds"] == [20.0, 31.0, 31.0, 31.0, 31.0]


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_quantiles_are_in_order(values: list[float]) -> None:
    """From the least to the greatest, none outside of them."""
    found = quantiles(values)
    assert found == sorted(found)
    assert (found[0], found[-1]) == (round(min(values), 3), round(max(values), 3))


def test_what_instances_share_is_there_once(tmp_path: pathlib.Path) -> None:
    """Who set what is a row of one table, to which the tasks of all instances refer."""
    shown = model(instances_of(tmp_path / "logs", stories.gang(20)), ())
    fetched = [t for lane in shown["lanes"] for t in lane["phases"][0]["tasks"]][2::3]
    assert {t["id"] for t in fetched} == {"fetch_code"}
    (number,) = {t["settings"] for t in fetched}
    assert len(shown["settings"]) == 3
    assert shown["settings"][number] == {
        "by": "built-in plugin_specs/git.yaml:26:5",
        "set": [
            {"path": "args.depth", "value": "1", "by": "job job.yaml:37:23", "was": "the default"},
            {"path": "retries", "value": "3", "by": "job job.yaml:36:18",
             "was": "9 (built-in plugin_specs/git.yaml:34:14)"},
        ],
    }  # fmt: skip


def test_the_first_failure_leads_its_role(tmp_path: pathlib.Path) -> None:
    """The others follow by number."""
    lanes = model(instances_of(tmp_path / "logs", stories.gang(12, failing=7)), ())["lanes"]
    assert [lane["label"] for lane in lanes[:3]] == ["worker-7", "worker-0", "worker-1"]


def test_a_stop_names_its_sender(tmp_path: pathlib.Path) -> None:
    """The sentence and the mark say which signal came, and from where."""
    instances = instances_of(tmp_path / "logs", {"a-0": stories.stopped()})
    sentence = headline(instances, "job")["sentence"]
    assert sentence == "stopped, exit code 143; received SIGTERM from outside the container"
    (stop,) = model(instances, ())["lanes"][0]["phases"][1]["stops"]
    assert (stop["signal"], stop["origin"]) == ("SIGTERM", "from outside the container")
