"""What a job becomes in a cluster: names, Secrets, Pods, retries, and what is refused."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pairun.base.durations import parse_seconds
from pairun.engines.manifest.choices import ENGINES, Engine, ManifestOptions
from pairun.engines.manifest.objectnames import default_name, short
from pairun.engines.manifest.objects import make_objects
from pairun.engines.manifest.retries import counted, failure_rules, pod_failure_policy
from pairun.engines.manifest.versions import features_in, lowest
from pairun.errors import PairunError, Place, Problems, Source, render
from pairun.job.hiding import leaves
from pairun.job.jobfile import load_job, read_job
from pairun.job.jobview import job_context
from pairun.job.jsyaml import JS
from pairun.job.model import Job
from pairun.job.writing import as_yaml
from pairun.kube.cluster import cluster_from_framework
from pairun.kube.owners import Object
from pairun.kube.ports import PORT_ANNOTATION
from pairun.module import Secret
from pairun.openpai.framework import job_from_framework, make_framework, with_statuses
from pairun.playbook.document.reading import Node, node_of, read_text
from pairun.playbook.document.scalars import js_text
from pairun.playbook.podfragment import COMMAND_LINE, PodSettings, pod_settings
from pairun.playbook.podschema import pod_mistakes
from pairun.playbook.policy import Policy
from pairun.playbook.rules import Rules
from tests.conftest import SHARED

JOBS = sorted(p for p in (SHARED / "openpai" / "jobs").rglob("*.*") if p.suffix != ".md")
TEXT = """\
# the token is s3cret-token
protocolVersion: 2
name: train
type: job
jobRetryCount: 3
secrets:
  token: s3cret-token
prerequisites:
  - name: image
    type: dockerimage
    uri: registry.example/team/image:1
    auth: {username: robot, password: in-plain-sight, registryuri: registry.example}
taskRoles:
  PS_server:
    dockerImage: image
    resourcePerInstance: {cpu: 2, memoryMB: 64, gpu: 0, ports: {http: 2, grpc: 1}}
    commands: ["serve; echo $$ $(PAI_JOB_NAME) $HOME"]
  worker:
    instances: 3
    dockerImage: image
    extraContainerOptions: {shmMB: 100, infiniband: true}
    resourcePerInstance: {cpu: 4, memoryMB: 128, gpu: 2}
    commands: ["train --token <% $secrets.token %>"]
"""
ONE = """\
protocolVersion: 2
name: one
type: job
prerequisites: [{name: image, type: dockerimage, uri: ubuntu}]
taskRoles:
  main:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands: [work]
"""


def job_of(text: str = TEXT) -> Job:
    """A job that must be valid."""
    job, problems = read_job(read_text(Source("job.yaml", "job", text), JS), user="alice")
    assert job is not None, list(map(render, problems))
    return job


NOWHERE = Place(Source("--flag", COMMAND_LINE, ""), 0, 0)
ANYTHING = Policy(Node({}, NOWHERE))


def app_fields(**fields: Any) -> dict[str, Any]:
    """Pod settings with fields of the user's container."""
    return {"spec": {"containers": [{"name": "app", **fields}]}}


def settings_of(job: Job, pod: dict[str, Any]) -> dict[str, PodSettings]:
    """Settings of the Pods of every role, as a person's options set them."""
    problems = Problems()
    given = node_of(pod, NOWHERE)
    assert list(pod_mistakes(given)) == []
    settings = {
        r.name: pod_settings(ANYTHING, None, given, r.name, [], problems) for r in job.roles
    }
    assert not problems
    return settings


def options(
    job: Job, engine: Engine, pod: dict[str, Any] | None = None, **more: Any
) -> ManifestOptions:
    """Options with what is always needed."""
    if pod is not None:
        more["pods"] = settings_of(job, pod)
    chosen = {
        "image": "registry.example/pairun:1",
        "name": default_name(job, engine),
        "grace_s": {r.name: 30.0 for r in job.roles},
        "rendezvous_key": bytes(range(32)),
    }
    return ManifestOptions(engine=engine, **{**chosen, **more})


def made(text: str, engine: Engine, **more: Any) -> list[Object]:
    """The objects of a job that must be possible."""
    job = job_of(text)
    return make_objects(job, options(job, engine, **more))


