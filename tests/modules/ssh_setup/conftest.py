"""A volume with the tools, and sshds on it."""

from __future__ import annotations

import base64
import importlib
import json
import os
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pairun.contract.loading import load_module
from pairun.contract.sources import built_in_modules
from pairun.module import StateModule
from pairun.volume.bundle import find_tools
from tests.modules.conftest import place_tools

if TYPE_CHECKING:
    from tests.modules.conftest import Harness


TOOLS = Path(find_tools(os.environ))


SEED = base64.b64encode(b"s" * 32).decode()


_PACKAGE = load_module("ssh_setup", built_in_modules()["ssh_setup"]).__module__


def own_file(name: str) -> Any:
    """A file of the module's folder."""
    return importlib.import_module(f"{_PACKAGE}.{name}")


def key(number: int = 1, kind: str = "ssh-ed25519", comment: str = "") -> str:
    """A public key's line."""
    body = (
        struct.pack(">I", len(kind)) + kind.encode() + struct.pack(">I", 32) + bytes([number]) * 32
    )
    return f"{kind} {base64.b64encode(body).decode()} {comment}".strip()


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Place:
    """A volume as init leaves it, with the tools.

    Args:
        harness: the volume is its.
    """

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.port = free_port()
        self.env = {"PAI_CONTAINER_SSH_PORT": str(self.port)}
        self.folder = harness.pai_dir / "run" / "ssh"
        (harness.pai_dir / "run").mkdir()
        (harness.pai_dir / "runtime.d").mkdir()
        (harness.pai_dir / "rendezvous").mkdir()
        (harness.pai_dir / "rendezvous" / "key").write_text(SEED)
        if TOOLS.is_dir():
            place_tools(TOOLS, harness.pai_dir / "tools")
        self.cluster([("worker_A", "workera", 2), ("ps", "ps", 1)])

    def cluster(self, roles: list[tuple[str, str, int]], host: str | None = "127.0.0.1") -> None:
        """Leave who the instances are; all have the port of this one."""
        described = [
            {"name": name, "fc_name": fc_name, "instances": [
                {"index": i, "pod_uid": "u", "host_ip": host, "ports": {"ssh": [self.port]}}
                for i in range(count)
            ]}
            for name, fc_name, count in roles
        ]  # fmt: skip
        own = {"role": roles[0][1], "index": 0}
        path = self.harness.pai_dir / "runtime.d" / "cluster.json"
        path.write_text(json.dumps({"own": own, "roles": described}))

    def run(self, args: Mapping[str, Any], **env: str) -> Any:
        """Run the module, and once more, which must change nothing."""
        env = {**self.env, **env}
        outcome = self.harness.run("ssh_setup", args, env)
        assert outcome.failure is None, outcome.failure
        module = self.harness.make("ssh_setup", args)
        assert isinstance(module, StateModule)
        self.harness.changes_nothing(module, env)
        return outcome

    def ssh(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Log in as the job's own command would."""
        argv = [
            str(self.harness.pai_dir / "tools" / "ssh" / "ssh"),
            "-F",
            str(self.folder / "config"),
        ]
        return subprocess.run([*argv, "-oBatchMode=yes", *args], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, check=False, timeout=20)  # fmt: skip

    def stop(self) -> None:
        """End the sshd."""
        pid = self.folder / "sshd.pid"
        if pid.exists():
            os.kill(int(pid.read_text()), signal.SIGTERM)

    def keys(self) -> list[str]:
        """The lines of authorized_keys."""
        return (self.folder / "authorized_keys").read_text().splitlines()


@pytest.fixture
def place(harness: Harness) -> Iterator[Place]:
    """A volume, and no sshd of it afterwards."""
    made = Place(harness)
    yield made
    made.stop()


@pytest.fixture
def bundled(place: Place) -> Place:
    """The same, where the bundle's sshd is there."""
    if not (TOOLS / "sshd").exists():
        pytest.skip("needs `make bundle`")
    return place
