"""The work directory: nothing foreign is touched, and no two runs share one."""

from __future__ import annotations

import os
import pathlib
import shlex
import signal
import subprocess
import sys
from typing import Any

import pytest

from pairun.engines.workdir import MARKER, TRASH, WorkDir
from pairun.errors import PairunError


def _refused(path: pathlib.Path) -> str:
    with pytest.raises(PairunError) as caught:
        WorkDir(str(path))
    (problem,) = caught.value.problems
    assert problem.id == "PR701"
    return problem.message


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
    """A reset removes what runs made, and neither follows links nor touches other files."""
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
    WorkDir(str(folder)).close()
    assert set(os.listdir(folder)) == {MARKER, "note"}
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


def test_trash_that_is_a_link(tmp_path: pathlib.Path) -> None:
    """A link in place of the trash is refused."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/precious").write_text("x")
    work = WorkDir(str(tmp_path / "run"))
    work.make("w-0")
    work.close()
    (tmp_path / "run" / TRASH).symlink_to(tmp_path / "outside")
    _refused(tmp_path / "run")
    assert os.listdir(tmp_path / "outside") == ["precious"]


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
    WorkDir(str(tmp_path / "run")).close()
    assert os.listdir(tmp_path / "run") == [MARKER]


def test_mount_point_is_not_crossed(tmp_path: pathlib.Path) -> None:
    """Where something is mounted in the work directory, it is named, and nothing is removed."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/precious").write_text("x")
    work = WorkDir(str(tmp_path / "run"))
    point = pathlib.Path(work.make("w-0")) / "a mount"
    point.mkdir()
    work.close()
    driver = (
        "import sys\nfrom pairun.engines.workdir import WorkDir\n"
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
