"""The environment of the original's own fixture, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pairun.contract.arguments import build
from pairun.host.context import HostContext
from pairun.kube.cluster import JobCluster, cluster_from_framework
from pairun.module import StateModule
from pairun.openpai.environment import cluster_facts
from pairun.openpai.framework import job_from_framework
from pairun.playbook.content import Content, built_in_root
from tests.conftest import SHARED
from tests.restserver import framework_of

GOLDEN = SHARED / "openpai/golden"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not GOLDEN.exists(), reason=f"{GOLDEN} is absent"),
]


@pytest.fixture(scope="module")
def framework() -> dict[str, Any]:
    """The original's fixture."""
    loaded: dict[str, Any] = json.loads((GOLDEN / "framework.json").read_text())
    return loaded


def written(cluster: JobCluster, volume: Path) -> str:
    """The file that a job gets: what the module writes, given what the default playbook gives it."""
    facts = cluster_facts(cluster)
    args = {"environment": facts["environment"], "cluster": facts["summary"]}
    module, problems = build(Content([built_in_root()]).module("job_environment"), args)
    assert not problems
    assert isinstance(module, StateModule)
    module.apply(HostContext({}, str(volume)))
    return (volume / "runtime.d/runtime_env.sh").read_text()


@pytest.mark.parametrize("role", ["taskrole", "taskrole1"])
def test_the_environment_file_is_byte_equal(
    framework: dict[str, Any], role: str, tmp_path: Path
) -> None:
    """Same names, same values, same order, same quotes."""
    cluster = cluster_from_framework(framework, role, 0, {})
    assert written(cluster, tmp_path) == (GOLDEN / f"env_{role}.sh").read_text()


def test_raw_names_only_add_lines_at_the_end(framework: dict[str, Any], tmp_path: Path) -> None:
    """With raw names, the original's lines come first and unchanged."""
    cluster = cluster_from_framework(framework, "taskrole1", 0, {"taskrole1": "taskrole_1"})
    text = written(cluster, tmp_path)
    original = (GOLDEN / "env_taskrole1.sh").read_text()
    assert text.startswith(original)
    added = text[len(original) :].splitlines()
    assert "export PAI_HOST_IP_taskrole_1_0='10.151.41.9'" in added
    assert "export PAI_PORT_LIST_taskrole_1_0_mpi='20966,21891'" in added
    assert all("taskrole_1" in line for line in added)


def test_the_framework_we_make_agrees_with_the_fixture(framework: dict[str, Any]) -> None:
    """From the fixture's job come the fixture's roles, policies, ports and variables."""
    job, _ = job_from_framework(framework)
    assert job is not None
    # The fixture's name was made before its user was renamed.
    name = framework["metadata"]["name"]
    made = framework_of(job, name, (20000, 40000))
    assert made["metadata"]["labels"] == framework["metadata"]["labels"]
    assert made["metadata"]["annotations"] == framework["metadata"]["annotations"]
    assert made["spec"]["retryPolicy"] == framework["spec"]["retryPolicy"]
    for ours, theirs in zip(made["spec"]["taskRoles"], framework["spec"]["taskRoles"], strict=True):
        for key in ("name", "taskNumber", "frameworkAttemptCompletionPolicy"):
            assert ours[key] == theirs[key]
        our_pod, their_pod = ours["task"]["pod"], theirs["task"]["pod"]
        assert our_pod["metadata"]["annotations"] == their_pod["metadata"]["annotations"]
        assert environment(our_pod) == environment(their_pod)


def environment(pod: dict[str, Any]) -> dict[str, str]:
    """The app container's variables of a Pod template that do not come from its role's name."""
    variables = pod["spec"]["containers"][0]["env"]
    # The fixture is older than the virtual cluster's variable and than raw names here.
    newer = {"PAI_VIRTUAL_CLUSTER", "PAI_CURRENT_TASK_ROLE_NAME"}
    return {v["name"]: v.get("value", "") for v in variables if v["name"] not in newer}
