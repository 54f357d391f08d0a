"""The host's context: its environment, its time, and its volume."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pairun.host.context import HostContext
from pairun.module import (
    Permanent,
    Secret,
    TimedOut,
)
from tests.host.conftest import ENV


@pytest.mark.parametrize("deed", ["write", "make", "move", "remove"])
def test_links_on_the_volume_lead_nowhere(ctx: HostContext, tmp_path: Path, deed: str) -> None:
    """Below the shared volume nothing is changed behind a symbolic link."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    link = tmp_path / "pai" / "link"
    link.symlink_to(outside)
    deeds: dict[str, Callable[[], None]] = {
        "write": lambda: ctx.write_file(f"{link}/x", b""),
        "make": lambda: ctx.make_dir(f"{link}/d/e"),
        "move": lambda: ctx.rename(f"{link}/file", f"{tmp_path}/pai/file"),
        "remove": lambda: ctx.remove(f"{link}/file"),
    }
    with pytest.raises(Permanent, match="symbolic link"):
        deeds[deed]()
    assert [p.name for p in outside.iterdir()] == ["file"]
    ctx.remove(str(link))
    assert not link.is_symlink()
    assert (outside / "file").exists()


def test_only_what_outlives_the_pod_is_made_durable(
    ctx: HostContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file beside the volume is on the disk before the task ends; the volume goes with the Pod."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    ctx.write_file(str(tmp_path / "pai" / "f"), b"x")
    assert not synced
    ctx.write_file(str(tmp_path / "f"), b"x")
    assert synced


def test_the_environment_is_the_tasks(tmp_path: Path) -> None:
    """A command sees the task's variables and its own, secrets as they are, and no others."""
    ctx = HostContext({**ENV, "A": "1", "B": "2"}, str(tmp_path))
    done = ctx.run(["env"], env={"B": "3", "C": Secret("s3cret")}, capture=True)
    lines = done.stdout.decode().splitlines()
    assert {"A=1", "B=3", "C=s3cret"} <= set(lines)
    assert not [line for line in lines if line.startswith("HOME=")]
    assert ctx.query(["sh", "-c", "echo $B; pwd"], cwd=str(tmp_path)).stdout.decode() == (
        f"2\n{tmp_path}\n"
    )


def test_which_looks_in_the_tasks_path(ctx: HostContext, tmp_path: Path) -> None:
    """The task's PATH counts, not ours."""
    assert ctx.which("sh") is not None
    assert HostContext({"PATH": str(tmp_path)}, "/x").which("sh") is None
    with pytest.raises(Permanent):
        HostContext({"PATH": str(tmp_path)}, "/x").run(["sh", "-c", "true"])


def test_a_variable_is_taken_away_by_none(ctx: HostContext) -> None:
    """A command and a question can do without a variable of the task."""
    env: dict[str, str | Secret | None] = {"LANG": None, "A": Secret("a")}
    show = ["sh", "-c", 'echo "${LANG-gone} $A"']
    assert ctx.query(show, env=env).stdout == b"gone a\n"
    assert ctx.run(show, env=env, capture=True).stdout == b"gone a\n"


def test_a_question_has_a_limit_of_its_own(ctx: HostContext) -> None:
    """A question that is not answered in its time is given up."""
    began = time.monotonic()
    with pytest.raises(TimedOut):
        ctx.query(["sleep", "60"], timeout_s=0.2)
    assert time.monotonic() - began < 10
