"""Every setting of a Pod with every engine: where its value comes out, and that Kubernetes knows it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from pairun.engines.manifest.choices import ENGINES, Engine
from pairun.engines.manifest.objects import make_objects
from pairun.errors import PairunError, Place, Problems, Source
from pairun.kube.owners import Object
from pairun.playbook.document.checking import PLAYBOOK
from pairun.playbook.document.reading import node_of
from pairun.playbook.drafts import merged
from pairun.playbook.podfragment import by_name, listed
from pairun.playbook.podkeys import FIELDS, moved_keys
from tests.conftest import SHARED
from tests.engines.test_manifest import NOWHERE, ONE, TEXT, app_fields, job_of, options
from tests.engines.test_manifest_openapi import strict

CRD = SHARED / "kubernetes" / "jobset-crd.yaml"
APP, INIT = "spec.containers.0", "spec.initContainers.0"
SPREAD_OUT = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
    ]
}
GPU_TAINT = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
ZONES = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
DATA = {"name": "data", "persistentVolumeClaim": {"claimName": "imagenet"}}
MOUNT = {"name": "data", "mountPath": "/data", "readOnly": True}
OLD: dict[str, dict[str, Any]] = {
    "scheduler_name": {"scheduler_name": "volcano"},
    "labels": {"labels": {"team": "vision"}},
    "annotations": {"annotations": {"sidecar": "no"}},
    "priority_class": {"priority_class": "high"},
    "node_selector": {"node_selector": {"gpu": "a100"}},
    "affinity": {"affinity": {"podAntiAffinity": SPREAD_OUT}},
    "tolerations": {"tolerations": [GPU_TAINT]},
    "topology_spread": {"topology_spread": [ZONES]},
    "runtime_class": {"runtime_class": "nvidia"},
    "host_network": {"host_network": True},
    "host_ipc": {"host_ipc": True},
    "shm": {"shm": "16Gi"},
    "security.run_as_user": {"security": {"run_as_user": 1000}},
    "security.run_as_group": {"security": {"run_as_group": 1000}},
    "security.fs_group": {"security": {"fs_group": 1000}},
    "security.run_as_non_root": {"security": {"run_as_non_root": True}},
    "security.seccomp": {"security": {"seccomp": "RuntimeDefault"}},
    "security.seccomp of a file": {"security": {"seccomp": "localhost/a.json"}},
    "security.apparmor": {"security": {"apparmor": "RuntimeDefault"}},
    "security.apparmor of a node": {"security": {"apparmor": "localhost/strict"}},
    "security.capabilities.add": {"security": {"capabilities": {"add": ["IPC_LOCK"]}}},
    "security.capabilities.drop": {"security": {"capabilities": {"drop": ["NET_RAW"]}}},
    "security.privileged": {"security": {"privileged": True}},
    "security.allow_privilege_escalation": {"security": {"allow_privilege_escalation": False}},
    "security.read_only_root": {"security": {"read_only_root": True}},
    "resources.requests": {"resources": {"requests": {"cpu": "500m", "memory": "64Mi"}}},
    "resources.limits": {"resources": {"limits": {"rdma/hca": 1, "ephemeral-storage": "20Gi"}}},
    "init_resources.requests": {"init_resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}},
    "init_resources.limits": {"init_resources": {"limits": {"cpu": 1, "memory": "1Gi"}}},
    "image_pull_policy": {"image_pull_policy": "IfNotPresent"},
    "volumes": {"volumes": [DATA]},
    "volumes.hostPath": {"volumes": [{"name": "data", "hostPath": {"path": "/data"}}]},
    "mounts": {"volumes": [DATA], "mounts": [MOUNT]},
    "active_deadline": {"active_deadline": "12h"},
    "ttl_after_finished": {"ttl_after_finished": "24h"},
    "suspend": {"suspend": True},
    "queue": {"queue": "research"},
    "pod_group": {"pod_group": {"system": "volcano"}},
}
"""Each setting of pairun 0.3, as its documentation had it."""
IN_POD: dict[str, tuple[str, Any]] = {
    "scheduler_name": ("spec.schedulerName", "volcano"),
    "labels": ("metadata.labels.team", "vision"),
    "annotations": ("metadata.annotations.sidecar", "no"),
    "priority_class": ("spec.priorityClassName", "high"),
    "node_selector": ("spec.nodeSelector", {"gpu": "a100"}),
    "affinity": ("spec.affinity", {"podAntiAffinity": SPREAD_OUT}),
    "tolerations": ("spec.tolerations", [GPU_TAINT]),
    "topology_spread": ("spec.topologySpreadConstraints.0.topologyKey", "zone"),
    "runtime_class": ("spec.runtimeClassName", "nvidia"),
    "host_network": ("spec.hostNetwork", True),
    "host_ipc": ("spec.hostIPC", True),
    "shm": ("spec.volumes.0.emptyDir.sizeLimit", "16Gi"),
    "security.run_as_user": (f"{APP}.securityContext.runAsUser", 1000),
    "security.run_as_group": (f"{APP}.securityContext.runAsGroup", 1000),
    "security.fs_group": ("spec.securityContext.fsGroup", 1000),
    "security.run_as_non_root": (f"{APP}.securityContext.runAsNonRoot", True),
    "security.seccomp": ("spec.securityContext.seccompProfile", {"type": "RuntimeDefault"}),
    "security.seccomp of a file": (
        "spec.securityContext.seccompProfile",
        {"type": "Localhost", "localhostProfile": "a.json"},
    ),
    "security.apparmor": (f"{APP}.securityContext.appArmorProfile", {"type": "RuntimeDefault"}),
    "security.apparmor of a node": (
        f"{APP}.securityContext.appArmorProfile",
        {"type": "Localhost", "localhostProfile": "strict"},
    ),
    "security.capabilities.add": (f"{APP}.securityContext.capabilities.add", ["IPC_LOCK"]),
    "security.capabilities.drop": (f"{APP}.securityContext.capabilities.drop", ["NET_RAW"]),
    "security.privileged": (f"{APP}.securityContext.privileged", True),
    "security.allow_privilege_escalation": (
        f"{APP}.securityContext.allowPrivilegeEscalation",
        False,
    ),
    "security.read_only_root": (f"{APP}.securityContext.readOnlyRootFilesystem", True),
    "resources.requests": (f"{APP}.resources.requests", {"cpu": "500m", "memory": "64Mi"}),
    "resources.limits": (f"{APP}.resources.limits.ephemeral-storage", "20Gi"),
    "init_resources.requests": (f"{INIT}.resources.requests", {"cpu": "100m", "memory": "128Mi"}),
    "init_resources.limits": (f"{INIT}.resources.limits", {"cpu": "1", "memory": "1Gi"}),
    "image_pull_policy": (f"{INIT}.imagePullPolicy", "IfNotPresent"),
    "volumes": ("spec.volumes.-1", DATA),
    "volumes.hostPath": ("spec.volumes.-1.hostPath.path", "/data"),
    "mounts": (f"{APP}.volumeMounts.-1", MOUNT),
}
"""Where a setting comes out in a Pod of every engine, and the value there."""
IN_WORKLOAD: dict[str, dict[Engine, tuple[str, Any] | str]] = {
    "queue": {
        "framework": "PR780",
        "job": ("spec.suspend", True),
        "jobset": ("spec.suspend", True),
        "pod": ("metadata.labels.kueue", "research"),
    },
    "active_deadline": {
        "framework": ("spec.taskRoles.0.task.pod.spec.activeDeadlineSeconds", 43200),
        "job": ("spec.activeDeadlineSeconds", 43200),
        "jobset": ("spec.replicatedJobs.0.template.spec.activeDeadlineSeconds", 43200),
        "pod": ("spec.activeDeadlineSeconds", 43200),
    },
    "ttl_after_finished": {
        "framework": "PR780",
        "job": ("spec.ttlSecondsAfterFinished", 86400),
        "jobset": ("spec.ttlSecondsAfterFinished", 86400),
        "pod": "PR780",
    },
    "suspend": {
        "framework": ("spec.executionType", "Create"),
        "job": ("spec.suspend", True),
        "jobset": ("spec.suspend", True),
        "pod": "PR780",
    },
    "pod_group": dict.fromkeys(ENGINES, ("metadata.labels.pairun/job", None)),
}
"""Where a setting of the whole job comes out, or the error of an engine that has no such thing."""


def setting_of(key: str) -> dict[str, Any]:
    """A setting of 0.3 as a fragment: as the error for each of its keys says to write it."""
    old = node_of(OLD[key], Place(Source("old.yaml", "job", ""), 1, 1))
    rest, problems = moved_keys(old, PLAYBOOK)
    layers = [rest.plain()]
    for problem in problems:
        assert problem.hint is not None
        layers.append(yaml.safe_load(f"{{{problem.hint.removeprefix('write ')}}}"))
    named = [by_name(node_of(layer, NOWHERE), Problems()) for layer in layers]
    pod: dict[str, Any] = listed(functools.reduce(merged, named).plain())
    return pod


def at(value: Any, path: str) -> Any:
    """The value at a path of keys and numbers; a key may be the beginning of one with dots."""
    for step in path.split("."):
        if isinstance(value, list):
            value = value[int(step)]
        else:
            [key] = [k for k in value if k == step or (k.startswith(step) and "." in k)] or [step]
            value = value[key]
    return value


def pods_in(workload: Object) -> Iterator[Object]:
    """The Pods, or the templates of Pods, of a workload."""
    spec = workload["spec"]
    if workload["kind"] == "Pod":
        yield workload
    elif workload["kind"] == "Job":
        yield spec["template"]
    elif workload["kind"] == "JobSet":
        yield from (r["template"]["spec"]["template"] for r in spec["replicatedJobs"])
    else:
        yield from (r["task"]["pod"] for r in spec["taskRoles"])


def check_known(workload: Object) -> None:
    """Every field is known: to Kubernetes' own description, and to JobSet's definition."""
    if workload["kind"] in ("Job", "Pod"):
        strict(workload, f"V1{workload['kind']}", workload["kind"])
    for pod in pods_in(workload):
        if workload["kind"] != "Pod":
            strict(pod, "V1PodTemplateSpec", workload["kind"])
    if workload["kind"] == "JobSet" and CRD.exists():
        crd = next(iter(yaml.load(CRD.read_text(), yaml.CSafeLoader)["spec"]["versions"]))
        known_to(crd["schema"]["openAPIV3Schema"], workload, "JobSet")


def known_to(schema: dict[str, Any], value: Any, path: str) -> None:
    """A value has the fields of a definition's schema alone."""
    if isinstance(value, list):
        for each in value:
            known_to(schema["items"], each, path)
    elif isinstance(value, dict) and "properties" in schema:
        for key, each in value.items():
            assert key in schema["properties"], f"{path}.{key} is unknown"
            known_to(schema["properties"][key], each, f"{path}.{key}")