def problems_of(text: str, engine: Engine, **more: Any) -> list[tuple[str, int]]:
    """Ids and lines of everything that is found."""
    job, found = job_of(text), Problems()
    try:
        make_objects(job, options(job, engine, **more), found)
    except PairunError as e:
        assert e.problems == tuple(found.errors)
    return [(p.id, p.place.line if p.place else 0) for p in found]


def by_kind(objects: list[Object], kind: str) -> list[Object]:
    """The objects of a kind."""
    return [o for o in objects if o["kind"] == kind]


def pods_in(value: Any) -> Iterator[Object]:
    """Every Pod spec, however deep."""
    if isinstance(value, dict):
        if "initContainers" in value:
            yield value
        for child in value.values():
            yield from pods_in(child)
    elif isinstance(value, list):
        for child in value:
            yield from pods_in(child)


def environment(pod: Object, container: str) -> dict[str, Any]:
    """The variables of a container: their values, or the path of the field they are from."""
    found = pod["initContainers" if container == "init" else "containers"][0]["env"]
    return {
        v["name"]: v["valueFrom"]["fieldRef"]["fieldPath"]
        if "valueFrom" in v
        else v.get("value", "")
        for v in found
    }


def secret(objects: list[Object], ending: str) -> str:
    """What a Secret holds under its only key."""
    found = next(o for o in by_kind(objects, "Secret") if o["metadata"]["name"].endswith(ending))
    return base64.b64decode(next(iter(found["data"].values()))).decode()


# --- all engines ---------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_secrets_stand_in_secrets_alone(engine: Engine) -> None:
    """Neither ConfigMap, annotations nor Pods hold the job's secrets or a login in plain sight."""
    job = job_of(TEXT) if engine != "job" else job_of(without_first_role())
    objects = make_objects(job, options(job, engine))
    others = json.dumps([o for o in objects if o["kind"] != "Secret"])
    assert "s3cret-token" not in others
    assert "in-plain-sight" not in others
    assert "s3cret-token" in secret(objects, "-configcred")
    auths = json.loads(secret(objects, "-regcred"))["auths"]
    assert base64.b64decode(auths["registry.example"]["auth"]) == b"robot:in-plain-sight"
    assert base64.b64decode(secret(objects, "-rendezvous")) == bytes(range(32))


