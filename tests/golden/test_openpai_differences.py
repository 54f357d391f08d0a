"""Differences to OpenPAI's runtime: the document's rows, and what no other test runs."""

from __future__ import annotations

import ast
import pathlib
import re
from typing import TYPE_CHECKING

import pytest

from tests.golden.test_openpai_plugins import Pod

if TYPE_CHECKING:
    from tests.desk import Desk

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/openpai.md"
HEAD = ["id", "case", "OpenPAI's runtime", "pairun", "why", "switch", "test"]


def _rows() -> list[list[str]]:
    """The cells of each row of the document's tables about differences."""
    tables = PAGE.read_text().split("\n## Steps of init")[0]
    rows = [line.strip("|").split(" | ") for line in tables.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows]


def test_every_row_of_the_document_is_complete() -> None:
    """Each has an id of its own, all its columns, and tests that exist."""
    rows = [row for row in _rows() if row != HEAD]
    assert len(rows) > 65
    assert [row for row in rows if len(row) != len(HEAD) or not all(row)] == []
    ids = [row[0] for row in rows]
    assert sorted(set(ids)) == sorted(ids)
    assert [x for x in ids if not re.fullmatch("`[a-z-]+`", x)] == []
    missing = []
    for row in rows:
        names = re.findall(r"`([\w/]+\.py)::(test_\w+)`", row[-1])
        missing += [row[0]] * (not names or row[-1].count("`") != 2 * len(names))
        missing += [f"{row[0]}: {name}" for path, name in names if name not in _tests(path)]
    assert missing == []


def _tests(path: str) -> set[str]:
    """The names of a file's tests; empty if it does not exist."""
    file = ROOT / "tests" / path
    tree = ast.parse(file.read_text()) if file.exists() else ast.Module([], [])
    return {x.name for x in tree.body if isinstance(x, ast.FunctionDef)}


@pytest.fixture
def pod(tmp_path: pathlib.Path) -> Pod:
    """A Pod without an exit spec."""
    return Pod(tmp_path)


@pytest.mark.slow
def test_events_after_a_failure_are_raised(pod: Pod) -> None:
    events = ("taskSucceeds", "taskFails", "containerExit")
    callbacks = [{"event": e, "commands": [f"echo heard {e}"]} for e in events]
    assert pod.run({"plugin": "cmd", "parameters": {"callbacks": callbacks}}, command="exit 3")
    log = (pod.logs / "runtime.log").read_text()
    assert [e for e in events if f"heard {e}" in log] == ["taskFails", "containerExit"]


@pytest.mark.slow
def test_an_unknown_storage_does_nothing(pod: Pod) -> None:
    plugin = {"plugin": "teamwise_storage", "parameters": {"storageConfigNames": ["unknown"]}}
    assert pod.run(plugin, STORAGE_CONFIGS='["other"]') == 0


@pytest.mark.slow
def test_bytes_in_the_message_are_text(pod: Pod) -> None:
    assert pod.run(command="printf 'bad \\xff byte\\n'; exit 3") == 3
    assert "bad \ufffd byte" in pod.reported["errorLogs"]["user"]


SSH = "- {plugin: ssh, parameters: {jobssh: true}}\n"


def test_ssh_needs_neither_extension_nor_gang(desk: Desk) -> None:
    """A user without an extension has no keys of their own; the job's instances have one."""
    job = desk.job(plugins=SSH).replace("extras:\n", "extras:\n  gangAllocation: false\n")
    review = desk.valid(job)
    assert "ssh" in desk.order(review, "runtime")
    assert desk.task(review, "ssh").args["jobssh"] is True


def test_a_prerequisite_may_have_the_name_of_the_image(desk: Desk) -> None:
    """OpenPAI's runtime looks for the image by its name, whatever the type."""
    other = '  - {name: image, type: data, uri: ["https://example.org/a"]}\n'
    job = desk.job().replace("taskRoles:\n", f"{other}taskRoles:\n")
    assert desk.task(desk.valid(job), "image_check").args["image"] == "ubuntu:22.04"


def test_one_instance_asks_for_the_image(desk: Desk) -> None:
    assert desk.task(desk.valid(desk.job()), "image_check").run_on == "first_of_role"
