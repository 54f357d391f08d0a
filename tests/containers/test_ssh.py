"""ssh between containers of different images, which have no sshd and no client of their own."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import attrs
import pytest

from pairun.errors import Source
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.openpai.framework import make_framework, with_statuses
from pairun.playbook.document.reading import read_text

PAI = "/usr/local/pai"
SSH = f"{PAI}/tools/ssh/ssh"
WAIT_S = 60.0

# What a role's container is: the laboratory's image, and options that matter here.
KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "debian": ("debian", ()),
    "busybox": ("busybox", ()),
    "musl": ("musl", ()),
    "nonroot": ("nonroot", ()),
    # a number without a name, and a root who may do nothing that is root's
    "number": ("busybox", ("--user=12345:12345", "--passwd=false")),
    "bare": ("busybox", ("--cap-drop=all", "--read-only")),
}


class _Done(Protocol):
    code: int
    out: str
    said: str


class _Podman(Protocol):
    def image(self, name: str) -> str: ...
    def ok(self, *argv: str | pathlib.Path) -> str: ...
    def run(self, *argv: str | pathlib.Path) -> _Done: ...


class _Pod(Protocol):
    podman: _Podman
    uid: str
    name: str
    env: dict[str, str]
    volume: pathlib.Path
    config: pathlib.Path

    def init(self, *args: str, options: tuple[str, ...] = (), **env: str) -> _Done: ...
    def outside(self) -> list[str]: ...


@attrs.frozen
class Gang:
    """The containers of one job, on their own network hosts.

    Attributes:
        pods: by role.
        key: a person's private key, outside.
        seconds: from the start of the first container to the end of the barrier of all.
    """

    pods: Mapping[str, _Pod]
    key: pathlib.Path
    seconds: float

    def ssh(self, role: str, *args: str) -> _Done:
        """Run ssh in a container."""
        pod = self.pods[role]
        return pod.podman.run("exec", pod.name, SSH, *args)


def job(public: str) -> dict[str, Any]:
    """A job with a role for each kind, whose command waits for the end of the tests."""
    waits = f"while [ ! -e {PAI}/run/release ]; do sleep 0.2; done"
    role = {
        "instances": 1,
        "dockerImage": "image",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 0},
        "commands": ["export OF_THE_COMMAND=1", waits],
    }
    plugin = {
        "plugin": "ssh",
        "parameters": {
            "jobssh": True,
            "sshbarrier": True,
            "sshbarrierTimeout": 1,
            "userssh": {"type": "custom", "value": f"{public}\r\nno key\r\n"},
        },
    }
    return {
        "protocolVersion": 2,
        "name": "ssh",
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "image", "uri": "docker.io/a/b:1"}],
        "taskRoles": dict.fromkeys(KINDS, role),
        "extras": {"com.microsoft.pai.runtimeplugin": [plugin]},
    }


def _mounted(pod: _Pod) -> tuple[str, str]:
    """The job's key, as the platform mounts it."""
    return ("-v", f"{pod.volume.parent}/rendezvous:{PAI}/rendezvous:ro")


