"""What the schema of the protocol reports, and what it makes of a slip in the indentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pairun.errors import Source
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.playbook.document.reading import read_text

if TYPE_CHECKING:
    from tests.desk import Desk

HEAD = """\
protocolVersion: 2
name: job
type: job
prerequisites: [{name: image, type: dockerimage, uri: ubuntu}]
taskRoles:
"""


def messages_of(roles: str) -> list[tuple[str, str | None]]:
    """The messages and hints of a job with these roles."""
    job, problems = read_job(read_text(Source("job.yaml", "job", HEAD + roles), JS))
    assert (job is None) == bool(problems.errors)
    return [(p.message, p.hint) for p in problems]


def test_keys_of_a_role_that_stand_in_task_roles() -> None:
    """Each is named once, with the role below which it belongs."""
    keys = ("instances", "dockerImage", "resourcePerInstance", "commands")
    roles = (
        "  worker:\n  instances: 2\n  dockerImage: image\n"
        "  resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}\n  commands: [a]\n"
    )
    hint = "indent it deeper than 'worker:', the name of its role"
    assert messages_of(roles) == [
        (
            "taskRoles.worker must be a mapping, not null",
            "write its value after 'worker:', or below it and indented deeper",
        ),
        *((f"'{key}' belongs to a role, but is in taskRoles itself", hint) for key in keys),
    ]


def test_keys_of_a_role_without_a_role() -> None:
    """Where no name stands above them, the hint asks for one."""
    ((message, hint),) = messages_of("  commands: [a]\n")
    assert message == "'commands' belongs to a role, but is in taskRoles itself"
    assert hint == "write the name of the role above it, and indent it deeper than the name"


def test_a_role_may_have_the_name_of_a_key() -> None:
    """``data`` is a role where it has the keys of one."""
    role = "{dockerImage: image, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, commands: [a]}"
    assert messages_of(f"  data: {role}\n") == []
    assert [m for m, _ in messages_of("  data: {commands: a, dockerImage: image}\n")] == [
        "'resourcePerInstance' is missing in taskRoles.data",
        "taskRoles.data.commands must be a list, not 'a'",
    ]


ROLE = "  worker:\n    dockerImage: image\n    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}\n"


def test_a_misspelt_key_is_one_error() -> None:
    """That the key is missing under its right name follows, and is not reported beside it."""
    assert messages_of(f"{ROLE}    comands: [a]\n") == [
        ("there is no key 'comands' in taskRoles.worker", "did you mean 'commands'?")
    ]
    role = ROLE.replace("cpu: 1, ", "cpus: 1, ") + "    commands: [a]\n"
    assert messages_of(role) == [
        ("there is no key 'cpus' in taskRoles.worker.resourcePerInstance", "did you mean 'cpu'?")
    ]


@pytest.mark.parametrize(
    ("written", "home"),
    [
        ("    minFailedInstances: 1\n", "`completion` of a role"),
        ("    gpu: 1\n", "`resourcePerInstance` of a role"),
        ("    shmMB: 64\n", "`extraContainerOptions` of a role"),
        ("    completion: {instances: 1}\n", "a role of `taskRoles`"),
        ("    jobRetryCount: 1\n", "the job itself, beside `taskRoles`"),
        ("completion: {minFailedInstances: 1}\n", "a role of `taskRoles`"),
        ("instances: 1\n", "a role of `taskRoles`"),
        ("minFailedInstances: 1\n", "`completion` of a role"),
    ],
)
def test_a_key_that_belongs_elsewhere(written: str, home: str) -> None:
    """The hint names the place, not the nearest key of the wrong one."""
    ((message, hint),) = messages_of(f"{ROLE}    commands: [a]\n{written}")
    assert message.startswith("there is no key")
    assert hint == f"it belongs in {home}"


@pytest.mark.parametrize("key", ["env", "environment"])
def test_a_role_has_no_variables(key: str) -> None:
    """The hint says how every job can set one."""
    ((message, hint),) = messages_of(f"{ROLE}    commands: [a]\n    {key}: {{A: b}}\n")
    assert message == f"there is no key '{key}' in taskRoles.worker"
    assert hint == "set variables with export NAME=value in the role's commands"


def test_a_date_is_not_text() -> None:
    job = HEAD.replace("name: job", "name: job\ndescription: 2020-01-02")
    _, problems = read_job(
        read_text(Source("job.yaml", "job", f"{job}{ROLE}    commands: [a]\n"), JS)
    )
    assert [(p.message, p.hint) for p in problems] == [
        ("description must be text, not a date", "quote it")
    ]


def test_a_message_does_not_show_a_password() -> None:
    job = HEAD.replace("uri: ubuntu", "uri: ubuntu, auth: {username: a, password: 12345678}")
    _, problems = read_job(
        read_text(Source("job.yaml", "job", f"{job}{ROLE}    commands: [a]\n"), JS)
    )
    (message,) = [p.message for p in problems.errors]
    assert message == "prerequisites[0].auth.password must be text, not a number"


def test_commands_as_a_block_of_text() -> None:
    """The hint shows how a list holds the block, and not the text with its line breaks."""
    ((_, hint),) = messages_of(f"{ROLE}    commands: |\n      ls\n      pwd\n")
    assert hint == "commands are a list: write '- |' in a line below, and indent the text under it"
    ((_, hint),) = messages_of(f"{ROLE}    commands: |\n      ls\n")
    assert hint == 'commands are a list: ["ls"]'


SLIPS = [
    ("memoryMB: 1024", "memoryMB: 512Mi", "write 512, without a unit: it is in MB"),
    ("memoryMB: 1024", "memoryMB: 2G", "write 2048, without a unit: it is in MB"),
    ("instances: 2", "instances: two", "write 2"),
    ("instances: 2", "instances: '2'", "remove the quotes"),
    ("protocolVersion: 2\n", "", "add a line: protocolVersion: 2"),
    ("taskRoles:\n  worker:", "taskRoles:\nworker:", "if it belongs to 'taskRoles', indent it deeper than 'taskRoles:'"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "slip", "hint"), SLIPS, ids=[slip or "none" for _, slip, _ in SLIPS]
)
def test_frequent_slips_have_a_hint(desk: Desk, text: str, slip: str, hint: str) -> None:
    problems = desk.problems(desk.job().replace(text, slip))
    assert hint in [p.hint for p in problems]


def test_a_keyword_beside_its_list_has_a_hint(desk: Desk) -> None:
    """The item above begins further right."""
    extras = "extras:\n  pairun:\n    runtime:\n    - patch: user_command\n    timeout: 5m\n"
    (problem,) = desk.problems(desk.job() + extras)
    assert problem.hint == "if it belongs to the item above, indent it by 6 spaces"
