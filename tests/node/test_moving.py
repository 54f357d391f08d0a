"""A queue moves to pairun and back, by the steps of docs/moving.md."""

from __future__ import annotations

import copy
import os
import pathlib
import subprocess
import sys

import attrs
import pytest
import yaml

from tests.node import test_frameworks
from tests.node.api import Object
from tests.node.conftest import ACCOUNT, Node
from tests.node.test_frameworks import FAILS, Jobs, pods_of
from tests.podman import ROOT

OLD = "01d01d01"


@pytest.fixture
def applied(node: Node, tmp_path: pathlib.Path) -> None:
    """What an operator applies before the day, in this test's namespace."""
    folder = tmp_path / "deploy"
    folder.mkdir()
    base = os.path.relpath(ROOT / "deploy" / "openpai", folder)
    overlay = {"namespace": node.namespace, "resources": [base]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    node.kubectl("apply", "-k", str(folder))


def images(node: Node, name: str) -> set[str]:
    """The images of the init containers of a Framework's roles."""
    framework = node.api.get(f"{node.frameworks}/{name}")
    pods: list[Object] = [role["task"]["pod"] for role in framework["spec"]["taskRoles"]]
    return {c["image"] for pod in pods for c in pod["spec"]["initContainers"]}


REST_SERVER: Object = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "rest-server-ds"},
    "spec": {
        "selector": {"matchLabels": {"app": "rest-server"}},
        "template": {
            "metadata": {"labels": {"app": "rest-server"}},
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "rest-server", "command": ["sleep", "1000"]}],
            },
        },
    },
}


def second(saved: str, image: str) -> Object:
    """What an operator makes of the saved DaemonSet of the first REST server."""
    made: Object = yaml.safe_load(saved)
    del made["status"], made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    made["metadata"]["name"] = "rest-server-pairun"
    spec = made["spec"]
    for labels in (spec["selector"]["matchLabels"], spec["template"]["metadata"]["labels"]):
        labels["app"] = "rest-server-pairun"
    spec["template"]["spec"]["containers"][0]["env"] = [
        {"name": "LAUNCHER_RUNTIME_IMAGE", "value": image}
    ]
    return made


def test_the_second_rest_server(node: Node, debian: str, runtime_image: str) -> None:
    """The copy starts beside the first one with the new image, and goes back to the old one."""
    first = copy.deepcopy(REST_SERVER)
    first["spec"]["template"]["spec"]["containers"][0]["image"] = debian
    node.apply(first)
    saved = node.kubectl("get", "daemonset", "rest-server-ds", "-o", "yaml")
    node.apply(second(saved, runtime_image))
    for name in ("rest-server-ds", "rest-server-pairun"):
        node.kubectl("rollout", "status", f"daemonset/{name}", "--timeout=60s")
    setting = "LAUNCHER_RUNTIME_IMAGE=old"
    node.kubectl("set", "env", "daemonset/rest-server-pairun", setting)
    node.kubectl("rollout", "status", "daemonset/rest-server-pairun", "--timeout=60s")
    pods = node.kubectl("get", "pods", "-l", "app=rest-server-pairun", "-o", "yaml")
    assert "value: old" in pods
    node.kubectl("delete", "daemonset", "rest-server-ds", "rest-server-pairun")


@pytest.mark.usefixtures("controller", "applied")
def test_a_queue_moves_and_goes_back(
    node: Node, debian: str, runtime_image: str, tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Old jobs keep their image, saved Frameworks pass the review, new jobs use pairun."""
    new = Jobs(node, debian, runtime_image)
    # Before: the old image prepares nothing, so its job stays what the old runtime made of it.
    with monkeypatch.context() as patch:
        patch.setattr(test_frameworks, "NAME", OLD)
        attrs.evolve(new, runtime_image=debian).submit("true", "true", workers=1)
        new.end()
    saved = tmp_path / f"{OLD}.yaml"
    saved.write_text(node.kubectl("get", "framework", OLD, "-o", "yaml"))
    review = [sys.executable, "-m", "pairun", "--dry-run", str(saved)]
    done = subprocess.run(review, cwd=ROOT, env=node.env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    allowed = node.kubectl(
        "auth", "can-i", "list", "pods", f"--as=system:serviceaccount:{node.namespace}:{ACCOUNT}"
    )
    assert allowed.strip() == "yes"
    # The day.
    new.submit("exec sleep 1000", FAILS)
    status = new.end()
    assert status["attemptStatus"]["completionStatus"]["code"] == 221, node.story()
    pods = pods_of(status)
    log = (new.logs("worker", pods["worker", 2]) / "init.log").read_text()
    assert "init phase: success" in log
    assert "runtime_env.sh has:\nexport PAI_" in log
    # Back: each job keeps the image that its Framework has.
    assert images(node, OLD) == {debian}
    assert images(node, test_frameworks.NAME) == {runtime_image}
    node.kubectl("delete", "role,rolebinding", "pairun-init")
