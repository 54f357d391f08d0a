"""The plugin dind: its script with programs and a cgroup folder that play a container's."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from tests.desk import Desk

ROOT = pathlib.Path(__file__).parents[2]
SERVES = """\
#!/usr/bin/env python3
import socket, sys, time
print("options", *sys.argv[1:], flush=True)
server = socket.socket(socket.AF_UNIX)
server.bind("SOCKET")
time.sleep(60)
"""
DIES = "#!/bin/sh\necho failed to mount overlay: operation not permitted >&2\nexit 1\n"


class Container:
    """A folder that stands for the user's container."""

    def __init__(self, tmp: pathlib.Path, shell: str) -> None:
        self.tmp = tmp
        self.shell = shell
        for name in ("bin", "run", "cgroup"):
            (tmp / name).mkdir()
        (tmp / "cgroup/cgroup.controllers").write_text("cpu memory\n")
        (tmp / "cgroup/cgroup.procs").write_text("12\n")

    def program(self, name: str, text: str) -> None:
        """Put a program into the image."""
        path = self.tmp / "bin" / name
        path.write_text(text.replace("SOCKET", str(self.tmp / "docker.sock")))
        path.chmod(0o755)

    def run(self, *wrap: str, options: str = "") -> subprocess.CompletedProcess[str]:
        """Run the script of the spec."""
        (task,) = yaml.safe_load((ROOT / "plugin_specs/dind.yaml").read_text())["runtime"]
        script = task["cmd"]["script"]
        for path, place in (
            ("/var/run/docker.sock", "docker.sock"),
            ("/usr/local/pai/run", "run"),
            ("/sys/fs/cgroup", "cgroup"),
        ):
            script = script.replace(path, str(self.tmp / place))
        argv = [*wrap, self.shell, "-c", f"set -o errexit\n{script}"]
        env = {"PATH": f"{self.tmp}/bin:{os.environ['PATH']}", "OPTIONS": options}
        started = subprocess.Popen(
            argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            out, err = started.communicate(timeout=30)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
        return subprocess.CompletedProcess(argv, started.returncode, out, err)


@pytest.fixture(params=["bash", "dash"])
def container(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Container:
    """A container with each shell."""
    shell = shutil.which(request.param)
    if shell is None:
        pytest.skip(f"{request.param} is not installed")
    return Container(tmp_path, shell)


def _needs_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, as the daemon does")


def test_a_daemon_starts(container: Container) -> None:
    """The task ends when the socket is there, and the daemon goes on."""
    _needs_root()
    container.program("dockerd", SERVES)
    container.program("iptables", "#!/bin/sh\n")
    done = container.run(options="--mtu '1400 5'")
    assert done.returncode == 0, done.stderr
    assert f"the Docker daemon responds; log: {container.tmp}/run/dockerd.log" in done.stdout
    assert (container.tmp / "run/dockerd.log").read_text() == "options --mtu 1400 5\n"
    assert (container.tmp / "cgroup/cgroup.subtree_control").exists()


def test_a_daemon_that_dies(container: Container) -> None:
    """The end of its log says why."""
    _needs_root()
    container.program("dockerd", DIES)
    container.program("iptables", "#!/bin/sh\n")
    done = container.run()
    assert done.returncode == 1
    assert "exited at once; last lines of its log:\nfailed to mount overlay" in done.stderr


def test_everything_that_is_missing_is_named(container: Container) -> None:
    """Programs and capabilities, each in a line, and nothing that is there."""
    _needs_root()
    container.program("iptables", "#!/bin/sh\n")
    if shutil.which("dockerd"):
        pytest.skip("this machine has Docker")
    done = container.run("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    assert done.returncode == 1
    assert "a Docker daemon cannot run in this container; missing:" in done.stderr
    assert "dockerd: install Docker in the image" in done.stderr
    assert "CAP_SYS_ADMIN and CAP_NET_ADMIN: the container is not privileged" in done.stderr
    assert "iptables" not in done.stderr
    assert "root" not in done.stderr


def test_the_plugin_needs_no_parameters(desk: Desk) -> None:
    """As in the fork of OpenPAI that has it."""
    review = desk.valid(desk.job(plugins="- {plugin: dind}\n"))
    task = desk.task(review, "dind")
    assert task.environment == {"OPTIONS": ""}
