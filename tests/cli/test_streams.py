"""Standard streams that are full, closed, or that nobody reads: one clear line, and no crash."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Shell

FULL = "standard output cannot be written: No space left on device"
CLOSED = "standard output cannot be written: Bad file descriptor"


def _with(redirection: str) -> tuple[str, ...]:
    return ("sh", "-c", f'exec "$@" {redirection}', "sh")


@pytest.mark.parametrize(
    "argv",
    [["--dry-run", "job.yaml"], ["--dry-run", "--json", "job.yaml"], ["doc"], ["--help"],
     ["schema", "job"], ["lint", "job.yaml"], ["--version"]],
)  # fmt: skip
@pytest.mark.parametrize(("redirection", "says"), [(">/dev/full", FULL), (">&-", CLOSED)])
def test_output_that_goes_nowhere(
    shell: Shell, argv: list[str], redirection: str, says: str
) -> None:
    """A command whose output cannot be written says so in one line, and is not a success."""
    shell.job()
    said = shell.process(*argv, before=_with(redirection))
    assert (said.code, said.out) == (1, "")
    assert said.err.splitlines()[-1] == f"error: {says}"
    assert "Exception" not in said.err


def test_output_that_nobody_reads_on(shell: Shell) -> None:
    """A reader that has seen enough is no error to speak of."""
    said = shell.process("doc", "errors", before=_with("| exec true"))
    assert said.err == ""


@pytest.mark.parametrize("redirection", ["2>&-", "<&-", "<&- >&- 2>&-"])
def test_other_streams_that_are_closed(shell: Shell, redirection: str) -> None:
    """No stream that is closed makes a command crash, and no message goes to the wrong place."""
    said = shell.process("--dry-run", "absent.yaml", before=_with(redirection))
    assert said.code == 1
    assert "PR108" not in said.out


def test_wrong_usage_is_two(shell: Shell) -> None:
    """Wrong usage ends with 2, whoever finds it; bad input beside it makes it 1."""
    shell.job()
    assert shell("run", "job.yaml", "--grace", "5").code == 2
    assert shell("run", "job.yaml", "--instances", "0").code == 2
    assert shell("run", "job.yaml", "--instances", "0", "--role", "absent").code == 1


def test_a_locale_without_our_characters(shell: Shell) -> None:
    """A pipe gets UTF-8, whatever the locale says."""
    shell.job()
    said = shell.process("--dry-run", "--full", "job.yaml", env={"PYTHONIOENCODING": "iso-8859-1"})
    assert said.code == 0, said.err
    assert "\N{MIDDLE DOT}" in said.out


def test_half_of_a_surrogate_pair_becomes_an_escape() -> None:
    """Foreign JSON can name a character that UTF-8 cannot; the output remains valid JSON."""
    program = (
        "from pairun.cli.streams import speak_everywhere\nspeak_everywhere()\nprint('\"\\ud800ä\"')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert (done.stdout, done.stderr) == ('"\\ud800ä"\n'.encode(), b"")