@pytest.fixture(scope="module")
def gang(
    make_pod: Callable[[], _Pod],
    lab: Callable[..., str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Gang]:
    """Six containers on three network hosts, after their barrier."""
    found = re.search(r"LAB_HOST_IPS=(.*)", lab("hosts", "up", "3"))
    assert found
    addresses = "".join(shlex.split(found[1])).split()
    key = tmp_path_factory.mktemp("person") / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    described = job(key.with_suffix(".pub").read_text().strip())
    read, problems = read_job(read_text(Source("job", "job", json.dumps(described)), JS))
    assert read is not None, list(problems)
    pods = {role: make_pod() for role in KINDS}
    hosts = {role: number % 3 for number, role in enumerate(KINDS)}
    statuses = {
        role: [{"podUID": pod.uid, "podHostIP": addresses[hosts[role]]}]
        for role, pod in pods.items()
    }
    framework = json.dumps(with_statuses(make_framework(read), statuses))
    secret = base64.b64encode(os.urandom(32))
    for role, pod in pods.items():
        (pod.config / "framework.json").write_text(framework)
        (pod.config / "init.yaml").write_text("phase: init\npatches: [{disable: image_check}]\n")
        keys = pod.volume.parent / "rendezvous"
        keys.mkdir()
        (keys / "key").write_bytes(secret)
        pod.env |= {"FC_TASKROLE_NAME": role, "PAI_CURRENT_TASK_ROLE_NAME": role}
        done = pod.init("init", "--framework", "/usr/local/pai-config/framework.json",
                        "--role", role, "--index", "0", options=_mounted(pod))  # fmt: skip
        assert done.code == 0, done.said
    began = time.monotonic()
    for role, pod in pods.items():
        image, options = KINDS[role]
        variables = [f"-e{n}={v}" for n, v in pod.env.items()]
        pod.podman.ok(
            "run", "--detach", "--pull=never", "--name", pod.name, *variables, *options,
            f"--network=ns:/run/netns/lab{hosts[role] + 1}", "-v", f"{pod.volume}:{PAI}",
            *_mounted(pod),
            f"--entrypoint={PAI}/runtime", pod.podman.image(image),
        )  # fmt: skip
    for pod in pods.values():
        while "starting the command" not in (said := pod.podman.run("logs", pod.name).said):
            assert "runtime phase: failure" not in said, said
            assert time.monotonic() - began < WAIT_S, said
            time.sleep(0.05)
    yield Gang(pods, key, time.monotonic() - began)
    for pod in pods.values():
        (pod.volume / "run" / "release").touch()
    lab("hosts", "down")


@pytest.mark.parametrize("role", KINDS)
def test_every_image_reaches_every_other(gang: Gang, role: str) -> None:
    """From every container to every container, with the environment of the one that is reached."""
    for other in KINDS:
        command = "echo $PAI_CURRENT_TASK_ROLE_NAME $PAI_TASK_ROLE_INSTANCES"
        done = gang.ssh(role, f"{other}-0", command)
        assert done.code == 0, done.said
        assert done.out.split() == [other, ",".join(f"{r}:0" for r in KINDS)]


@pytest.mark.parametrize("role", KINDS)
def test_nothing_of_the_image_is_touched(gang: Gang, role: str) -> None:
    """All that was made is on the shared volume; what is secret is for its owner alone."""
    pod = gang.pods[role]
    assert [p for p in pod.outside() if p not in ("/tmp", "/var", "/var/tmp")] == []
    folder = pod.volume / "run" / "ssh"
    for name in ("id", "host_key", "session", "seed"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("role", KINDS)
def test_a_person_gets_in(gang: Gang, role: str, lab: Callable[..., str]) -> None:
    """With the key of the parameters, on the port that the job's page shows; the bad line is named."""
    pod = gang.pods[role]
    config = (pod.volume / "run" / "ssh" / "config").read_text()
    entry = re.search(rf"Host {role}-0\n  HostName (\S+)\n  Port (\d+)", config)
    assert entry
    done = subprocess.run(
        ["ssh", "-i", gang.key, "-p", entry[2], "-oStrictHostKeyChecking=no", "-oBatchMode=yes",
         "-oUserKnownHostsFile=/dev/null", f"root@{entry[1]}", "id -u"],
        capture_output=True, text=True, check=False, timeout=WAIT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    user = {"nonroot": "65534", "number": "12345"}.get(role, "0")
    assert done.stdout == f"{user}\n"
    said = pod.podman.run("logs", pod.name).said
    assert "userssh.value, line 2: it is not a public key; left out" in said


def test_files_are_copied(gang: Gang) -> None:
    """`scp` between images that have none; a session finds the clients, too."""
    made = "head -c 300000 /dev/zero >/dev/shm/sent && scp -q /dev/shm/sent number-0:/dev/shm/got"
    assert gang.ssh("busybox", "musl-0", made).code == 0
    assert gang.ssh("busybox", "number-0", "wc -c </dev/shm/got").out.split() == ["300000"]


def test_other_keys_are_refused(gang: Gang, tmp_path: pathlib.Path) -> None:
    """Neither another key nor a password lets anybody in."""
    other = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    config = (gang.pods["debian"].volume / "run" / "ssh" / "config").read_text()
    entry = re.search(r"HostName (\S+)\n  Port (\d+)", config)
    assert entry
    done = subprocess.run(
        ["ssh", "-i", other, "-p", entry[2], "-oStrictHostKeyChecking=no", "-oBatchMode=yes",
         "-oIdentitiesOnly=yes", "-oUserKnownHostsFile=/dev/null", f"root@{entry[1]}", "true"],
        capture_output=True, text=True, check=False, timeout=WAIT_S,
    )  # fmt: skip
    assert done.returncode == 255
    assert "Permission denied (publickey)" in done.stderr
