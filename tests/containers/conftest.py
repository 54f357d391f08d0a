"""Pods of real containers that share a volume; the image is the one of the Dockerfile."""

from __future__ import annotations

import json
import pathlib
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.podman import ROOT, WAIT_S, Done, Podman

CLUSTER_IMAGE = "localhost/pairun:cluster"
PAI = "/usr/local/pai"
CONFIG = "/usr/local/pai-config"
MESSAGE = "/tmp/pai-termination-log"


@pytest.fixture(scope="session")
def cluster_image(podman: Podman, image: str) -> str:
    """The operator's own image of the examples."""
    podman.ok(
        "build", "--quiet", "--pull=never", "--layers", f"--build-arg=PAIRUN={image}",
        "-t", CLUSTER_IMAGE, ROOT / "examples" / "image",
    )  # fmt: skip
    return CLUSTER_IMAGE


class Pod:
    """An init container and an app container that share a volume and nothing else.

    Args:
        podman: podman.
        image: pairun's.
        folder: of the host: the volume, the cluster's settings, the job's storage.
    """

    def __init__(self, podman: Podman, image: str, folder: pathlib.Path) -> None:
        self.podman = podman
        self.image = image
        self.uid = str(uuid.uuid4())
        self.name = f"pairun-{self.uid}"
        self.volume = folder / "volume"
        self.config = folder / "config"
        self.data = folder / "data"
        self.message = folder / "message"
        for made in (self.volume, self.config, self.data):
            made.mkdir()
        self.data.chmod(0o777)
        self.message.touch()
        self.message.chmod(0o666)
        self.env = {
            "FC_POD_UID": self.uid, "FC_POD_NAME": "job-worker-0", "FC_TASKROLE_NAME": "worker",
            "FC_TASK_INDEX": "0", "FC_FRAMEWORK_NAMESPACE": "default", "PAI_JOB_NAME": "user~job",
            "PAI_CURRENT_TASK_ROLE_NAME": "worker", "PAIRUN_HOST_IP": "10.0.0.9",
        }  # fmt: skip

    @property
    def logs(self) -> pathlib.Path:
        """The Pod's log directory."""
        return self.volume / "logs" / self.uid

    def _options(self, env: Mapping[str, str]) -> list[str]:
        variables = [f"-e{n}={v}" for n, v in {**self.env, **env}.items()]
        return ["--network=none", "-v", f"{self.volume}:{PAI}", *variables]

    def init(self, *args: str, options: tuple[str, ...] = (), **env: str) -> Done:
        """Run the init container; without arguments it is the image's own command."""
        return self.podman.run(
            "run", "--rm", "--pull=never", *self._options(env),
            "-v", f"{self.config}:{CONFIG}:ro", f"-ePAI_CONFIG_DIR={CONFIG}", *options,
            self.image, *args,
        )  # fmt: skip

    def start(self, image: str, options: tuple[str, ...] = (), **env: str) -> None:
        """Start the app container."""
        self.podman.ok(
            "run", "--detach", "--pull=never", "--name", self.name, *self._options(env),
            "-v", f"{self.data}:/data", "-v", f"{self.message}:{MESSAGE}", *options,
            f"--entrypoint={PAI}/runtime", image,
        )  # fmt: skip

    def end(self) -> Done:
        """Wait for the end of the app container."""
        began = time.monotonic()
        code = int(self.podman.ok("wait", self.name))
        seconds = time.monotonic() - began
        said = self.podman.run("logs", self.name)
        return Done(code, said.out, said.err, seconds)

    def wait_for(self, path: pathlib.Path) -> None:
        """Wait for a file, while the app container runs."""
        stop = time.monotonic() + WAIT_S
        while not path.exists():
            if time.monotonic() > stop or not self.running():
                pytest.fail(f"{path} did not come: {self.podman.run('logs', self.name).said}")
            time.sleep(0.05)

    def running(self) -> bool:
        """Whether the app container runs."""
        state = self.podman.ok("inspect", "--format={{.State.Status}}", self.name)
        return state.strip() in ("running", "created", "configured", "initialized")

    def outside(self) -> list[str]:
        """What the app container left in its own file system, mount points aside."""
        lines = self.podman.ok("diff", "--format=json", self.name)
        found = json.loads(lines)
        changed = [p for kind in ("changed", "added", "deleted") for p in found.get(kind) or ()]
        mounts = ("/usr/local/pai", "/data", MESSAGE, "/busybox", *_PODMANS)
        return [p for p in changed if not any(f"{m}/".startswith(f"{p}/") for m in mounts)]

    def processes(self) -> list[str]:
        """The processes of this machine that belong to the Pod."""
        found = []
        for each in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if self.uid.encode() in each.read_bytes():
                    found.append((each.parent / "cmdline").read_text())
            except OSError:
                continue
        return found

    def remove(self) -> None:
        """Remove the app container."""
        self.podman.run("rm", "-f", "-i", "-t", "0", self.name)


_PODMANS = (
    "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/mtab", "/run/.containerenv",
    "/run/secrets", "/dev", "/proc", "/sys",
)  # fmt: skip
"""What podman itself puts into every container."""


@pytest.fixture(scope="session")
def make_pod(
    podman: Podman, image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Pod]]:
    """Makes Pods; their containers are removed at the end of the test run."""
    made: list[Pod] = []

    def make() -> Pod:
        folder = tmp_path_factory.mktemp("pod")
        # containers run as other users
        for each in (folder, *list(folder.parents)[:2]):
            each.chmod(0o755)
        made.append(Pod(podman, image, folder))
        return made[-1]

    yield make
    for pod in made:
        pod.remove()


@pytest.fixture
def pod(make_pod: Callable[[], Pod]) -> Pod:
    """A Pod of this test's own."""
    return make_pod()


@pytest.fixture(scope="session")
def busybox() -> str:
    """The path of a static program with a shell in it, for an image that has none."""
    found = shutil.which("busybox")
    assert found, "the laboratory of container images installs it"
    return found
