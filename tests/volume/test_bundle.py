"""Static programs for the user's container: found, copied, and talked to."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from pairun.host.context import HostContext, ProbeContext
from pairun.host.worlds import ReviewContext
from pairun.module import Permanent, Talk
from pairun.volume.bundle import copy_tools, find_tools
from pairun.volume.door import Door

WAIT_S = 10.0


def test_the_folder(tmp_path: Path) -> None:
    """A variable names it; else it is the image's, or what the checkout has built."""
    assert find_tools({"PAIRUN_TOOLS": str(tmp_path)}) == str(tmp_path)
    assert find_tools({}).endswith("/tools")


def test_what_is_there_is_copied(tmp_path: Path) -> None:
    """Programs with their folders, executable for all; one that is missing is left out."""
    source, target = tmp_path / "from", tmp_path / "to"
    (source / "ssh").mkdir(parents=True)
    for name in ("sshd", "ssh/ssh"):
        (source / name).write_text(name)
        (source / name).chmod(0o600)
    copy_tools(["sshd", "ssh/ssh", "sshd", "other"], str(source), str(target), Door(str(tmp_path)))
    found = {str(p.relative_to(target)): p for p in target.rglob("*") if p.is_file()}
    assert {name: path.read_text() for name, path in found.items()} == {
        "sshd": "sshd",
        "ssh/ssh": "ssh/ssh",
    }
    assert {path.stat().st_mode & 0o777 for path in found.values()} == {0o755}


def test_nothing_is_made_for_nothing(tmp_path: Path) -> None:
    """Without tools there is no folder."""
    copy_tools([], str(tmp_path), str(tmp_path / "to"), Door(str(tmp_path)))
    assert not (tmp_path / "to").exists()


@pytest.fixture
def ctx(tmp_path: Path) -> HostContext:
    """This machine."""
    return HostContext({"PATH": os.environ["PATH"], "WORD": "there"}, str(tmp_path))


def heard(talk: Talk, wanted: bytes) -> bytes:
    """What a command prints until a word comes."""
    said, end = b"", time.monotonic() + WAIT_S
    while wanted not in said:
        assert time.monotonic() < end, said
        said += talk.take()
    return said


def test_a_command_answers(ctx: HostContext) -> None:
    """It hears what is said, and both of its outputs are heard, with the task's environment."""
    talk = ctx.start(["sh", "-c", 'echo $WORD >&2; read -r word; echo "got $word"; exit 3'])
    heard(talk, b"there\n")
    assert talk.take() == b""
    assert talk.code() is None
    talk.say(b"hello\n")
    heard(talk, b"got hello\n")
    end = time.monotonic() + WAIT_S
    while talk.code() is None:
        assert time.monotonic() < end
    assert talk.code() == 3
    talk.say(b"nobody\n")
    talk.end()


def test_a_command_is_ended(ctx: HostContext) -> None:
    """One that runs on is ended, and says nothing afterwards."""
    talk = ctx.start(["sleep", "60"])
    talk.end()
    assert talk.code() == -signal.SIGTERM
    assert talk.take() == b""
    talk.end()


def test_a_command_that_is_none(ctx: HostContext) -> None:
    """What cannot be started is said as everywhere."""
    with pytest.raises(Permanent, match="does not exist here"):
        ctx.start(["/nowhere/program"])


def test_who_only_looks_starts_nothing(tmp_path: Path) -> None:
    """Neither a probe nor a review may."""
    for looking in (ProbeContext({}, str(tmp_path)), ReviewContext({}, str(tmp_path))):
        with pytest.raises(RuntimeError, match="tried to start true"):
            looking.start(["true"])
