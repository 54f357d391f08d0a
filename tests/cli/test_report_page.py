"""``pairun report --html``: one file, whole or not there."""

from __future__ import annotations

import pathlib

import pytest

from pairun.cli.main import main
from tests.report.page import stories


@pytest.fixture
def logs(tmp_path: pathlib.Path) -> pathlib.Path:
    """The journals of a job that succeeded."""
    return stories.write(tmp_path / "sums", {"worker-0": stories.success()})


def test_it_writes_the_page_and_nothing_else(logs: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The file is there when the command ends, named as the job's folder is, and no other."""
    (tmp_path / "out").mkdir()
    assert main(["report", "--html", str(tmp_path / "out" / "page.html"), str(logs)]) == 0
    page = (tmp_path / "out" / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<title>sums: succeeded</title>" in page
    assert [f.name for f in (tmp_path / "out").iterdir()] == ["page.html"]


def test_standard_output(logs: pathlib.Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """A dash writes the page to standard output."""
    assert main(["report", "--html", "-", str(logs)]) == 0
    assert capfdbinary.readouterr().out.endswith(b"</html>\n")


def test_a_folder_that_is_not_there(logs: pathlib.Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A page that cannot be written is an error that names the file."""
    assert main(["report", "--html", str(logs / "no" / "page.html"), str(logs)]) == 1
    assert "error[PR811]" in (err := capfd.readouterr().err)
    assert "No such file or directory" in err


def test_no_journal_no_page(tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Where there is nothing to show, no page is made."""
    assert main(["report", "--html", str(tmp_path / "page.html"), str(tmp_path / "none")]) == 1
    assert "error[PR810]" in capfd.readouterr().err
    assert not (tmp_path / "page.html").exists()
