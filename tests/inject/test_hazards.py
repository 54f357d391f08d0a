"""What goes wrong with pairun in a Pod is said before, with its place."""

from __future__ import annotations

import pytest
import yaml

from tests.inject.workloads import POD, injected, refusals

COLLISIONS = [
    ("  containers:", "  volumes: [{name: pairun}]\n  containers:"),
    ("  containers:", "  volumes: [{name: pairun-key}]\n  containers:"),
    ("    image", "    volumeMounts: [{name: v, mountPath: /usr/local/pai/}]\n    image"),
    ("    image", "    volumeMounts: [{name: v, mountPath: /usr/local/pai/logs}]\n    image"),
    (
        "    image",
        "    volumeMounts: [{name: v, mountPath: /usr/local, readOnly: true}]\n    image",
    ),
]


@pytest.mark.parametrize(("at", "instead"), COLLISIONS)
def test_names_and_paths_that_pairun_needs(at: str, instead: str) -> None:
    """A volume or a mount where pairun's own would be is an error with its place."""
    (said,) = refusals(POD.replace(at, instead, 1))
    assert said.startswith("error[PR825]")
    assert "manifest.yaml:8:" in said or "manifest.yaml:10:" in said


def test_mounts_beside_and_above_are_no_collision() -> None:
    """`dshm` at /dev/shm, and what is mounted above pairun's volume, may stay."""
    mounts = "[{name: dshm, mountPath: /dev/shm}, {name: v, mountPath: /usr/local}]"
    assert refusals(POD.replace("    image", f"    volumeMounts: {mounts}\n    image")) == []


WARNINGS = [
    ("  containers:", "  shareProcessNamespace: true\n  containers:", "not its process 1"),
    ("  containers:", "  hostPID: true\n  containers:", "not its process 1"),
    ("    image", "    lifecycle: {preStop: {exec: {command: [a]}}}\n    image", "preStop"),
]


@pytest.mark.parametrize(("at", "instead", "word"), WARNINGS)
def test_what_is_different_with_pairun(at: str, instead: str, word: str) -> None:
    """What still works, but differently, is a warning."""
    (said,) = refusals(POD.replace(at, instead, 1))
    assert said.startswith("warning[PR826]")
    assert word in said


JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec:
  podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [1]}}]}
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: a, command: [b]}]}}
"""


def test_rules_that_read_every_exit_code() -> None:
    """A rule without a container's name reads the init container's exit codes, too."""
    (said,) = refusals(JOB)
    assert "pairun-init's" in said
    assert refusals(JOB.replace("{operator", "{containerName: main, operator")) == []


RAY = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: r, annotations: {}}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: head, image: a, command: [b]}]}}}
"""


def test_kuberay_replaces_commands() -> None:
    """A Ray container is left out, unless its object says that the command stays."""
    said = "\n".join(refusals(RAY))
    assert "warning[PR827]" in said
    assert "error[PR820]" in said
    overwritten = RAY.replace("{}", '{ray.io/overwrite-container-cmd: "true"}')
    assert "/usr/local/pai/runtime" in injected(overwritten)


RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: t}
spec:
  template:
    spec:
      replicatedJobs:
      - name: node
        template: {spec: {template: {spec: {containers: [{name: node, image: a, command: [b]}]}}}}
"""


def test_a_trainjob_replaces_the_command_of_its_runtime() -> None:
    """With a command it is a warning; without one, the template is left out."""
    (said,) = refusals(RUNTIME)
    assert "trainer.command replaces" in said
    said = "\n".join(refusals(RUNTIME.replace(", command: [b]", "")))
    assert "the command comes from the TrainJob" in said


def test_a_trainjob_has_no_template() -> None:
    """A TrainJob is refused with where to look."""
    text = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: t}\nspec: {a: b}\n"
    assert "inject the runtime" in "\n".join(refusals(text))


@pytest.mark.parametrize(
    ("version", "command"),
    [("v2beta1", ["/usr/sbin/sshd", "-De"]), ("v1", ["sleep", "365d"])],
)
def test_an_mpi_worker_without_a_command(version: str, command: list[str]) -> None:
    """What its controller would run is written behind PID 1, with a warning."""
    text = f"""\
apiVersion: kubeflow.org/{version}
kind: MPIJob
metadata: {{name: m}}
spec: {{mpiReplicaSpecs: {{Worker: {{template: {{spec: {{containers: [{{name: w, image: a}}]}}}}}}}}}}
"""
    assert "ranks start under" in refusals(text)[0]
    spec = yaml.safe_load(injected(text))["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert spec["containers"][0]["command"] == ["/usr/local/pai/runtime", "--", *command]


TWO = POD + "  - {name: proxy, image: b, command: [c]}\n"


def test_several_containers() -> None:
    """Pairun asks which one is meant, unless it is named or only one has a device."""
    assert refusals(TWO)[0].startswith("error[PR823]")
    assert "--container main|proxy" in refusals(TWO)[0]
    assert injected(TWO, container="proxy").count("/usr/local/pai/runtime") == 1
    annotated = TWO.replace(
        "  name: train",
        "  annotations: {kubectl.kubernetes.io/default-container: proxy}\n  name: train",
    )
    assert yaml.safe_load(injected(annotated))["spec"]["containers"][1]["command"][0] != "c"
    device = TWO.replace("    image", "    resources: {limits: {nvidia.com/gpu: 1}}\n    image", 1)
    assert yaml.safe_load(injected(device))["spec"]["containers"][1]["command"] == ["c"]
    assert "has no container 'x'" in refusals(TWO, container="x")[0]
