"""The image for arm64 under QEMU: whole jobs, and a gang with instances on both architectures.

The user's container of these jobs is pairun's own image, which has a shell for arm64.
"""

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

import pytest

from pairun.errors import Source
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.openpai.framework import make_framework, with_statuses
from pairun.playbook.document.reading import read_text
from tests.podman import WAIT_S

pytestmark = pytest.mark.nightly

PAI = "/usr/local/pai"
SSH = f"{PAI}/tools/ssh/ssh"
MACHINES = {"native": os.uname().machine, "arm": "aarch64"}
"""What `uname -m` prints, by role."""


class _Done(Protocol):
    code: int
    out: str
    said: str


class _Podman(Protocol):
    def ok(self, *argv: str | pathlib.Path, timeout_s: float = 60.0) -> str: ...
    def run(self, *argv: str | pathlib.Path, timeout_s: float = 60.0) -> _Done: ...
    def start(self, *argv: str | pathlib.Path) -> subprocess.Popen[str]: ...


class _Pod(Protocol):
    podman: _Podman
    image: str
    uid: str
    name: str
    env: dict[str, str]
    volume: pathlib.Path
    config: pathlib.Path
    data: pathlib.Path
    logs: pathlib.Path

    def init(self, *args: str, options: tuple[str, ...] = (), **env: str) -> _Done: ...
    def start(self, image: str, options: tuple[str, ...] = (), **env: str) -> None: ...
    def end(self) -> _Done: ...
    def wait_for(self, path: pathlib.Path) -> None: ...


@pytest.fixture
def pod(make_pod: Callable[[], _Pod], arm64_image: str) -> _Pod:
    """A Pod whose init container is for arm64."""
    made = make_pod()
    made.image = arm64_image
    return made


def _job(pod: _Pod, *commands: str) -> None:
    """Run init for these commands, and start the user's container."""
    done = pod.init(RUNTIME_CONFIG=json.dumps({"commands": commands}))
    assert done.code == 0, done.said
    pod.start(pod.image)


def test_what_is_in_it(podman: _Podman, image: str, arm64_image: str) -> None:
    """It is for arm64, and is made of the same parts as the other one."""
    (inspected,) = json.loads(podman.ok("image", "inspect", arm64_image))
    assert inspected["Architecture"] == "arm64"
    parts = [
        json.loads(podman.ok("run", "--rm", "--entrypoint=cat", each, "/opt/pairun/sbom.cdx.json"))
        for each in (image, arm64_image)
    ]
    native, arm64 = ([(c["name"], c["version"]) for c in each["components"]] for each in parts)
    assert {name for name, _ in native} == {name for name, _ in arm64}
    said = podman.ok("run", "--rm", arm64_image, "--version")
    assert said.startswith("pairun ")
    assert "openssl " in said


def test_its_programs_start(podman: _Podman, arm64_image: str) -> None:
    """Python with its compiled packages, git, git-lfs, ssh, bash and busybox find their libraries."""
    script = "import bz2, ctypes, lzma, ssl, rpds, yaml; assert yaml.__with_libyaml__"
    said = podman.ok(
        "run", "--rm", "--entrypoint=bash", arm64_image, "-euc",
        f"python3 -c '{script}'; uname -m; git lfs version | cut -c 1-7; ssh -V 2>&1 | cut -c 1-8; "
        "git ls-remote https://127.0.0.1:1/x 2>&1 | grep -c 'unable to access'; echo a | sort",
    )  # fmt: skip
    assert said.splitlines() == ["aarch64", "git-lfs", "OpenSSH_", "1", "a"]


