"""Weighs a shell's line on what it cannot open or run by the way in which the job ended.

bash reports a missing program and a missing target of a redirection in the same words. Only the
exit code tells them apart: 127 for a program (POSIX, Shell Command Language, 2.8.2).
"""

from __future__ import annotations

import re

from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.hits import CERTAIN, SHELL_CLASSES, Hit
from pairun.diagnose.surroundings import is_programs_exception, is_shells

_NO_COMMAND = 127
_STOPS = frozenset((129, 130, 143))
"""Exit codes of processes that SIGHUP, SIGINT and SIGTERM end."""

_NAMED_LINES = 12
_CODE = re.compile(r"\b127\b")
_PATH = re.compile(r": (?:line )?\d{1,6}: (?P<path>/[^:]{1,300}): No such file or directory$")
_PROGRAM = re.compile(r"/s?bin/[^/]+$")
_DATA = re.compile(
    r"\.(?:bin|ckpt|csv|done|err|json|jsonl|lock|log|new|out|pid|pth?|safetensors|tmp|tsv|txt|ya?ml)$"
)


def judged_by_end(hit: Hit, facts: Circumstances) -> Hit:
    """A hit; weighs less if the job's end shows that it is no missing program, or no cause.

    Args:
        hit: of any rule.
        facts: known besides the logs.
    """
    if hit.rule.klass not in SHELL_CLASSES or not is_shells(hit.line):
        return hit
    code = facts.exit_code
    was_stopped = facts.stopped or code in _STOPS
    is_outlived = (
        was_stopped and code != _NO_COMMAND and not is_programs_exception(hit.log, hit.line)
    )
    if is_outlived:
        # the shell continued until something outside stopped the job
        return hit._replace(score=min(hit.score, CERTAIN - 1))
    if hit.rule.klass == "command_not_found" and _is_redirection(hit, code):
        return hit._replace(score=0)
    return hit


def _is_redirection(hit: Hit, code: int | None) -> bool:
    """Whether the path that the shell reports is the target of a redirection, not a program."""
    match = _PATH.search(hit.line.text)
    if match is None or code == _NO_COMMAND or _PROGRAM.search(match["path"]):
        return False
    if code in (None, 0):
        return _DATA.search(match["path"]) is not None
    # a launcher may replace the exit code, and name it
    after = hit.log.after(hit.line.at, _NAMED_LINES)
    return not any(_CODE.search(line.text) for line in after)
