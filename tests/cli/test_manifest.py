"""``pairun manifest``: YAML alone on standard output, everything else said on standard error."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from pairun.engines.manifest.choices import ENGINES
from tests.engines.manifest.test_podvalues import pods_in

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Said, Shell

ARGS = ("--image", "registry.example/pairun:1")


def documents(said: Said) -> list[dict[str, Any]]:
    """The objects that were printed."""
    assert said.code == 0, said.err
    return list(yaml.safe_load_all(said.out))


def two_roles(shell: Shell, more: str = "") -> Path:
    """A job of two roles."""
    role = """\
  server:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0}
    commands: [serve]
"""
    return shell.file("two.yaml", shell.job_text + role + more)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_output_is_yaml_with_its_version_above(shell: Shell, engine: str) -> None:
    """The first line says which Kubernetes is needed; the workload is the last object."""
    said = shell.process("manifest", shell.job(), "--engine", engine, *ARGS)
    lines = said.out.splitlines()
    assert lines[0].startswith("# Needs Kubernetes 1.")
    kinds = [d["kind"] for d in documents(said)]
    last = {"framework": "Framework", "job": "Job", "jobset": "JobSet", "pod": "Pod"}[engine]
    assert kinds[-1] == last
    assert ("ConfigMap" in kinds) is (engine != "framework")
    assert said.ids == (["PR784"] if engine == "pod" else [])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_quota_accepts_the_pods(shell: Shell, engine: str) -> None:
    """A ResourceQuota wants requests and limits of every container; a limit alone is its request."""
    *_, workload = documents(shell("manifest", shell.job(), "--engine", engine, *ARGS))
    pods = [p["spec"] for p in pods_in(workload)]
    for container in (c for p in pods for c in (*p["initContainers"], *p["containers"])):
        resources = container["resources"]
        assert {"cpu", "memory"} <= resources["limits"].keys()
        assert {"cpu", "memory"} <= (resources.get("requests") or resources["limits"]).keys()
    assert pods


def test_the_command_line_is_above_the_job(shell: Shell) -> None:
    """An option replaces what the job sets, and joins its mappings."""
    pod = "extras: {pairun: {pod: {queue: a, spec: {nodeSelector: {zone: a}}, shm: 1Gi}}}\n"
    job = shell.file("pod.yaml", shell.job_text + pod)
    argv = ("manifest", job, "--engine", "job", "--set=queue=b", "--set=spec.nodeSelector.gpu=a100")
    *_, workload = documents(shell(*argv, *ARGS))
    assert workload["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "b"
    [template] = pods_in(workload)
    assert template["spec"]["nodeSelector"] == {"zone": "a", "gpu": "a100"}
    assert template["spec"]["volumes"][0]["emptyDir"]["sizeLimit"] == "1Gi"


def test_only_the_key_is_new_each_time(shell: Shell) -> None:
    """Two outputs differ in the rendezvous key and in nothing else."""
    first, second = (
        documents(shell("manifest", shell.job(), "--engine", "job", *ARGS)) for _ in "12"
    )
    keys = {d[0]["data"].pop("key") for d in (first, second)}
    assert len(keys) == 2
    assert all(len(base64.b64decode(base64.b64decode(k))) == 32 for k in keys)
    assert first == second


def test_everything_that_is_wrong_is_said_at_once(shell: Shell) -> None:
    """No image, an old cluster, a second role: one run names them all, and prints no YAML."""
    job = two_roles(shell)
    said = shell("manifest", job, "--engine", "job", "--kubernetes-version", "v1.20.2")
    assert (said.code, said.out) == (1, "")
    assert sorted(said.ids) == ["PR780", "PR781", "PR782", "PR784"]
    assert f"{job}:12" in said.err
    assert "1.22 or later" in said.err


def test_a_job_is_reviewed_as_a_dry_run_does(shell: Shell) -> None:
    """An error of the job is the review's, and what is missing besides is said with it."""
    job = shell.job(more="extras: {com.microsoft.pai.runtimeplugin: [{plugin: nothing}]}\n")
    said = shell("manifest", job, "--engine", "job")
    review = shell("--dry-run", job)
    assert said.code == review.code == 1
    assert said.ids == ["PR782", *review.ids]


