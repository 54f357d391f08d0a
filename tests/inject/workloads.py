"""Manifests for tests of injections, and the phases of an injected Pod as processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import yaml

from pairun.errors import Problems, Source, render
from pairun.inject.injecting import inject
from pairun.inject.options import InjectOptions

IMAGE = "registry.example.com/pairun:1"
MANIFESTS = (
    Path(os.environ.get("PAIRUN_SHARED") or Path(__file__).parents[3] / "shared") / "workloads"
)
"""Real manifests and CRDs, where this machine has them."""

POD = """\
# A comment at the top.
apiVersion: v1
kind: Pod
metadata:
  name: train   # its name
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: busybox
    command: ["sh", -c, 'exit 3']
"""

HOLD = [
    {
        "before": "user_command",
        "id": "look",
        "name": "Keep the container after a failure",
        "file": {"path": "/usr/local/pai/run/hold", "content": ""},
        "on_exit": [
            {"name": "The container stays", "event": "failure", "hold": {"time": "1s", "container": "main"}}
        ],
    }
]  # fmt: skip
"""A change of the runtime playbook that needs no program in the image."""


def options(**asked: Any) -> InjectOptions:
    """Options with an image; one value of a container or a command is for all templates."""
    for name in ("container", "entrypoint"):
        if name in asked and not isinstance(asked[name], dict):
            asked[name] = {"": asked[name]}
    return InjectOptions(image=IMAGE, **asked)


def injected(text: str, **asked: Any) -> str:
    """An injected manifest; fails on an error."""
    problems = Problems()
    (made,), _ = inject([Source("manifest.yaml", "job", text)], options(**asked), problems)
    assert not problems.errors, "\n".join(map(render, problems.errors))
    return made


def summary(text: str, **asked: Any) -> list[str]:
    """The summary of an injection."""
    return inject([Source("manifest.yaml", "job", text)], options(**asked), Problems()).summary


def refusals(text: str, **asked: Any) -> list[str]:
    """The errors and warnings of an injection, as people see them."""
    problems = Problems()
    inject([Source("manifest.yaml", "job", text)], options(**asked), problems)
    return [render(p) for p in problems]


@attrs.frozen
class Phase:
    """How one phase of an injected Pod ended."""

    code: int
    said: str


def run_pod(pod: Mapping[str, Any], folder: Path) -> tuple[Phase, Phase | None]:
    """Run an injected Pod's init container and its main container as processes.

    Args:
        pod: the Pod, or what has its spec.
        folder: an empty folder, the shared volume.

    Returns:
        The init phase, and the runtime phase unless init failed.
    """
    init = pod["spec"]["initContainers"][-1]
    program = [sys.executable, "-P", "-m", "pairun"]
    first = _run([*program, *init["args"]], _environment(init, folder))
    if first.code != 0:
        return first, None
    (app,) = pod["spec"]["containers"]
    words = [*app["command"], *app.get("args", [])]
    assert words[:2] == ["/usr/local/pai/runtime", "--"]
    return first, _run([*program, "runtime", *words[1:]], _environment(app, folder))


_FIELDS = {
    "metadata.uid": "uid-1", "metadata.name": "train", "status.podIP": "127.0.0.1",
    "metadata.namespace": "default",
}  # fmt: skip


def _environment(container: Mapping[str, Any], folder: Path) -> dict[str, str]:
    env = {"PATH": os.environ["PATH"], "PAIRUN_PAI_DIR": str(folder)}
    for variable in container.get("env", []):
        field = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        env[variable["name"]] = _FIELDS[field] if field else variable.get("value", "")
    return env


def _run(argv: list[str], env: dict[str, str]) -> Phase:
    done = subprocess.run(
        argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return Phase(done.returncode, done.stdout)


def documents(text: str) -> list[Any]:
    """The documents of a text that are not empty."""
    return [d for d in yaml.safe_load_all(text) if d is not None]
