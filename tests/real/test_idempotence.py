"""On real servers, a second run of a module changes nothing, and the next run heals one that was killed.

tests/containers/test_package.py has the same for `package`.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pairun.base import system
from pairun.contract.arguments import build
from pairun.contract.loading import load_module
from pairun.contract.sources import built_in_modules
from pairun.executor.child import perform
from pairun.host import mounts
from pairun.host.context import HostContext
from pairun.module import Secret
from pairun.volume.bundle import copy_tools
from pairun.volume.door import Door
from tests.real.conftest import Lab
from tests.real.gangs import _tree
from tests.real.test_barrier_api import Pod, namespace, pod
from tests.real.test_registry import Pusher
from tests.real.test_ssh import NAMES, TOOLS
from tests.real.test_storage_fuse import s3, s3_storage

__all__ = ["namespace", "pod", "s3"]
WAIT_S = 60.0
PARTS = (0.15, 0.4, 0.65, 0.9)
"""At which parts of a whole run's time the next ones are killed."""
LARGE = 24 << 20

Made = tuple[str, Mapping[str, Any]]
"""A module's name and arguments."""


class Place(NamedTuple):
    """A folder with a volume.

    Attributes:
        folder: where the module's results are.
        pai: the volume.
    """

    folder: Path
    pai: Path

    @classmethod
    def new(cls, folder: Path) -> Place:
        """Make one."""
        made = cls(folder / "results", folder / "pai")
        for each in made:
            each.mkdir(parents=True)
        return made


def begin(made: Made, place: Place) -> tuple[int, int]:
    """Start a module in a process group of its own; its process, and where its report comes."""
    name, args = made
    module, problems = build(load_module(name, built_in_modules()[name]), args)
    assert module is not None, problems
    out, report = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        with contextlib.suppress(BaseException):
            done = perform(module, HostContext(dict(os.environ), str(place.pai)))
            os.write(report, f"{done.outcome} {done.message}".encode())
        os._exit(0)
    os.close(report)
    return pid, out


def run(made: Made, place: Place) -> str:
    """Run a module to its end; its outcome and message."""
    pid, out = begin(made, place)
    assert select.select([out], [], [], WAIT_S)[0]
    said = os.read(out, 65536).decode()
    os.close(out)
    os.waitpid(pid, 0)
    return said


def kill(made: Made, place: Place, after_s: float) -> None:
    """Run a module, and kill it with all its processes."""
    pid, out = begin(made, place)
    select.select([out], [], [], after_s)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(out)


