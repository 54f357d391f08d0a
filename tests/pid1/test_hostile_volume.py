"""PID 1 on a volume that the user's command, or an earlier attempt, has prepared against it."""

from __future__ import annotations

import base64
import os
import pathlib
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


def log_folder(volume: Any) -> pathlib.Path:
    """The Pod's log directory, as init leaves it."""
    folder: pathlib.Path = volume.root / "logs" / "local"
    folder.mkdir(parents=True)
    return folder


def test_a_fifo_in_the_place_of_the_termination_message(volume: Any, start: Any) -> None:
    """PID 1 does not wait for a reader of a FIFO that the command left; the message replaces it."""
    message = log_folder(volume) / "pai-termination-log"
    volume.command(f"mkfifo {message}; exit 3")
    running = start()
    assert running.end() == 3
    assert message.is_file()
    assert "exitCode: 3" in message.read_text() or "3" in message.read_text()


def test_a_link_in_the_place_of_the_termination_message(
    volume: Any, start: Any, tmp_path: pathlib.Path
) -> None:
    """A link that the command left is replaced; what it points to is neither read nor written."""
    message, target = log_folder(volume) / "pai-termination-log", tmp_path / "target"
    target.write_text("precious")
    volume.command(f"ln -s {target} {message}; exit 3")
    assert start().end() == 3
    assert target.read_text() == "precious"
    assert message.is_file()
    assert not message.is_symlink()


def test_a_fifo_in_the_place_of_the_platforms_message(
    volume: Any, start: Any, tmp_path: pathlib.Path
) -> None:
    """Where the platform mounts no file, what the command left there does not block PID 1."""
    message = tmp_path / "message"
    volume.command(f"mkfifo {message}; exit 3")
    running = start(PAIRUN_TERMINATION_LOG=str(message))
    assert running.end() == 3
    assert running.got(f"[pairun] the termination message cannot be written to {message}: ")


@pytest.mark.parametrize("name", ["runtime.log", "user-all", "journal.jsonl"])
def test_a_log_that_leads_elsewhere(
    volume: Any, start: Any, tmp_path: pathlib.Path, name: str
) -> None:
    """A link in the place of a log costs that log; the exit summary reads nothing behind it."""
    target = tmp_path / "target"
    target.mkdir()
    (target / "current").write_text("precious")
    (log_folder(volume) / name).symlink_to(target)
    volume.command("echo out; exit 3")
    assert start().end() == 3
    assert (target / "current").read_text() == "precious"
    assert [p.name for p in target.iterdir()] == ["current"]
    message = volume.root / "logs/local/pai-termination-log"
    assert "precious" not in message.read_text()


def test_the_log_directory_leads_elsewhere(volume: Any, start: Any, tmp_path: pathlib.Path) -> None:
    """With a link in the place of ``logs`` nothing is written behind it, and the command runs."""
    target = tmp_path / "target"
    (target / "local").mkdir(parents=True)
    (volume.root / "logs").symlink_to(target)
    volume.command("echo out; exit 3")
    running = start()
    assert running.end() == 3
    assert running.got("out")
    assert list((target / "local").iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        "rendezvous.json", "runtime.d/rendezvous-state.json", "runtime.d/exit-spec.json",
        "stopped.json", "logs/local/progress.json", "logs/local/journal.jsonl",
    ],
)  # fmt: skip
def test_a_file_is_nested_too_deeply(volume: Any, start: Any, name: str) -> None:
    """A deep file that the user's command or a neighbour left costs neither the command nor its exit code."""
    log_folder(volume)
    (volume.root / "rendezvous").mkdir()
    (volume.root / "rendezvous/key").write_bytes(base64.b64encode(b"k" * 32))
    (volume.root / name).write_text('{"a":' * 100_000)
    volume.command("exit 7")
    running = start()
    assert running.end() == 7
    assert not running.got("Traceback")
