"""The gang of each kind, and which barrier is refused."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from tests.inject.workloads import documents, injected, refusals, summary

CONTAINERS = "{containers: [{name: main, image: a, command: [b]}]}"


def workload(kind: str, version: str, spec: str) -> str:
    """A manifest; ``T`` in its spec is a Pod template."""
    spec = re.sub(r"\bT\b", f"{{spec: {CONTAINERS}}}", spec)
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: train}}\nspec: {spec}\n"


def gangs(text: str) -> list[dict[str, Any]]:
    """What the init containers of an injected manifest know of their gangs."""
    found: list[dict[str, Any]] = []

    def search(part: Any) -> None:
        if isinstance(part, dict):
            for init in part.get("initContainers") or ():
                found.extend(
                    json.loads(v["value"]) for v in init["env"] if v["name"] == "PAIRUN_GANG"
                )
            for child in part.values():
                search(child)
        elif isinstance(part, list):
            for child in part:
                search(child)

    search(documents(text))
    return found


SIZES = [
    ("Job", "batch/v1", "{completionMode: Indexed, completions: 2, parallelism: 4, template: T}",
     [{"worker": 2}]),
    ("Job", "batch/v1", "{completionMode: Indexed, parallelism: 3, template: T}", [{"worker": 3}]),
    ("CronJob", "batch/v1",
     "{jobTemplate: {spec: {completionMode: Indexed, parallelism: 2, template: T}}}", [{"worker": 2}]),
    ("JobSet", "jobset.x-k8s.io/v1alpha2",
     ("{replicatedJobs: [{name: driver, template: {spec: {template: T}}}, "
     "{name: work-ers, replicas: 2, template: {spec: {parallelism: 3, template: T}}}]}"),
     [{"driver": 1, "workers": 6}] * 2),
    ("PyTorchJob", "kubeflow.org/v1",
     "{pytorchReplicaSpecs: {Master: {template: T}, Worker: {replicas: 3, template: T}}}",
     [{"master": 1, "worker": 3}] * 2),
    ("MPIJob", "kubeflow.org/v2beta1",
     "{mpiReplicaSpecs: {Launcher: {template: T}, Worker: {replicas: 2, template: T}}}",
     [{"launcher": 1, "worker": 2}] * 2),
    ("Job", "batch.volcano.sh/v1alpha1",
     "{tasks: [{name: ps, replicas: 2, template: T}, {name: worker, replicas: 2, template: T}]}",
     [{"ps": 2, "worker": 2}] * 2),
    ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1",
     "{leaderWorkerTemplate: {size: 4, leaderTemplate: T, workerTemplate: T}}",
     [{"leader": 1, "worker": 3}] * 2),
    ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1",
     "{leaderWorkerTemplate: {size: 4, workerTemplate: T}}", [{"worker": 4}]),
    ("StatefulSet", "apps/v1",
     "{replicas: 3, podManagementPolicy: Parallel, selector: {matchLabels: {app: x}}, template: T}",
     [{"worker": 3}]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "version", "spec", "expected"), SIZES)
def test_the_gang_of_a_kind(
    kind: str, version: str, spec: str, expected: list[dict[str, int]]
) -> None:
    """Roles and sizes come from the kind's own fields."""
    made = gangs(injected(workload(kind, version, spec), barrier=True))
    assert [{r["name"]: r["instances"] for r in g["roles"]} for g in made] == expected


STAGES = [
    ("JobSet", "jobset.x-k8s.io/v1alpha2",
     ("{replicatedJobs: [{name: first, template: {spec: {template: T}}}, {name: w, replicas: 2, "
     "dependsOn: [{name: first, status: Ready}], template: {spec: {template: T}}}]}")),
    ("JobSet", "jobset.x-k8s.io/v1alpha2",
     ("{startupPolicy: {startupPolicyOrder: InOrder}, replicatedJobs: [{name: first, template: "
     "{spec: {template: T}}}, {name: w, replicas: 2, template: {spec: {template: T}}}]}")),
    ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1",
     "{startupPolicy: LeaderReady, leaderWorkerTemplate: {size: 3, leaderTemplate: T, workerTemplate: T}}"),
    ("MPIJob", "kubeflow.org/v2beta1",
     ("{launcherCreationPolicy: WaitForWorkersReady, mpiReplicaSpecs: {Launcher: {template: T}, "
     "Worker: {replicas: 2, template: T}}}")),
    ("Job", "batch.volcano.sh/v1alpha1",
     "{tasks: [{name: first, dependsOn: {name: [w]}, template: T}, {name: w, replicas: 2, template: T}]}"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "version", "spec"), STAGES)
