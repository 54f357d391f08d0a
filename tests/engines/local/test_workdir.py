"""The work directory: nothing foreign is touched, and no two runs share one."""

from __future__ import annotations

import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from pairun.base.runfolders import MARKER, PREVIOUS
from pairun.engines.local.workdir import KEEPING, TRASH, WorkDir
from pairun.errors import PairunError


def _refused(path: pathlib.Path) -> str:
    with pytest.raises(PairunError) as caught:
        WorkDir(str(path))
    (problem,) = caught.value.problems
    assert problem.id == "PR701"
    return problem.message


def _run_once(folder: pathlib.Path, name: str) -> None:
    """What a run does in the directory: it makes one of its own, with a result in it."""
    work = WorkDir(str(folder))
    (pathlib.Path(work.make(name)) / "result").write_text(name)
    work.close()


def test_foreign_directory_is_refused(tmp_path: pathlib.Path) -> None:
    """A directory that holds something we did not make is left alone."""
    (tmp_path / "precious").write_text("x")
    assert "not empty" in _refused(tmp_path)
    assert os.listdir(tmp_path) == ["precious"]


def test_not_writable(job: Any, launch: Any) -> None:
    """A work directory that cannot be used is one clear error, and nothing starts."""
    job.role("w", "echo ran")
    run = launch("--workdir", "/dev/null/x")
    assert run.end() == 1
    assert "error[PR701]" in run.text
    assert "ran" not in run.said("w-0")


def test_locked(job: Any, launch: Any) -> None:
    """Two runs at once do not share a work directory."""
    job.role("w", "echo up; sleep 100")
    first = launch("--no-namespace")
    first.wait_for("| up")
    second = launch("--no-namespace")
    assert second.end() == 1
    assert "error[PR701]" in second.text
    assert "another pairun run" in second.text
    first.signal(signal.SIGTERM)
    assert first.end() == 143


def test_only_ours_is_removed(tmp_path: pathlib.Path) -> None:
    """What a run made goes in the end; no link is followed, and no other file is touched."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    folder = tmp_path / "run"
    work = WorkDir(str(folder))
    made = pathlib.Path(work.make("w-0"))
    (made / "file").write_text("x")
    (made / "to-outside").symlink_to(outside)
    (made / "dangling").symlink_to("/nonexistent")
    os.mkfifo(made / "fifo")
    (folder / "note").write_text("mine")
    work.close()
    _run_once(folder, "next")
    assert set(os.listdir(folder / PREVIOUS / "w-0")) == {"file", "to-outside", "dangling", "fifo"}
    WorkDir(str(folder)).close()
    assert set(os.listdir(folder)) == {MARKER, "note", PREVIOUS}
    assert set(os.listdir(folder / PREVIOUS)) == {MARKER, "next"}
    assert (outside / "precious").read_text() == "x"


def test_link_in_place_of_ours(tmp_path: pathlib.Path) -> None:
    """Where a directory of ours was replaced by a link, the link goes and its target stays."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/precious").write_text("x")
    work = WorkDir(str(tmp_path / "run"))
    made = pathlib.Path(work.make("w-0"))
    made.rmdir()
    made.symlink_to(tmp_path / "outside")
    work.close()
    WorkDir(str(tmp_path / "run")).close()
    assert not made.is_symlink()
    _run_once(tmp_path / "run", "next")
    WorkDir(str(tmp_path / "run")).close()
    assert os.listdir(tmp_path / "run" / PREVIOUS / "next") == ["result"]
    assert (tmp_path / "outside/precious").exists()


def test_marker_that_names_other_places(tmp_path: pathlib.Path) -> None:
    """A list that names paths outside of the directory is not believed."""
    (tmp_path / "precious").write_text("x")
    work = WorkDir(str(tmp_path / "run"))
    work.close()
    with (tmp_path / "run" / MARKER).open("a") as f:
        f.write(f"../precious\n..\n.\n{tmp_path}/precious\n")
    WorkDir(str(tmp_path / "run")).close()
    assert (tmp_path / "precious").exists()


def test_name_that_is_taken(tmp_path: pathlib.Path) -> None:
    """What somebody put where a directory of ours is to be is refused now and kept later."""
    folder = tmp_path / "run"
    WorkDir(str(folder)).close()
    (folder / "w-0").mkdir()
    work = WorkDir(str(folder))
    with pytest.raises(PairunError):
        work.make("w-0")
    work.close()
    WorkDir(str(folder)).close()
    assert (folder / "w-0").is_dir()


