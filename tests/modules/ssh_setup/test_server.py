"""Starting the sshd."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from pathlib import Path

import pytest

from pairun.module import Permanent, StateModule
from tests.modules.ssh_setup.conftest import Place


def test_another_sshd_takes_its_place(bundled: Place) -> None:
    """One that has died is started again, with the same host key."""
    bundled.run({"jobssh": True})
    before = (bundled.folder / "host_key").read_bytes()
    pid = int((bundled.folder / "sshd.pid").read_text())
    os.kill(pid, signal.SIGKILL)
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        pass
    bundled.run({"jobssh": True})
    assert bundled.ssh("ps-0", "true").returncode == 0
    assert (bundled.folder / "host_key").read_bytes() == before


def test_a_port_in_use(bundled: Place) -> None:
    """Who holds it is said; it may be free elsewhere."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", bundled.port))
        taken.listen()
        failure = bundled.harness.run("ssh_setup", {"jobssh": True}, bundled.env).failure
    assert failure is not None
    assert (failure.kind, failure.fault) == ("conflict", "platform")
    assert f"port {bundled.port}, which is for ssh, is taken: a TCP socket" in failure.message


def test_an_sshd_that_ends_at_once(place: Place) -> None:
    """Its code is said, and that it said nothing."""
    tools = place.harness.pai_dir / "tools"
    shutil.rmtree(tools, ignore_errors=True)
    (tools / "ssh").mkdir(parents=True)
    for name in ("sshd", "ssh-session", "ssh/ssh"):
        (tools / name).write_text("#!/bin/sh\nexit 3\n")
        (tools / name).chmod(0o755)
    failure = place.harness.run("ssh_setup", {"jobssh": True}, place.env).failure
    assert failure is not None
    assert failure.kind == "transient"
    assert "and ended with 3; its last line: nothing" in failure.message


def test_without_any_sshd(place: Place) -> None:
    """Neither in the tools nor in the image: a clear word."""
    answers = {
        "stat": lambda path: None if path.endswith("/sshd") else NotImplemented,
        "which": lambda program: None if program == "sshd" else NotImplemented,
    }
    context = place.harness.world(place.env, answers=answers).ctx
    module = place.harness.make("ssh_setup", {"jobssh": True})
    assert isinstance(module, StateModule)
    with pytest.raises(Permanent, match="sshd is missing"):
        module.apply(context)
