"""Directories, which need no server: what is at a mount point."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.modules.conftest import Harness
from tests.modules.mount_storage.conftest import LOCAL, NFS, mounted, needs_root


def test_only_the_run_can_tell(harness: Harness) -> None:
    """A review of the empty Pod says so."""
    assert harness.review(harness.make("mount_storage", {"storages": [NFS]})) == "unknown"


def test_without_storages_there_is_nothing_to_do(harness: Harness) -> None:
    """The task is skipped with the reason."""
    skip = harness.run("mount_storage", {}).skip
    assert skip is not None
    assert "no storage is given" in skip.because


TABLE: list[dict[str, Any]] = [
    {"what": "a directory appears elsewhere", "args": {"storages": [LOCAL]},
     "files": {"{tmp}/source/a": "1"}, "verdict": "will_change",
     "because": "mount local {tmp}/source at {tmp}/mnt", "leaves": {"{tmp}/mnt/a": "1"}},
    {"what": "an empty mount point may be there", "args": {"storages": [LOCAL]},
     "files": {"{tmp}/source/a": "1", "{tmp}/mnt": None}, "leaves": {"{tmp}/mnt/a": "1"}},
    {"what": "a sub-directory is made, names filled in",
     "args": {"storages": [{**LOCAL, "subdir": "home/%User/%JOB"}], "user": "al", "job": "al~j"},
     "files": {"{tmp}/source/a": "1", "{tmp}/source/home/al/al~j/b": "2"},
     "leaves": {"{tmp}/mnt/b": "2", "{tmp}/mnt/a": None}},
    {"what": "a path with spaces", "args": {"storages": [{**LOCAL, "path": "{tmp}/m n/\\x"}]},
     "files": {"{tmp}/source/a": "1"}, "leaves": {"{tmp}/m n/\\x/a": "1"}},
    {"what": "an inner one after its outer one",
     "args": {"storages": [{**LOCAL, "source": "{tmp}/two", "path": "{tmp}/mnt/in"}, LOCAL]},
     "files": {"{tmp}/source/in": None, "{tmp}/two/b": "2"},
     "leaves": {"{tmp}/mnt/in/b": "2"}},
    {"what": "a mount point that is not empty", "args": {"storages": [LOCAL]},
     "files": {"{tmp}/source/a": "1", "{tmp}/mnt/b": "2"}, "failure": "permanent", "fault": "user",
     "says": "the mount point {tmp}/mnt is not empty: 'b' is in it",
     "leaves": {"{tmp}/mnt/b": "2"}},
    {"what": "a mount point that is a file", "args": {"storages": [LOCAL]},
     "files": {"{tmp}/source/a": "1", "{tmp}/mnt": "2"}, "failure": "permanent",
     "says": "{tmp}/mnt is not a directory"},
    {"what": "an inner mount point that the outer one has filled",
     "args": {"storages": [LOCAL, {**LOCAL, "source": "{tmp}/two", "path": "{tmp}/mnt/in"}]},
     "files": {"{tmp}/source/in/x": "1", "{tmp}/two/b": "2"}, "failure": "permanent",
     "says": "{tmp}/mnt/in is not empty", "leaves": {"{tmp}/mnt/in/x": None}},
    {"what": "no such directory", "args": {"storages": [LOCAL]}, "failure": "permanent",
     "says": "there is no directory {tmp}/source"},
    {"what": "a name that is not known",
     "args": {"storages": [{**LOCAL, "subdir": "%user"}]}, "failure": "permanent",
     "says": "%USER in 'subdir' is not known here"},
    {"what": "a name that leads elsewhere",
     "args": {"storages": [{**LOCAL, "subdir": "%user"}], "user": "../x"}, "failure": "permanent",
     "says": "cannot name a directory"},
    {"what": "nothing to unmount", "args": {"storages": [LOCAL], "state": "absent"},
     "files": {"{tmp}/source/a": "1"}, "verdict": "no_change"},
    {"what": "a file of storages that nobody left", "args": {"file": "{tmp}/none.json"},
     "failure": "permanent", "says": "storage_config writes it"},
    {"what": "a file that is something else", "args": {"file": "{tmp}/f"},
     "files": {"{tmp}/f": "[1]"}, "failure": "permanent", "says": "not a file of storage_config"},
]  # fmt: skip


@needs_root
@pytest.mark.parametrize("row", TABLE, ids=[r["what"] for r in TABLE])
def test_table(harness: Harness, row: dict[str, Any]) -> None:
    """Each row does as it says, and a second run changes nothing."""
    outcome = harness.table("mount_storage", row)
    if outcome.failure is not None:
        assert mounted(harness) == []


@needs_root
def test_what_was_mounted_is_unmounted_in_reverse_order(harness: Harness) -> None:
    """An inner storage goes before its outer one, and what was mounted from elsewhere stays."""
    for name in ("source", "two"):
        (harness.tmp / name).mkdir()
    both = {"storages": [LOCAL, {**LOCAL, "source": "{tmp}/two", "path": "{tmp}/mnt/in"}]}
    harness.run("mount_storage", both)
    assert mounted(harness) == ["/mnt", "/mnt/in"]
    other = {"storages": [{**LOCAL, "source": "{tmp}/two"}], "state": "absent"}
    assert harness.run("mount_storage", other).result is None
    outcome = harness.run("mount_storage", {**both, "state": "absent"})
    assert outcome.failure is None
    assert mounted(harness) == []


@needs_root
def test_a_file_that_is_open_does_not_hold_a_mount(harness: Harness) -> None:
    """The mount is out of sight at once; who has a file open may finish."""
    (harness.tmp / "source").mkdir()
    harness.run("mount_storage", {"storages": [LOCAL]})
    with (harness.tmp / "mnt" / "a").open("w") as file:
        harness.run("mount_storage", {"storages": [LOCAL], "state": "absent"})
        assert mounted(harness) == []
        file.write("late")
    assert (harness.tmp / "source" / "a").read_text() == "late"


@needs_root
def test_read_only_is_read_only(harness: Harness) -> None:
    """Nothing can be written, and asking for both at once is an error."""
    (harness.tmp / "source").mkdir()
    harness.run("mount_storage", {"storages": [{**LOCAL, "read_only": True}]})
    with pytest.raises(OSError, match="Read-only"):
        (harness.tmp / "mnt" / "a").write_text("x")
    assert harness.run("mount_storage", {"storages": [{**LOCAL, "read_only": True}]}).result is None
    failure = harness.run("mount_storage", {"storages": [LOCAL]}).failure
    assert failure is not None
    assert "already mounted read-only" in failure.message


@needs_root
def test_a_directory_of_what_is_read_only_is_no_error_at_the_second_look(harness: Harness) -> None:
    """It was never writable; the mount is the one that is wanted."""
    (harness.tmp / "disk" / "in").mkdir(parents=True)
    disk = {**LOCAL, "source": "{tmp}/disk", "path": "{tmp}/ro", "read_only": True}
    inner = {**LOCAL, "source": "{tmp}/ro/in"}
    harness.run("mount_storage", {"storages": [disk]})
    harness.run("mount_storage", {"storages": [inner]})
    assert mounted(harness) == ["/ro", "/mnt"]


@needs_root
def test_what_was_refused_is_not_unmounted(harness: Harness) -> None:
    """The platform's mount for writing stays where the task asks for a read-only one."""
    (harness.tmp / "source").mkdir()
    harness.run("mount_storage", {"storages": [LOCAL]})
    storages = [{**LOCAL, "read_only": True}]
    failure = harness.run("mount_storage", {"storages": storages}).failure
    assert failure is not None
    assert "already mounted for writing" in failure.message
    assert harness.run("mount_storage", {"storages": storages, "state": "absent"}).result is None
    assert mounted(harness) == ["/mnt"]


