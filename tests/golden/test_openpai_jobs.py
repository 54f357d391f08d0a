"""Every real job file means to pairun what it meant to OpenPAI."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from pairun.errors import Place, Source, render
from pairun.job.hiding import mask_secrets
from pairun.job.jobfile import load_job
from pairun.job.model import Job, Role
from pairun.job.planning import collect
from pairun.job.templates import render_secrets, user_command
from pairun.module import reveal
from pairun.openpai.framework import job_from_framework, make_framework
from pairun.openpai.platform import framework_environment
from pairun.playbook.document.reading import Node, node_of
from pairun.playbook.drafts import PluginUse
from tests.conftest import SHARED

OPENPAI = SHARED / "openpai"
pytestmark = pytest.mark.shared


def golden(name: str) -> dict[str, Any]:
    """One of the golden files; empty where the third-party texts are absent."""
    path = OPENPAI / "golden" / name
    loaded: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return loaded


def cases(found: list[Any]) -> list[Any]:
    """Parameters, or one that is skipped and says why."""
    skip = pytest.mark.skip(reason=f"{OPENPAI} is absent")
    return found or [pytest.param(None, marks=skip)]


SERVER = golden("restserver.json")
VALID = cases([f for f, e in SERVER.items() if e["valid"]])
INVALID = cases([f for f, e in SERVER.items() if not e["valid"]])
RUNS = cases(
    [(file, key, run) for file, runs in golden("runtime.json").items() for key, run in runs.items()]
)


def job_of(file: str) -> Job:
    """A job that must be valid."""
    job, problems = load_job(str(OPENPAI / "jobs" / file))
    assert job is not None, "\n".join(map(render, problems))
    return job


@pytest.mark.parametrize("file", VALID)
def test_a_job_that_openpai_takes_is_valid_and_renders_the_same(file: str) -> None:
    """The roles, their Pod names and the text of their commands equal the REST server's."""
    job = job_of(file)
    found = {r.name: {"fcName": r.fc_name, "entrypoint": user_command(job, r)} for r in job.roles}
    assert found == SERVER[file]["roles"]


@pytest.mark.parametrize("file", VALID)
def test_the_platforms_variables_are_the_same(file: str) -> None:
    """What every task is told about its job equals what the REST server tells it."""
    expected = {name: str(value) for name, value in SERVER[file]["frameworkEnv"].items()}
    assert framework_environment(job_of(file)) == expected


@pytest.mark.parametrize("file", VALID)
def test_the_stored_text_is_the_same_and_can_be_read_back(file: str) -> None:
    """The Framework carries the masked text, and a job with the same roles comes out of it."""
    job = job_of(file)
    text = (OPENPAI / "jobs" / file).read_bytes().decode()
    assert mask_secrets(text) == SERVER[file]["configAnnotation"]
    back, problems = job_from_framework(make_framework(job))
    assert back is not None, list(map(render, problems))
    assert [r.name for r in back.roles] == [r.name for r in job.roles]


@pytest.mark.parametrize("file", INVALID)
def test_a_job_that_openpai_refuses_is_refused_at_a_place(file: str) -> None:
    """Each refused job has an error that shows where it is wrong."""
    job, problems = load_job(str(OPENPAI / "jobs" / file))
    assert job is None
    assert problems.errors
    for problem in problems.errors:
        assert problem.place is not None
        assert problem.place.source.file.endswith(file)
        assert problem.message


@pytest.mark.parametrize("run", RUNS)
def test_plugins_are_collected_as_the_original_runtime_did(
    run: tuple[str, str, dict[str, Any]],
) -> None:
    """Same plugins, in the same order, for the same roles, with the same commands."""
    file, key, seen = run
    job = job_of(file)
    role = job.role(key.partition("|")[2])
    assert role is not None
    assert role.name == key.partition("|")[0]
    uses, problems = collect(job, role)
    assert not problems.errors
    if seen["rc"] != 0:
        # The original looked the sanitised name up among the raw ones.
        assert "KeyError" in seen["err"]
        assert role.name != role.fc_name
        return
    assert scripts(seen, "pre") == expected_scripts(job, role, uses, "pre")
    assert scripts(seen, "post") == expected_scripts(job, role, uses, "post")


def scripts(seen: dict[str, Any], when: str) -> list[tuple[int, str]]:
    """The scripts that the original made, in the order it ran them: position and what they do."""
    order = re.findall(rf"plugin_{when}(\d+)\.sh", seen[f"{when}commands.sh"])
    return [(int(n), gist(seen[f"plugin_{when}{n}.sh"])) for n in order]


def gist(script: str) -> str:
    """What a script of the original does: the ssh plugin's by name, others by their commands."""
    first, _, rest = script.partition("\n")
    assert first == "set -o errexit"
    if "plugins/ssh/sshd.sh" in rest:
        return "ssh, barrier" if "sshbarrier.sh" in rest else "ssh"
    return rest


def expected_scripts(
    job: Job, role: Role, uses: list[PluginUse], when: str
) -> list[tuple[int, str]]:
    """What the collected plugins would have had the original do."""
    found = []
    for position, use in enumerate(uses):
        parameters = use.parameters
        if use.plugin == "ssh" and when == "pre" and job.gang:
            if truth(parameters, "jobssh") or truth(parameters, "userssh"):
                both = truth(parameters, "sshbarrier") and truth(parameters, "jobssh")
                found.append((position, "ssh, barrier" if both else "ssh"))
        elif use.plugin == "cmd" and (lines := commands(parameters, when)):
            found.append((position, "".join(f"{line}\n" for line in lines)))
    return found if when == "pre" else found[::-1]


def truth(parameters: Node, key: str) -> bool:
    """Whether a parameter asks for something."""
    node = parameters.get(key)
    return bool(node and (node.get("type") if isinstance(node.value, dict) else node.value))


def commands(parameters: Node, when: str) -> list[str]:
    """The commands of a cmd plugin for one side of the user's command."""
    event = {"pre": "taskStarts", "post": "taskSucceeds"}[when]
    plain = parameters.plain()
    found = list(plain.get(f"{when}Commands", []))
    for callback in plain.get("callbacks", []):
        found += callback["commands"] if callback["event"] == event else []
    return found


@pytest.mark.parametrize("run", RUNS)
def test_the_users_command_with_secrets_is_the_same(run: tuple[str, str, dict[str, Any]]) -> None:
    """What reaches the shell equals what the original put into its script."""
    file, key, seen = run
    job = job_of(file)
    role = job.role(key.partition("|")[0])
    assert role is not None
    if "user_cmd" in seen:
        rendered = reveal(render_secrets(user_command(job, role), job.secrets))
        assert rendered == seen["user_cmd"].removesuffix("\n")


def test_masked_secrets_are_taken_from_where_they_are_mounted() -> None:
    """A stored job gets its secrets from the file that OpenPAI mounts beside it."""
    file = "pai/src__rest-server__test__protocolSecret-t0.yaml"
    if file not in SERVER:
        pytest.skip(f"{OPENPAI} is absent")
    framework = make_framework(job_of(file))
    assert "******" in framework["metadata"]["annotations"]["config"]
    place = Place(Source("secrets.yaml", "job", ""), 1, 1)
    mounted = node_of({"registry": {"username": "u", "password": "p"}}, place)
    job, _ = job_from_framework(framework, mounted)
    assert job is not None
    assert job.secrets is mounted