def without_first_role() -> str:
    """The job with its second role only."""
    return re.sub(r"(?ms)^  PS_server:.*?(?=^  worker)", "", TEXT)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_stored_is_the_whole_job(engine: Engine) -> None:
    """Init reads back the same commands, logins and ports from the objects and the Secret."""
    job = job_of(TEXT) if engine != "job" else job_of(without_first_role())
    objects = make_objects(job, options(job, engine))
    if engine == "framework":
        [framework] = by_kind(objects, "Framework")
    else:
        framework = json.loads(by_kind(objects, "ConfigMap")[0]["data"]["framework.json"])
    text = secret(objects, "-configcred")
    secrets = read_text(Source("secrets.yaml", "job", text), JS)
    again, _ = job_from_framework(framework, secrets)
    assert again is not None
    for before, after in zip(job.roles, again.roles, strict=True):
        left, right = job_context(job, before), job_context(again, after)
        assert left == right
        assert isinstance(left["image"]["auth"]["password"], Secret)
    pods = {r.fc_name: [{"podUID": "u", "podHostIP": "10.0.0.1"}] * r.instances for r in job.roles}
    cluster = cluster_from_framework(with_statuses(framework, pods), job.roles[0].fc_name, 0, {})
    assert [len(r.instances) for r in cluster.roles] == [r.instances for r in job.roles]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_api_token_is_in_init_alone(engine: Engine) -> None:
    """The Pod mounts no token by itself; init has one, the user's container has none."""
    for pod in pods_in(made(ONE, engine)):
        assert pod["automountServiceAccountToken"] is False
        assert pod["serviceAccountName"] == "runtime-account"
        init, app = pod["initContainers"][0], pod["containers"][0]
        token = {"name": "api-token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
        assert {**token, "readOnly": True} in init["volumeMounts"]
        assert "api-token" not in [m["name"] for m in app["volumeMounts"]]
        for container in (init, app):
            key = {"name": "rendezvous", "mountPath": "/usr/local/pai/rendezvous", "readOnly": True}
            assert key in container["volumeMounts"]
            mounted = {m["name"] for m in container["volumeMounts"]}
            assert mounted <= {v["name"] for v in pod["volumes"]}


@pytest.mark.parametrize("engine", ENGINES)
def test_both_containers_of_a_pod(engine: Engine) -> None:
    """What a Pod of OpenPAI promises its containers."""
    job = job_of(without_first_role())
    uid = app_fields(securityContext={"runAsUser": 1000})
    chosen = options(job, engine, uid, gpu_resource="amd.com/gpu", grace_s={"worker": 9.5})
    pod = next(pods_in(make_objects(job, chosen)))
    init, app = pod["initContainers"][0], pod["containers"][0]
    assert pod["restartPolicy"] == "Never"
    assert pod["terminationGracePeriodSeconds"] == 12
    assert environment(pod, "app")["PAIRUN_GRACE"] == "9.5"
    # FrameworkController counts no eviction as a success; nothing counts a plain Pod.
    interrupted = "interrupted" if engine in ("job", "jobset") else None
    assert environment(pod, "app").get("PAIRUN_ON_STOP") == interrupted
    assert environment(pod, "init")["PAIRUN_APP_UID"] == "1000"
    assert app["securityContext"]["runAsUser"] == 1000
    assert "IPC_LOCK" in app["securityContext"]["capabilities"]["add"]
    assert app["command"] == ["/usr/local/pai/runtime"]
    assert (init["image"], "command" in init) == ("registry.example/pairun:1", False)
    assert app["terminationMessagePath"] == "/tmp/pai-termination-log"
    limits = {"cpu": "4", "memory": "128Mi", "amd.com/gpu": "2", "rdma/hca": "1"}
    assert app["resources"] == {"limits": limits}
    assert {"name": "dshm", "mountPath": "/dev/shm"} in app["volumeMounts"]
    memory = {"medium": "Memory", "sizeLimit": "100Mi"}
    assert {"name": "dshm", "emptyDir": memory} in pod["volumes"]
    assert pod["imagePullSecrets"] == [{"name": f"{chosen.name}-regcred"}]
    folder = {"name": "job-secrets", "mountPath": "/usr/local/pai/secrets"}
    assert folder in init["volumeMounts"]
    assert folder in app["volumeMounts"]
    assert "USER_CMD" in environment(pod, "init")
    assert "USER_CMD" not in environment(pod, "app")
    assert environment(pod, "init")["PAIRUN_HOST_IP"] == "status.podIP"


@pytest.mark.parametrize(("seconds", "said"), [(30.0, "30"), (0.25, "0.25"), (2e6, "2000000")])
def test_the_grace_time_is_written_as_pid_1_reads_it(seconds: float, said: str) -> None:
    """Short or very long, it is a plain number of seconds."""
    pod = next(pods_in(made(ONE, "pod", grace_s={"main": seconds})))
    text = environment(pod, "app")["PAIRUN_GRACE"]
    assert text == said
    assert parse_seconds(text) == seconds


def test_kubernetes_replaces_nothing_in_a_command() -> None:
    """What Kubernetes would read as a variable of its own is escaped; all else stays."""
    [framework] = by_kind(made(TEXT, "framework"), "Framework")
    command = environment(next(pods_in(framework)), "init")["USER_CMD"]
    assert command == "serve; echo $$$ $$(PAI_JOB_NAME) $HOME"


@given(st.text(alphabet="$()aA_ ", max_size=20))
def test_a_command_comes_out_of_kubernetes_as_it_was(text: str) -> None:
    """Kubernetes' own replacement undoes the escape."""
    job = job_of(ONE.replace("[work]", json.dumps([f"x{text}x"])))
    pod = next(pods_in(make_objects(job, options(job, "pod"))))
    escaped = environment(pod, "init")["USER_CMD"]
    assert expand(escaped, {"a": "1", "A": "2", "": "3"}) == f"x{text}x"


def expand(text: str, variables: dict[str, str]) -> str:
    """Kubernetes' replacement of variables (third_party/forked/golang/expansion)."""
    out, i = "", 0
    while i < len(text):
        if text[i] == "$" and i + 1 < len(text):
            following = text[i + 1]
            end = text.find(")", i + 2) if following == "(" else -1
            if following == "$":
                out += "$"
                i += 2
            elif end > 0:
                name = text[i + 2 : end]
                out += variables.get(name, f"$({name})")
                i = end + 1
            else:
                out += "$" + following
                i += 2
        else:
            out += text[i]
            i += 1
    return out


def test_a_command_too_long_for_a_variable_is_left_to_init() -> None:
    """Linux would not start the container; init renders the command from the job."""
    text = ONE.replace("[work]", f"[{'x' * 200_000}]")
    assert "USER_CMD" not in environment(next(pods_in(made(text, "pod"))), "init")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_network_and_the_logs_of_the_node(engine: Engine) -> None:
    """Framework's Pods use the node's, as in OpenPAI; others only when they are told to."""
    plain = next(pods_in(made(ONE, engine)))
    folders = [v["hostPath"]["path"] for v in plain["volumes"] if "hostPath" in v]
    on_node = engine == "framework"
    assert plain.get("hostNetwork", False) is on_node
    assert folders == (["/var/log/pai"] if on_node else [])
    other = next(
        pods_in(
            made(ONE, engine, pod={"spec": {"hostNetwork": not on_node}}, log_host_path="/logs")
        )
    )
    assert other.get("hostNetwork", False) is not on_node
    assert [v["hostPath"]["path"] for v in other["volumes"] if "hostPath" in v] == ["/logs"]
    name = default_name(job_of(ONE), engine)
    for container in (*other["initContainers"], *other["containers"]):
        [mount] = [m for m in container["volumeMounts"] if m["mountPath"] == "/usr/local/pai/logs"]
        assert mount["subPath"] == f"alice/{name}/main"


STORAGES = """\
extras:
  storages:
    - {name: nfs-data, mountPath: /data}
    - {name: team}
    - {mountPath: /nameless}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_storages_are_claims_of_the_users_container(engine: Engine) -> None:
    """Each is mounted where the runtime playbook looks for it; one without a name is none."""
    spec = next(pods_in(made(ONE + STORAGES, engine)))
    claims = {
        v["persistentVolumeClaim"]["claimName"]: v["name"]
        for v in spec["volumes"]
        if "persistentVolumeClaim" in v
    }
    assert list(claims) == ["nfs-data", "team"]
    mounts = {m["name"]: m["mountPath"] for m in spec["containers"][0]["volumeMounts"]}
    assert [mounts[claims[name]] for name in claims] == ["/data", "/mnt/team"]
    assert not set(claims.values()) & {m["name"] for m in spec["initContainers"][0]["volumeMounts"]}
    job = job_of(ONE + STORAGES)
    assert job_context(job, job.roles[0])["volumes"] == ["/data", "/mnt/team"]


OWN_PATHS = (
    "/", "//", "/..", "/usr/local/pai", "/usr/local/pai/", "/usr/local/pai/logs", "/usr/local",
    "/usr", "/dev", "/dev/shm", "/proc/1", "/sys", "/etc", "/etc/hosts", "/var/run/secrets",
    "/var/run/secrets/kubernetes.io/serviceaccount", "/tmp/../etc", "/data/../proc", "/data/../x",
    "/a//b", "/a/./b", "/a/.", "//data", "/data//",
)  # fmt: skip
FREE_PATHS = (
    "/data/", "/tmp", "/mnt/a/b", "/usr/local/pair", "/usr/local/pai-data", "/device", "/...",
    "/var/lib/data", "/etc/team",
)  # fmt: skip


@pytest.mark.parametrize(
    ("storages", "expected"),
    [
        ("[{name: Upper_case}]", ["PR783"]),
        (f"[{{name: {'a' * 254}}}]", ["PR783"]),
        ("[{name: a, mountPath: data}]", ["PR783"]),
        ("[{name: a, mountPath: '/da:ta'}]", ["PR783"]),
        ("[{name: a, mountPath: /data}, {name: b, mountPath: /data}]", ["PR783"]),
        ("[{name: a, mountPath: /data}, {name: b, mountPath: /data/}]", ["PR783"]),
        *((f"[{{name: a, mountPath: {path}}}]", ["PR783"]) for path in OWN_PATHS),
        *((f"[{{name: a, mountPath: {path}}}]", []) for path in FREE_PATHS),
        ("[{name: a, mountPath: null}, {name: null}, {name: ''}]", []),
        ("[]", ["PR784"]),
        ("[{name: a}, {name: a, mountPath: /again}]", []),
    ],
)
def test_storages_that_cannot_be_mounted(storages: str, expected: list[str]) -> None:
    """What Kubernetes would refuse, and what OpenPAI alone knows, is said at its place."""
    found = problems_of(f"{ONE}extras:\n  storages: {storages}\n", "job")
    assert found == [(id_, 11) for id_ in expected]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("uri", "count"),
    [
        ("Bad Image", 1),
        ("' ubuntu'", 1),
        ("''", 1),
        ("ubuntu:22.04", 0),
        ("'<% $parameters.image %>'", 0),
    ],
)
def test_a_roles_image_that_is_none(uri: str, count: int, engine: Engine) -> None:
    """It is refused where the job file names it, unless a tag in it is yet to be replaced."""
    text = ONE.replace("uri: ubuntu", f"uri: {uri}") + "parameters: {image: ubuntu}\n"
    assert problems_of(text, engine) == [("PR782", 4)] * count


@pytest.mark.parametrize(("parameters", "count"), [("{}", 1), ("{mount: true}", 0)])
def test_team_storages_that_only_openpai_mounts(parameters: str, count: int) -> None:
    """The plugin is heard of, except where it mounts by itself or the job names its storages."""
    plugin = f"{{plugin: teamwise_storage, parameters: {parameters}}}"
    text = f"{ONE}extras:\n  com.microsoft.pai.runtimeplugin: [{plugin}]\n"
    assert problems_of(text, "job") == [("PR784", 11)] * count
    assert problems_of(f"{text}  storages: [{{name: a}}]\n", "job") == []


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_arguments_make_the_same_objects(engine: Engine) -> None:
    """Nothing but the key is random, and the key is an argument."""
    assert made(ONE, engine) == made(ONE, engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_object_can_be_found_again(engine: Engine) -> None:
    """Every object and every Pod bears the labels of its job, and lies in the namespace."""
    objects = made(ONE, engine, namespace="team", name="abc")
    for each in objects:
        assert each["metadata"]["namespace"] == "team"
        labels = {"app.kubernetes.io/managed-by": "pairun", "pairun/job": "abc"}
        assert labels.items() <= each["metadata"]["labels"].items()
    text = json.dumps(objects[-1])
    assert '"pairun/role": "main"' in text
    assert PORT_ANNOTATION in text
    assert "namespace" not in made(ONE, engine)[-1]["metadata"]


# --- the engines ---------------------------------------------------------------------------------


def test_who_a_pod_is() -> None:
    """An Indexed Job's annotation, a lone Pod's number and a JobSet's attempt reach the Pod."""
    [job] = by_kind(made(without_first_role(), "job"), "Job")
    indexed = environment(next(pods_in(job)), "app")
    annotation = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    for name in ("FC_TASK_INDEX", "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "PAI_TASK_INDEX"):
        assert indexed[name] == annotation
    assert "pairun/index" not in job["spec"]["template"]["metadata"]["labels"]
    [jobset] = by_kind(made(TEXT, "jobset"), "JobSet")
    attempt = "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"
    for pod in pods_in(jobset):
        assert environment(pod, "init")["FC_FRAMEWORK_ATTEMPT_ID"] == attempt
    pods = by_kind(made(TEXT, "pod"), "Pod")
    names = [p["metadata"]["name"] for p in pods]
    assert names == ["train-psserver-0", *(f"train-worker-{i}" for i in range(3))]
    for pod, index in zip(pods, ["0", "0", "1", "2"], strict=True):
        variables = environment(pod["spec"], "init")
        assert variables["FC_TASK_INDEX"] == pod["metadata"]["labels"]["pairun/index"] == index
        assert variables["FC_POD_UID"] == "metadata.uid"
        assert variables["PAIRUN_BARRIER"] == "pods"
        assert variables["PAIRUN_FRAMEWORK_FILE"] == "/usr/local/pai-job/framework.json"
    framework = environment(next(pods_in(made(TEXT, "framework"))), "init")
    given_by_controller = {"FC_TASK_INDEX", "FC_POD_UID", "PAIRUN_BARRIER", "PAIRUN_FRAMEWORK_FILE"}
    assert not given_by_controller & framework.keys()


def test_a_framework_is_openpais() -> None:
    """Retry and completion are the REST server's; what only OpenPAI's clusters have is not there."""
    job = job_of()
    [framework] = by_kind(make_objects(job, options(job, "framework")), "Framework")
    ours, theirs = framework["spec"], make_framework(job)["spec"]
    assert framework["metadata"]["name"] == job.framework_id
    assert ours["retryPolicy"] == theirs["retryPolicy"]
    for mine, other in zip(ours["taskRoles"], theirs["taskRoles"], strict=True):
        assert {**mine, "task": 0} == {**other, "task": 0}
        assert mine["task"]["retryPolicy"] == other["task"]["retryPolicy"]
        spec = mine["task"]["pod"]["spec"]
        assert not {"affinity", "priorityClassName"} & spec.keys()


def test_a_job_of_one_instance() -> None:
    """It runs on old clusters when they are named; retries come from the job file."""
    text = ONE + "jobRetryCount: 2\nextras: {gangAllocation: false}\n"
    text = text.replace("    commands", "    taskRetryCount: 1\n    commands")
    [job] = by_kind(made(text, "job"), "Job")
    spec = job["spec"]
    assert (spec["parallelism"], spec["completions"], spec["backoffLimit"]) == (1, 1, 5)
    assert "completionMode" not in spec
    actions = [r["action"] for r in spec["podFailurePolicy"]["rules"]]
    assert actions == ["Ignore", "FailJob", "FailJob", "Ignore", "Ignore"]
    old = made(ONE, "job", version=(1, 20))
    assert "podFailurePolicy" not in old[-1]["spec"]
    assert lowest(old).since == (1, 20)
    assert problems_of(ONE, "job", version=(1, 20)) == [("PR784", 0)]


def completion(failed: int, succeeded: int | None = None, more: str = "") -> str:
    """A role of four that says when it ends."""
    said = f"minFailedInstances: {failed}"
    said += "" if succeeded is None else f", minSucceededInstances: {succeeded}"
    lines = f"    instances: 4\n    completion: {{{said}}}\n    dockerImage"
    return ONE.replace("    dockerImage", lines) + more


def test_the_clusters_own_exit_codes() -> None:
    """What its diagnosis says of a class outranks OpenPAI's meaning of the code."""
    job = job_of(ONE)
    spec = counted(job, job.roles[0])
    own = {"storage_io_error": 222, "gpu_oom": 20}
    rules = failure_rules(job, job.roles[0], spec, own, alone=True)
    by_action = {
        r["action"]: r["onExitCodes"]["values"]
        for r in rules
        if r.get("onExitCodes", {}).get("containerName") == "app"
    }
    assert 222 in by_action["Ignore"]
    assert 222 not in by_action["FailJob"]
    assert 20 in by_action["FailJob"]


@pytest.mark.parametrize("own", [{}, {"storage_io_error": 222, "gpu_oom": 20, "gpu_lost": 40}])
def test_a_job_has_the_codes_of_an_exported_policy(own: dict[str, int]) -> None:
    """One table decides for the user's container: a manifest adds the codes of init."""
    job = job_of(ONE)
    rules = failure_rules(job, job.roles[0], counted(job, job.roles[0]), own, alone=True)
    exported = pod_failure_policy(Rules({}, own, {}), "app")["podFailurePolicy"]["rules"]
    assert [r for r in rules if r.get("onExitCodes", {}).get("containerName") != "init"] == exported


def test_completion_in_a_job() -> None:
    """What a Job has words for is said with them; each word needs its version."""
    spec = made(completion(3, 2), "job")[-1]["spec"]
    assert spec["completionMode"] == "Indexed"
    assert (spec["backoffLimitPerIndex"], spec["maxFailedIndexes"]) == (0, 2)
    assert spec["successPolicy"] == {"rules": [{"succeededCount": 2}]}
    # one that fails for good is one of those that may
    assert [r["action"] for r in spec["podFailurePolicy"]["rules"]] == ["FailIndex"] * 2
    assert "backoffLimit" not in spec
    names = [str(f) for f in features_in(made(completion(3, 2), "job"))]
    assert names == [f"1.{n} or later" for n in (20, 22, 26, 29, 31)]
    gang = made(completion(1), "job")[-1]["spec"]
    assert gang["backoffLimit"] == 0
    assert "maxFailedIndexes" not in gang
    never = made(completion(-1), "job")[-1]["spec"]
    assert never["backoffLimitPerIndex"] == 0
    assert "maxFailedIndexes" not in never


def test_what_a_job_cannot_do_is_said() -> None:
    """Several roles are errors at their lines; retries of a gang and -1 are warnings."""
    assert problems_of(TEXT.replace("jobRetryCount: 3\n", ""), "job") == [("PR780", 17)]
    gang = completion(1, more="jobRetryCount: 2\n")
    assert problems_of(gang, "job") == [("PR784", 12)]
    assert problems_of(completion(-1), "job") == [("PR784", 8)]


def test_a_jobset() -> None:
    """One Job per role; the first role that is done ends the job, as under FrameworkController."""
    [jobset] = by_kind(made(TEXT, "jobset"), "JobSet")
    spec = jobset["spec"]
    assert spec["failurePolicy"]["maxRestarts"] == 3
    assert spec["failurePolicy"]["rules"][0]["action"] == "FailJobSet"
    any_of = {"operator": "Any", "targetReplicatedJobs": ["psserver", "worker"]}
    assert spec["successPolicy"] == any_of
    counts = [
        (j["name"], j["replicas"], j["template"]["spec"]["completions"])
        for j in spec["replicatedJobs"]
    ]
    assert counts == [("psserver", 1, 1), ("worker", 1, 3)]
    for each in spec["replicatedJobs"]:
        assert each["template"]["spec"]["completionMode"] == "Indexed"
        assert each["template"]["spec"]["backoffLimit"] == 0
    waits = TEXT.replace("    instances: 3", "    completion: {minSucceededInstances: -1}")
    [jobset] = by_kind(made(waits, "jobset"), "JobSet")
    assert jobset["spec"]["successPolicy"]["targetReplicatedJobs"] == ["psserver"]
    assert problems_of(completion(-1), "jobset") == [("PR780", 8)]


def test_bare_pods_are_on_their_own() -> None:
    """Nobody retries or ends them, which is said."""
    assert problems_of(TEXT, "pod")[:1] == [("PR784", 0)]
    assert ("PR784", 5) in problems_of(TEXT, "pod")
    assert problems_of(ONE, "pod") == []


@pytest.mark.parametrize("engine", ["job", "jobset", "pod"])
def test_the_users_container_mounts_the_image(engine: Engine) -> None:
    """Its first process is in it, read-only; init is told, and the version that it needs is named."""
    objects = made(ONE, engine, image_volume=True)
    assert str(features_in(objects)[-1]) == "1.35 or later"
    for pod in pods_in(objects):
        init, app = pod["initContainers"][0], pod["containers"][0]
        image = {"reference": "registry.example/pairun:1", "pullPolicy": "Always"}
        assert {"name": "pairun-image", "image": image} in pod["volumes"]
        (mount,) = [m for m in app["volumeMounts"] if m["name"] == "pairun-image"]
        assert (mount["mountPath"], mount["subPath"]) == ("/opt/pairun", "opt/pairun")
        assert mount["readOnly"]
        assert app["command"] == ["/opt/pairun/runtime"]
        assert {"name": "PAIRUN_PROGRAM", "value": "/opt/pairun/runtime"} in init["env"]
        assert "pairun-image" not in [m["name"] for m in init["volumeMounts"]]


def test_a_cluster_without_image_volumes_is_refused() -> None:
    """The feature gate is off by default before 1.35."""
    assert problems_of(ONE, "pod", version=(1, 34), image_volume=True) == [("PR781", 6)]
    assert problems_of(ONE, "pod", version=(1, 35), image_volume=True) == []


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ((1, 32), "Kubernetes 1.32 does not have volumes with an image (ImageVolume)"),
        ((1, 33), "Kubernetes 1.33 has only behind a feature gate: volumes with an image"),
    ],
)
def test_a_feature_behind_a_gate(version: tuple[int, int], words: str) -> None:
    with pytest.raises(PairunError, match=re.escape(words)):
        made(ONE, "pod", version=version, image_volume=True)


