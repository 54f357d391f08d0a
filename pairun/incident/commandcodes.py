"""Reads a command's exit code from the journal next to its output."""

from __future__ import annotations

import os

from pairun.base.paths import JOURNAL
from pairun.handover.journal import read_journal

OUTPUT = "user-all"
"""The folder in a Pod's log directory with the output of the user's command."""

_OF_COMMANDS = ("command_begin", "command_end")


def exit_code_beside(path: str) -> int | None:
    """The exit code of the command that wrote a file.

    Args:
        path: of the file; must be in `OUTPUT` of a Pod's log directory, otherwise None is returned.

    Returns:
        None if no journal records that the last command ended.
    """
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.basename(folder) != OUTPUT:
        return None
    records = read_journal(os.path.join(os.path.dirname(folder), JOURNAL))
    last = next((r for r in reversed(records) if r.get("type") in _OF_COMMANDS), {})
    code = last.get("exit_code")
    return code if isinstance(code, int) and 0 <= code <= 255 else None
