"""How often a container has restarted in its Pod."""

from __future__ import annotations

from pathlib import Path

from pairun.runtime.main import count_restart
from pairun.volume.door import Door


def test_each_start_is_counted(tmp_path: Path) -> None:
    """The first start is no restart; where init has emptied the volume, the next one is the first."""
    (tmp_path / "run").mkdir()
    assert [count_restart(Door(str(tmp_path))) for _ in range(3)] == [0, 1, 2]
    (tmp_path / "run" / "starts").unlink()
    assert count_restart(Door(str(tmp_path))) == 0


def test_what_a_command_left_there(tmp_path: Path) -> None:
    """A file that is no number, or something that is no file, counts as one restart."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "starts").write_text("many")
    assert [count_restart(Door(str(tmp_path))) for _ in range(2)] == [1, 2]
    (tmp_path / "run" / "starts").unlink()
    (tmp_path / "run" / "starts").mkdir()
    assert count_restart(Door(str(tmp_path))) == 1


def test_a_volume_without_the_folder(tmp_path: Path) -> None:
    """Nothing is counted, and the command starts."""
    assert [count_restart(Door(str(tmp_path))) for _ in range(2)] == [0, 0]
