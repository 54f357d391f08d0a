"""The bundle for arm64, built on amd64 and run under QEMU: it does what the one for amd64 does."""

from __future__ import annotations

import json
import pathlib
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.bundle.conftest import Running, Start, Volume

pytestmark = pytest.mark.nightly

PID1 = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
OWN_NETWORK = 'ip link set lo up; ip address add 10.0.0.1/32 dev lo; exec "$0"'
TASK = """\
runtime:
  - append:
    id: look
    name: What a module sees
    python:
      code: |
        import os, ssl
        print("module", os.uname().machine, ssl.OPENSSL_VERSION.split()[0])
        result = "result"
    on_exit:
      - id: bye
        name: At the end
        event: always
        python: {code: "print('bye')"}
  - append:
    id: late
    name: What only the run can tell
    cmd: {argv: [/bin/echo, "late {{ results.look.values.result }}"]}
"""


@pytest.fixture(scope="module")
def arm64(make_bundle: Callable[..., pathlib.Path], emulator: None) -> pathlib.Path:
    """The bundle for arm64."""
    return make_bundle("--arch", "arm64")


@pytest.fixture
def volume(tmp_path: pathlib.Path, arm64: pathlib.Path) -> Volume:
    """An empty volume, to which init brings the bundle for arm64."""
    return Volume(tmp_path, arm64)


def _env(volume: Volume) -> dict[str, str]:
    return {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PAIRUN_PAI_DIR": str(volume.path),
        "FC_POD_UID": volume.log.name,
    }  # fmt: skip


def test_the_programs(arm64: pathlib.Path) -> None:
    """Each is static, for arm64, and needs no loader."""
    tools = [p for p in (arm64.parent / "tools").rglob("*") if p.is_file()]
    assert {"ssh", "sshd", "ssh-session", "sftp-server"} <= {p.name for p in tools}
    for program in (arm64, *tools):
        described = subprocess.run(["readelf", "-hld", program], capture_output=True, text=True)
        assert "AArch64" in described.stdout, program
        assert "INTERP" not in described.stdout, program
        assert "NEEDED" not in described.stdout, program


def test_what_it_is_made_of(arm64: pathlib.Path, bundle: pathlib.Path) -> None:
    """Both bundles are made of the same parts."""
    printed = [
        subprocess.run([each, "--version"], capture_output=True, text=True, check=True).stdout
        for each in (arm64, bundle)
    ]
    assert printed[0] == printed[1]


def test_a_phase(volume: Volume, start: Start) -> None:
    """Init of this machine hands over; PID 1 runs tasks, the command and exit handlers; the code is the command's."""
    volume.prepare("echo command $$", "exit 3", runtime=TASK)
    running = start(*PID1, volume.path / "runtime", env=_env(volume))
    assert running.end() == 3, running.text
    assert "look | module aarch64 OpenSSL" in running.text
    assert "late | late result" in running.text
    assert "bye | bye" in running.text
    assert any(line.startswith("command ") for line in running.lines), running.text
    records = [json.loads(r) for r in (volume.log / "journal.jsonl").read_text().splitlines()]
    assert {"look", "late", "bye"} <= {r.get("task") for r in records}


@pytest.mark.parametrize("name", ["TERM", "INT", "USR1"])
def test_signals(volume: Volume, start: Start, name: str) -> None:
    """A signal reaches the command, which decides the exit code."""
    volume.prepare(
        f"trap 'echo got {name}; exit 7' {name}", "echo ready", "while :; do sleep 0.1; done"
    )
    running = start(*PID1, volume.path / "runtime", env=_env(volume))
    running.wait_for("ready")
    _signal_pid1(running, name)
    assert running.end() == 7, running.text
    assert f"got {name}" in running.lines


def test_a_command_that_a_signal_ends(volume: Volume, start: Start) -> None:
    """The exit code says which signal it was."""
    volume.prepare("kill -SEGV $$")
    running = start(*PID1, volume.path / "runtime", env=_env(volume))
    assert running.end() == 128 + signal.SIGSEGV, running.text


def test_orphans(volume: Volume, start: Start) -> None:
    """PID 1 reaps what the command leaves, and ends what still runs."""
    volume.prepare(
        "(sleep 0.1 &)", "(setsid sleep 1000 &)", "sleep 0.5", "ps -o stat= | grep -c Z || true"
    )
    running = start(*PID1, volume.path / "runtime", env=_env(volume))
    assert running.end() == 0, running.text
    assert "0" in running.lines


def test_ssh_to_itself(volume: Volume, start: Start, arm64: pathlib.Path) -> None:
    """The sshd and the ssh that init brings meet, with the job's environment and exit code."""
    plugin: dict[str, Any] = {"plugin": "ssh", "parameters": {"jobssh": True, "sshbarrier": True}}
    ssh = volume.path / "tools" / "ssh" / "ssh"
    volume.prepare(
        f"{ssh} worker-0 'echo reached $PAI_TASK_ROLE_INSTANCES; exit 6'",
        plugins=(plugin,), tools=arm64.parent / "tools",
    )  # fmt: skip
    argv = ("unshare", "--net", *PID1[1:], "sh", "-c", OWN_NETWORK)
    running = start(*argv, volume.path / "runtime", env=_env(volume))
    assert running.end() == 6, running.text
    assert "reached worker:0" in running.lines


def _signal_pid1(running: Running, name: str) -> None:
    """Signal the process that is PID 1 of its namespace: the child of unshare."""
    unshare = running.process.pid
    (pid,) = pathlib.Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()
    subprocess.run(["kill", f"-{name}", pid], check=True)
