"""The image's programs, and sessions."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.modules.ssh_setup.conftest import TOOLS, Place


def test_the_image_has_its_own(place: Place) -> None:
    """Without our tools the image's sshd and ssh do the same, by the same aliases."""
    if not Path("/usr/sbin/sshd").exists():
        pytest.skip("this machine has no sshd")
    if os.geteuid() != 0:
        pytest.skip("its ssh goes to root, and only root's sshd lets that in")
    shutil.rmtree(place.harness.pai_dir / "tools", ignore_errors=True)
    done = place.run({"jobssh": True})
    said = subprocess.run(["ssh", "-oBatchMode=yes", "worker_A-1", "echo in"], text=True, timeout=20,
                          env={**os.environ, **done.result.environment}, capture_output=True,
                          check=False)  # fmt: skip
    assert said.stdout == "in\n", said.stderr


def session(tmp_path: Path, shell: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run what sshd starts a session with."""
    if not (TOOLS / "ssh-session").exists():
        pytest.skip("needs `make bundle`")
    path = tmp_path / "session"
    path.write_bytes(b"\0".join([shell.encode(), b"PATH=/usr/bin:/bin", b"A=of the job", b""]))
    env = {"PAIRUN_SSH_SESSION": str(path), "PATH": "/nowhere", "SSH_TTY": "x", "A": "other"}
    return subprocess.run([TOOLS / "ssh-session", *args], env=env, text=True, capture_output=True,
                          check=False, timeout=20)  # fmt: skip


@pytest.mark.parametrize(
    ("shell", "args", "code", "says"),
    [
        (
            "/bin/sh",
            ("-c", "echo $A $SSH_TTY $SHELL $PATH"),
            0,
            "of the job x /bin/sh /usr/bin:/bin",
        ),
        ("/bin/sh", ("-c", "exit 7"), 7, ""),
        ("", ("-c", "printenv  A"), 0, "of the job"),
        ("", ("-c", "printenv A; id"), 127, "runs plain words only"),
        ("", ("-c", "/nowhere/program"), 127, "No such file"),
        ("", (), 127, "this image has no shell"),
        ("/nowhere/sh", ("-c", "id"), 254, "No such file"),
    ],
)
def test_a_session(tmp_path: Path, shell: str, args: tuple[str, ...], code: int, says: str) -> None:
    """It begins with the job's environment, and ends as its command does; also without a shell."""
    done = session(tmp_path, shell, *args)
    assert done.returncode == code
    assert says in done.stdout + done.stderr
