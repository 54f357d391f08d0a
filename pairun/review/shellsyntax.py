"""Checks the scripts of a job: ``bash -n`` finds syntax errors, ShellCheck mistakes; neither runs a script.

Only ``pairun lint`` uses this: a review reads nothing from this machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pairun.base.foreignjson import parse_json
from pairun.errors import Problem, Severity
from pairun.job.scripts import Script
from pairun.review.shellscripts import Checked

_TIMEOUT_S = 10.0
_LINE = re.compile(r"^/dev/stdin: line (\d+): (warning: )?(.*)$", re.MULTILINE)
_QUOTED = re.compile(r"`[^`]*'")
_UNASSIGNED = 2154
"""ShellCheck's code for a variable that is used and that nothing sets: https://www.shellcheck.net/wiki/SC2154"""
_SETS_OTHERS = re.compile(
    r"^\s*(?:set \+(?:\w*u|o nounset)|source|\.|eval|(?:conda|mamba|micromamba|module|ml|spack|workon|nvm|pyenv)\b)",
    re.MULTILINE,
)
"""A command after which variables may be set, or may be unset, that ShellCheck does not know."""


class Complaint(NamedTuple):
    """Bash's complaint about a script: message, line from 1, whether it is only a warning."""

    words: str
    line: int
    is_warning: bool


class ShellSyntax:
    """Checks each text once.

    Args:
        shell: the path of bash; by default the one in PATH, if any.
        shellcheck: the path of ShellCheck; by default that of the extra ``lint``, or the one in PATH.
    """

    def __init__(self, shell: str | None = None, shellcheck: str | None = None) -> None:
        self._shell = shell or shutil.which("bash")
        beside = os.path.join(os.path.dirname(sys.executable), "shellcheck")
        self._shellcheck = shellcheck or shutil.which(beside) or shutil.which("shellcheck")
        self._complaints: dict[str, Complaint | None] = {}
        self._mistakes: dict[str, list[dict[str, Any]]] = {}
        self._unread = 0

    def check(self, scripts: Iterable[Checked]) -> Iterator[Problem]:
        """Yield the problems of scripts: an error for each that bash cannot read, and warnings."""
        for each in scripts:
            text = each.script.text
            if text not in self._complaints:
                self._complaints[text] = self._complaint(text)
            if (complaint := self._complaints[text]) is not None:
                yield _problem(each.script, complaint)
            elif not each.script.secret:  # ShellCheck quotes parts of a script
                if text not in self._mistakes:
                    self._mistakes[text] = self._found_by_shellcheck(text)
                yield from _warnings(each, self._mistakes[text])

    def unread(self) -> Iterator[Problem]:
        """Yield a note if scripts were not checked, because bash is missing or did not respond."""
        if self._unread:
            count = f"{self._unread} script{'s' * (self._unread != 1)}"
            why = "bash did not answer in time" if self._shell else "bash is not installed here"
            message = f"the syntax of {count} was not checked: {why}"
            yield Problem("PR926", message, None, "lint where bash is installed", "warning")

    def _complaint(self, text: str) -> Complaint | None:
        options = ["-O", "extglob"] if "extglob" in text else []
        # Without an environment bash reads no file, and its messages are in English.
        argv = [self._shell, "--norc", "--noprofile", *options, "-n", "/dev/stdin"]
        done = _run(argv, text) if self._shell else None
        if done is None:
            self._unread += 1
            return None
        said = _LINE.search(done.stderr.decode("utf-8", "replace"))
        return Complaint(said[3], int(said[1]), bool(said[2])) if said else None

    def _found_by_shellcheck(self, text: str) -> list[dict[str, Any]]:
        """ShellCheck's errors and unset variables; none if it is missing or does not respond."""
        options = ["--norc", "--shell=bash", "--enable=check-unassigned-uppercase"]
        argv = [self._shellcheck, *options, "--severity=warning", "--format=json1", "-"]
        done = _run(argv, text) if self._shellcheck else None
        if done is None or done.returncode not in (0, 1):  # 2 and more: it could not check
            return []
        comments: list[dict[str, Any]] = parse_json(done.stdout)["comments"]
        return [c for c in comments if c["level"] == "error" or c["code"] == _UNASSIGNED]


def _run(argv: Sequence[Any], text: str) -> subprocess.CompletedProcess[bytes] | None:
    data = text.replace("\0", " ").encode("utf-8", "replace")
    try:
        return subprocess.run(
            argv, input=data, env={"LC_ALL": "C.UTF-8"}, capture_output=True, timeout=_TIMEOUT_S,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None


def _warnings(checked: Checked, mistakes: Iterable[dict[str, Any]]) -> Iterator[Problem]:
    script = checked.script
    others = _SETS_OTHERS.search(script.text)
    reported: set[str] = set()
    for each in mistakes:
        offset = script.offset(each["line"], each["column"])
        if each["code"] != _UNASSIGNED:
            message = f"{script.name}: {each['message']} (SC{each['code']})"
            hint = f"see https://www.shellcheck.net/wiki/SC{each['code']}"
            yield Problem("PR935", message, script.place(offset), hint, "warning")
            continue
        name = str(each["message"]).split()[0]
        late = others is not None and others.start() < offset
        if checked.may_be_unset(name) and not late and name not in reported:
            reported.add(name)
            place, hint = script.place(offset), f"write ${{{name}:-}}"
            yield Problem("PR903", _unset(name), place, hint, "warning")


def _unset(name: str) -> str:
    unbound = "the command fails with 'unbound variable'"
    if name.isupper():
        return f"the job does not set ${name}; unless the image does, {unbound}"
    return f"nothing sets ${name}, so {unbound}"


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
