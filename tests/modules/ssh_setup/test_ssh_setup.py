"""The module ssh_setup, with a real sshd."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.modules.ssh_setup.conftest import Place, key


def test_sftp_works(bundled: Place, tmp_path: Path) -> None:
    """Files go through the sshd itself: no sftp-server is needed."""
    bundled.run({"jobssh": True})
    (tmp_path / "sent").write_text("hello")
    tools = bundled.harness.pai_dir / "tools" / "ssh"
    done = subprocess.run(
        [tools / "scp", "-q", "-S", tools / "ssh", "-F", bundled.folder / "config", tmp_path / "sent",
         f"ps-0:{tmp_path}/got"],
        capture_output=True, text=True, check=False, timeout=20,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "got").read_text() == "hello"


def test_a_home_is_never_touched(bundled: Place) -> None:
    """A ~/.ssh that leads elsewhere is neither followed nor replaced."""
    elsewhere = bundled.harness.tmp / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "authorized_keys").write_text("mine\n")
    (bundled.harness.tmp / ".ssh").symlink_to(elsewhere)
    bundled.run({"jobssh": True, "userssh": {"type": "custom", "value": key()}})
    assert [p.name for p in elsewhere.iterdir()] == ["authorized_keys"]
    assert (elsewhere / "authorized_keys").read_text() == "mine\n"
    assert bundled.ssh("ps-0", "true").returncode == 0


@pytest.mark.parametrize(
    ("args", "env", "says"),
    [
        ({}, {}, "neither keys of users nor ssh between the instances"),
        ({"jobssh": "False", "userssh": {}}, {}, "neither keys of users"),
        ({"userssh": {"value": key()}}, {}, "neither keys of users"),
        (
            {"userssh": {"type": "custom", "value": "x"}},
            {},
            "no user could log in: userssh.value, line 1: it is not a public key",
        ),
        (
            {"userssh": {"type": "custom", "value": key()}},
            {"PAI_CONTAINER_SSH_PORT": ""},
            "no port",
        ),
    ],
)
def test_nothing_to_do(place: Place, args: dict[str, Any], env: dict[str, str], says: str) -> None:
    """What asks for nothing, or only for what cannot be, is skipped with the reason."""
    skip = place.harness.run("ssh_setup", args, {**place.env, **env}).skip
    assert skip is not None
    assert says in skip.because


def test_jobssh_needs_a_port(place: Place) -> None:
    """Instances that cannot be reached are an error, not a surprise of mpirun."""
    failure = place.harness.run("ssh_setup", {"jobssh": True}).failure
    assert failure is not None
    assert failure.kind == "permanent"
    assert "PAI_CONTAINER_SSH_PORT" in failure.message