# --- versions, names, bad input ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "engine", "version", "count"),
    [
        (ONE, "pod", (1, 20), 0),
        (ONE, "pod", (1, 19), 1),
        (completion(1), "job", (1, 21), 1),
        (completion(1), "job", (1, 22), 0),
        (completion(3, 2), "job", (1, 28), 2),
        (completion(3, 2), "job", (1, 31), 0),
        (TEXT, "jobset", (1, 26), 1),
        (TEXT, "jobset", (2, 0), 0),
    ],
)
def test_a_version_that_lacks_something(
    text: str, engine: Engine, version: tuple[int, int], count: int
) -> None:
    """Each feature that the cluster does not have is one error, all at once."""
    ids = [id_ for id_, _ in problems_of(text, engine, version=version)]
    assert ids.count("PR781") == count


def test_secrets_that_only_the_cluster_knows() -> None:
    """A Framework's job has masked secrets; no Secret can be made of them."""
    job = attrs.evolve(job_of(ONE + "secrets: {a: b}\n"), secrets=None, secrets_unknown=True)
    with pytest.raises(PairunError) as e:
        make_objects(job, options(job, "pod"))
    assert [p.id for p in e.value.problems] == ["PR782"]


def test_names_that_kubernetes_refuses() -> None:
    """A name of one's own is checked by the engine's rule, a role's and a user's by the label's."""
    job = job_of(ONE.replace("main:", f"{'r' * 64}:"))
    wrong: dict[Engine, str] = {"framework": "a-b", "job": "1a", "pod": "A", "jobset": "x" * 37}
    for engine, name in wrong.items():
        with pytest.raises(PairunError) as e:
            make_objects(job, options(job, engine, name=name))
        assert [p.id for p in e.value.problems] == ["PR783", "PR783"]
    other = attrs.evolve(job_of(ONE), user="a b", virtual_cluster="ä")
    with pytest.raises(PairunError) as e:
        make_objects(other, options(other, "framework"))
    assert [p.id for p in e.value.problems] == ["PR783", "PR783"]