@pytest.mark.parametrize("name", [TRASH, KEEPING, PREVIOUS])
def test_link_in_place_of_a_place_of_ours(tmp_path: pathlib.Path, name: str) -> None:
    """A link in place of the trash, or of where the last run is kept, is refused."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/precious").write_text("x")
    _run_once(tmp_path / "run", "w-0")
    (tmp_path / "run" / name).symlink_to(tmp_path / "outside")
    _refused(tmp_path / "run")
    assert (tmp_path / "run/w-0/result").exists()
    assert os.listdir(tmp_path / "outside") == ["precious"]


@pytest.mark.slow
def test_deep_tree(tmp_path: pathlib.Path) -> None:
    """A tree deeper than any path may be long is removed too, and one that forbids it."""
    work = WorkDir(str(tmp_path / "run"))
    here = os.open(work.make("w-0"), os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.fchmod(here, 0)
    os.close(here)
    work.close()
    _run_once(tmp_path / "run", "next")
    WorkDir(str(tmp_path / "run")).close()
    assert sorted(os.listdir(tmp_path / "run")) == [MARKER, PREVIOUS]
    assert os.listdir(tmp_path / "run" / PREVIOUS / "next") == ["result"]


def test_the_last_run_is_kept(tmp_path: pathlib.Path) -> None:
    """Of earlier runs exactly one is kept, the last, and one line says where it is."""
    folder, said = tmp_path / "run", list[str]()
    for name in ("one", "two", "three"):
        _run_once(folder, name)
    os.utime(folder / MARKER, (0, time.mktime((2020, 2, 3, 11, 48, 0, 0, 0, -1))))
    WorkDir(str(folder), said.append).close()
    assert said == [f"moved the 2020-02-03 11:48 run to {folder}/{PREVIOUS}"]
    assert set(os.listdir(folder)) == {MARKER, PREVIOUS}
    assert set(os.listdir(folder / PREVIOUS)) == {MARKER, "three"}
    assert (folder / PREVIOUS / "three/result").read_text() == "three"


def test_a_run_without_instances_does_not_count(tmp_path: pathlib.Path) -> None:
    """A run that came to nothing before its first instance does not push out one that ran."""
    folder, said = tmp_path / "run", list[str]()
    _run_once(folder, "w-0")
    work = WorkDir(str(folder))
    work.make("gang")
    work.close()
    WorkDir(str(folder), said.append).close()
    assert said == []
    assert set(os.listdir(folder)) == {MARKER, PREVIOUS}
    assert (folder / PREVIOUS / "w-0/result").exists()


def test_a_previous_of_somebody_else(tmp_path: pathlib.Path) -> None:
    """A directory of the user's that bears the name is refused, and nothing is moved or removed."""
    folder = tmp_path / "run"
    _run_once(folder, "w-0")
    (folder / PREVIOUS).mkdir()
    (folder / PREVIOUS / "precious").write_text("x")
    assert "did not create it" in _refused(folder)
    assert (folder / PREVIOUS / "precious").exists()
    assert (folder / "w-0/result").exists()


_STEPS = ("rename", "mkdir", "open", "rmdir", "unlink", "ftruncate", "write")


def _killed_at(folder: pathlib.Path, step: int) -> bool:
    """Open the directory in a process that dies before a step; whether it came to that."""
    child = os.fork()
    if child == 0:
        left = iter(range(step))

        def counted(call: Any) -> Any:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if next(left, None) is None:
                    os._exit(9)
                return call(*args, **kwargs)

            return wrapper

        try:
            for name in _STEPS:
                setattr(os, name, counted(getattr(os, name)))
            WorkDir(str(folder))
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.slow
def test_killed_at_any_step(tmp_path: pathlib.Path) -> None:
    """Whenever a run is killed while it puts the last one away, the next one keeps all of it."""
    for step in range(1000):
        folder = tmp_path / f"run-{step}"
        _run_once(folder, "old")
        work = WorkDir(str(folder))
        for name in ("gang", "w-0", "w-1"):
            (pathlib.Path(work.make(name)) / "result").write_text(name)
        work.close()
        killed = _killed_at(folder, step)
        if killed and step % 2:
            # killed once more at the same step of what is left to do
            _killed_at(folder, step)
        WorkDir(str(folder)).close()
        assert set(os.listdir(folder)) == {MARKER, PREVIOUS}, step
        assert set(os.listdir(folder / PREVIOUS)) == {MARKER, "gang", "w-0", "w-1"}, step
        assert (folder / PREVIOUS / "w-1/result").read_text() == "w-1"
        if not killed:
            break
    assert step > 10


def test_run_says_where_the_last_one_is(job: Any, launch: Any) -> None:
    """A second run in the same directory says where the results of the first are."""
    job.role("w", "echo first > result")
    assert launch("--no-namespace").end() == 0
    job.role("w", "echo second > result")
    run = launch("--no-namespace")
    assert run.end() == 0
    line = next(line for line in run.lines if line.endswith("run to pairun-run/test/previous"))
    assert line.startswith("[pairun] moved the ")
    assert (run.folder / "previous/w-0/work/result").read_text() == "first\n"
    assert (run.folder / "w-0/work/result").read_text() == "second\n"


@pytest.mark.parametrize("runs", [1, 2])
def test_mount_point_is_not_crossed(tmp_path: pathlib.Path, runs: int) -> None:
    """Where something is mounted in what is to be kept or removed, it is named, and all stays."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/precious").write_text("x")
    work = WorkDir(str(tmp_path / "run"))
    point = pathlib.Path(work.make("w-0")) / "a mount"
    point.mkdir()
    work.close()
    if runs == 2:
        _run_once(tmp_path / "run", "next")
        point = tmp_path / "run" / PREVIOUS / "w-0/a mount"
    driver = (
        "import sys\nfrom pairun.engines.local.workdir import WorkDir\n"
        "from pairun.errors import PairunError\n"
        "try:\n    WorkDir(sys.argv[1])\nexcept PairunError as e:\n    print(e)"
    )
    python = shlex.join([sys.executable, "-c", driver, str(tmp_path / "run")])
    script = f"mount --bind {tmp_path}/outside '{point}' && {python}"
    user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    done = subprocess.run(
        ["unshare", *user, "--mount", "sh", "-c", script],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    if "unshare failed" in done.stderr:
        pytest.skip("this kernel lets us make no mount namespace")
    assert f"something is mounted at {point}" in done.stdout
    assert (tmp_path / "outside/precious").exists()
    assert point.is_dir()
