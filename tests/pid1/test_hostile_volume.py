"""PID 1 on a volume that the user's command, or an earlier attempt, has prepared against it."""

from __future__ import annotations

import os
from typing import Any

import pytest


@pytest.mark.parametrize("name", ["plan.json", "secrets.json", "runtime_env.sh"])
@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_what_init_left_is_something_else(volume: Any, start: Any, name: str, kind: str) -> None:
    """A FIFO, a link or a folder in the place of init's file is named, and nothing hangs."""
    volume.command("exit 0")
    path = volume.files / name
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/etc/hostname")
    else:
        path.mkdir()
    running = start()
    assert running.end() == 1
    assert running.lines[0].startswith(f"error[PR702]: {path} cannot be used: it is ")
    assert not running.got("Traceback")
