"""The layers of a Pod's settings: who may set what, within which limits, and who did."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from pairun.base.sizes import quantity
from pairun.errors import Place, Problems, Source, render
from pairun.playbook.document.reading import node_of
from pairun.playbook.drafts import history
from pairun.playbook.podfragment import COMMAND_LINE, pod_settings
from pairun.review.lint import lint
from pairun.secrets.vault import Vault

if TYPE_CHECKING:
    from tests.desk import Desk

NOTHING = ""
APP = "spec.containers.app"
SOME = f"pod: {{set: [queue, {APP}.securityContext.runAsUser, spec.volumes.*.emptyDir, metadata]}}"
EMPTY_DIR_ONLY = "of 'pod.spec.volumes.a' a job may set: emptyDir"
LIMITS = """\
pod:
  set:
    - shm
    - queue: [default, team-*]
    - metadata
    - spec.activeDeadlineSeconds
    - spec.containers.app.resources
    - spec.containers.app.securityContext
    - spec.tolerations.*.key: [gpu, spot-*]
    - spec.tolerations.*.operator
    - spec.volumes.*.hostPath.path: [/data/*]
  defaults:
    shm: 64Gi
    queue: default
    init_resources: {limits: {memory: 2Gi}}
    metadata: {annotations: {seen: 'yes'}}
  max:
    shm: 16Gi
    spec.activeDeadlineSeconds: 1d
    spec.containers.*.resources.limits: {cpu: 8, nvidia.com/gpu: 4}
  min:
    spec.activeDeadlineSeconds: 1m
    spec.containers.app.securityContext.runAsUser: 1000
"""


def app(text: str) -> str:
    """A fragment for the user's container."""
    return f"spec: {{containers: [{{name: app, {text}}}]}}"


def volume(kind: str) -> str:
    """A fragment with one volume."""
    return f"spec: {{volumes: [{{name: a, {kind}}}]}}"


def user(uid: object) -> str:
    """A fragment with the uid of the user's container."""
    return app(f"securityContext: {{runAsUser: {uid}}}")


def taint(text: str) -> str:
    """A fragment with one toleration."""
    return f"spec: {{tolerations: [{{{text}}}]}}"


def deadline(seconds: int) -> str:
    """A fragment with the Pod's deadline."""
    return f"spec: {{activeDeadlineSeconds: {seconds}}}"


HOST_PATH = volume("hostPath: {path: /data/x}")
PROJECTED = volume("projected: {sources: [{serviceAccountToken: {path: t}}]}")
DEFAULT = None
ATTEMPTS: list[tuple[str | None, str, str]] = [
    (DEFAULT, "queue: a", ""),
    (DEFAULT, "metadata: {labels: {a: b}, annotations: {c: d}}", ""),
    (DEFAULT, "spec: {nodeSelector: {gpu: a}, schedulerName: s, priorityClassName: p}", ""),
    (DEFAULT, taint("operator: Exists"), ""),
    (DEFAULT, app("resources: {limits: {cpu: 2}}"), ""),
    (DEFAULT, volume("emptyDir: {}"), ""),
    (DEFAULT, "spec: {hostNetwork: true}", "a job may not set 'pod.spec.hostNetwork'"),
    (DEFAULT, "spec: {hostPID: true}", "a job may not set 'pod.spec.hostPID'"),
    (DEFAULT, "spec: {hostIPC: true}", "a job may not set 'pod.spec.hostIPC'"),
    (DEFAULT, "spec: {shareProcessNamespace: true}", "a job may not set"),
    (DEFAULT, "spec: {serviceAccountName: admin}", "a job may not set 'pod.spec.serviceAccountName'"),
    (DEFAULT, "spec: {automountServiceAccountToken: true}", "a job may not set"),
    (DEFAULT, "spec: {nodeName: a}", "a job may not set 'pod.spec.nodeName'"),
    (DEFAULT, "spec: {containers: [{name: b, image: b}]}", "a job may not set 'pod.spec.containers.b'"),
    (DEFAULT, "spec: {initContainers: [{name: b, image: b}]}", "a job may not set 'pod.spec.initContainers'"),
    (DEFAULT, app("env: [{name: A, value: b}]"), "a job may not set 'pod.spec.containers.app.env'"),
    (DEFAULT, app("securityContext: {privileged: true}"), "securityContext.privileged'"),
    (DEFAULT, app("securityContext: {capabilities: {add: [SYS_ADMIN]}}"), "capabilities.add'"),
    (DEFAULT, app("securityContext: {procMount: Unmasked}"), "securityContext.procMount'"),
    (DEFAULT, HOST_PATH, "of 'pod.spec.volumes.a' a job may set: configMap, emptyDir"),
    (DEFAULT, PROJECTED, "a job may not set 'pod.spec.volumes.a.projected'"),
    (DEFAULT, "queue_system: volcano", "a job may not set 'pod.queue_system'"),
    (DEFAULT, "spec: null", "a job may not set 'pod.spec'"),
    (DEFAULT, "roles: {worker: {spec: {hostNetwork: true}}}", "a job may not set 'pod.spec.hostNetwork'"),
    (NOTHING, "queue: a", "of 'pod' a job may set: nothing"),
    (NOTHING, "{}", ""),
    (SOME, user(5), ""),
    (SOME, volume("emptyDir: {}"), ""),
    (SOME, volume("emptyDir: {medium: Memory}"), ""),
    (SOME, HOST_PATH, EMPTY_DIR_ONLY),
    (SOME, volume("emptyDir: {}, hostPath: {path: /}"), EMPTY_DIR_ONLY),
    (SOME, app("securityContext: {runAsUser: 5, privileged: true}"), "set: runAsUser"),
    (SOME, "shm: 1Gi", "of 'pod' a job may set: metadata, queue, spec"),
    (SOME, "roles: {worker: {shm: 1Gi}}", "of 'pod' a job may set: metadata, queue, spec"),
    (SOME, "roles: {workr: {metadata: {}}}", "did you mean 'worker'?"),
    (SOME, "roles: {worker: {queue: a}}", "there is no keyword 'queue' here"),
    (SOME, "metdata: {}", "did you mean 'metadata'?"),
    (SOME, "spec: {tolerationz: []}", "did you mean 'tolerations'?"),
    (SOME, "shm: lots", "'shm' must be"),
    (SOME, taint("effect: Never"), "'effect' must be one of NoSchedule"),
    (SOME, volume("emptyDir: {}").replace("name: a", "name: B_"), "must be text such as data"),
    (SOME, "env: {A: b}", "export NAME=value"),
    (LIMITS, "shm: 16Gi", ""),
    (LIMITS, "shm: 18000M", "must be at most 16Gi, not 18000M"),
    (LIMITS, "shm: 1Ti", "must be at most 16Gi, not 1Ti"),
    (LIMITS, "queue: team-vision", ""),
    (LIMITS, "queue: prod", "it may be default, team-*"),
    (LIMITS, "queue: null", ""),
    (LIMITS, deadline(86400), ""),
    (LIMITS, deadline(30), "must be at least 1m, not 30"),
    (LIMITS, deadline(90000), "must be at most 1d, not 90000"),
    (LIMITS, app("resources: {limits: {cpu: 9}}"), "limits.cpu' must be at most 8, not 9"),
    (LIMITS, app("resources: {limits: {rdma/hca: 9}}"), ""),
    (LIMITS, user(0), "runAsUser' must be at least 1000, not 0"),
    (LIMITS, user(1000), ""),
    (LIMITS, "roles: {worker: {shm: 17Gi}}", "must be at most 16Gi"),
    (LIMITS, taint("key: gpu, operator: Exists"), ""),
    (LIMITS, taint("key: spot-a"), ""),
    (LIMITS, taint("key: control-plane"), "it may be gpu, spot-*"),
    (LIMITS, taint("operator: Exists"), "it needs 'key', one of gpu, spot-*: without one it means all"),
    (LIMITS, taint("key: null, operator: Exists"), "without one it means all"),
    (LIMITS, taint("key: gpu, effect: NoExecute"), "a job may not set 'pod.spec.tolerations.0.effect'"),
    (LIMITS, HOST_PATH, ""),
    (LIMITS, volume("hostPath: {path: /etc}"), "it may be /data/*"),
]  # fmt: skip


def test_a_mistake_hides_no_refusal_of_the_policy(desk: Desk) -> None:
    """What is sound is judged, the rest is reported once."""
    pod = "{qeue: a, queue: 5, spec: {hostNetwork: true, hostPID: 5, volumes: [{nmae: a}]}}"
    errors = desk.review(desk.job(f"pod: {pod}\n")).problems.errors
    refused = [p.message for p in errors if p.id == "PR402"]
    assert refused == ["a job may not set 'pod.spec.hostNetwork'"]
    assert len(errors) > len(refused)


@pytest.mark.parametrize(("policy", "pod", "refusal"), ATTEMPTS)
def test_what_a_job_may_set(desk: Desk, policy: str | None, pod: str, refusal: str) -> None:
    """An error shows the job's line and the policy's, and what would be allowed."""
    roots = []
    if policy is not None:
        roots = [desk.root({"playbooks/policy.yaml": f"job_may: {{}}\n{policy}\n"})]
    problems = desk.review(desk.job(f"pod:\n  {pod}"), *roots).problems.errors
    texts = [render(p) for p in problems]
    if not refusal:
        assert texts == []
        return
    assert any(refusal in text for text in texts), texts
    for problem in problems:
        assert problem.place is not None
        assert problem.id != "PR402" or any(word == "the policy" for word, _ in problem.also)


RESERVED = [
    ("metadata: {labels: {pairun/role: a}}", "'pairun/role' in 'pod.metadata.labels'"),
    ("metadata: {annotations: {rest-server/port-scheduling-spec: a}}", "port-scheduling-spec'"),
    (volume("emptyDir: {}").replace("name: a", "name: dshm"), "'dshm' in 'pod.spec.volumes'"),
    (volume("emptyDir: {}").replace("name: a", "name: storage-0"), "'storage-0'"),
    (app("image: other"), "'pod.spec.containers.app.image'"),
    (app("command: [sh]"), "'pod.spec.containers.app.command'"),
    (app("env: [{name: PAI_JOB_NAME, value: a}]"), "'PAI_JOB_NAME'"),
    ("spec: {initContainers: [{name: init, image: a}]}", "'pod.spec.initContainers.init'"),
    ("spec: {restartPolicy: Always}", "'pod.spec.restartPolicy'"),
    ("spec: {terminationGracePeriodSeconds: 1}", "'pod.spec.terminationGracePeriodSeconds'"),
]


@pytest.mark.parametrize(("pod", "name"), RESERVED)
@pytest.mark.parametrize("layer", ["job", "cluster"])
def test_what_pairun_sets_itself(desk: Desk, pod: str, name: str, layer: str) -> None:
    """No layer sets it, whatever the policy permits."""
    policy = "job_may: {}\npod:\n  set: [metadata, spec]\n"
    if layer == "cluster":
        policy += f"  defaults:\n    {pod}\n"
    root = desk.root({"playbooks/policy.yaml": policy})
    job = desk.job(f"pod:\n  {pod}" if layer == "job" else "vars: {}")
    [problem] = desk.review(job, root).problems.errors
    assert problem.id == "PR783"
    assert problem.message == f"{name} is reserved for pairun" or name in problem.message
    assert problem.place is not None
    assert problem.place.source.layer == layer


VOLUMES = [
    ("[{name: data, emptyDir: {}}]", "data", ""),
    ("[{name: data, emptyDir: {}}]", "dta", "there is no volume 'dta' to mount"),
    ("[]", "data", "there is no volume 'data' to mount"),
    ("[]", "api-token", "there is no volume 'api-token' to mount"),
    ("[{name: data}]", "data", "the volume 'data' must have one kind"),
    ("[{name: data, emptyDir: {}, secret: {}}]", "data", "the volume 'data' must have one kind"),
    ("[{name: data, emptyDir: {}}, {name: data, secret: {}}]", "data", "'data' is twice in 'volumes'"),
]  # fmt: skip


@pytest.mark.parametrize(("volumes", "mounted", "message"), VOLUMES)
def test_volumes_and_their_mounts(desk: Desk, volumes: str, mounted: str, message: str) -> None:
    """A review finds what cannot be mounted before anything is made of it."""
    mount = f"containers: [{{name: app, volumeMounts: [{{name: {mounted}, mountPath: /d}}]}}]"
    problems = desk.problems(desk.job(f"pod: {{spec: {{volumes: {volumes}, {mount}}}}}"))
    assert [p.message for p in problems][:1] == ([message] if message else [])
    assert all(p.id == "PR783" and p.place is not None for p in problems)


RESOURCES = [
    ("cpu: 9", "cpu' must be at most 8, not 9"),
    ("gpu: 5", "nvidia.com/gpu' must be at most 4, not 5"),
    ("memoryMB: 4097", "memory' must be at most 4Gi, not 4097Mi"),
    ("cpu: 8", ""),
]


@pytest.mark.parametrize(("line", "refusal"), RESOURCES)
def test_limits_hold_for_what_the_job_asks_elsewhere(desk: Desk, line: str, refusal: str) -> None:
    """``resourcePerInstance`` gives the limits, and a request without an entry is the limit."""
    limits = "{cpu: 8, nvidia.com/gpu: 4, memory: 4Gi}"
    text = f"job_may: {{}}\npod: {{max: {{{APP}.resources: {{limits: {limits}, requests: {limits}}}}}}}\n"
    root = desk.root({"playbooks/policy.yaml": text})
    name = line.partition(":")[0]
    job = re.sub(rf"{name}: [0-9]+", line, desk.job())
    errors = desk.review(job, root).problems.errors
    parts = ("limits", "requests") if refusal else ()
    assert [p.message for p in errors] == [f"'pod.{APP}.resources.{p}.{refusal}" for p in parts]
    for problem in errors:
        assert problem.place is not None
        assert "resourcePerInstance" in problem.place.source.line(problem.place.line)


def test_a_setting_replaces_what_the_job_asks_elsewhere(desk: Desk) -> None:
    """A limit below the maximum replaces a larger one of the job."""
    root = desk.root({"playbooks/policy.yaml": f"job_may: {{}}\n{LIMITS}"})
    large = desk.job(f"pod: {{{app('resources: {limits: {cpu: 8}}')}}}").replace(
        "cpu: 1,", "cpu: 64,"
    )
    assert not desk.problems(large, root)


def test_a_limit_of_shm_holds_for_shm_mb(desk: Desk) -> None:
    """The job file says the size in two places."""
    root = desk.root({"playbooks/policy.yaml": "job_may: {}\npod: {max: {shm: 1Gi}}\n"})
    options = "    extraContainerOptions: {shmMB: 2048}\n    commands"
    [problem] = desk.problems(desk.job().replace("    commands", options), root)
    assert "'pod.shm' must be at most 1Gi, not 2048Mi" in problem.message


def test_a_default_is_the_operators_own(desk: Desk) -> None:
    """The limits hold for the job; a cluster's default may be beyond them."""
    root = desk.root({"playbooks/policy.yaml": f"job_may: {{}}\n{LIMITS}"})
    review = desk.review(desk.job(), root)
    assert not review.problems.errors
    pod = review.pods["worker"]
    assert pod.get("shm") == "64Gi"
    # the built-in policy's defaults stay below a cluster's
    assert pod.get("init_resources.limits") == {"cpu": 1, "memory": "2Gi"}
    assert pod.get("init_resources.requests") == {"cpu": "100m", "memory": "128Mi"}


def test_every_value_knows_who_set_it(desk: Desk) -> None:
    """From the role's own value down to the cluster's default; null takes a value away."""
    root = desk.root({"playbooks/policy.yaml": f"job_may: {{}}\n{LIMITS}"})
    text = (
        "{shm: 8Gi, queue: null, metadata: {labels: {a.b/c: '1'}, annotations: null}, "
        "roles: {worker: {shm: 4Gi, metadata: {labels: {b: '2'}}}}}"
    )
    pod = desk.review(desk.job(f"pod: {text}"), root).pods["worker"]
    assert pod.get("queue") is None
    assert pod.get("metadata") == {"labels": {"a.b/c": "1", "b": "2"}}
    assert pod.get("metadata.labels.a.b/c") == "1"
    chain = [(n.value, n.place.source.layer) for n in history(pod.values["shm"])]
    assert chain == [("4Gi", "job"), ("8Gi", "job"), ("64Gi", "cluster")]
    place = pod.values["metadata.labels.b"].place
    assert (place.line, place.column > 1) == (desk.job(f"pod: {text}").count("\n"), True)


def test_named_things_merge_and_other_lists_replace(desk: Desk) -> None:
    """A role adds to a volume of its job and to a mount, and replaces the tolerations."""
    policy = "job_may: {}\npod: {set: [spec]}\n"
    root = desk.root({"playbooks/policy.yaml": policy})
    claim = "persistentVolumeClaim: {claimName: c"
    mount = "containers: [{name: app, volumeMounts: [{name: data, mountPath: /data/"
    text = (
        f"{{spec: {{volumes: [{{name: data, {claim}}}}}, {{name: tmp, emptyDir: {{}}}}], "
        f"{mount}}}]}}], tolerations: [{{key: a}}]}}, roles: {{worker: {{spec: {{"
        f"volumes: [{{name: data, {claim}, readOnly: true}}}}], {mount}, subPath: x}}]}}], "
        "tolerations: [{key: b}]}}}}"
    )
    review = desk.review(desk.job(f"pod: {text}"), root)
    assert not review.problems.errors
    pod = review.pods["worker"]
    assert pod.get("spec.volumes") == {
        "data": {"persistentVolumeClaim": {"claimName": "c", "readOnly": True}},
        "tmp": {"emptyDir": {}},
    }
    assert pod.get(f"{APP}.volumeMounts") == {"/data": {"name": "data", "subPath": "x"}}
    assert pod.get("spec.tolerations") == [{"key": "b"}]


def test_a_persons_options_keep_to_the_limits(desk: Desk) -> None:
    """What a job may set binds the job; ``max`` and ``min`` bind the command line, too."""
    root = desk.root({"playbooks/policy.yaml": f"job_may: {{}}\n{LIMITS}"})
    policy = desk.layers(root).policy

    def problems_of(pod: dict[str, Any]) -> list[str]:
        problems = Problems()
        flags = node_of(pod, Place(Source("--set", COMMAND_LINE, ""), 0, 0))
        pod_settings(policy, None, flags, "worker", [], problems)
        return [p.message for p in problems.errors]

    assert problems_of({"spec": {"hostNetwork": True}}) == []
    assert problems_of({"shm": "17Gi"}) == ["'pod.shm' must be at most 16Gi, not 17Gi"]


@pytest.mark.parametrize(
    ("text", "number"),
    [("2", 2), (2, 2), ("500m", 0.5), ("1k", 1000), ("1Ki", 1024), ("1.5Gi", 1.5 * 2**30),
     ("1e3", 1000), ("2E", 2e18), ("lots", None)],
)  # fmt: skip
def test_quantities(text: object, number: float | None) -> None:
    """The forms of https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/."""
    assert quantity(text) == number


CLAIMS = ", ".join(
    f"spec.volumes.*.{kind}"
    for kind in ("configMap", "emptyDir", "persistentVolumeClaim", "secret")
)
POLICIES = [
    ("set: [quue]", "warning", "there is no setting 'quue' of Pods", "did you mean 'queue'?"),
    ("set: [spec.toleration]", "warning", "there is no setting 'spec.toleration'", "tolerations"),
    ("set: ['spec.volumes.*.hostPat']", "warning", "there is no setting", "did you mean 'hostPath'?"),
    ("max: {shn: 1}", "warning", "there is no setting 'shn' of Pods", "did you mean 'shm'?"),
    ("set: '*'", "error", "'set' must be a list", ""),
    ("max: {shm: lots}", "error", "'max' of 'shm' must be a number", "7d"),
    ("min: {ttl_after_finished: 5x}", "error", "'min' of 'ttl_after_finished'", "7d"),
    ("defaults: {shm: lots}", "error", "'shm' must be", ""),
    ("defaults: {spec: {hostPid: true}}", "error", "no keyword 'hostPid'", "did you mean 'hostPID'?"),
    (
        "defaults: {node_selector: {a: b}}",
        "error",
        "'node_selector' is a setting of an earlier release",
        "write spec: {nodeSelector: {a: b}}",
    ),
    ("job_may: '*'", "error", "'pod.job_may' is a key of an earlier release", "docs/policy.md"),
    (
        "job_may: [queue, node_selector, volumes.hostPath, resources.limits]",
        "error",
        "'pod.job_may' is a key of an earlier release",
        f"write set: [queue, spec.nodeSelector, spec.volumes.*.hostPath, {APP}.resources.limits]",
    ),
    (
        "job_may: [volumes, security.capabilities, security.privileged]",
        "error",
        "'pod.job_may' is a key of an earlier release",
        f"write set: [{CLAIMS}, {APP}.securityContext.capabilities.drop, {APP}.securityContext.privileged]",
    ),
    (
        "bounds: {shm: {max: 64Gi}, resources.limits: {max: {cpu: 32}}}",
        "error",
        "'pod.bounds' is a key of an earlier release",
        f"write max: {{shm: 64Gi, {APP}.resources.limits: {{cpu: 32}}}}",
    ),
    (
        "bounds: {security.run_as_user: {min: 1000}, queue: {one_of: [a]}}",
        "error",
        "'pod.bounds' is a key of an earlier release",
        f"write min: {{{APP}.securityContext.runAsUser: 1000}}, set: [{{queue: [a]}}]",
    ),
    (
        "bounds: {tolerations: {none_of: [a]}}",
        "error",
        "'pod.bounds' is a key of an earlier release",
        "for none_of list the values that a job may set, below set",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("pod", "severity", "message", "hint"), POLICIES)
def test_mistakes_of_a_policy(desk: Desk, pod: str, severity: str, message: str, hint: str) -> None:
    """``lint`` reports a name that no setting has as a warning, and a wrong form as an error."""
    root = desk.root({"playbooks/policy.yaml": f"job_may: {{}}\npod: {{{pod}}}\n"})
    problems = lint([str(root / "playbooks" / "policy.yaml")], [str(root)], Vault()).problems
    found = [p for p in problems if message in p.message]
    assert [p.severity for p in found] == [severity], list(problems)
    assert hint in (found[0].hint or "")
    assert found[0].place is not None
    assert found[0].place.line == 2


def test_a_setting_of_the_last_release_shows_its_new_form(desk: Desk) -> None:
    """Each key has its own error with the value, also below a role; the rest is still checked."""
    job = desk.job("pod: {node_selector: {a: b}, shm: x, roles: {worker: {host_ipc: true}}}")
    problems = desk.problems(job)
    assert [(p.id, p.hint) for p in problems if "earlier release" in p.message] == [
        ("PR201", "write spec: {nodeSelector: {a: b}}"),
        ("PR201", "write spec: {hostIPC: true}"),
    ]
    assert any("'shm' must be" in p.message for p in problems)


@pytest.mark.parametrize(
    ("pod", "meant"),
    [
        ("shm: 16", "16Gi"),
        ("shm: '512'", "512Mi"),
        ("shm: 512m", "512Mi"),
        (app("resources: {limits: {memory: 64}}"), "64Gi"),
        ("roles: {worker: {shm: 16k}}", "16Gi"),
        ("shm: 16Gi", None),
        ("shm: 17179869184", None),
        ("shm: 0", None),
        ("shm: 1Mi", None),
    ],
)
def test_a_size_below_one_mebibyte(desk: Desk, pod: str, meant: str | None) -> None:
    """A warning says what was probably meant; bytes are a unit, too, and 0 sets no limit."""
    problems = list(desk.valid(desk.job(f"pod:\n  {pod}\n")).problems)
    assert [(p.id, p.severity) for p in problems] == ([("PR933", "warning")] if meant else [])
    for problem in problems:
        assert str(problem.hint).startswith(f"did you mean '{meant}'?")
        assert problem.place is not None
        assert pod.split(":", maxsplit=1)[0] in problem.place.source.line(problem.place.line)


def test_the_policies_that_pairun_ships_permit_the_same() -> None:
    """The built-in one, the one of ``deploy`` and the one of ``pairun new root``."""
    import yaml

    paths = (
        "playbooks/policy.yaml", "deploy/base/cluster/policy.yaml",
        "pairun/cli/starts/root_policy.yaml",
    )  # fmt: skip
    lists = []
    for path in paths:
        with open(path) as file:
            lists.append(yaml.safe_load(file)["pod"]["set"])
    assert lists[0] == lists[1] == lists[2]
