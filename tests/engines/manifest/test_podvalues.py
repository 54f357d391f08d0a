"""Every setting of a Pod with every engine: where its value comes out, and that Kubernetes knows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from pairun.engines.manifest.choices import ENGINES, Object
from pairun.engines.manifest.objects import make_objects
from pairun.errors import PairunError, Problems
from pairun.playbook.pod.table import POD_SETTINGS, Engine
from tests.conftest import SHARED
from tests.engines.test_manifest import ONE, TEXT, job_of, options
from tests.engines.test_manifest_openapi import strict

CRD = SHARED / "kubernetes" / "jobset-crd.yaml"
APP, INIT = "spec.containers.0", "spec.initContainers.0"
SKIPPED = {
    # they change how others are written, and have tests of their own
    "queue_system", "pod_security", "hived_skus", "volumes.hostPath",
}  # fmt: skip
IN_POD: dict[str, tuple[str, Any]] = {
    "scheduler_name": ("spec.schedulerName", "volcano"),
    "labels": ("metadata.labels.team", "vision"),
    "annotations": ("metadata.annotations.sidecar", "no"),
    "priority_class": ("spec.priorityClassName", "high"),
    "node_selector": ("spec.nodeSelector", {"gpu": "a100"}),
    "affinity": ("spec.affinity", POD_SETTINGS["affinity"].example),
    "tolerations": ("spec.tolerations", POD_SETTINGS["tolerations"].example),
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
    "security.apparmor": (f"{APP}.securityContext.appArmorProfile", {"type": "RuntimeDefault"}),
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
    "volumes": ("spec.volumes.-1", {"name": "data", "persistentVolumeClaim": {"claimName": "imagenet"}}),
    "mounts": (
        f"{APP}.volumeMounts.-1",
        {"name": "data", "mountPath": "/data", "readOnly": True},
    ),
}  # fmt: skip
"""Where a setting comes out in a Pod of every engine, and the value there."""
EXAMPLES = {"annotations": {"sidecar": "no"}}
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
    """``extras.pairun.pod`` with one setting: the example of the table."""
    value: Any = EXAMPLES.get(key, POD_SETTINGS[key].example)
    for name in reversed(key.split(".")):
        value = {name: value}
    pod: dict[str, Any] = value
    if key == "mounts":
        pod |= setting_of("volumes")
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
    """A new setting has a row here, too."""
    assert {*IN_POD, *IN_WORKLOAD, *SKIPPED} == POD_SETTINGS.keys()


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


def test_what_pairun_sets_itself_stays() -> None:
    """A label, a volume or a mount point of pairun's own is refused by name."""
    pod = {
        "labels": {"pairun/role": "other"},
        "annotations": {"rest-server/port-scheduling-spec": "{}"},
        "volumes": [
            {"name": "dshm", "emptyDir": {}},
            {"name": "two", "emptyDir": {}, "configMap": {"name": "x"}},
        ],
        "mounts": [
            {"name": "two", "mountPath": "/a"},
            {"name": "two", "mountPath": "/usr/local/pai/x"},
            {"name": "two", "mountPath": "/a/"},
        ],
    }
    job, problems = job_of(ONE), Problems()
    with pytest.raises(PairunError):
        make_objects(job, options(job, "pod", pod), problems)
    assert sorted(p.message for p in problems.errors) == [
        "'pairun/role' in 'labels' is reserved for pairun",
        "'rest-server/port-scheduling-spec' in 'annotations' is reserved for pairun",
        "the volume 'two' cannot be mounted at '/usr/local/pai/x'",
        "the volume 'two' must have one kind",
        "the volume name 'dshm' is reserved for pairun",
        "two volumes at one mount point: '/a'",
    ]


def test_a_request_beyond_the_limit() -> None:
    """The API server refuses it, so it is an error with the setting's line."""
    job = job_of(ONE)
    pod = {
        "resources": {"requests": {"cpu": "1500m", "memory": "64Mi"}},
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
    pod = {"security": {"apparmor": "localhost/strict"}}
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
                "topology_spread": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "zone",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "minDomains": 2,
                    }
                ]
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