@needs_root
def test_a_mount_from_elsewhere_stays(harness: Harness) -> None:
    """What is there is named, and nothing is mounted, also not the storages before it."""
    for name in ("source", "two"):
        (harness.tmp / name).mkdir()
    harness.run("mount_storage", {"storages": [LOCAL]})
    storages = [
        {**LOCAL, "path": "{tmp}/first"},
        {**LOCAL, "source": "{tmp}/two"},
    ]
    failure = harness.run("mount_storage", {"storages": storages}).failure
    assert failure is not None
    assert failure.kind == "permanent"
    assert "is already mounted from elsewhere" in failure.message
    assert mounted(harness) == ["/mnt"]


@needs_root
def test_a_link_in_a_sub_directory_is_not_followed(harness: Harness) -> None:
    """A storage that many write to cannot lead a job's mount out of it."""
    (harness.tmp / "source").mkdir()
    (harness.tmp / "source" / "home").symlink_to("/etc")
    failure = harness.run("mount_storage", {"storages": [{**LOCAL, "subdir": "home/x"}]}).failure
    assert failure is not None
    assert "a link is in its path" in failure.message
    assert mounted(harness) == []
    assert not Path("/etc/x").exists()


@needs_root
def test_two_paths_to_one_directory_are_one_mount_point(harness: Harness) -> None:
    """A link in a path is seen through."""
    for name in ("source", "two", "mnt"):
        (harness.tmp / name).mkdir()
    (harness.tmp / "link").symlink_to(harness.tmp / "mnt")
    storages = [LOCAL, {**LOCAL, "source": "{tmp}/two", "path": "{tmp}/link"}]
    failure = harness.run("mount_storage", {"storages": storages}).failure
    assert failure is not None
    assert "two storages at one mount point" in failure.message
    assert mounted(harness) == []


@needs_root
def test_a_mount_that_does_not_answer_is_a_timeout(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question is asked by a child, which is killed; the attempt goes on and says what hangs."""
    (harness.tmp / "source").mkdir()
    harness.run("mount_storage", {"storages": [LOCAL]})
    monkeypatch.setattr(os, "statvfs", lambda _: time.sleep(60))
    failure = harness.run("mount_storage", {"storages": [LOCAL], "answer_within": "200ms"}).failure
    assert failure is not None
    assert failure.kind == "timeout"
    assert "does not answer within 0.2s" in failure.message
