"""What surprises is said before it happens."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from pairun.errors import Source, render
from pairun.job.checks.surprises import job_warnings
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.job.model import Job
from pairun.playbook.document.reading import read_text

Change = dict[str, Any]


def document(role: Change, image: Change, name: str = "worker", **entries: Any) -> dict[str, Any]:
    """A job with changes to its role, to its image, and further entries."""
    return {
        "protocolVersion": 2,
        "name": "job",
        "type": "job",
        **entries,
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "ubuntu", **image}],
        "taskRoles": {
            name: {
                "dockerImage": "image",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0},
                "commands": ["train"],
                **role,
            }
        },
    }


def job_of(text: str) -> Job:
    """A job that must be valid."""
    job, problems = read_job(read_text(Source("job.yaml", "job", text), JS))
    assert job is not None, list(map(render, problems))
    return job


def warnings_of(role: Change | None = None, image: Change | None = None, **rest: Any) -> list[str]:
    """The ids of a job's warnings, each of which must have a place and text."""
    found = job_warnings(job_of(yaml.safe_dump(document(role or {}, image or {}, **rest))))
    assert all(p.severity == "warning" and p.place and p.message for p in found)
    return [p.id for p in found]


def test_a_plain_job_has_no_warnings() -> None:
    """Nothing is said without a reason."""
    assert warnings_of() == []


@pytest.mark.parametrize("name", ["Worker", "task_role"])
def test_a_role_whose_name_changes(name: str) -> None:
    """Variables bear the other name."""
    assert warnings_of(name=name) == ["PR901"]


def test_a_task_retry_count_that_does_nothing() -> None:
    """It counts only without gang allocation; zero is what nobody notices."""
    assert warnings_of({"taskRetryCount": 3}) == ["PR902"]
    assert warnings_of({"taskRetryCount": 0}) == []
    assert warnings_of({"taskRetryCount": 3}, extras={"gangAllocation": False}) == []


def test_a_completion_that_no_number_reaches() -> None:
    """The role has fewer instances."""
    for key in ("minFailedInstances", "minSucceededInstances"):
        assert warnings_of({"instances": 2, "completion": {key: 3}}) == ["PR931"]
        assert warnings_of({"completion": {key: 2}}) == ["PR931"]
        for fine in (2, 1, -1, None):
            assert warnings_of({"instances": 2, "completion": {key: fine}}) == []


def test_tags_that_reach_the_shell_are_shown_in_their_command() -> None:
    """Each unresolved tag has the place of the command that holds it."""
    commands = [
        "true",
        "a <% $parameters.x[0] %>",
        "b <% $secrets.none %> <% $secrets.a %>",
        "<% c %>",
    ]
    text = yaml.safe_dump(document({"commands": commands}, {}, secrets={"a": "long enough"}))
    found = [p for p in job_warnings(job_of(text)) if p.id == "PR904"]
    lines = [p.place.source.line(p.place.line) for p in found if p.place]
    assert len(found) == 3
    assert "parameters.x" in lines[0]
    assert "secrets.none" in lines[1]
    assert "<% c %>" in lines[2]


def test_a_tag_is_shown_as_written_with_help_for_its_namespace() -> None:
    """Rendering writes ``[0]`` as ``.0``; the warning does not. Each namespace is defined elsewhere."""
    commands = ["a <% $data.uri[0] %> <%  $parameters.x %>", "b <%$script.uri%>"]
    text = yaml.safe_dump(document({"commands": commands}, {}))
    shown = [(p.message, p.hint) for p in job_warnings(job_of(text)) if p.id == "PR904"]
    define = "name a prerequisite of type {0} in the role: {0}: NAME"
    assert shown == [
        ("nothing defines <% $data.uri[0] %>, and the command keeps it", define.format("data")),
        (
            "nothing defines <%  $parameters.x %>, and the command keeps it",
            "define it under parameters or secrets",
        ),
        ("nothing defines <%$script.uri%>, and the command keeps it", define.format("script")),
    ]


def test_a_tag_of_a_chosen_prerequisite_has_the_keys_of_that() -> None:
    """Where the role names the prerequisite, its own keys are what the tag may have."""
    prerequisite = {"name": "mnist", "type": "data", "uri": ["a"]}
    whole = document({"commands": ["a <% $data.url[0] %>"], "data": "mnist"}, {})
    whole["prerequisites"].append(prerequisite)
    (problem,) = [p for p in job_warnings(job_of(yaml.safe_dump(whole))) if p.id == "PR904"]
    assert problem.hint == "did you mean 'uri'? the prerequisite mnist has no 'url[0]'"


def test_short_secrets() -> None:
    """Values under four bytes are not masked; the message names the key, not the value."""
    secrets = {"a": "xyz", "b": ["öö"], "c": "", "d": 1, "e": "xyz \n"}
    text = yaml.safe_dump(document({}, {}, secrets=secrets))
    found = [p for p in job_warnings(job_of(text)) if p.id == "PR905"]
    assert [p.message.split(" ")[0] for p in found] == ["$secrets.a", "$secrets.d", "$secrets.e"]
    assert "xyz" not in "".join(map(render, found))


def test_secrets_with_white_space_at_their_ends() -> None:
    """A block with | gives a line end that no one wants; a file of several lines may have it."""
    text = yaml.safe_dump(document({}, {})) + (
        "secrets:\n  good: a token\n  block: |\n    hunter22\n  padded: ' hunter22'\n"
        "  stripped: |-\n    hunter22\n  key: |\n    hunter22\n    hunter22\n"
        "  lines: |+\n    hunter22\n    hunter22\n\n"
    )
    found = [p for p in job_warnings(job_of(text)) if p.id == "PR936"]
    first = text.splitlines().index("secrets:") + 1
    assert [(p.message.split(" ")[0], p.place and p.place.line - first) for p in found] == [
        ("$secrets.block", 2), ("$secrets.padded", 4), ("$secrets.lines", 10),
    ]  # fmt: skip
    assert "hunter22" not in "".join(map(render, found))


def test_secrets_that_openpai_stores_readable() -> None:
    """JSON, and YAML in a form that the mask does not know."""
    entries = document({}, {}, secrets={"a": "long enough"})
    text = yaml.safe_dump(entries)
    assert [p.id for p in job_warnings(job_of(text))] == []
    for unmasked in (json.dumps(entries), text.replace("secrets:", '"secrets":')):
        (problem,) = job_warnings(job_of(unmasked))
        assert problem.id == "PR909"
        assert "long enough" not in render(problem)
