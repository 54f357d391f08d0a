"""Real servers: the laboratory beside the checkout starts them, once per test run."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.conftest import SHARED

Lab = Callable[..., str]
Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]

CRD = SHARED / "kubernetes" / "jobset-crd.yaml"


def _served(lab: Lab, up: tuple[str, ...], down: tuple[str, ...]) -> Iterator[Mapping[str, str]]:
    """What servers offer, as variables; they go down with the test run."""
    exported = lab(*up)
    lines = re.findall(r"^export ([A-Z0-9_]+)=(.*)$", exported, re.MULTILINE)
    yield {name: "".join(shlex.split(value)) for name, value in lines}
    lab(*down)


@pytest.fixture(scope="session")
def git_server(lab: Lab) -> Iterator[Mapping[str, str]]:
    """Git over HTTP: LAB_GIT_URL, LAB_GIT_AUTH_URL, LAB_GIT_LIMITED_URL, LAB_GIT_REPOS and so on."""
    yield from _served(lab, ("git", "up"), ("git", "down"))


@pytest.fixture(scope="session")
def registries(lab: Lab) -> Iterator[Mapping[str, str]]:
    """Registries: LAB_REGISTRY, LAB_REGISTRY_BASIC, _TLS, _TLS_CA, _TOKEN, _LIMITED, LAB_USER and so on."""
    yield from _served(lab, ("registry", "up", "all"), ("registry", "down"))


@pytest.fixture(scope="session")
def api_server(lab: Lab) -> Iterator[Mapping[str, str]]:
    """A Kubernetes API server: LAB_API_URL, LAB_API_CA, LAB_ADMIN_TOKEN, LAB_LIMITED_TOKEN and so on.

    One that somebody else has started, as for a whole node, stays up.
    """
    down = ("help",) if "apiserver" in lab("status") else ("api", "down")
    yield from _served(lab, ("api", "up"), down)


@pytest.fixture(scope="module")
def kubectl(lab: Callable[..., str]) -> Iterator[Kubectl]:
    """Runs kubectl in a namespace of the test's own, where the service account is."""
    exported = lab("api", "up")
    [config] = re.findall(r"^export KUBECONFIG=(.*)$", exported, re.MULTILINE)
    namespace = f"manifest-{uuid.uuid4().hex[:8]}"

    def run(*argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", f"--kubeconfig={config}", f"--namespace={namespace}", *argv],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    for what in (("namespace", namespace), ("serviceaccount", "runtime-account")):
        done = run("create", *what)
        assert done.returncode == 0, done.stderr
    yield run
    run("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(scope="module")
def jobsets(kubectl: Kubectl) -> None:
    """The API server serves JobSets, and describes their fields.

    kubectl refuses an unknown field by the description at /openapi/v2. The server adds a new kind
    to it about a second after the kind is established and served; until then kubectl checks nothing.
    """
    if not CRD.exists():
        pytest.skip(f"needs JobSet's definition at {CRD}")
    done = kubectl("apply", f"--filename={CRD}")
    assert done.returncode == 0, done.stderr
    for _ in range(120):
        described = '"kind":"JobSet"' in kubectl("get", "--raw", "/openapi/v2").stdout
        if described and kubectl("get", "jobsets").returncode == 0:
            return
        time.sleep(0.5)
    pytest.fail("the API server does not describe JobSets")
