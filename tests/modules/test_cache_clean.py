"""The module cache_clean."""

from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.desk import Desk
    from tests.modules.conftest import Harness

ARGS = {"root": "{tmp}/mnt", "folders": ["blobfusecache-*"]}


@pytest.fixture
def mnt(harness: Harness) -> Path:
    """A directory of the node with a cache, and what is none of the module's business."""
    mnt = harness.tmp / "mnt"
    for name in ("blobfusecache-a/deep/er", "other"):
        (mnt / name).mkdir(parents=True)
        (mnt / name / "file").write_text("x")
    (mnt / "blobfusecache-file").write_text("x")
    (mnt / "blobfusecache-a").chmod(0o750)
    return mnt


def test_a_cache_is_emptied(harness: Harness, mnt: Path) -> None:
    """The folder stays with its mode, other folders and files stay as they are."""
    outcome = harness.run("cache_clean", ARGS)
    assert outcome.verdict is not None
    assert outcome.verdict.because == "empty blobfusecache-a"
    assert (mnt / "blobfusecache-a").stat().st_mode & 0o777 == 0o750
    assert not os.listdir(mnt / "blobfusecache-a")
    assert (mnt / "other/file").exists()
    assert (mnt / "blobfusecache-file").exists()


def test_links_are_not_followed(harness: Harness, mnt: Path, tmp_path: Path) -> None:
    """Neither one that matches, nor one inside, nor one to a folder outside the root."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (mnt / "blobfusecache-link").symlink_to(outside)
    (mnt / "blobfusecache-a/link").symlink_to(outside)
    harness.run("cache_clean", ARGS)
    assert (outside / "precious").exists()
    assert (mnt / "blobfusecache-link").is_symlink()
    assert not os.listdir(mnt / "blobfusecache-a")


def test_a_root_that_is_a_link(harness: Harness, mnt: Path) -> None:
    """It is refused: it could lead anywhere."""
    (harness.tmp / "link").symlink_to(mnt)
    outcome = harness.run_once("cache_clean", {**ARGS, "root": "{tmp}/link"})
    assert outcome.failure is not None
    assert "is a symbolic link" in outcome.failure.message
    assert (mnt / "blobfusecache-a/deep/er/file").exists()


@pytest.mark.parametrize(
    ("folders", "because"),
    [(["absent-*"], "every folder that matches is empty"), ([], "every folder that matches")],
)
def test_nothing_to_do(harness: Harness, mnt: Path, folders: list[str], because: str) -> None:
    """A second run, other names, or no names."""
    outcome = harness.run("cache_clean", {**ARGS, "folders": folders})
    assert outcome.verdict is not None
    assert because in outcome.verdict.because
    assert (mnt / "blobfusecache-a/deep/er/file").exists()


def test_a_node_without_the_directory(harness: Harness) -> None:
    """Not every node has a cache."""
    verdict = harness.run("cache_clean", ARGS).verdict
    assert verdict is not None
    assert "does not exist" in verdict.because


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"root": "mnt"}, "'root' must be an absolute path"),
        ({"root": "/"}, "'root' must be an absolute path"),
        ({"root": "/x/.."}, "'root' must be an absolute path"),
        ({"folders": ["../x"]}, "names without a slash"),
        ({"folders": [".."]}, "names without a slash"),
        ({"folders": ["a/*"]}, "names without a slash"),
        ({"folders": ["*"]}, "must name more than"),
        ({"folders": ["?[ab]*"]}, "must name more than"),
    ],
)
def test_arguments_that_lead_elsewhere(harness: Harness, args: dict[str, Any], says: str) -> None:
    """Nothing outside the root can be named, and not all of it."""
    problems = harness.problems("cache_clean", {**ARGS, **args})
    assert says in problems[0].message


PLAYBOOK = """\
phase: init
patches:
  - append:
    id: cache_clean
    name: The caches of this job's blob storages are empty
    cache_clean: {root: /host-mnt, folders: ["blobfusecache-*"]}
"""


@pytest.mark.parametrize(
    "change",
    [
        "init: [{patch: cache_clean, args: {root: /home}}]",
        "init: [{patch: cache_clean, args: {folders: [a]}}]",
        "init: [{append: null, id: x, name: X, cache_clean: {root: /home, folders: [a]}}]",
    ],
)
def test_a_job_chooses_no_path(desk: Desk, change: str) -> None:
    """Paths come from the cluster's layer alone."""
    root = desk.root({"playbooks/init.yaml": PLAYBOOK})
    assert not desk.problems(desk.job(), root)
    assert [p.id for p in desk.problems(desk.job(change), root)] == ["PR402"]


def test_the_example_empties_the_caches_of_the_jobs_own_storages(desk: Desk) -> None:
    """As OpenPAI's living fork does; no other folder of the node."""
    root = pathlib.Path(__file__).parents[2] / "examples/blobfuse"
    storages = "extras: {storages: [{name: blob-data}, {name: nfs}]}\n"
    task = desk.task(desk.valid(desk.job(more=storages), root), "cache_clean")
    assert task.args == {
        "root": "/host-mnt",
        "folders": ["blobfusecache-data", "blobfusecache-nfs"],
    }
    assert task.failure_policy == "ignore"