def test_the_table_is_tested_whole() -> None:
    """Each setting of 0.3 has a row."""
    assert {*IN_POD, *IN_WORKLOAD} == OLD.keys()
    assert {key.partition(" of ")[0] for key in OLD} >= {
        key for key in FIELDS if key != "resources"
    }


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("key", IN_POD)
def test_a_setting_of_a_pod(key: str, engine: Engine) -> None:
    """It is in every Pod of every role, and no field is one that Kubernetes does not know."""
    job = job_of(ONE if engine == "job" else TEXT)
    workloads = [o for o in make_objects(job, options(job, engine, setting_of(key))) if "spec" in o]
    for workload in workloads:
        check_known(workload)
        for pod in pods_in(workload):
            path, value = IN_POD[key]
            assert at(pod, path) == value


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("key", IN_WORKLOAD)
def test_a_setting_of_a_workload(key: str, engine: Engine) -> None:
    """It is where the engine's controller reads it, or an error names it."""
    job, expected = job_of(ONE), IN_WORKLOAD[key][engine]
    chosen = options(job, engine, setting_of(key))
    if isinstance(expected, str):
        with pytest.raises(PairunError, match=r"Kueue|has no") as refused:
            make_objects(job, chosen)
        assert {p.id for p in refused.value.problems} == {expected}
        return
    workload = make_objects(job, chosen)[-1]
    check_known(workload)
    path, value = expected
    assert at(workload, path) == value or value is None


