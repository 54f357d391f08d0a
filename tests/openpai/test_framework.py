"""What a job looks like in the cluster, to its containers, and to its playbooks."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from pairun.errors import PairunError, Place, Source, render
from pairun.job.hiding import mask_secrets
from pairun.job.jobfile import read_job
from pairun.job.jobview import job_context
from pairun.job.jsyaml import JS
from pairun.job.model import Job
from pairun.kube.cluster import cluster_from_framework
from pairun.kube.ports import PORT_ANNOTATION
from pairun.module import Secret
from pairun.openpai.framework import (
    job_from_framework,
    job_text,
    make_framework,
    with_statuses,
)
from pairun.openpai.platform import platform_environment
from pairun.playbook.document.reading import node_of, read_text
from tests.restserver import framework_of

TEXT = """\
protocolVersion: 2
name: train
type: job
jobRetryCount: 3
secrets:
  token: s3cret-token
  login: {password: "pass&word"}
prerequisites:
  - name: image
    type: dockerimage
    uri: registry.example/team/image:1
    auth:
      username: robot
      password: <% $secrets.login.password %>
      registryuri: registry.example
  - {name: plain, type: dockerimage, uri: ubuntu, auth: {password: in-plain-sight}}
taskRoles:
  PS_server:
    dockerImage: plain
    taskRetryCount: 4
    resourcePerInstance: {cpu: 2, memoryMB: 64, gpu: 0, ports: {http: 2, grpc: 1}}
    commands: ["serve"]
  worker:
    instances: 3
    dockerImage: image
    completion: {minFailedInstances: -1}
    extraContainerOptions: {shmMB: 100, infiniband: true}
    resourcePerInstance: {cpu: 4, memoryMB: 128, gpu: 2}
    commands: ["train --token <% $secrets.token %>"]
defaults: {virtualCluster: fast}
"""


def job_of(text: str = TEXT, user: str = "alice") -> Job:
    """A job that must be valid."""
    job, problems = read_job(read_text(Source("job.yaml", "job", text), JS), user=user)
    assert job is not None, list(map(render, problems))
    return job


def test_the_framework_carries_what_the_rest_server_puts_there() -> None:
    """Names, labels, annotations and policies."""
    made = framework_of(job_of())
    name = hashlib.md5(b"alice~train").hexdigest()
    metadata = made["metadata"]
    assert metadata["name"] == metadata["annotations"]["logPathInfix"] == name
    assert metadata["labels"] == {"userName": "alice", "virtualCluster": "fast"}
    assert metadata["annotations"]["totalGpuNumber"] == "6"
    assert "s3cret" not in json.dumps(made)
    assert made["spec"]["retryPolicy"] == {"fancyRetryPolicy": True, "maxRetryCount": 3}
    server, worker = made["spec"]["taskRoles"]
    assert (server["name"], server["taskNumber"]) == ("psserver", 1)
    assert server["task"]["retryPolicy"] == {"fancyRetryPolicy": False, "maxRetryCount": 0}
    assert worker["frameworkAttemptCompletionPolicy"] == {
        "minFailedTaskCount": -1,
        "minSucceededTaskCount": 3,
    }
    pod = server["task"]["pod"]
    assert pod["metadata"]["annotations"][PORT_ANNOTATION] == (
        '{"schedulePortStart":15000,"schedulePortEnd":40000,'
        '"ports":{"http":{"count":2},"grpc":{"count":1},"ssh":{"count":1}}}'
    )
    app = worker["task"]["pod"]["spec"]["containers"][0]
    assert app["image"] == "registry.example/team/image:1"
    assert app["resources"]["limits"]["rdma/hca"] == 1
    volumes = {v["name"]: v for v in worker["task"]["pod"]["spec"]["volumes"]}
    assert volumes["dshm"]["emptyDir"]["sizeLimit"] == "100Mi"
    assert volumes["job-secrets"]["secret"] == {"secretName": f"{name}-configcred"}


def test_without_gang_allocation_tasks_retry_on_their_own() -> None:
    """Only then does taskRetryCount count."""
    made = make_framework(job_of(TEXT + "extras: {gangAllocation: false}\n"))
    retry = made["spec"]["taskRoles"][0]["task"]["retryPolicy"]
    assert retry == {"fancyRetryPolicy": True, "maxRetryCount": 4}


def test_both_containers_get_what_the_platform_sets() -> None:
    """Shared variables, and those of one side only."""
    job = job_of()
    init, app = platform_environment(job, job.roles[0], 0, pod_uid="u-1")
    assert init["USER_CMD"] == "serve"
    assert init["GANG_ALLOCATION"] == "true"
    assert "USER_CMD" not in app
    assert (app["PAI_TASK_INDEX"], app["NVIDIA_VISIBLE_DEVICES"]) == ("0", "none")
    assert "PAI_TASK_INDEX" not in init
    for environment in (init, app):
        assert environment["PAI_CURRENT_TASK_ROLE_NAME"] == "PS_server"
        assert environment["FC_TASKROLE_NAME"] == "psserver"
        assert environment["FC_POD_UID"] == "u-1"
        assert environment["FC_TASK_ATTEMPT_INSTANCE_UID"] == "0_u-1"
        assert environment["FC_POD_NAME"] == f"{job.framework_id}-psserver-0"
        assert environment["PAI_RESOURCE_worker"] == "2,4,128,100"
        assert environment["PAI_JOB_TASK_COUNT"] == "4"
    _, app = platform_environment(job, job.roles[1], 2, pod_uid="u-2")
    assert "NVIDIA_VISIBLE_DEVICES" not in app


def test_a_framework_with_statuses_is_a_cluster() -> None:
    """What is made here can be read as what comes from the API server."""
    job = job_of()
    pods: dict[str, list[dict[str, Any] | None]] = {
        "psserver": [{"podUID": "u0", "podHostIP": "10.0.0.1"}],
        "worker": [{"podUID": "u1", "podHostIP": "10.0.0.2"}, None, None],
    }
    made = make_framework(job)
    raw_names = {role.fc_name: role.name for role in job.roles}
    cluster = cluster_from_framework(with_statuses(made, pods), "worker", 0, raw_names)
    assert "status" not in made
    assert [r.name for r in cluster.roles] == ["PS_server", "worker"]
    assert [i.pod_uid for i in cluster.roles[1].instances] == ["u1", None, None]
    assert cluster.own is not None
    assert cluster.own.host_ip == "10.0.0.2"


def test_a_stored_job_reads_back_without_and_with_its_secrets() -> None:
    """The mask is no secret; the mounted file's values are."""
    made = make_framework(job_of())
    job, _ = job_from_framework(made)
    assert job is not None
    assert (job.user, job.secrets) == ("alice", None)
    place = Place(Source("secrets.yaml", "job", ""), 1, 1)
    job, _ = job_from_framework(made, node_of({"token": "again"}, place))
    assert job is not None
    assert job_context(job, job.roles[1])["user_command"] == Secret("train --token again")


