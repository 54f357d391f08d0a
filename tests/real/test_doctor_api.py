"""``pairun doctor`` against a real API server and a real registry."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from pairun.engines.doctor.examining import Examination, examine
from pairun.engines.doctor.finding import DoctorFinding
from pairun.engines.kubernetes.cluster import Cluster
from pairun.engines.kubernetes.kubeconfig import Access, connect
from pairun.openpai.podconfig import EXIT_SPEC
from pairun.secrets.vault import Vault

PROJECT = Path(__file__).parents[2]
FRAMEWORKS = "frameworkcontroller.microsoft.com"


@pytest.fixture(scope="module")
def api(lab: Callable[..., str]) -> Mapping[str, str]:
    """A real API server; it is left running, for others use it too."""
    lines = re.findall(r"^export ([A-Z0-9_]+)=(.*)$", lab("api", "up"), re.MULTILINE)
    return {name: "".join(shlex.split(value)) for name, value in lines}


class Place:
    """A namespace of a test's own."""

    def __init__(self, api: Mapping[str, str], name: str) -> None:
        self.api = api
        self.name = name
        self.cluster: Cluster = connect(Access(api["KUBECONFIG"], None, name), Vault())

    def doctor(
        self, *more: str, kubeconfig: str | Path = "", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        argv = [sys.executable, "-m", "pairun", "doctor", "-n", self.name, *more]
        argv += ["--kubeconfig", str(kubeconfig or self.api["KUBECONFIG"])]
        inherited = {n: v for n, v in os.environ.items() if n != "PAIRUN_IMAGE"}
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=120, env={**inherited, **(env or {})}
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def make(self, version: str, plural: str, **body: Any) -> None:
        """Make an object in the namespace."""
        self.cluster.create(self.cluster.path(version, plural), body)

    def apply(self, folder: str) -> None:
        """Make the accounts, roles and bindings of a folder of deploy/."""
        for path in sorted((PROJECT / "deploy" / folder).glob("*.yaml")):
            for document in yaml.safe_load_all(path.read_text()):
                if document["kind"] != "Kustomization":
                    for subject in document.get("subjects", ()):
                        subject["namespace"] = self.name
                    self.make(document["apiVersion"], f"{document['kind'].lower()}s", **document)

    def versions(self) -> list[tuple[str, str, str]]:
        """Every object of the namespace that a command could have changed."""
        paths = [("v1", p) for p in ("pods", "secrets", "configmaps", "serviceaccounts")]
        paths += [(f"{FRAMEWORKS}/v1", "frameworks")]
        return [
            (plural, o["metadata"]["name"], o["metadata"]["resourceVersion"])
            for version, plural in paths
            for o in self.cluster.objects(self.cluster.path(version, plural), "")
        ]


@pytest.fixture
def place(api: Mapping[str, str]) -> Iterator[Place]:
    """An empty namespace."""
    place = Place(api, f"doctor-{time.time_ns():x}")
    place.cluster.create("/api/v1/namespaces", {"metadata": {"name": place.name}})
    yield place
    path = f"/api/v1/namespaces/{place.name}"
    place.cluster.delete(path, place.cluster.get(path)["metadata"]["uid"])


def lines(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Subject to level of the lines that were printed."""
    rows = [line.split(None, 1) for line in done.stdout.splitlines()]
    return {text.split(": ")[0]: level for level, text in rows}


def test_a_namespace_that_is_ready(place: Place) -> None:
    """With what deploy/ has, nothing is a failure, and nothing is changed."""
    place.apply("base")
    place.apply("frameworks")
    spec = (PROJECT / "deploy/exit-spec/runtime-exit-spec.yaml").read_text()
    place.make(
        "v1", "configmaps",
        metadata={"name": "runtime-exit-spec-configuration"}, data={EXIT_SPEC: spec},
    )  # fmt: skip
    before = place.versions()
    done = place.doctor()
    assert done.returncode == 0, done.stdout
    levels = lines(done)
    assert "failure" not in levels.values()
    for subject in (
        f"API server {place.cluster.server}",
        "clock",
        "rights of runtime-account",
        "account runtime-account",
        "exit spec, ConfigMap runtime-exit-spec-configuration",
        "ports",
    ):
        assert levels[subject] == "ok", done.stdout
    assert "rights of runtime-account: pods, for the barrier" in done.stdout
    assert place.versions() == before


def test_an_account_without_rights(place: Place) -> None:
    """The verbs that are missing are named, for the person and for the account."""
    place.make("v1", "serviceaccounts", metadata={"name": "blob-access-pod-sa"})
    done = place.doctor("--account", "blob-access-pod-sa")
    assert done.returncode == 1
    assert (
        "failure  rights of blob-access-pod-sa: pods, for the barrier, and how Pods find each "
        f"other: may not get, list, watch in namespace {place.name} · apply deploy/base"
    ) in done.stdout
    limited = place.doctor(kubeconfig=place.api["LAB_LIMITED_KUBECONFIG"])
    assert limited.returncode == 1
    assert "failure  rights of you: --engine job: may not create/delete/get/patch configmaps, " in (
        limited.stdout
    )
    # What it may not even ask is unknown.
    assert "warning  rights of runtime-account: pods" in limited.stdout
    assert "run `pairun doctor` in a Pod of this account" in limited.stdout


def test_in_a_pod_the_account_asks_for_itself(place: Place) -> None:
    """There the rights of a person who submits are not looked at."""
    cluster = connect(Access(place.api["LAB_LIMITED_KUBECONFIG"], None, place.name), Vault())
    what = Examination(account="runtime-account", in_pod=True, images=(), env={}, now=time.time)
    findings = list(examine(cluster, what))
    rights = [f for f in findings if f.subject.startswith("rights of")]
    assert [(f.level, f.message.split(" in ")[0]) for f in rights] == [
        ("failure", "may not get, list, watch"),
        ("failure", "may not get"),
    ]


def test_an_account_that_does_not_exist(place: Place) -> None:
    """No Pod of a job would start."""
    done = place.doctor()
    assert "failure  account runtime-account: missing in namespace" in done.stdout


def test_a_pull_secret_that_does_not_exist(place: Place) -> None:
    """Private images could not be pulled."""
    place.make(
        "v1", "serviceaccounts",
        metadata={"name": "runtime-account"}, imagePullSecrets=[{"name": "absent"}],
    )  # fmt: skip
    done = place.doctor()
    assert "failure  pull secret absent of runtime-account: missing" in done.stdout


@pytest.mark.parametrize(
    ("data", "level", "says"),
    [
        ({"other": "x"}, "warning", f"has no key {EXIT_SPEC}"),
        ({EXIT_SPEC: "- {containerExitCode: 900, patterns: []}"}, "warning", "900"),
        (
            {
                EXIT_SPEC: "- {containerExitCode: 1, containerExitCode: 2}\n- {containerExitCode: 2, patterns: [{exitCode: 2}]}"
            },
            "warning",
            "line 1: the key",
        ),
        ({EXIT_SPEC: "- [\n"}, "failure", "not YAML"),
    ],
)
def test_an_exit_spec_that_is_wrong(
    place: Place, data: dict[str, str], level: str, says: str
) -> None:
    """What init would refuse is said before any job meets it."""
    place.make(
        "v1", "configmaps", metadata={"name": "runtime-exit-spec-configuration"}, data=data
    )  # fmt: skip
    (line,) = [x for x in place.doctor().stdout.splitlines() if "exit spec" in x]
    assert line.startswith(level)
    assert says in line


@pytest.mark.parametrize(("ahead_s", "level"), [(0, "ok"), (20, "warning"), (-600, "failure")])
def test_a_clock_that_is_wrong(place: Place, ahead_s: int, level: str) -> None:
    """Measured against the date of the server's response."""
    what = Examination(
        account="a", in_pod=True, images=(), env={}, now=lambda: time.time() + ahead_s
    )  # fmt: skip
    (clock,) = [f for f in examine(place.cluster, what) if f.subject == "clock"]
    assert clock.level == level
    if ahead_s:
        assert ("behind" if ahead_s < 0 else "ahead of") in clock.message
        assert "NTP" in clock.do


def test_a_node_port_among_the_ports_of_jobs(place: Place) -> None:
    """A service that takes one is named by its port."""
    place.make(
        "v1", "services", metadata={"name": "web"},
        spec={"type": "NodePort", "selector": {"a": "b"}, "ports": [{"port": 80, "nodePort": 31234}]},
    )  # fmt: skip
    try:
        done = place.doctor()
    finally:
        # A node port is the whole cluster's, and a namespace takes its time to go.
        path = f"/api/v1/namespaces/{place.name}/services/web"
        place.cluster.delete(path, place.cluster.get(path)["metadata"]["uid"])
    assert "warning  ports: ports of jobs are 15000 to 39999; services use 31234" in done.stdout


def test_registries(place: Place, registries: Mapping[str, str], lab: Callable[..., str]) -> None:
    """An image that exists, one that does not, and a registry that is none."""
    lab("image", "busybox")
    here = registries["LAB_REGISTRY"]
    images = [f"{here}/lab/busybox:1", f"{here}/lab/absent:1", "127.0.0.1:9/lab/busybox:1"]
    done = place.doctor(*(x for image in images for x in ("--image", image)))
    levels = [line.split()[0] for line in done.stdout.splitlines() if "  image " in line]
    assert levels == ["ok", "failure", "failure"], done.stdout
    assert "the registry does not answer" in done.stdout
    default = place.doctor(env={"PAIRUN_IMAGE": images[1]})
    assert f"failure  image {images[1]}" in default.stdout


def test_data(place: Place) -> None:
    """One document, with the same findings."""
    done = place.doctor("--json")
    document = json.loads(done.stdout)
    assert (document["schema"], document["namespace"]) == (1, place.name)
    findings = [DoctorFinding(**f) for f in document["findings"]]
    assert findings[0].level == "ok"
    assert all(f.do for f in findings if f.level != "ok")


def _kubeconfig(place: Place, tmp: Path, **cluster: str) -> Path:
    """The administrator's kubeconfig with another server or token."""
    document = yaml.safe_load(Path(place.api["KUBECONFIG"]).read_text())
    document["clusters"][0]["cluster"] |= {k: v for k, v in cluster.items() if k != "token"}
    if "token" in cluster:
        document["users"][0]["user"] = {"token": cluster["token"]}
    (tmp / "kubeconfig").write_text(yaml.safe_dump(document))
    return tmp / "kubeconfig"


def test_a_server_that_is_not_there(place: Place, tmp_path: Path) -> None:
    """It is asked once; registries are asked all the same."""
    config = _kubeconfig(place, tmp_path, server="https://127.0.0.1:9")
    done = place.doctor("--image", "127.0.0.1:9/a/b:1", kubeconfig=config)
    assert done.returncode == 1
    first, second = done.stdout.splitlines()
    assert first.startswith("failure  API server https://127.0.0.1:9: ")
    assert "the connection is refused" in first
    assert second.startswith("failure  image 127.0.0.1:9/a/b:1")


def test_a_login_that_is_not_accepted(place: Place, tmp_path: Path) -> None:
    """The line says to log in again."""
    config = _kubeconfig(place, tmp_path, token="expired")
    (line,) = place.doctor(kubeconfig=config).stdout.splitlines()
    assert "does not accept this login · log in again" in line


def test_a_server_that_never_answers(place: Place, tmp_path: Path) -> None:
    """The whole has a limit."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"https://127.0.0.1:{server.getsockname()[1]}"
        config = _kubeconfig(place, tmp_path, server=address)
        done = place.doctor("--timeout", "1s", kubeconfig=config)
    assert done.returncode == 1
    assert "failure  time: not finished after 1 s" in done.stdout