def test_the_image_may_be_set_for_good(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """PAIRUN_IMAGE is the init container's image where --image does not say another one."""
    monkeypatch.setenv("PAIRUN_IMAGE", "registry.example/pairun:2")
    job = documents(shell("manifest", shell.job(), "--engine", "job"))[-1]
    assert job["spec"]["template"]["spec"]["initContainers"][0]["image"].endswith(":2")
    job = documents(shell("manifest", shell.job(), "--engine", "job", *ARGS))[-1]
    assert job["spec"]["template"]["spec"]["initContainers"][0]["image"].endswith(":1")


@pytest.mark.parametrize(
    "wrong",
    [
        ("--kubernetes-version", "new"),
        ("--namespace", "A"),
        ("--gpu-resource", "gpu"),
        ("--set", "spec.containers.app.securityContext.runAsUser=-1"),
        ("--log-host-path", "logs"),
        ("--user", "a/b"),
    ],
)
def test_wrong_values_of_options(shell: Shell, wrong: tuple[str, str]) -> None:
    """A value that Kubernetes never takes is wrong usage."""
    option, value = wrong
    said = shell("manifest", shell.job(), "--engine", "pod", *ARGS, f"{option}={value}")
    assert (said.code, said.ids) == (2, ["PR801"])


def test_a_pod_has_the_grace_time_of_its_playbook(shell: Shell) -> None:
    """The cluster's own grace time decides, and the Pod gets a little more."""
    playbook = (shell.project / "playbooks" / "runtime.yaml").read_text()
    root = shell.root({"playbooks/runtime.yaml": playbook.replace("grace: 30s", "grace: 90s")})
    said = shell("manifest", shell.job(), "--engine", "job", *ARGS, "--root", root)
    spec = documents(said)[-1]["spec"]["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] == 92
    assert {"name": "PAIRUN_GRACE", "value": "90"} in spec["containers"][0]["env"]


def test_words_of_yaml_stay_texts(shell: Shell) -> None:
    """What kubectl's YAML takes for a truth value is quoted."""
    text = shell.job_text.replace("[train]", "['y']")
    said = shell("manifest", shell.file("job.yaml", text), "--engine", "job", *ARGS)
    assert "value: 'y'\n" in said.out


def test_secrets_are_never_said(shell: Shell) -> None:
    """Warnings and errors about secrets show none."""
    job = two_roles(shell, "secrets: {token: s3cret-token}\nparameters: {a: s3cret-token}\n")
    said = shell("manifest", job, "--engine", "job", *ARGS)
    assert {"PR780", "PR937"} <= set(said.ids)
    assert "s3cret-token" not in said.err + said.out


def test_a_framework_without_its_secrets(shell: Shell) -> None:
    """Their values are in the cluster only."""
    job = shell.job(more="secrets: {token: s3cret-token}\n")
    [*_, framework] = documents(shell("manifest", job, "--engine", "framework", *ARGS))
    stored = shell.file("framework.yaml", yaml.safe_dump(framework))
    said = shell("manifest", stored, "--engine", "pod", *ARGS)
    assert said.code == 1
    assert "PR782" in said.ids


@pytest.mark.parametrize("engine", ["framework", "job", "jobset", "pod"])
def test_an_empty_name_is_an_error(shell: Shell, engine: str) -> None:
    """It is a name that nobody meant, and not the wish for the default."""
    said = shell("manifest", shell.job(), "--engine", engine, "--name", "", *ARGS)
    assert said.code == 1
    assert "PR783" in said.ids


@pytest.mark.parametrize("command", ["--dry-run", "manifest"])
@pytest.mark.parametrize("user", ["a b", "", "a" * 64])
def test_a_user_that_no_label_takes(shell: Shell, command: str, user: str) -> None:
    """The review refuses what the manifest refuses."""
    more = ["--engine", "job", *ARGS] if command == "manifest" else []
    said = shell(command, shell.job(), "--user", user, *more)
    assert (said.code, said.ids) == (2, ["PR801"])