def test_what_needs_no_architecture(podman: _Podman, image: str, arm64_image: str) -> None:
    """Python's code is the same in both images, byte for byte, although each was compiled by itself."""
    roots = [
        pathlib.Path(podman.ok("image", "mount", each).strip()) for each in (image, arm64_image)
    ]
    try:
        one, other = (
            {str(p.relative_to(r)): p for p in r.rglob("*.*") if p.is_file()} for r in roots
        )
        same = [n for n in one.keys() & other.keys() if n.endswith((".pyc", ".zip", ".py", ".md"))]
        assert len(same) > 1000
        differing = [n for n in same if one[n].read_bytes() != other[n].read_bytes()]
    finally:
        podman.ok("image", "unmount", image, arm64_image)
    assert [n for n in differing if "_sysconfigdata" not in n] == []


def test_a_job_that_fails(pod: _Pod) -> None:
    """Both phases run; the exit code is the command's, and its streams stand in the log files."""
    _job(pod, "uname -m", "echo trouble >&2", "exit 3")
    done = pod.end()
    assert done.code == 3, done.said
    assert "aarch64" in done.out
    assert (pod.logs / "user-stdout" / "current").read_text() == "aarch64\n"
    assert (pod.logs / "user-stderr" / "current").read_text() == "trouble\n"
    assert "init phase: success" in (pod.logs / "init.log").read_text()


def test_a_command_that_a_signal_ends(pod: _Pod) -> None:
    """The exit code says which signal it was."""
    _job(pod, "kill -SEGV $$")
    assert pod.end().code == 128 + 11


def test_a_stop(pod: _Pod) -> None:
    """A stop reaches the command, which saves its state and decides the exit code."""
    trap = "trap 'echo saved >/data/checkpoint; exit 7' TERM"
    _job(pod, trap, "echo >/data/ready", "while :; do sleep 0.1; done")
    pod.wait_for(pod.data / "ready")
    pod.podman.ok("kill", "-s", "TERM", pod.name)
    assert pod.end().code == 7
    assert (pod.data / "checkpoint").read_text() == "saved\n"


def test_an_init_that_fails(pod: _Pod) -> None:
    """Its exit code and its error are those of every init."""
    done = pod.init(RUNTIME_CONFIG="commands: 7")
    assert done.code == 1
    assert "error[PR712]" in done.said


# --- instances on both architectures --------------------------------------------------------------


def _gang_job() -> dict[str, Any]:
    """A role for each architecture, with ssh between them; the commands wait for the end of the tests."""
    role = {
        "instances": 1, "dockerImage": "image",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 0},
        "commands": [f"while [ ! -e {PAI}/run/release ]; do sleep 0.2; done"],
    }  # fmt: skip
    parameters = {"jobssh": True, "sshbarrier": True, "sshbarrierTimeout": 3}
    return {
        "protocolVersion": 2, "name": "mixed", "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "image", "uri": "docker.io/a/b:1"}],
        "taskRoles": dict.fromkeys(MACHINES, role),
        "extras": {"com.microsoft.pai.runtimeplugin": [{"plugin": "ssh", "parameters": parameters}]},
    }  # fmt: skip