def test_a_mount_point_is_free() -> None:
    """Pairun's own paths and those of storages are taken."""
    mounts = [{"name": "data", "mountPath": p} for p in ("/a", "/usr/local/pai/x", "/mnt/store")]
    volumes = {"volumes": [DATA], "containers": [{"name": "app", "volumeMounts": mounts}]}
    job, problems = job_of(f"{ONE}extras: {{storages: [{{name: store}}]}}\n"), Problems()
    with pytest.raises(PairunError):
        make_objects(job, options(job, "pod", {"spec": volumes}), problems)
    assert sorted(p.message for p in problems.errors) == [
        "a volume cannot be mounted at '/usr/local/pai/x'",
        "two volumes at one mount point: '/mnt/store'",
    ]


def test_a_fragment_adds_containers_and_variables() -> None:
    """The user's container stays the first one; Kubernetes expands variables of the fragment."""
    env = [{"name": "MODE", "value": "$(OTHER)"}]
    side = {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}
    pod = {
        "spec": {
            "containers": [{"name": "app", "env": env}],
            "initContainers": [side],
            "serviceAccountName": "trainer",
        }
    }
    job = job_of(ONE)
    [template] = pods_in(make_objects(job, options(job, "job", pod))[-1])
    spec = template["spec"]
    assert [c["name"] for c in spec["containers"]] == ["app"]
    assert [c["name"] for c in spec["initContainers"]] == ["init", "proxy"]
    assert spec["containers"][0]["env"][-1] == env[0]
    assert spec["serviceAccountName"] == "trainer"


