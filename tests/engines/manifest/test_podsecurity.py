"""The Pod Security Standards: manifests that a profile accepts, and jobs that ask for too much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pairun.engines.manifest.choices import ENGINES, Engine
from pairun.engines.manifest.objects import make_objects
from pairun.errors import PairunError
from pairun.job.jobfile import load_job
from pairun.kube.owners import Object
from tests.engines.manifest.test_podvalues import pods_in
from tests.engines.test_manifest import JOBS, ONE, TEXT, app_fields, job_of, options

PLAIN = TEXT.replace(", infiniband: true", "")
VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
    "projected", "secret",
}  # fmt: skip
CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def _absent_or(*values: object) -> Callable[[Any], bool]:
    return lambda value: value is None or value in values


RESTRICTED: list[tuple[str, str, Callable[[Any], bool]]] = [
    # of the profile baseline, which restricted includes
    ("HostProcess", "spec.securityContext.windowsOptions", _absent_or()),
    ("Host Namespaces", "spec.hostNetwork", _absent_or(False)),
    ("Host Namespaces", "spec.hostPID", _absent_or(False)),
    ("Host Namespaces", "spec.hostIPC", _absent_or(False)),
    ("Privileged Containers", "each.securityContext.privileged", _absent_or(False)),
    ("Host Ports", "each.ports", _absent_or()),
    ("SELinux", "spec.securityContext.seLinuxOptions", _absent_or()),
    ("SELinux", "each.securityContext.seLinuxOptions", _absent_or()),
    ("/proc Mount Type", "each.securityContext.procMount", _absent_or("Default")),
    ("Sysctls", "spec.securityContext.sysctls", _absent_or()),
    ("AppArmor", "each.securityContext.appArmorProfile.type", _absent_or("RuntimeDefault", "Localhost")),
    ("AppArmor", "metadata.apparmor", _absent_or("runtime/default")),
    # of restricted
    ("Volume Types", "spec.volumes", lambda v: all(set(each) - {"name"} <= VOLUMES for each in v)),
    ("Privilege Escalation", "each.securityContext.allowPrivilegeEscalation", lambda v: v is False),
    ("Running as Non-root", "spec.securityContext.runAsNonRoot", lambda v: v is True),
    ("Running as Non-root", "each.securityContext.runAsNonRoot", _absent_or(True)),
    ("Running as Non-root user", "spec.securityContext.runAsUser", lambda v: v != 0),
    ("Running as Non-root user", "each.securityContext.runAsUser", lambda v: v != 0),
    ("Seccomp", "spec.securityContext.seccompProfile.type", lambda v: v in ("RuntimeDefault", "Localhost")),
    ("Seccomp", "each.securityContext.seccompProfile.type", _absent_or("RuntimeDefault", "Localhost")),
    ("Capabilities", "each.securityContext.capabilities.drop", lambda v: v == ["ALL"]),
    ("Capabilities", "each.securityContext.capabilities.add", _absent_or([], ["NET_BIND_SERVICE"])),
]  # fmt: skip
"""The controls of https://kubernetes.io/docs/concepts/security/pod-security-standards/: name, field,
what is allowed; ``each`` is every container."""


def violations(pod: Object) -> list[str]:
    """The controls of the profile restricted that a Pod or a template violates."""
    annotations = pod["metadata"].get("annotations", {})
    apparmor = next((v for k, v in annotations.items() if "apparmor" in k), None)
    roots = {"spec": pod["spec"], "metadata": {"apparmor": apparmor}}
    found = []
    for name, field, allows in RESTRICTED:
        first, *path = field.split(".")
        containers = [c for kind in CONTAINERS for c in pod["spec"].get(kind, ())]
        for root in containers if first == "each" else [roots[first]]:
            value = root
            for step in path:
                value = (value or {}).get(step)
            if not allows(value):
                found.append(f"{name}: {field} = {value}")
    return found


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        *(
            pytest.param(ONE, engine, id=f"one role-{engine}")
            for engine in ("job", "jobset", "pod")
        ),
        # a Job has one role
        *(pytest.param(PLAIN, engine, id=f"two roles-{engine}") for engine in ("jobset", "pod")),
    ],
)
def test_the_profile_restricted_accepts_the_pods(text: str, engine: Engine) -> None:
    job = job_of(text)
    chosen = options(job, engine, {"pod_security": "restricted"})
    pods = [p for o in make_objects(job, chosen) if "spec" in o for p in pods_in(o)]
    assert pods
    assert [violations(pod) for pod in pods] == [[]] * len(pods)
    # init's user owns the volume, and the user's container is the same one
    for pod in pods:
        security = pod["spec"]["securityContext"]
        assert (security["runAsUser"], security["fsGroup"]) == (1000, 1000)
        init = {v["name"]: v.get("value") for v in pod["spec"]["initContainers"][0]["env"]}
        assert init["PAIRUN_APP_UID"] == "1000"


def test_a_framework_cannot_have_the_profile_restricted() -> None:
    """Its controller drops the seccomp profile, so the API server would refuse each of its Pods."""
    with pytest.raises(PairunError) as caught:
        make_objects(job_of(ONE), options(job_of(ONE), "framework", {"pod_security": "restricted"}))
    [problem] = caught.value.problems
    assert (problem.id, "seccomp" in problem.message) == ("PR780", True)


def test_the_table_of_rules_refuses_the_usual_pods() -> None:
    """Without the profile every engine's Pods violate it, so the table sees something."""
    for engine in ENGINES:
        job = job_of(ONE)
        pods = [
            p for o in make_objects(job, options(job, engine)) if "spec" in o for p in pods_in(o)
        ]
        assert all(violations(pod) for pod in pods)


