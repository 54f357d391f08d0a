"""What an operator applies, on a real API server."""

from __future__ import annotations

import json
import pathlib
import subprocess
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

DEPLOY = pathlib.Path(__file__).parents[2] / "deploy"


@pytest.fixture
def kubectl(api_server: Any) -> Iterator[Any]:
    """The client as the administrator, in a namespace of its own."""

    def run(*argv: str, stdin: str | None = None) -> str:
        command = ["kubectl", "--kubeconfig", api_server["KUBECONFIG"], *argv]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        assert done.returncode == 0 or done.stdout.strip() == "no", done.stderr
        return done.stdout

    # Without a controller nothing ends a namespace, so its name is never used again.
    run.namespace = f"pairun-deploy-{uuid.uuid4()}"  # type: ignore[attr-defined]
    run("create", "namespace", run.namespace)  # type: ignore[attr-defined]
    yield run
    run("delete", "namespace", run.namespace, "--wait=false")  # type: ignore[attr-defined]


@pytest.mark.parametrize("folder", ["base", "exit-spec", "frameworks"])
def test_the_account_may_do_what_it_must_and_no_more(
    kubectl: Any, tmp_path: pathlib.Path, folder: str
) -> None:
    """Applied to a namespace of one's own: Pods, with `frameworks` also Frameworks, no Secrets."""
    (tmp_path / "deploy").symlink_to(DEPLOY)
    namespace = kubectl.namespace
    overlay = {"namespace": namespace, "resources": [f"deploy/{folder}"]}
    (tmp_path / "kustomization.yaml").write_text(json.dumps(overlay))
    kubectl("apply", "-k", str(tmp_path))
    kubectl("apply", "-k", str(tmp_path))  # a second time changes nothing
    who = f"--as=system:serviceaccount:{namespace}:runtime-account"

    def may(verb: str, resource: str) -> bool:
        answer = kubectl("auth", "can-i", verb, resource, who, "-n", namespace)
        return bool(answer.strip() == "yes")

    assert [v for v in ("get", "list", "watch", "create", "delete") if may(v, "pods")] == [
        "get", "list", "watch",
    ]  # fmt: skip
    assert may("get", "frameworks.frameworkcontroller.microsoft.com") == (folder == "frameworks")
    assert not may("get", "secrets")
    found = kubectl(
        "get", "configmap", "runtime-exit-spec-configuration", "-n", namespace, "-o", "json"
    )
    files = set(json.loads(found)["data"])
    expected = {"init.yaml", "runtime.yaml", "policy.yaml"}
    assert files == expected | ({"runtime-exit-spec.yaml"} if folder == "exit-spec" else set())