def test_a_workload_that_starts_in_order(kind: str, version: str, spec: str) -> None:
    """Each stage is a gang of its own, and who starts alone waits for nobody."""
    text = workload(kind, version, spec)
    (gang,) = gangs(injected(text, barrier=True))
    assert [r["instances"] for r in gang["roles"]] == [2]
    (line,) = [line for line in summary(text, barrier=True) if "injected" in line]
    assert "starts alone" in line


REFUSED = [
    ("StatefulSet", "apps/v1", "{replicas: 3, template: T}", "podManagementPolicy: Parallel"),
    ("Job", "batch/v1", "{parallelism: 3, template: T}", "completionMode: Indexed"),
    ("Job", "batch/v1", "{completionMode: Indexed, parallelism: 2, completions: 4, template: T}",
     "not all of its Pods run at once"),
    ("PyTorchJob", "kubeflow.org/v1",
     "{elasticPolicy: {minReplicas: 1}, pytorchReplicaSpecs: {Worker: {replicas: 2, template: T}}}",
     "elasticPolicy"),
    ("Deployment", "apps/v1", "{replicas: 3, template: T}", "changes while it runs"),
    ("ClusterTrainingRuntime", "trainer.kubeflow.org/v1alpha1",
     "{template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: T}}}]}}}",
     "a TrainJob sets the number"),
    ("JobSet", "jobset.x-k8s.io/v1alpha2",
     ("{replicatedJobs: [{name: w, template: {spec: {completionMode: NonIndexed, parallelism: 2, "
     "template: T}}}]}"), "set completionMode: Indexed"),
    ("JobSet", "jobset.x-k8s.io/v1alpha2",
     ("{replicatedJobs: [{name: w, replicas: 2, template: {spec: {completions: 4, parallelism: 2, "
     "template: T}}}]}"), "not all of its Pods run at once"),
    ("Job", "batch/v1", "{completionMode: Indexed, parallelism: $N, template: T}",
     "parallelism is '$N', not a number"),
    ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1",
     "{leaderWorkerTemplate: {size: '${SIZE}', workerTemplate: T}}", "size is '${SIZE}', not a number"),
    ("PyTorchJob", "kubeflow.org/v1",
     "{elasticPolicy: {minReplicas: 1}, pytorchReplicaSpecs: {Worker: {replicas: 2, template: T}}}",
     "--gang N"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "version", "spec", "why"), REFUSED)
def test_a_barrier_that_cannot_be_right_is_refused(
    kind: str, version: str, spec: str, why: str
) -> None:
    """No barrier that would never pass, or whose gang nobody knows; the reason is named."""
    said = refusals(workload(kind, version, spec), barrier=True)
    assert any("error[PR824]" in r for r in said)
    assert any(why in r for r in said)


UNKNOWN = {"barrier": True, "kind_template": ["spec.template"]}


def test_an_unknown_kind_has_no_barrier_of_its_own() -> None:
    """Its number of Pods is unknown."""
    text = workload("Unknown", "example.com/v1", "{replicas: 3, template: T}")
    assert any("the number of Pods is unknown" in r for r in refusals(text, **UNKNOWN))


SINGLE = [
    workload("Pod", "v1", CONTAINERS),
    workload("Job", "batch/v1", "{template: T}"),
    workload("Job", "batch/v1", "{completions: 5, template: T}"),
    workload("StatefulSet", "apps/v1", "{selector: {matchLabels: {app: x}}, template: T}"),
    workload("PyTorchJob", "kubeflow.org/v1", "{pytorchReplicaSpecs: {Master: {template: T}}}"),
]


def test_a_template_without_pods() -> None:
    """It waits for none, and its siblings do not wait for it."""
    spec = "{tfReplicaSpecs: {PS: {template: T}, Chief: {template: T}, Worker: {replicas: 0, template: T}}}"
    made = gangs(injected(workload("TFJob", "kubeflow.org/v1", spec), barrier=True))
    assert [[r["name"] for r in gang["roles"]] for gang in made] == [["ps", "chief"]] * 2