def test_a_request_beyond_the_limit() -> None:
    """The API server refuses it, so it is an error with the setting's line."""
    job = job_of(ONE)
    pod = {
        **app_fields(resources={"requests": {"cpu": "1500m", "memory": "64Mi"}}),
        "init_resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}},
    }
    with pytest.raises(PairunError) as refused:
        make_objects(job, options(job, "job", pod))
    assert [p.message for p in refused.value.problems] == [
        "the role 'main' requests 1500m of cpu, and its limit is 1",
        "the role 'main' requests 2Gi of memory, and its limit is 1Gi",
    ]
    assert all(p.place for p in refused.value.problems)


@pytest.mark.parametrize(
    ("engine", "version", "field", "annotated"),
    [
        ("framework", (1, 29), False, True),
        ("framework", (1, 30), True, True),
        ("framework", None, True, True),
        ("job", (1, 29), False, True),
        ("job", (1, 30), True, False),
    ],
)
def test_apparmor_is_a_field_from_1_30_on(
    engine: Engine, version: tuple[int, int] | None, field: bool, annotated: bool
) -> None:
    """Before it is an annotation; a Framework keeps it, as its controller knows no such field."""
    job = job_of(ONE)
    pod = setting_of("security.apparmor of a node")
    workload = make_objects(job, options(job, engine, pod, version=version))[-1]
    [template] = pods_in(workload)
    profile = template["spec"]["containers"][0].get("securityContext", {}).get("appArmorProfile")
    assert (profile == {"type": "Localhost", "localhostProfile": "strict"}) is field
    key = "container.apparmor.security.beta.kubernetes.io/app"
    assert (template["metadata"]["annotations"].get(key) == "localhost/strict") is annotated


@pytest.mark.parametrize(
    ("pod", "least"),
    [
        ({"suspend": True}, (1, 22)),
        ({"ttl_after_finished": "1h"}, (1, 21)),
        (
            {
                "spec": {
                    "topologySpreadConstraints": [
                        {**ZONES, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}
                    ]
                }
            },
            (1, 27),
        ),
    ],
)
def test_a_setting_that_needs_a_newer_kubernetes(
    pod: dict[str, Any], least: tuple[int, int]
) -> None:
    """An older cluster's version is an error; the least one is none."""
    job = job_of(ONE)
    make_objects(job, options(job, "job", pod, version=least))
    with pytest.raises(PairunError, match="does not have"):
        make_objects(job, options(job, "job", pod, version=(least[0], least[1] - 1)))
