"""`pairun inject` as a KRM function: the list of kustomize in, the same list out."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml

from tests.podman import ROOT

LIST = """\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
functionConfig:
  apiVersion: pairun/v1
  kind: Inject
  metadata: {name: inject}
  spec:
    image: registry.example.com/pairun:1
    barrier: true
    env: [torchrun, jax]
    initResources: {cpu: 50m}
items:
- apiVersion: batch/v1
  kind: Job
  metadata: {name: train}   # as it was
  spec:
    completionMode: Indexed
    parallelism: 2
    template:
      spec:
        restartPolicy: Never
        containers:
        - {name: main, image: a, command: [b]}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: other}
"""


def function(text: str, code: int = 0) -> str:
    """What the function prints, or says where it fails."""
    done = subprocess.run(
        [ROOT / "deploy" / "inject" / "pairun-inject"], input=text, capture_output=True, text=True,
        env={"PATH": f"{ROOT / '.venv' / 'bin'}:{sys.exec_prefix}/bin:/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.mark.slow
def test_the_list_comes_back_with_pairun_in_it() -> None:
    """The options come from the configuration; what is made beside joins the items; twice is once."""
    made = function(LIST)
    items = yaml.safe_load(made)["items"]
    assert [i["kind"] for i in items] == [
        "Job", "ConfigMap", "ServiceAccount", "Role", "RoleBinding",
    ]  # fmt: skip
    init = items[0]["spec"]["template"]["spec"]["initContainers"][0]
    assert init["resources"]["limits"] == {"cpu": "50m"}
    assert {"name": "PAIRUN_GANG_ENVIRONMENT", "value": "torchrun,jax"} in init["env"]
    assert "# as it was" in made
    assert function(made) == made
    assert function(made.replace("barrier: true", "remove: true")) == LIST.replace(
        "barrier: true", "remove: true"
    )


def test_a_wrong_configuration() -> None:
    """An option of the wrong kind is an error with its place."""
    said = function(LIST.replace("barrier: true", "barrier: 3"), code=2)
    assert "'barrier' is true or false" in said