@pytest.mark.parametrize("text", SINGLE)
def test_a_single_pod_starts_alone(text: str) -> None:
    """It has nothing to wait for, which is no error, and blocks no other object of the file."""
    (line,) = summary(text, barrier=True)
    assert "starts alone" in line
    assert gangs(injected(text, barrier=True)) == []
    assert len(gangs(injected(f"{text}---\n{INDEXED}", barrier=True))) == 1


def test_a_selector_that_no_pod_has() -> None:
    """The barrier would find no Pod: labels that differ from the template's are refused."""
    web = {"barrier": True, "gang": 3, "index_label": "example.com/rank"}
    for selector, why in (
        ({"app": "other"}, "its template has app=web"),
        ({"job": "web"}, "its template has no label job"),
    ):
        said = refusals(DEPLOYMENT, selector=selector, **web)
        assert any("error[PR824]" in r and why in r for r in said)
    assert gangs(injected(DEPLOYMENT, selector={"tier": "x"}, **web))


def test_a_gang_that_a_person_says() -> None:
    """For any kind, the size and the labels can be given."""
    text = workload("Unknown", "example.com/v1", "{replicas: 3, template: T}")
    (gang,) = gangs(injected(text, **UNKNOWN, gang=3, selector={"app": "x"}))
    assert gang["same"] == {"app": "PAIRUN_GANG_LABEL_0"}
    assert gang["roles"][0]["instances"] == 3


def test_the_number_in_a_label() -> None:
    """A gang that a person describes may have its Pods' numbers in a label."""
    text = workload("Unknown", "example.com/v1", "{replicas: 3, template: T}")
    made = injected(text, **UNKNOWN, gang=3, selector={"app": "x"}, index_label="example.com/rank")
    (gang,) = gangs(made)
    assert gang["roles"][0]["index"] == [{"key": "example.com/rank", "weight": 1}]
    variable = gang["index"]["example.com/rank"]
    init = documents(made)[0]["spec"]["template"]["spec"]["initContainers"][0]
    (source,) = [v["valueFrom"] for v in init["env"] if v["name"] == variable]
    assert source == {"fieldRef": {"fieldPath": "metadata.labels['example.com/rank']"}}


# --- rights and the key --------------------------------------------------------------------------

INDEXED = workload("Job", "batch/v1", "{completionMode: Indexed, parallelism: 2, template: T}")


def test_an_account_and_a_key_beside_the_workload() -> None:
    """Without an account of its own, the Pod gets one with a Role; no binding names 'default'."""
    text = INDEXED.replace("{containers", "{restartPolicy: Never, containers")
    job, account, role, binding, secret = documents(injected(text, barrier=True))
    spec = job["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == account["metadata"]["name"] == "train-pairun"
    assert account["automountServiceAccountToken"] is False
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    ]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "train-pairun"}]
    assert secret["metadata"]["name"] == "train-pairun-key"
    mounts = {m["mountPath"] for m in spec["containers"][0]["volumeMounts"]}
    assert mounts == {"/usr/local/pai", "/usr/local/pai/rendezvous"}  # no token of the API server


def test_the_account_of_the_pod() -> None:
    """A Pod's own account stays, and gets the right."""
    text = INDEXED.replace("{containers", "{serviceAccountName: mine, containers")
    job, _, binding, _ = documents(injected(text, barrier=True))
    assert job["spec"]["template"]["spec"]["serviceAccountName"] == "mine"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "mine"}]
    assert any("PR828" in r for r in refusals(text, barrier=True, service_account="other"))


def test_nothing_is_made_beside_what_is_named() -> None:
    """With an account, and without a key, the manifest has nothing more than the workload."""
    made = injected(INDEXED, barrier=True, service_account="reader", key_secret=None)
    (job,) = documents(made)
    assert job["spec"]["template"]["spec"]["serviceAccountName"] == "reader"
    assert "rendezvous" not in made


