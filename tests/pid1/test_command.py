"""The user's command: exit code, environment, shell, and what a broken volume says."""

from __future__ import annotations

import json
import os
import shutil
import signal
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137), ("kill -11 $$", 139)],
)
def test_exit_code(volume: Any, start: Any, script: str, code: int) -> None:
    """The container ends with the command's own status, 128+n for signal n."""
    volume.command(script)
    assert start().end() == code


def test_environment(volume: Any, start: Any) -> None:
    """The command sees the container's variables, the job's, and the working directory."""
    volume.env(GREETING="it's $HOME\nand more")
    volume.command('echo "<$GREETING>" "$FROM_IMAGE" "$PAI_WORK_DIR" "$PWD"')
    running = start(FROM_IMAGE="yes")
    assert running.end() == 0
    text = "\n".join(running.lines)
    assert "<it's $HOME\nand more> yes " in text
    first, second = text.split("yes ")[1].split("\n")[0].split()
    assert first == second


def test_programs_of_the_volume_come_last_in_path(volume: Any, start: Any) -> None:
    volume.command('echo "<$PATH>"')
    running = start(PATH=os.environ["PATH"])
    assert running.end() == 0
    assert running.got(f"<{os.environ['PATH']}:{volume.root}/bin>")


def test_command_has_default_signals(volume: Any, start: Any) -> None:
    """The command starts with no signal blocked or ignored, whatever we do for ourselves."""
    volume.command("grep -E '^Sig(Blk|Ign)' /proc/self/status")
    running = start()
    assert running.end() == 0
    assert len(running.got("Sig")) == 2
    # 32 and 33 are the C library's own; it hides them from every program
    hidden = 1 << 31 | 1 << 32
    assert all(int(line.split()[1], 16) & ~hidden == 0 for line in running.got("Sig"))


def test_command_leads_its_own_session(volume: Any, start: Any) -> None:
    """The command is the leader of a session, so that its group is all of it."""
    volume.command('set -- $(cat /proc/$$/stat); echo "ids $1 $5 $6"')
    running = start()
    assert running.end() == 0
    _, pid, group, session = running.got("ids")[0].split()
    assert pid == group == session


def test_command_inherits_no_descriptor_of_ours(volume: Any, start: Any) -> None:
    """The command has the three standard streams and nothing else."""
    volume.tasks(
        tasks={
            "outcome": "success", "exit_code": 0, "registered": [], "results": {},
            "environment": {},
        }
    )  # fmt: skip
    volume.command("for n in 3 4 5 6 7 8 9; do [ ! -e /proc/$$/fd/$n ] || echo fd $n; done")
    running = start()
    assert running.end() == 0
    assert not running.got("fd")


def test_sh_where_there_is_no_bash(volume: Any, start: Any, tmp_path: Any) -> None:
    """Where the image has no bash, sh runs the command."""
    (tmp_path / "bin").mkdir()
    for name in ("sh", "unshare"):
        path = shutil.which(name)
        assert path is not None
        (tmp_path / "bin" / name).symlink_to(path)
    volume.command('echo "ran ${BASH_VERSION:-without}"')
    running = start(PATH=str(tmp_path / "bin"))
    assert running.end() == 0
    assert running.got("ran")


def test_no_shell_at_all(volume: Any, start: Any, tmp_path: Any) -> None:
    """An image without a shell ends with 127 and a sentence that says so."""
    (tmp_path / "bin").mkdir()
    volume.env(PATH=str(tmp_path / "bin"))
    volume.command("exit 0")
    running = start()
    assert running.end() == 127
    assert "no bash and no sh" in running.got("error[PR704]")[0]


def test_shell_that_cannot_start(volume: Any, start: Any, tmp_path: Any) -> None:
    """A shell that the kernel cannot execute ends with 126 and a sentence that says so."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/bash").write_bytes(b"\x7fELF of another machine")
    (tmp_path / "bin/bash").chmod(0o755)
    volume.env(PATH=str(tmp_path / "bin"))
    volume.command("exit 0")
    running = start()
    assert running.end() == 126
    assert running.got("error[PR704]: the command cannot be started")


def test_shell_of_the_plan(volume: Any, start: Any) -> None:
    """A plan may ask for one shell; the other one is not taken in its place."""
    volume.args(shell="sh")
    volume.command("cat /proc/$$/comm")
    running = start()
    assert running.end() == 0
    assert "sh" in running.lines


@pytest.mark.parametrize(
    ("content", "id_"),
    [
        (None, "PR704"),
        ("", "PR702"),
        ('{"schema": 2, "st', "PR702"),
        ('{"schema": 1, "command": {"grace_s": 1}}', "PR702"),
        ('{"schema": 2, "steps": []}', "PR702"),
        ('{"schema": 2, "command": {"grace_s": "1s"}}', "PR702"),
        ("[]", "PR702"),
    ],
)
def test_unusable_plan(volume: Any, start: Any, content: str | None, id_: str) -> None:
    """A plan that is missing, torn or of another version ends with 1 and says which file."""
    volume.command("echo ran")
    plan = volume.files / "plan.json"
    plan.unlink() if content is None else plan.write_text(content)
    running = start()
    assert running.end() == 1
    assert "plan.json" in running.got(f"error[{id_}]")[0]
    assert not running.got("ran")


def test_the_last_line_before_a_pause_is_whole(volume: Any, start: Any) -> None:
    """A line whose end may start a secret is shown in a pause of the output, not at its end."""
    (volume.files / "secrets.json").write_text(
        json.dumps({"schema": 2, "values": {}, "redact": ["secret"]})
    )
    volume.command("echo /data/checkpoints/last-checkpoint-s; exec sleep 600")
    running = start()
    running.line("/data/checkpoints/last-checkpoint-s")
    running.signal(signal.SIGTERM)
    assert running.end() == 143


def test_secrets_stay_out_of_our_lines(volume: Any, start: Any) -> None:
    """What init marked as secret is masked in every line that PID 1 itself writes."""
    (volume.files / "secrets.json").write_text(
        '{"schema": 2, "values": {"s1": "echo hunter2hunter2"}, "redact": ["hunter2hunter2", "tango-mango"]}'
    )
    volume.command("exit 0")
    running = start(PAIRUN_GRACE="hunter2hunter2 tango-mango")
    assert running.end() == 0
    text = "\n".join(running.lines)
    assert "******" in text
    assert "hunter2" not in text
    assert "tango" not in text
