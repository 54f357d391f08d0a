"""Checks the scripts of a job with ``bash -n``, which parses and runs nothing.

Only ``pairun lint`` uses this: a review reads nothing from this machine.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pairun.errors import Problem, Severity
from pairun.job.scripts import Script

_TIMEOUT_S = 5.0
_LINE = re.compile(r"^/dev/stdin: line (\d+): (warning: )?(.*)$", re.MULTILINE)
_QUOTED = re.compile(r"`[^`]*'")


class Complaint(NamedTuple):
    """Bash's complaint about a script: message, line from 1, whether it is only a warning."""

    words: str
    line: int
    is_warning: bool


class ShellSyntax:
    """Checks each text once.

    Args:
        shell: the path of bash; by default the one in PATH, if any.
    """

    def __init__(self, shell: str | None = None) -> None:
        self._shell = shell or shutil.which("bash")
        self._complaints: dict[str, Complaint | None] = {}
        self._unread = 0

    def check(self, scripts: Iterable[Script]) -> Iterator[Problem]:
        """Yield a problem for each script that bash cannot read."""
        for script in scripts:
            if script.text not in self._complaints:
                self._complaints[script.text] = self._complaint(script.text)
            if (complaint := self._complaints[script.text]) is not None:
                yield _problem(script, complaint)

    def unread(self) -> Iterator[Problem]:
        """Yield a note if scripts were not checked, because bash is missing or did not respond."""
        if self._unread:
            count = f"{self._unread} script{'s' * (self._unread != 1)}"
            why = "bash did not answer in time" if self._shell else "bash is not installed here"
            message = f"the syntax of {count} was not checked: {why}"
            yield Problem("PR926", message, None, "lint where bash is installed", "warning")

    def _complaint(self, text: str) -> Complaint | None:
        if self._shell is None:
            self._unread += 1
            return None
        options = ["-O", "extglob"] if "extglob" in text else []
        # Without an environment bash reads no file, and its messages are in English.
        argv = [self._shell, "--norc", "--noprofile", *options, "-n", "/dev/stdin"]
        data = text.replace("\0", " ").encode("utf-8", "replace")
        try:
            done = subprocess.run(
                argv, input=data, env={}, capture_output=True, timeout=_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            self._unread += 1
            return None
        said = _LINE.search(done.stderr.decode("utf-8", "replace"))
        return Complaint(said[3], int(said[1]), bool(said[2])) if said else None


def _problem(script: Script, complaint: Complaint) -> Problem:
    words = complaint.words
    if script.secret:
        words = _QUOTED.sub("…", words)  # bash quotes a part of the text
    severity: Severity = "warning" if complaint.is_warning else "error"
    message = f"bash cannot read {script.name}: {words}"
    if complaint.is_warning:
        message = f"{script.name}: {words}"
    place = script.place_of_line(complaint.line)
    return Problem("PR516", message, place, _hint(words), severity)


def _hint(words: str) -> str | None:
    """The usual cause of a complaint."""
    if "looking for matching" in words:
        return "a quote or bracket that begins here is not closed"
    if "unexpected end of file" in words:
        return "an 'if', 'for', 'while', 'case' or '{' is not closed"
    if "here-document" in words:
        return "the line that ends the here document must hold nothing else"
    return None