@pytest.fixture(scope="module")
def gang(
    make_pod: Callable[[], _Pod],
    image: str,
    arm64_image: str,
    lab: Callable[..., str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Mapping[str, _Pod]]:
    """Two instances on two network hosts, whose inits wait for each other at the barrier."""
    addresses = re.search(r"LAB_HOST_IPS=(.*)", lab("hosts", "up", "2"))
    assert addresses
    ips = dict(zip(MACHINES, "".join(shlex.split(addresses[1])).split(), strict=False))
    parsed, problems = read_job(read_text(Source("job", "job", json.dumps(_gang_job())), JS))
    assert parsed is not None, list(problems)
    folder = tmp_path_factory.mktemp("gang")
    (folder / "rendezvous").mkdir()
    (folder / "rendezvous" / "key").write_bytes(base64.b64encode(os.urandom(32)))
    key = ("-v", f"{folder}/rendezvous:{PAI}/rendezvous:ro")
    pods = {role: make_pod() for role in MACHINES}
    pods["arm"].image = arm64_image
    # Nobody has an address: each announces its own at the barrier.
    statuses = {role: [{"podUID": pod.uid, "podHostIP": None}] for role, pod in pods.items()}
    framework = with_statuses(make_framework(parsed), statuses)
    (folder / "framework.json").write_text(json.dumps(framework))
    inits = {role: _start_init(pods[role], role, ips[role], folder, key) for role in MACHINES}
    printed = {role: "".join(init.communicate(timeout=WAIT_S)) for role, init in inits.items()}
    assert [init.returncode for init in inits.values()] == [0, 0], printed
    assert all("2 of 2 instances have addresses" in each for each in printed.values()), printed
    for host, (role, pod) in enumerate(pods.items(), 1):
        pod.podman.ok(
            "run", "--detach", "--pull=never", "--name", pod.name,
            *(f"-e{name}={value}" for name, value in pod.env.items()), *key,
            f"--network=ns:/run/netns/lab{host}", "-v", f"{pod.volume}:{PAI}",
            f"--entrypoint={PAI}/runtime", image if role == "native" else arm64_image,
        )  # fmt: skip
    stop = time.monotonic() + WAIT_S
    for pod in pods.values():
        while "starting the command" not in (said := pod.podman.run("logs", pod.name).said):
            assert "runtime phase: failure" not in said, said
            assert time.monotonic() < stop, said
            time.sleep(0.2)
    yield pods
    for pod in pods.values():
        (pod.volume / "run" / "release").touch()
    lab("hosts", "down")


def _start_init(
    pod: _Pod, role: str, ip: str, folder: pathlib.Path, key: tuple[str, ...]
) -> subprocess.Popen[str]:
    """Start the init container of a role; the barrier's folder is one for both."""
    (pod.config / "init.yaml").write_text(
        "phase: init\npatches: [{disable: image_check}, {disable: port_check}]\n"
    )
    pod.env |= {
        "FC_TASKROLE_NAME": role, "PAI_CURRENT_TASK_ROLE_NAME": role, "PAIRUN_HOST_IP": ip,
    }  # fmt: skip
    given = {
        **pod.env, "PAIRUN_BARRIER": "local", "PAIRUN_GANG_DIR": "/gang",
        "PAIRUN_FRAMEWORK_FILE": "/gang/framework.json",
        "PAI_CONFIG_DIR": "/usr/local/pai-config",
    }  # fmt: skip
    return pod.podman.start(
        "run", "--rm", "--pull=never", "--network=none", "-v", f"{folder}:/gang",
        "-v", f"{pod.volume}:{PAI}", "-v", f"{pod.config}:/usr/local/pai-config:ro", *key,
        *(f"-e{name}={value}" for name, value in given.items()),
        pod.image,
    )  # fmt: skip


@pytest.mark.parametrize("role", MACHINES)
def test_each_has_the_bundle_of_its_architecture(gang: Mapping[str, _Pod], role: str) -> None:
    """Init hands over the program of the image that it runs in."""
    header = (gang[role].volume / "runtime").read_bytes()[:20]
    machine = {"x86_64": 62, "aarch64": 183}[MACHINES[role]]
    assert int.from_bytes(header[18:20], "little") == machine, "e_machine of elf(5)"


@pytest.mark.parametrize("source", MACHINES)
@pytest.mark.parametrize("target", MACHINES)
def test_every_instance_reaches_every_other(
    gang: Mapping[str, _Pod], source: str, target: str
) -> None:
    """They know each other's addresses and keys: ssh from each to each, and to itself, with exit codes."""
    pod = gang[source]
    command = "uname -m; echo $PAI_TASK_ROLE_INSTANCES; exit 6"
    done = pod.podman.run("exec", pod.name, SSH, f"{target}-0", command, timeout_s=WAIT_S)
    assert done.code == 6, done.said + pod.podman.run("logs", pod.name).said
    assert done.out.split() == [MACHINES[target], "native:0,arm:0"]
