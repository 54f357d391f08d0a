"""``pairun --dry-run --html``: one file, with the exit codes of a review."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Shell


def test_a_valid_job_has_a_page(shell: Shell) -> None:
    """The page is written, nothing is printed, and the exit code is that of the review."""
    file = shell.tmp / "review.html"
    reviewed = shell("--dry-run", "--html", file, shell.job())
    assert (reviewed.code, reviewed.out, reviewed.err) == (0, "", "")
    assert file.read_text().startswith("<!doctype html>")
    assert shell("--dry-run", "--html", file, "--exit-code", shell.job()).code == 2


def test_errors_are_in_the_page_and_on_standard_error(shell: Shell) -> None:
    """A job with errors has a page, too; the command exits with 1."""
    file = shell.tmp / "review.html"
    reviewed = shell("--dry-run", "--html", file, shell.job("init: [{patch: nothing}]"))
    assert (reviewed.code, reviewed.ids) == (1, ["PR401"])
    assert "there is no task &#39;nothing&#39; in init" in file.read_text()


def test_a_job_that_cannot_be_read_has_a_page(shell: Shell) -> None:
    file = shell.tmp / "review.html"
    assert shell("--dry-run", "--html", file, shell.file("bad.yaml", "nonsense: 1\n")).code == 1
    assert "bad.yaml" in file.read_text()


def test_standard_output(shell: Shell) -> None:
    """A dash writes the page of several jobs to standard output."""
    reviewed = shell.process("--dry-run", "--html", "-", shell.job(), shell.job(path="b.yaml"))
    assert reviewed.code == 0
    assert reviewed.out.endswith("</html>\n")
    assert reviewed.out.count('<section class="job">') == 2


@pytest.mark.parametrize("other", [["--json"], ["--why", "barrier.retries"], ["--full"]])
def test_one_form_at_a_time(shell: Shell, other: list[str]) -> None:
    """The page already holds what the other options would add."""
    reviewed = shell("--dry-run", "--html", shell.tmp / "review.html", *other, shell.job())
    assert reviewed.code == 2
    assert not (shell.tmp / "review.html").exists()


def test_a_folder_that_does_not_exist(shell: Shell) -> None:
    """A page that cannot be written is an error that names the file."""
    reviewed = shell("--dry-run", "--html", shell.tmp / "no" / "page.html", shell.job())
    assert (reviewed.code, reviewed.ids) == (1, ["PR811"])
