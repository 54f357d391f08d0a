"""``pairun progress``: a small file that says how far the user's code has come."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pairun.cli import main as cli
from pairun.volume.progressfile import NotedProgress, parse_progress


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the log directory of a Pod whose volume is in a folder."""
    monkeypatch.setenv("PAIRUN_PAI_DIR", str(tmp_path))
    monkeypatch.setenv("FC_POD_UID", "uid-1")
    logs = tmp_path / "logs" / "uid-1"
    logs.mkdir(parents=True)
    return logs


def test_progress_is_written_and_replaced(folder: Path) -> None:
    """The last call counts; no other file is left."""
    assert cli.main(["progress", "--step", "400"]) == 0
    assert cli.main(["progress", "--step", "500", "--epoch", "2", "--checkpoint", "/data/c"]) == 0
    noted = parse_progress((folder / "progress.json").read_bytes())
    assert noted is not None
    assert noted[:3] == (500, 2, "/data/c")
    assert noted.at > 0
    assert os.listdir(folder) == ["progress.json"]


@pytest.mark.parametrize("argv", [[], ["--step", "-1"], ["--step", "x"], ["--epoch", "1.5"]])
def test_wrong_usage(folder: Path, argv: list[str]) -> None:
    """Without a number nothing is written, and the exit code is 2."""
    try:
        code = cli.main(["progress", *argv])
    except SystemExit as e:
        code = int(e.code or 0)
    assert code == 2
    assert not os.listdir(folder)


def test_a_link_in_place_of_the_file_is_not_followed(folder: Path, tmp_path: Path) -> None:
    """The file behind it stays as it is."""
    other = tmp_path / "other"
    other.write_text("untouched")
    (folder / "progress.json").symlink_to(other)
    cli.main(["progress", "--step", "1"])
    assert other.read_text() == "untouched"


def test_without_a_log_directory_the_error_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Outside of a job there is nothing to write to."""
    monkeypatch.setenv("PAIRUN_PAI_DIR", str(tmp_path / "none"))
    assert cli.main(["progress", "--step", "1"]) == 1
    assert "PR814" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"{", b'{"schema":2,"step":1}', b"[" * 5000],
)
def test_a_file_of_another_form_says_nothing(text: bytes) -> None:
    """The user's code may write anything there."""
    assert parse_progress(text) is None


def test_hostile_values_are_left_out() -> None:
    """Only counts within bounds are read."""
    noted = parse_progress(b'{"schema":1,"step":true,"epoch":-3,"checkpoint":5,"at":1e400}')
    assert noted == NotedProgress(None, None, "5", 0.0)


def test_it_imports_the_standard_library_alone() -> None:
    """User code may call it often, so nothing heavy is loaded."""
    code = (
        "import sys, pairun.cli.main as m\n"
        "try: m.main(['progress', '--help'])\nexcept SystemExit: pass\n"
        "heavy = {'yaml', 'attr', 'attrs', 'requests', 'jinja2', 'ssl'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_call_keeps_what_it_does_not_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two calls with different options complete each other; success prints nothing."""
    assert cli.main(["progress", "--epoch", "2", "--checkpoint", "/data/c"]) == 0
    assert cli.main(["progress", "--step", "500"]) == 0
    noted = parse_progress((folder / "progress.json").read_bytes())
    assert noted is not None
    assert noted[:3] == (500, 2, "/data/c")
    assert capsys.readouterr() == ("", "")


def test_a_file_of_another_form_is_replaced(folder: Path) -> None:
    """What the user's code wrote in place of it does not count."""
    (folder / "progress.json").write_text("[1]")
    assert cli.main(["progress", "--step", "1"]) == 0
    noted = parse_progress((folder / "progress.json").read_bytes())
    assert noted is not None
    assert noted[:3] == (1, None, "")