@pytest.mark.parametrize("made", [{}, {"metadata": None}, {"metadata": {"annotations": {}}}])
def test_a_framework_without_a_job_says_so(made: dict[str, Any]) -> None:
    """Frameworks that others made carry no job file."""
    with pytest.raises(PairunError, match="no annotation 'config'"):
        job_text(made)


MASKED = [
    ("secrets:\n  a: b\nname: x\n", 'secrets: "******"\nname: x\n'),
    ("name: x\nsecrets:\n  a: b\n", 'name: x\nsecrets: "******"'),
    ("secrets: {a: b}\n# c\n\nname: x", 'secrets: "******"\nname: x'),
    ('{"secrets": {"a": "b"}}', '{"secrets": {"a": "b"}}'),
    ("secrets :\n  a: b\n", "secrets :\n  a: b\n"),
    ("name: x\n", "name: x\n"),
]


@pytest.mark.parametrize(("text", "expected"), MASKED)
def test_the_mask_is_the_rest_servers(text: str, expected: str) -> None:
    """Blocks in column 0 only; what the server leaves readable stays so."""
    assert mask_secrets(text) == expected


def test_playbooks_see_the_job_with_its_secrets_as_secrets() -> None:
    """The context is plain data in which nothing secret can show."""
    job = job_of()
    context = job_context(job, job.roles[1])
    assert context["user_command"] == Secret("train --token s3cret-token")
    assert context["image"]["uri"] == "registry.example/team/image:1"
    assert context["image"]["auth"] == {
        "username": "robot",
        "password": Secret("pass&word"),
        "registry": "registry.example",
    }
    assert context["role"]["resources"]["shm_mb"] == 100
    assert [r["name"] for r in context["roles"]] == ["PS_server", "worker"]
    assert (context["gang"], context["retry_count"]) == (True, 3)
    assert "s3cret" not in repr(context)
    other = job_context(job, job.roles[0], command="run {{ 7*7 }}")
    assert other["user_command"] == "run {{ 7*7 }}"
    assert other["image"]["auth"]["password"] == Secret("in-plain-sight")
    assert "in-plain-sight" not in repr(other)
    assert other["role"]["ports"] == {"http": 2, "grpc": 1, "ssh": 1}


def test_an_unknown_key_of_a_stored_job_is_a_warning() -> None:
    """The cluster has accepted the job; the command line refuses the same file."""
    source = Source("job.yaml", "job", f"{TEXT}jobColour: red\n")
    job, problems = read_job(read_text(source, JS))
    assert job is None
    assert [p.id for p in problems.errors] == ["PR502"]
    job, problems = read_job(read_text(source, JS), stored=True)
    assert job is not None
    assert [(p.id, p.severity) for p in problems] == [("PR502", "warning")]
