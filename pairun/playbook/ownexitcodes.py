"""Exit codes that already have a meaning, so a cluster cannot use them for failure classes.

Sources: POSIX's shell (2.8.2), timeout(1), docker run, OpenPAI's table of exit codes, and
docs/exit-codes.md.
"""

from __future__ import annotations

FREE_CODES = "3 to 123, 144 to 219, 236 to 248"
_MEANINGS = (
    (range(1, 2), "any error"),
    (range(2, 3), "wrong usage of a command"),
    (range(124, 126), "timeout and docker run use it"),
    (range(126, 128), "the shell cannot run a command"),
    (range(128, 144), "a signal ended the command"),
    (range(220, 236), "OpenPAI's exit spec uses it"),
    (range(249, 256), "pairun and OpenPAI use it"),
)


def meaning_of(code: int) -> str:
    """How a controller or a person understands an exit code; empty for an unused one."""
    return next((meaning for codes, meaning in _MEANINGS if code in codes), "")
