"""The bundle as built from this checkout, and volumes that a real init phase prepared for it."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pairun.base.paths import PLAIN_FILES
from pairun.errors import Source
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.openpai.framework import make_framework, with_statuses
from pairun.playbook.document.reading import read_text
from tests.surroundings import GIVEN

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
UID = "11111111-2222-3333-4444-555555555555"
WAIT_S = 60.0
BUILD_S = 3600.0


def build(output: pathlib.Path, *options: str) -> None:
    """Build the bundle; what the cache has is taken from there."""
    done = subprocess.run(
        [str(ROOT / "bundle" / "build.sh"), *options, "--output", str(output)],
        env=GIVEN, capture_output=True, text=True, timeout=BUILD_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def make_bundle(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., pathlib.Path]:
    """Builds the bundle of this checkout: an old one would test old code."""
    if os.geteuid() != 0:
        pytest.skip("building the bundle installs Debian packages, as root")
    if "bookworm" not in pathlib.Path("/etc/os-release").read_text():
        pytest.skip("the bundle is built on Debian 12")

    def make(*options: str) -> pathlib.Path:
        path = tmp_path_factory.mktemp("bundle") / "runtime"
        build(path, *options)
        return path

    return make


@pytest.fixture(scope="session")
def bundle(make_bundle: Callable[..., pathlib.Path]) -> pathlib.Path:
    """The bundle for this machine."""
    return make_bundle()


@pytest.fixture(scope="session")
def podman(lab: Callable[..., str]) -> list[str]:
    """The argv of podman with the laboratory's images."""
    exported = lab("podman", "env")
    found = re.findall(r"^export ([A-Z0-9_]+)=(.*)$", exported, re.MULTILINE)
    return ["env", *(f"{n}={''.join(shlex.split(v))}" for n, v in found), "podman"]


class Volume:
    """A shared volume, and the Pod that init prepares it for.

    Args:
        folder: where both stand; the volume has the same path in every container.
        bundle: what init leaves there as ``runtime``.
    """

    def __init__(self, folder: pathlib.Path, bundle: pathlib.Path) -> None:
        self.folder = folder
        self.path = folder / "pai"
        self.path.mkdir()
        self._bundle = bundle
        # containers run as other users
        for parent in (folder, self.path, *list(folder.parents)[:2]):
            parent.chmod(0o755)

    def prepare(
        self,
        *commands: str,
        runtime: str = "",
        uid: int = 0,
        plugins: tuple[dict[str, Any], ...] = (),
        tools: pathlib.Path | None = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        """Run the init phase of a job.

        Args:
            commands: the job's.
            runtime: operations on the playbook of the runtime phase.
            uid: who the user's container runs as.
            plugins: the job's.
            tools: the folder of the programs that modules bring along.
            secrets: the values of the job's secrets.
        """
        source = self.folder / "framework.json"
        values = {f"s{n}": value for n, value in enumerate(secrets)}
        source.write_text(json.dumps(_framework(commands, plugins, values)))
        if secrets:
            (self.path / "secrets").mkdir()
            (self.path / "secrets" / "secrets.yaml").write_text(json.dumps(values))
        (self.folder / "layer.yaml").write_text(
            "init:\n"
            "  - disable: barrier\n  - disable: image_check\n  - disable: port_check\n"
            "  - before: job_environment\n    id: placed\n    name: The addresses are there\n"
            f"    cmd: {{script: 'cp {source} {self.path}/framework.json'}}\n" + runtime
        )
        done = subprocess.run(
            [sys.executable, "-m", "pairun", "init", "--root", str(HERE / "root")],
            capture_output=True, text=True, timeout=WAIT_S, cwd=ROOT,
            env={
                "PATH": os.environ["PATH"],
                "PAIRUN_PAI_DIR": str(self.path),
                "PAIRUN_FRAMEWORK_FILE": str(source),
                "PAIRUN_ENGINE_LAYER": str(self.folder / "layer.yaml"),
                "PAIRUN_HOST_IP": "127.0.0.1",
                "PAIRUN_GANG_DIR": str(self.folder / "gang"),
                "PAIRUN_APP_UID": str(uid),
                "PAIRUN_BUNDLE": str(self._bundle),
                **({"PAIRUN_TOOLS": str(tools)} if tools else {}),
                "FC_TASKROLE_NAME": "worker",
                "FC_TASK_INDEX": "0",
                "FC_POD_UID": UID,
                PLAIN_FILES: "1",
            },
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr

    @property
    def log(self) -> pathlib.Path:
        """The Pod's log directory."""
        return self.path / "logs" / UID


def _framework(
    commands: tuple[str, ...], plugins: tuple[dict[str, Any], ...], secrets: dict[str, str]
) -> dict[str, Any]:
    job: dict[str, Any] = {
        "protocolVersion": 2,
        "name": "small",
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "i", "uri": "example.com/a/b:1"}],
        "taskRoles": {
            "worker": {
                "instances": 1,
                "dockerImage": "i",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0},
                "commands": list(commands) or ["true"],
            }
        },
        "extras": {"com.microsoft.pai.runtimeplugin": list(plugins)},
        **({"secrets": secrets} if secrets else {}),
    }
    # One key a line: OpenPAI masks the secrets of such a text alone.
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in job.items())
    read, problems = read_job(read_text(Source("job", "job", text), JS))
    assert read is not None, list(problems)
    pods = {"worker": [{"podUID": UID, "podHostIP": "10.0.0.1"}]}
    return with_statuses(make_framework(read), pods)


