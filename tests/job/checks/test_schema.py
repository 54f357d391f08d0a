"""What the schema of the protocol reports, and what it makes of a slip in the indentation."""

from __future__ import annotations

from pairun.errors import Source
from pairun.formats.jsyaml import JS
from pairun.job.jobfile import read_job
from pairun.playbook.document.reading import read_text

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
        ("taskRoles.worker must be a mapping, not null", None),
        *((f"'{key}' belongs to a role, but stands in taskRoles itself", hint) for key in keys),
    ]


def test_keys_of_a_role_without_a_role() -> None:
    """Where no name stands above them, the hint asks for one."""
    ((message, hint),) = messages_of("  commands: [a]\n")
    assert message == "'commands' belongs to a role, but stands in taskRoles itself"
    assert hint == "write the name of the role above it, and indent it deeper than the name"


def test_a_role_may_have_the_name_of_a_key() -> None:
    """``data`` is a role where it has the keys of one."""
    role = "{dockerImage: image, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, commands: [a]}"
    assert messages_of(f"  data: {role}\n") == []
    assert [m for m, _ in messages_of("  data: {commands: a, dockerImage: image}\n")] == [
        "'resourcePerInstance' is missing in taskRoles.data",
        "taskRoles.data.commands must be a list, not 'a'",
    ]