@pytest.mark.shared
@pytest.mark.parametrize("engine", ["job", "jobset", "pod"])
def test_real_jobs_under_the_profile_restricted(engine: Engine) -> None:
    """Every manifest of OpenPAI's jobs is accepted."""
    accepted = refused = 0
    for path in JOBS:
        job, _ = load_job(str(path), user="alice")
        if job is None:
            continue
        try:
            objects = make_objects(job, options(job, engine, {"pod_security": "restricted"}))
        except PairunError as e:
            # a Job has one role
            assert engine == "job", (path, e.problems)
            assert {p.id for p in e.problems} == {"PR780"}, path
            refused += 1
            continue
        accepted += 1
        for workload in objects:
            for pod in pods_in(workload) if "spec" in workload else ():
                assert violations(pod) == [], path
                break
    assert accepted > refused


Row = tuple[dict[str, Any], str]
SIDECAR = {"name": "side", "image": "side:1", "securityContext": {"privileged": True}}
TOO_MUCH: list[Row] = [
    ({"spec": {"hostNetwork": True}}, "forbids hostNetwork"),
    ({"spec": {"hostIPC": True}}, "forbids hostIPC"),
    ({"spec": {"hostPID": True}}, "forbids hostPID"),
    (
        app_fields(securityContext={"privileged": True}),
        "forbids containers.*.securityContext.privileged",
    ),
    (app_fields(securityContext={"capabilities": {"add": ["SYS_PTRACE"]}}), "SYS_PTRACE"),
    (
        {"spec": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}},
        "seccompProfile.type: Unconfined",
    ),
    (app_fields(securityContext={"appArmorProfile": {"type": "Unconfined"}}), "Unconfined"),
    (app_fields(securityContext={"runAsUser": 0}), "runAsUser"),
    (app_fields(securityContext={"allowPrivilegeEscalation": True}), "allowPrivilegeEscalation"),
    (app_fields(securityContext={"runAsNonRoot": False}), "runAsNonRoot"),
    (app_fields(securityContext={"procMount": "Unmasked"}), "procMount: Unmasked"),
    (
        app_fields(securityContext={"seLinuxOptions": {"type": "spc_t"}}),
        "seLinuxOptions.type: spc_t",
    ),
    (app_fields(ports=[{"containerPort": 80, "hostPort": 80}]), "hostPort"),
    (
        {"spec": {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}},
        "sysctls",
    ),
    ({"spec": {"volumes": [{"name": "a", "hostPath": {"path": "/a"}}]}}, "volumes.*.hostPath"),
    ({"spec": {"volumes": [{"name": "a", "nfs": {"path": "/", "server": "s"}}]}}, "volumes.*"),
    ({"spec": {"initContainers": [SIDECAR]}}, "initContainers.*.securityContext.privileged"),
]


@pytest.mark.parametrize(("pod", "message"), TOO_MUCH)
@pytest.mark.parametrize("version", [None, (1, 26)])
def test_what_restricted_forbids_is_an_error(
    pod: dict[str, Any], message: str, version: tuple[int, int] | None
) -> None:
    """The error names the field, and where the setting stands."""
    job = job_of(ONE)
    with pytest.raises(PairunError) as refused:
        make_objects(
            job, options(job, "job", {**pod, "pod_security": "restricted"}, version=version)
        )
    [problem] = refused.value.problems
    assert problem.id == "PR796"
    assert message in problem.message
    assert problem.place is not None


def test_infiniband_under_restricted_names_the_jobs_line() -> None:
    """IPC_LOCK comes from the job file, so the error shows its line and what to do."""
    job = job_of(TEXT)
    with pytest.raises(PairunError) as refused:
        make_objects(job, options(job, "jobset", {"pod_security": "restricted"}))
    [problem] = refused.value.problems
    assert problem.id == "PR796"
    assert problem.place is not None
    assert "infiniband: true" in problem.place.source.line(problem.place.line)
    assert "extraContainerOptions.infiniband" in (problem.hint or "")


def test_a_log_folder_of_the_node_under_baseline() -> None:
    """An option that the profile forbids is named, too."""
    job = job_of(ONE)
    with pytest.raises(PairunError) as refused:
        make_objects(job, options(job, "pod", {"pod_security": "baseline"}, log_host_path="/l"))
    assert "--log-host-path" in (refused.value.problems[0].hint or "")


def test_baseline_allows_some_capabilities() -> None:
    """It forbids fewer than restricted."""
    job = job_of(ONE)
    pod = {
        "pod_security": "baseline",
        **app_fields(
            securityContext={"capabilities": {"add": ["CHOWN"]}, "seLinuxOptions": {"level": "s0"}}
        ),
    }
    assert make_objects(job, options(job, "pod", pod))
