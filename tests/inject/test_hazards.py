"""What goes wrong with pairun in a Pod is said before, with its place."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.inject.workloads import POD, injected, refusals, summary

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
    (said,) = refusals(RAY)
    assert said.startswith("error[PR827]")
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


def main_of(text: str, **asked: Any) -> str:
    """The container that an injection of the first Pod template chooses."""
    pod = yaml.safe_load(injected(text, **asked))
    return next(str(c["name"]) for c in pod["spec"]["containers"] if len(c["command"]) > 2)


def test_several_containers() -> None:
    """The named one; else that of the annotation, with a device, or the first."""
    text = TWO.replace("[\"sh\", -c, 'exit 3']", "[a]")
    assert main_of(text) == "main"
    assert summary(text) == ["injected    Pod train: container main"]
    assert main_of(text, container="proxy") == "proxy"
    assert main_of(text, container={"train": "proxy"}) == "proxy"
    annotated = text.replace(
        "  name: train",
        "  annotations: {kubectl.kubernetes.io/default-container: proxy}\n  name: train",
    )
    assert main_of(annotated) == "proxy"
    device = text.replace("image: b,", "image: b, resources: {limits: {nvidia.com/gpu: 1}},")
    assert main_of(device) == "proxy"
    assert main_of(text.replace("name: proxy", "name: worker")) == "worker"  # the role's name
    assert "has no container 'x'" in refusals(text, container="x")[0]


def test_no_container() -> None:
    """An empty list is an error with the Pod's place."""
    (said,) = refusals("apiVersion: v1\nkind: Pod\nspec: {containers: []}\n")
    assert said.startswith("error[PR823]: Pod has no container")


GROUP = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: g}
spec:
  leaderWorkerTemplate:
    size: 2
    leaderTemplate: {spec: {containers: [{name: a, image: a, command: [b]}, {name: jax, image: b}]}}
    workerTemplate: {spec: {containers: [{name: w, image: a}]}}
"""


def test_a_container_and_a_command_for_each_template() -> None:
    """Values for roles, objects and containers; a name that matches nothing is an error."""
    commands = {"jax": ["one"], "worker": ["two"]}
    made = yaml.safe_load(injected(GROUP, container="jax", entrypoint=commands))
    group = made["spec"]["leaderWorkerTemplate"]
    leader, worker = (group[f"{n}Template"]["spec"]["containers"] for n in ("leader", "worker"))
    assert [leader[1]["command"][2:], worker[0]["command"][2:]] == [["one"], ["two"]]
    assert leader[0]["command"] == ["b"]
    (said,) = refusals(GROUP, container={"leader": "jax", "x": "y"}, entrypoint=["c"])
    assert "--container x: nothing in the manifest has this name" in said


# --- kinds that cannot work ----------------------------------------------------------------------

CONTAINERS = "{containers: [{name: m, image: a, command: [b]}]}"


def workload(version: str, kind: str, spec: str) -> str:
    """An object of a kind."""
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\nspec: {spec}\n"


NEVER = [
    ("serving.kserve.io/v1alpha1", "ServingRuntime", CONTAINERS, "it has no initContainers"),
    ("serving.kserve.io/v1alpha1", "ClusterServingRuntime", CONTAINERS, "it has no initContainers"),
    ("serving.kserve.io/v1beta1", "InferenceService", f"{{predictor: {CONTAINERS}}}", "ServingRuntime"),
    ("serving.knative.dev/v1", "Service", f"{{template: {{spec: {CONTAINERS}}}}}", "feature flags"),
    ("argoproj.io/v1alpha1", "Workflow", "{templates: [{container: {image: a}}]}", "Argo starts"),
    ("orchestration.aibrix.ai/v1alpha1", "RayClusterFleet",
     f"{{template: {{spec: {{headGroupSpec: {{template: {{spec: {CONTAINERS}}}}}}}}}}}", "KubeRay"),
    ("ray.io/v1", "RayJob", "{clusterSelector: {a: b}, submitterPodTemplate: {spec: {containers: [{name: m, image: a}]}}}",
     "only if the submitter has no command"),
    ("v1", "Pod", CONTAINERS.replace("{c", "{os: {name: windows}, c"), "Windows"),
    ("v1", "Pod", CONTAINERS.replace("{c", "{nodeSelector: {kubernetes.io/os: windows}, c"), "Windows"),
    ("example.com/v1", "Own", f"{{template: {{spec: {CONTAINERS}}}}}", "--kind-template spec.template"),
]  # fmt: skip


@pytest.mark.parametrize(("version", "kind", "spec", "why"), NEVER)
def test_a_kind_that_cannot_work(version: str, kind: str, spec: str, why: str) -> None:
    """It is refused with the reason, and left alone with it beside others."""
    text = workload(version, kind, spec)
    (said,) = refusals(text)
    assert said.startswith("error[PR82")
    assert why in said
    line, other = summary(f"{text}---\n{POD}")
    assert line.startswith(f"left alone  {kind} x: ")
    assert other == "injected    Pod train: container main"
    assert removed_and_back(f"{text}---\n{POD}")


def removed_and_back(text: str) -> bool:
    """Whether an injection leaves the first document as it is."""
    return injected(text).startswith(text[: text.index("---")])


def test_a_kind_that_pairun_does_not_know() -> None:
    """The path of its template lets it in, and the summary says so; Ray's clusters stay refused."""
    text = workload("example.com/v1", "Own", f"{{template: {{spec: {CONTAINERS}}}}}")
    assert "pairun-init" in injected(text, kind_template=["spec.template"])
    (line,) = summary(text, kind_template=["spec.template"])
    assert "pairun does not know what its controller does" in line
    assert "nothing in the manifest" in "".join(refusals(text, kind_template=["spec.other"]))
    knative = text.replace("example.com", "serving.knative.dev").replace("Own", "Service")
    assert "pairun-init" in injected(knative, kind_template=["spec.template"])
    ray = workload("x.io/v1", "Fleet", f"{{headGroupSpec: {{template: {{spec: {CONTAINERS}}}}}}}")
    (said,) = refusals(ray)
    assert "KubeRay starts Ray" in said


