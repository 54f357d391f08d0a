"""A limit of the container's memory: the kernel kills the command, or a process of pairun."""

from __future__ import annotations

import contextlib
import pathlib
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

LIMIT = 120 << 20
EATER = "x = b'x' * (300 << 20)"


@pytest.fixture
def group() -> Iterator[pathlib.Path]:
    """A control group with a limit of memory."""
    root = pathlib.Path("/sys/fs/cgroup")
    first = root / "memory" if (root / "memory").is_dir() else root
    group = first / f"pairun-test-{uuid.uuid4().hex[:8]}"
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if first != root else "memory.max")).write_text(
            str(LIMIT)
        )
        with contextlib.suppress(OSError):
            (group / "memory.swap.max").write_text("0")
    except OSError as e:
        with contextlib.suppress(OSError):
            group.rmdir()
        pytest.skip(f"no control group with a limit of memory can be made: {e}")
    yield group
    group.rmdir()


def _in(group: pathlib.Path, driver: list[str], root: pathlib.Path) -> list[str]:
    """The command line that enters the group and starts the phase."""
    return ["sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh", *driver, str(root)]


def test_of_the_command(
    volume: Any, in_namespace: Any, driver: list[str], succeeded: Any, group: pathlib.Path
) -> None:
    """The command that the kernel kills ends with 137; exit handlers run, and the reason is given."""
    volume.tasks(tasks=succeeded, handlers={"failed": False})
    volume.args(argv=[sys.executable, "-c", EATER])
    running = in_namespace(*_in(group, driver, volume.root))
    assert running.end() == 137, running.lines
    assert running.got("handlers ran")
    assert running.got("[pairun] the command ended with 137 (SIGKILL)")


def test_of_the_tasks(
    volume: Any, in_namespace: Any, driver: list[str], succeeded: Any, group: pathlib.Path
) -> None:
    """Tasks whose process the kernel kills fail with its exit code; no command starts."""
    eat = f'exec {sys.executable} -c "{EATER}"'
    volume.tasks(tasks=succeeded, handlers={"failed": False}, run={"tasks": eat})
    volume.command("echo ran")
    running = in_namespace(*_in(group, driver, volume.root))
    assert running.end() == 255, running.lines
    assert running.got("[pairun] the process of the tasks exited with 247 without a result")
    assert not running.got("ran")


def test_of_the_handlers(
    volume: Any, in_namespace: Any, driver: list[str], succeeded: Any, group: pathlib.Path
) -> None:
    """Exit handlers that the kernel kills leave the command's exit code as it is."""
    eat = f'exec {sys.executable} -c "{EATER}"'
    volume.tasks(tasks=succeeded, handlers={"failed": False}, run={"handlers": eat})
    volume.command("exit 5")
    running = in_namespace(*_in(group, driver, volume.root))
    assert running.end() == 5, running.lines
    assert running.got("[pairun] the process of the exit handlers exited with")