def test_a_job_that_is_too_large() -> None:
    """A ConfigMap holds a MiB, annotations a quarter of it."""
    text = ONE + f"description: {'x' * 300_000}\n"
    assert problems_of(text, "framework") == [("PR783", 0)]
    assert problems_of(text, "pod") == []
    assert problems_of(text.replace("x", "xxxx"), "pod") == [("PR783", 0)]


def test_two_logins_for_one_registry() -> None:
    """A pull Secret holds one login per registry."""
    second = TEXT.replace(
        "taskRoles:",
        "  - {name: two, type: dockerimage, uri: registry.example/b, auth: {username: a, "
        "password: longer, registryuri: registry.example}}\ntaskRoles:",
    )
    second = second[::-1].replace("egami :egamIrekcod", "owt :egamIrekcod", 1)[::-1]
    assert [id_ for id_, _ in problems_of(second, "framework")] == ["PR780"]


@pytest.mark.parametrize("value", ["s3cret-token", '"s3cret-token\\n"', "'\"s3cret-token'"])
def test_a_json_job_keeps_its_secrets(value: str) -> None:
    """The REST server's mask knows only blocks of YAML; the text is written anew."""
    document = read_text(Source("j", "job", f"{ONE}secrets: {{token: {value}}}\n"), JS).plain()
    objects = made(json.dumps(document), "pod")
    assert "s3cret-token" not in json.dumps([o for o in objects if o["kind"] != "Secret"])
    assert "s3cret-token" in secret(objects, "-configcred")