@pytest.mark.parametrize("ending", ["", "\n", "\n---\n"])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_removal_takes_what_is_beside(ending: str, as_json: bool) -> None:
    """Removing gives the same bytes, with whatever end the file has; injecting twice keeps the key."""
    from pairun.errors import Problems, Source
    from pairun.inject.injecting import uninject

    text = (json.dumps(yaml.safe_load(INDEXED), indent=2) if as_json else INDEXED.rstrip()) + ending
    if as_json and "---" in ending:
        return
    once = injected(text, barrier=True)
    assert injected(once, barrier=True) == once
    assert uninject(Source("x", "job", once), Problems()) == text
    if as_json:
        assert json.loads(once)["kind"] == "List"


def test_one_line_for_an_object() -> None:
    """The summary names containers, gang, account and token once, however many templates there are."""
    spec = "{leaderWorkerTemplate: {size: 4, leaderTemplate: T, workerTemplate: T}}"
    text = workload("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", spec)
    assert refusals(text, barrier=True) == []
    (line,) = summary(text, barrier=True)
    assert line == (
        "injected    LeaderWorkerSet train: leader in container main, worker in container main; "
        "barrier of 4 Pods; service account 'train-pairun' in place of 'default', without its rights "
        "and pull secrets; containers that restart in their Pod hold the barrier again, and get the "
        "token that lists Pods"
    )


def test_a_launcher_that_is_a_worker() -> None:
    """The workers' numbers begin after the launcher's."""
    spec = (
        "{runLauncherAsWorker: true, mpiReplicaSpecs: {Launcher: {template: T}, "
        "Worker: {replicas: 2, template: T}}}"
    )
    (gang, _) = gangs(injected(workload("MPIJob", "kubeflow.org/v2beta1", spec), barrier=True))
    assert [role["offset"] for role in gang["roles"]] == [0, 1]


def test_names_of_roles() -> None:
    """A role's name becomes that of a variable; two that become the same are refused."""
    spec = "{replicatedJobs: [{name: FIRST, template: {spec: {template: T}}}, {name: a-b, template: {spec: {template: T}}}]}"
    text = workload("JobSet", "jobset.x-k8s.io/v1alpha2", spec)
    made = gangs(injected(text.replace("FIRST", "0a"), barrier=True))
    assert [r["name"] for r in made[0]["roles"]] == ["role0a", "ab"]
    assert any("the same letters" in r for r in refusals(text.replace("FIRST", "ab"), barrier=True))


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, tier: x}}
    spec: {containers: [{name: main, image: a, command: [b]}]}
"""
RAY = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: ray, annotations: {ray.io/overwrite-container-cmd: "true"}}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: h, image: a, command: [b]}]}}}
  workerGroupSpecs:
  - groupName: gpu
    replicas: 3
    template: {spec: {containers: [{name: w, image: a, command: [b]}]}}
"""
OWN = """\
apiVersion: example.com/v1
kind: Trainer
metadata: {name: own}
spec:
  chief:
    template:
      metadata: {labels: {app: own, part: chief}}
      spec: {containers: [{name: main, image: a, command: [b]}]}
  workers:
    template:
      metadata: {labels: {app: own, part: worker}}
      spec: {containers: [{name: main, image: a, command: [b]}]}
"""


def test_the_labels_of_a_workload_are_the_default_selector() -> None:
    """Of `spec.selector`, of the kind, or those that all templates of an unknown kind share."""
    rank = "example.com/rank"
    (gang,) = gangs(injected(DEPLOYMENT, barrier=True, gang=3, index_label=rank))
    assert list(gang["same"]) == ["app"]
    assert gang["roles"][0]["index"] == [{"key": rank, "weight": 1}]
    for gang in gangs(injected(RAY, barrier=True, gang=4, index_label=rank)):
        assert list(gang["same"]) == ["ray.io/cluster"]
        assert gang["roles"][0]["instances"] == 4
    own = {"barrier": True, "kind_template": ["spec.chief.template", "spec.workers.template"]}
    for gang in gangs(injected(OWN, **own, gang=2, index_label=rank)):
        assert list(gang["same"]) == ["app"]
        assert gang["roles"][0]["labels"] == {"app": "own"}
    one = OWN[: OWN.index("  workers:")]
    (gang,) = gangs(injected(one, barrier=True, gang=2, kind_template=["spec.chief.template"]))
    assert (list(gang["same"]), gang["roles"][0]["index"][0]["key"]) == (
        ["app", "part"], "metadata.name",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (DEPLOYMENT, "--gang 3,KEY"),
        (RAY, "--gang 3,KEY"),
        (OWN, "--gang 3,KEY"),
        (OWN.replace("app: own, ", ""), "--gang 3,KEY=VALUE"),
    ],
)
def test_a_gang_whose_pods_cannot_be_told_apart(text: str, hint: str) -> None:
    """The error names the option to give."""
    paths = ["spec.chief.template", "spec.workers.template"] if "Trainer" in text else []
    said = refusals(text, barrier=True, gang=3, kind_template=paths)
    assert any("error[PR824]" in line and hint in line for line in said)


