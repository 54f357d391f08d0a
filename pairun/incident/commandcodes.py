"""With which exit code a command ended, by the journal beside its output."""

from __future__ import annotations

import os

from pairun.base.paths import JOURNAL
from pairun.handover.journal import read_journal

OUTPUT = "user-all"
"""In a Pod's log directory: the folder of what the user's command printed."""

_OF_COMMANDS = ("command_begin", "command_end")


def exit_code_beside(path: str) -> int | None:
    """The exit code of the command that wrote a file.

    Args:
        path: of the file; None is returned unless it lies in `OUTPUT` of a Pod's log directory.

    Returns:
        None if no journal says that the last command has ended.
    """
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.basename(folder) != OUTPUT:
        return None
    records = read_journal(os.path.join(os.path.dirname(folder), JOURNAL))
    last = next((r for r in reversed(records) if r.get("type") in _OF_COMMANDS), {})
    code = last.get("exit_code")
    return code if isinstance(code, int) and 0 <= code <= 255 else None