class Running:
    """A process with lines to wait for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._news = threading.Condition()
        self._over = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                with self._news:
                    self.lines.append(line.rstrip("\r\n"))
                    self._news.notify_all()
        with self._news:
            self._over = True
            self._news.notify_all()

    def wait_for(self, line: str) -> None:
        """Wait for a line."""
        with self._news:
            found = self._news.wait_for(lambda: line in self.lines or self._over, WAIT_S)
        assert found, self.text
        assert line in self.lines, self.text

    def end(self) -> int:
        """Wait for the end; returns the exit code."""
        code = self.process.wait(WAIT_S)
        with self._news:
            assert self._news.wait_for(lambda: self._over, WAIT_S)
        return code

    @property
    def text(self) -> str:
        """What was printed so far."""
        return "\n".join(self.lines)


Start = Callable[..., Running]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a process whose output is read; it is killed with the test."""
    started: list[subprocess.Popen[str]] = []

    def run(*argv: str | pathlib.Path, env: dict[str, str] | None = None) -> Running:
        process = subprocess.Popen(
            [str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, text=True, env=env, start_new_session=True,
        )  # fmt: skip
        started.append(process)
        return Running(process)

    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Pod:
    """Containers that run the bundle on one volume.

    Args:
        podman: its argv.
        lab: runs a command of the laboratory.
        start: starts a process.
        volume: the volume.
    """

    def __init__(
        self, podman: list[str], lab: Callable[..., str], start: Start, volume: Volume
    ) -> None:
        self._podman = podman
        self._lab = lab
        self._start = start
        self.volume = volume
        self._name = f"pairun-{uuid.uuid4()}"

    def start(self, image: str, *args: str, options: tuple[str, ...] = ()) -> Running:
        """Start a container of an image with the bundle as its PID 1."""
        self._lab("image", image)
        path = self.volume.path
        return self._start(
            *self._podman, "run", "--rm", "--name", self._name, "--pull=never", "--network=none",
            "-v", f"{path}:{path}", "-e", f"PAIRUN_PAI_DIR={path}", "-e", f"FC_POD_UID={UID}",
            *options, "--entrypoint", f"{path}/runtime", f"127.0.0.1:5000/lab/{image}:1", *args,
        )  # fmt: skip

    def signal(self, name: str) -> None:
        """Signal PID 1."""
        killed = self._start(*self._podman, "kill", "-s", name, self._name)
        assert killed.end() == 0, killed.text


@pytest.fixture
def pod(podman: list[str], lab: Callable[..., str], start: Start, volume: Volume) -> Iterator[Pod]:
    """A Pod with an empty volume."""
    made = Pod(podman, lab, start, volume)
    yield made
    subprocess.run([*podman, "rm", "-f", "-i", made._name], capture_output=True)


@pytest.fixture
def volume(tmp_path: pathlib.Path, bundle: pathlib.Path) -> Volume:
    """An empty volume."""
    return Volume(tmp_path, bundle)