# --- which objects ------------------------------------------------------------------------------

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
NO = POD.replace("  name:", "  annotations: {pairun.io/inject: 'false'}\n  name:")
YES = NO.replace("false", "true")
KSERVE = workload("serving.kserve.io/v1alpha1", "ServingRuntime", CONTAINERS).replace(
    "name: x", "annotations: {pairun.io/inject: 'false'}"
)
CHOICES = [
    (f"{MAP}---\n{POD}", {}, [False, True]),
    (f"{NO}---\n{POD}", {}, [False, True]),
    (f"{YES}---\n{POD}", {"only": ["annotated"]}, [True, False]),
    (f"{POD}---\n{POD.replace('train', 'other')}", {"only": ["Pod/other"]}, [False, True]),
    (
        f"{YES}---\n{POD}---\n{POD.replace('train', 'other')}",
        {"only": ["annotated", "Pod/other"]},
        [True, False, True],
    ),
    (f"{MAP}---\n{NO}", {}, [False, False]),
    (KSERVE, {}, [False]),
    (POD, {"only": ["annotated"]}, [False]),
]


@pytest.mark.parametrize(("text", "asked", "expected"), CHOICES)
def test_the_chosen_objects(text: str, asked: dict[str, Any], expected: list[bool]) -> None:
    """Others stay as they are; each object has a line."""
    made = injected(text, **asked).split("---\n")
    assert ["pairun-init" in document for document in made] == expected
    assert [line.startswith("injected") for line in summary(text, **asked)] == expected


def test_a_name_that_no_object_has() -> None:
    """--only of a missing object is an error."""
    assert "--only Pod/none" in "".join(refusals(POD, only=["Pod/none"]))


def test_the_annotation_of_a_template() -> None:
    """It counts before the object's."""
    text = GROUP.replace("command: [b]", "").replace(
        "workerTemplate: {",
        "workerTemplate: {metadata: {annotations: {pairun.io/inject: 'false'}}, ",
    )
    (line,) = summary(text, entrypoint=["c"])
    assert "left alone: LeaderWorkerSet g: spec.leaderWorkerTemplate.workerTemplate" in line
    assert injected(text, entrypoint=["c"]).count("pairun-init") == 1
