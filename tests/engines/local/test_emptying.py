"""What a job left is removed at any depth, whatever its permissions, and nothing behind a link is touched."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pairun.engines.local.workdir import empty, opened


def test_deep_and_forbidden_directories_go(tmp_path: Path) -> None:
    """No depth and no mode keeps anything."""
    folder = tmp_path / "folder"
    (folder / "shut" / "inner").mkdir(parents=True)
    (folder / "shut" / "inner" / "file").touch()
    (folder / "shut").chmod(0)
    at = os.open(folder, os.O_RDONLY)
    for _ in range(600):
        os.mkdir("d" * 40, dir_fd=at)
        below = os.open("d" * 40, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    empty(str(folder))
    assert not os.listdir(folder)


def test_a_link_is_removed_and_its_target_stays(tmp_path: Path) -> None:
    """Links at the top and below go; what they name keeps its content and its mode."""
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "mine").touch()
    folder = tmp_path / "folder"
    (folder / "a").mkdir(parents=True)
    for path in (folder / "link", folder / "a" / "link"):
        path.symlink_to(outside)
    empty(str(folder))
    assert not os.listdir(folder)
    assert os.listdir(outside) == ["mine"]
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755


def test_a_link_in_place_of_a_directory_is_not_opened(tmp_path: Path) -> None:
    """A process that swaps a directory while it is removed reaches nothing with it."""
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(outside)
    folder = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(OSError, match="symbolic link"):
        opened(folder, "link")
    os.close(folder)
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755
