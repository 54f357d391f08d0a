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


@pytest.mark.parametrize(
    ("part", "code", "says"),
    [
        ("command", 137, "[pairun] the command ended with 137 (SIGKILL)"),
        ("tasks", 255, "[pairun] the process of the tasks exited with 247 without a result"),
        ("handlers", 5, "[pairun] the process of the exit handlers exited with"),
    ],
)
def test_what_the_kernel_kills(
    volume: Any, in_namespace: Any, driver: list[str], succeeded: Any, group: pathlib.Path,
    part: str, code: int, says: str,
) -> None:  # fmt: skip
    """It is named; tasks start no command, and handlers leave the command's exit code as it is."""
    eat = {} if part == "command" else {part: f'exec {sys.executable} -c "{EATER}"'}
    volume.tasks(tasks=succeeded, handlers={"failed": False}, run=eat)
    if part == "command":
        volume.args(argv=[sys.executable, "-c", EATER])
    else:
        volume.command("echo ran; exit 5")
    running = in_namespace(*_in(group, driver, volume.root))
    assert running.end() == code, running.lines
    assert running.got(says)
    assert part != "command" or running.got("handlers ran")
    assert bool(running.got("ran")) is (part == "handlers")