def test_a_stateful_set_of_a_size_that_a_person_says() -> None:
    """Its own selector and its Pods' names are enough."""
    text = DEPLOYMENT.replace("Deployment", "StatefulSet").replace(
        "replicas: 3", "podManagementPolicy: Parallel"
    )
    (gang,) = gangs(injected(text, barrier=True, gang=5))
    assert (list(gang["same"]), gang["roles"][0]["instances"]) == (["app"], 5)


SAID_BY_THE_KIND = [
    ("StatefulSet", "apps/v1",
     "{replicas: 3, podManagementPolicy: Parallel, selector: {matchLabels: {app: x}}, template: T}"),
    ("Job", "batch/v1", "{completionMode: Indexed, parallelism: 3, template: T}"),
    ("PyTorchJob", "kubeflow.org/v1", "{pytorchReplicaSpecs: {Worker: {replicas: 3, template: T}}}"),
    ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1",
     "{leaderWorkerTemplate: {size: 3, workerTemplate: T}}"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "version", "spec"), SAID_BY_THE_KIND)
def test_a_size_that_contradicts_the_manifest(kind: str, version: str, spec: str) -> None:
    """A gang of more Pods than the kind makes would wait for ever; the same number is accepted."""
    text = workload(kind, version, spec)
    said = refusals(text, barrier=True, gang=5)
    assert any("error[PR824]" in r and "3 Pods, but --gang is 5" in r for r in said)
    assert gangs(injected(text, barrier=True, gang=3))


def test_a_size_does_not_lift_the_order() -> None:
    """A StatefulSet that starts its Pods one by one never fills a gang of any size."""
    text = workload("StatefulSet", "apps/v1", "{selector: {matchLabels: {app: x}}, template: T}")
    said = refusals(text, barrier=True, gang=3)
    assert any("error[PR824]" in r and "podManagementPolicy: Parallel" in r for r in said)


def test_one_name_in_two_namespaces() -> None:
    """Each namespace gets an account, the rights and a key; a second injection keeps both keys."""
    one = INDEXED.replace("name: train", "name: train, namespace: a")
    for other in (INDEXED.replace("name: train", "name: train, namespace: b"), INDEXED):
        text = f"{one}---\n{other}"
        made = injected(text, barrier=True)
        beside = [o for o in documents(made) if o["kind"] != "Job"]
        of_namespace: dict[Any, list[str]] = {}
        for each in beside:
            of_namespace.setdefault(each["metadata"].get("namespace"), []).append(each["kind"])
        expected = ["ServiceAccount", "Role", "RoleBinding", "Secret"]
        assert list(of_namespace.values()) == [expected, expected]
        keys = [o["stringData"]["key"] for o in beside if o["kind"] == "Secret"]
        assert len(set(keys)) == 2
        assert injected(made, barrier=True) == made


def test_events_need_no_gang() -> None:
    """With --events, the account may create them, and both containers have its token."""
    pod, *beside = yaml.safe_load_all(injected(DEPLOYMENT, events=True))
    (role,) = (o for o in beside if o["kind"] == "Role")
    assert {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]} in role["rules"]
    spec = pod["spec"]["template"]["spec"]
    for container in (spec["initContainers"][0], spec["containers"][0]):
        assert "pairun-token" in [m["name"] for m in container["volumeMounts"]]
    assert not [o for o in beside if o["kind"] == "Secret"]
    assert "PAIRUN_GANG" not in str(spec)
