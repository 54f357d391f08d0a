"""Manifests against a real API server: it takes them as they are, and would refuse an unknown field."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.real.conftest import Kubectl

ROOT = Path(__file__).parents[2]
CHECK = ("--dry-run=server", "--validate=true")


def manifest(job: str, engine: str, *more: str) -> str:
    """The YAML of one of the examples."""
    argv = ["manifest", str(ROOT / "examples" / job), "--engine", engine, *more]
    done = subprocess.run(
        [sys.executable, "-m", "pairun", *argv, "--image", "registry.example/pairun:1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


OLD = ("--kubernetes-version", "1.20")
UID = "--set=spec.containers.app.securityContext.runAsUser=1000"
CASES = [
    ("hello.yaml", "framework", OLD),
    ("two-roles.yaml", "framework", OLD),
    ("hello.yaml", "job", OLD),
    ("hello.yaml", "pod", OLD),
    ("two-roles.yaml", "pod", (*OLD, UID, "--set=spec.hostNetwork=true", "--log-host-path=/l")),
]


@pytest.mark.parametrize(("job", "engine", "more"), CASES)
def test_the_api_server_takes_a_manifest(
    kubectl: Kubectl, job: str, engine: str, more: tuple[str, ...]
) -> None:
    """Checked strictly first; then it is really stored, found by its labels and deleted."""
    text = manifest(job, engine, *more)
    done = kubectl("apply", *CHECK, "--filename=-", stdin=text)
    assert done.returncode == 0, done.stderr
    done = kubectl("apply", "--validate=true", "--filename=-", stdin=text)
    try:
        assert done.returncode == 0, done.stderr
        wanted = [d for d in yaml.safe_load_all(text) if d]
        name = wanted[0]["metadata"]["labels"]["pairun/job"]
        kinds = ",".join(sorted({d["kind"].lower() for d in wanted}))
        found = kubectl("get", kinds, f"--selector=pairun/job={name}", "--output=json")
        stored = {(i["kind"], i["metadata"]["name"]): i for i in json.loads(found.stdout)["items"]}
        for each in wanted:
            kept = stored[each["kind"], each["metadata"]["name"]]
            holds(kept, each, each["kind"])
    finally:
        delete = ("delete", "--wait=false", "--ignore-not-found", "--filename=-")
        assert kubectl(*delete, stdin=text).returncode == 0


def holds(kept: Any, sent: Any, at: str) -> None:
    """Everything that was sent is there; the server adds defaults and drops nothing."""
    if isinstance(sent, dict):
        for key, value in sent.items():
            # an empty text is none to the API server
            assert key in kept or not value, f"{at}.{key} was dropped"
            holds(kept.get(key), value, f"{at}.{key}")
    elif isinstance(sent, list) and sent and isinstance(sent[0], dict):
        for i, (k, s) in enumerate(zip(kept, sent, strict=False)):
            holds(k, s, f"{at}[{i}]")
        assert len(kept) >= len(sent), at
    else:
        assert (kept or "") == (sent or ""), at


@pytest.mark.parametrize("job", ["hello.yaml", "two-roles.yaml"])
def test_the_pods_that_frameworkcontroller_makes(kubectl: Kubectl, job: str) -> None:
    """The Pod templates in a Framework, which its definition does not describe, are valid Pods."""
    framework = list(yaml.safe_load_all(manifest(job, "framework", *OLD)))[-1]
    for role in framework["spec"]["taskRoles"]:
        pod = role["task"]["pod"]
        pod["metadata"]["name"] = f"{framework['metadata']['name']}-{role['name']}-0"
        whole = {"apiVersion": "v1", "kind": "Pod", **pod}
        done = kubectl("apply", *CHECK, "--filename=-", stdin=json.dumps(whole))
        assert done.returncode == 0, done.stderr


@pytest.mark.shared
@pytest.mark.usefixtures("jobsets")
@pytest.mark.parametrize("job", ["hello.yaml", "two-roles.yaml"])
def test_a_jobset_is_what_its_definition_says(kubectl: Kubectl, job: str) -> None:
    """JobSet's own definition knows every field."""
    done = kubectl("apply", *CHECK, "--filename=-", stdin=manifest(job, "jobset"))
    assert done.returncode == 0, done.stderr


@pytest.mark.shared
@pytest.mark.usefixtures("jobsets")
@pytest.mark.parametrize(
    ("engine", "field"),
    [
        ("pod", "restartPolicy"),
        ("pod", "serviceAccountToken"),
        ("job", "completions"),
        ("jobset", "maxRestarts"),
        ("jobset", "podFailurePolicy"),
        ("jobset", "subPath"),
    ],
)
def test_an_unknown_field_is_refused(kubectl: Kubectl, engine: str, field: str) -> None:
    """The check itself sees a field that does not exist."""
    more = ("--log-host-path=/logs", *(OLD if engine != "jobset" else ()))
    text = manifest("hello.yaml", engine, *more)
    assert f"{field}:" in text
    wrong = text.replace(f"{field}:", f"{field}Unknown:", 1)
    done = kubectl("apply", *CHECK, "--filename=-", stdin=wrong)
    assert done.returncode != 0
    assert f"{field}Unknown" in done.stderr


def test_the_plain_pod_of_the_examples(kubectl: Kubectl) -> None:
    """One `kubectl apply` takes all of it."""
    file = f"--filename={ROOT / 'examples' / 'plain-pod.yaml'}"
    done = kubectl("apply", *CHECK, file)
    assert done.returncode == 0, done.stderr