def listed(folder: Path) -> dict[str, tuple[int, str]]:
    """The files below a folder, without logs and git's own: modes and digests."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
        if not {".git", "logs"} & {*path.relative_to(folder).parts}
    }


@pytest.fixture
def download(registries: Mapping[str, str]) -> Callable[[Place], Made]:
    """A large blob of a registry."""
    data = os.urandom(1 << 20) * (LARGE >> 20)
    registry = registries["LAB_REGISTRY"]
    digest = Pusher(registry).blob("team/large", data)["digest"]
    item = {
        "url": f"http://{registry}/v2/team/large/blobs/{digest}",
        "sha256": digest.removeprefix("sha256:"),
    }
    return lambda place: ("download", {**item, "dest": str(place.folder / "blob")})


@pytest.fixture
def image_check(registries: Mapping[str, str]) -> Callable[[Place], Made]:
    """An image behind a login."""
    registry = registries["LAB_REGISTRY_BASIC"]
    Pusher(registries["LAB_REGISTRY"]).image("team/image", "1", "amd64")
    auth = {
        "username": registries["LAB_USER"],
        "password": Secret(registries["LAB_PASSWORD"]),
        "registry": registry,
    }
    return lambda _: ("image_check", {"image": f"{registry}/team/image:1", "auth": auth})


@pytest.fixture
def git_clone(lab: Lab, git_server: Mapping[str, str], tmp_path: Path) -> Callable[[Place], Made]:
    """A repository."""
    source = tmp_path / "source"
    source.mkdir()
    for n in range(20):
        (source / f"{n}.bin").write_bytes(os.urandom(200_000))
    name = f"idempotent-{os.urandom(4).hex()}"
    lab("git", "repo", name, str(source))
    repo = f"{git_server['LAB_GIT_URL']}/{name}.git"
    return lambda place: ("git_clone", {"repo": repo, "dest": str(place.folder / "clone")})


@pytest.fixture
def mount_storage(s3: Mapping[str, str]) -> Iterator[Callable[[Place], Made]]:
    """A bucket; its mounts are gone afterwards."""
    if not Path("/dev/fuse").exists():
        pytest.skip("this machine has no /dev/fuse")
    points: list[str] = []

    def make(place: Place) -> Made:
        points.append(str(place.folder / "mnt"))
        return "mount_storage", {"storages": [{"path": points[-1], **s3_storage(s3)}]}

    yield make
    for point in points:
        while any(each.target == point for each in mounts.mounts()):
            system.unmount(point, mounts.MNT_DETACH)


@pytest.fixture
def ssh_setup(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Place], Made]]:
    """An sshd; it ends afterwards."""
    if not (TOOLS / "sshd").exists():
        pytest.skip("needs `make bundle`")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    monkeypatch.setenv("PAI_CONTAINER_SSH_PORT", str(port))
    volumes: list[Path] = []

    def make(place: Place) -> Made:
        volumes.append(place.pai)
        monkeypatch.setenv("HOME", str(place.folder))
        for part in ("run", "runtime.d", "rendezvous"):
            (place.pai / part).mkdir()
        copy_tools(NAMES, str(TOOLS), str(place.pai / "tools"), Door(str(place.pai)))
        (place.pai / "rendezvous/key").write_bytes(base64.b64encode(os.urandom(32)))
        own = {"index": 0, "pod_uid": "0", "host_ip": "127.0.0.1", "ports": {"ssh": [port]}}
        roles = [{"name": "worker", "fc_name": "worker", "instances": [own]}]
        text = json.dumps({"own": {"role": "worker", "index": 0}, "roles": roles})
        (place.pai / "runtime.d/cluster.json").write_text(text)
        return "ssh_setup", {"jobssh": True}

    yield make
    for volume in volumes:
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((volume / "run/ssh/sshd.pid").read_text()), signal.SIGTERM)


CHECKS = ("image_check",)
"""Modules that never change anything."""


@pytest.mark.parametrize(
    "name", ["download", "git_clone", "image_check", "mount_storage", "ssh_setup"]
)
def test_a_module(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    make: Callable[[Place], Made] = request.getfixturevalue(name)
    first = "ok" if name in CHECKS else "changed"

    whole = Place.new(tmp_path / "whole")
    made = make(whole)
    began = time.monotonic()
    assert run(made, whole).startswith(first)
    seconds = time.monotonic() - began
    before = listed(whole.folder)
    assert run(made, whole).startswith("ok")
    assert listed(whole.folder) == before
    if name == "ssh_setup":  # one port for all: the next one may have it
        os.kill(int((whole.pai / "run/ssh/sshd.pid").read_text()), signal.SIGTERM)

    killed = Place.new(tmp_path / "killed")
    made = make(killed)
    for part in PARTS:
        kill(made, killed, seconds * part)
    assert run(made, killed).split(" ")[0] in (first, "ok")
    assert run(made, killed).startswith("ok")
    assert listed(killed.folder).keys() == before.keys()


def test_the_barrier(pod: Pod) -> None:
    """In a whole init phase, which writes the same files each time."""
    pod.create(pod.task(0), pod.task(1))
    for part in PARTS:
        pod.start()
        assert pod.process is not None
        # Nothing is known of the first run's time: it is that of an interpreter and a few requests.
        with contextlib.suppress(subprocess.TimeoutExpired):
            pod.process.wait(3 * part)
        for pid in _tree(pod.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        pod.end()
    written: list[dict[str, tuple[int, str]]] = []
    for _ in range(2):
        code, said = pod.run()
        assert code == 0, said
        assert "2 of 2 instances have addresses" in said
        written.append(listed(pod.volume))
    assert written[0] == written[1]