@given(st.text(max_size=80), st.integers(10, 63))
def test_a_short_name_fits(text: str, limit: int) -> None:
    """Cut names keep to the limit, and equal names come of equal texts only."""
    assert len(short(text, limit)) <= limit
    assert short(text, limit) != short(text + "x" * limit, limit)


@given(st.from_regex(r"[a-zA-Z0-9_-]{1,255}", fullmatch=True))
def test_a_default_name_is_a_label(name: str) -> None:
    """Whatever the job is called, its workload has a name that Kubernetes and JobSet take."""
    job = attrs.evolve(job_of(ONE), name=name)
    assert re.fullmatch("[a-z]([-a-z0-9]{0,34}[a-z0-9])?", default_name(job, "pod"))


LABEL = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@pytest.mark.shared
@pytest.mark.parametrize("path", JOBS or [None], ids=lambda p: p.name if p else "absent")
def test_a_real_job_becomes_objects(path: Path) -> None:
    """No job file crashes; names fit, secrets stay in Secrets, YAML brings back the same."""
    job, _ = load_job(str(path), user="alice")
    if job is None:
        return
    hidden = [js_text(n.value) for n in leaves(job.secrets)] if job.secrets else []
    for entry in job.prerequisites:
        password = entry.node.at(("auth", "password"))
        if password is not None and "<%" not in str(password.value):
            hidden.append(str(password.value))
    for engine in ENGINES:
        try:
            objects = make_objects(job, options(job, engine))
        except PairunError as e:
            assert {p.id for p in e.problems} == {"PR780"}
            continue
        for each in objects:
            assert LABEL.fullmatch(each["metadata"]["name"])
            for value in each["metadata"]["labels"].values():
                assert re.fullmatch("([A-Za-z0-9][-A-Za-z0-9_.]{0,62})?", value)
        # of many Pods the first ones do
        some = objects[:8]
        assert [yaml.safe_load(as_yaml(each)) for each in some] == some
        others = json.dumps([o for o in objects if o["kind"] != "Secret"])
        assert not [value for value in hidden if value in others]
