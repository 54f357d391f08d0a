"""Commands: their output, their end, their time, and why one cannot be started."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pairun.host.context import HostContext
from pairun.module import (
    Permanent,
    Secret,
    TimedOut,
)
from tests.host.conftest import ENV


def test_a_command_inherits_the_output(ctx: HostContext, capfd: pytest.CaptureFixture[str]) -> None:
    """What it prints goes where ours goes, after what was logged before."""
    ctx.log("first\nline")
    done = ctx.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert done == (3, b"", b"")
    assert capfd.readouterr() == ("first line\nout\n", "err\n")


def test_a_capture_takes_both_outputs(ctx: HostContext, capfd: pytest.CaptureFixture[str]) -> None:
    """With capture nothing is printed, however much there is on both sides."""
    script = "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; cat"
    done = ctx.run(["sh", "-c", script], stdin=b"in" * 100_000, capture=True)
    assert (done.code, len(done.stdout), len(done.stderr)) == (0, 500_000, 300_000)
    assert capfd.readouterr() == ("", "")


def test_a_signal_is_a_negative_code(ctx: HostContext) -> None:
    """A command that a signal ended says which."""
    assert ctx.run(["sh", "-c", "kill -TERM $$"]).code == -15


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        (None, 0, "does not exist here"),
        ("#!/bin/sh\n", 0o644, "is not executable"),
        ("#!/no/such/interpreter\n", 0o755, "its interpreter"),
        ("\x7fELF nonsense", 0o755, "this machine cannot execute"),
    ],
)
def test_what_cannot_be_executed_is_permanent(
    ctx: HostContext, tmp_path: Path, content: str | None, mode: int, says: str
) -> None:
    """Missing, not executable, no interpreter, wrong format: each has its sentence."""
    path = tmp_path / "program"
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    with pytest.raises(Permanent, match=says) as raised:
        ctx.run([str(path)])
    assert raised.value.fault == "user"
    assert raised.value.hint


def test_arguments_too_long_and_a_missing_directory_are_permanent(ctx: HostContext) -> None:
    """The limit of one argument, and the place to run in, have their sentences too."""
    with pytest.raises(Permanent, match="too long"):
        ctx.run(["true", "x" * 200_000])
    with pytest.raises(Permanent, match="no such directory"):
        ctx.run(["true"], cwd="/no/such/place")


def test_a_secret_in_an_argument_is_a_bug(ctx: HostContext) -> None:
    """Argument lists are public: a secret among them is refused before anything starts."""
    with pytest.raises(TypeError, match="secret"):
        ctx.run(["echo", Secret("hunter2")])  # type: ignore[list-item]


@pytest.mark.parametrize("capture", [True, False])
def test_the_deadline_holds(tmp_path: Path, capture: bool) -> None:
    """A command that ignores TERM and one that sleeps are ended when the time is up."""
    start = time.monotonic()
    ctx = HostContext(ENV, str(tmp_path), start + 0.2)
    with pytest.raises(TimedOut):
        ctx.run(["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"], capture=capture)
    assert time.monotonic() - start < 30
    with pytest.raises(TimedOut):
        ctx.sleep(60)
    assert (ctx.remaining_s() or 0) < 0


def test_a_background_process_does_not_hold_the_capture(ctx: HostContext) -> None:
    """What a command leaves behind may keep its output open; nobody waits for it."""
    start = time.monotonic()
    done = ctx.query(["sh", "-c", "sleep 60 & echo done"])
    assert done.stdout == b"done\n"
    assert time.monotonic() - start < 30


def test_an_endless_capture_is_stopped(ctx: HostContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that prints for ever does not take the memory."""
    monkeypatch.setattr("pairun.host.commands.MAX_CAPTURE", 1 << 20)
    with pytest.raises(Permanent, match="too much"):
        ctx.query(["yes"])


def test_errors_are_seen_while_a_command_runs(ctx: HostContext, tmp_path: Path) -> None:
    """A watcher of a captured command is given what it says before it ends."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    seen: list[bytes] = []

    def watch(data: bytes) -> None:
        seen.append(data)
        if data == b"first\n":
            fifo.write_text("go")

    script = f"echo first >&2; cat {fifo}; printf last >&2"
    done = ctx.run(["sh", "-c", script], capture=True, watch=watch)
    assert seen == [b"first\n", b"last"]
    assert done == (0, b"go", b"first\nlast")
