"""Which plugins a role uses, in which order, with which parameters."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from pairun.errors import Problems, Source
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.job.model import Job, Role
from pairun.job.planning import collect
from pairun.module import Secret
from pairun.playbook.document.reading import read_text
from pairun.playbook.drafts import PluginUse

CMD = "com.microsoft.pai.runtimeplugin.cmd"


def job_of(
    prerequisites: list[dict[str, Any]],
    names: list[str],
    plugins: tuple[dict[str, Any], ...] = (),
    roles: tuple[str, ...] = ("Worker_1",),
    **entries: Any,
) -> Job:
    """A job whose roles list prerequisites."""
    role = {
        "dockerImage": "image",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0},
        "prerequisites": names,
        "commands": ["true"],
    }
    document = {
        "protocolVersion": 2,
        "name": "job",
        "type": "job",
        "prerequisites": [
            {"name": "image", "type": "dockerimage", "uri": "ubuntu"},
            *({"type": "script", **p} for p in prerequisites),
        ],
        "taskRoles": dict.fromkeys(roles, role),
        "extras": {"com.microsoft.pai.runtimeplugin": list(plugins)},
        **entries,
    }
    text = yaml.safe_dump(document, sort_keys=False)
    job, problems = read_job(read_text(Source("job.yaml", "job", text), JS))
    assert job is not None, list(problems)
    return job


def uses_of(job: Job) -> list[PluginUse]:
    """The plugins of the first role, which must have no problems."""
    uses, problems = collect(job, job.roles[0])
    assert not list(problems)
    return uses


def callbacks(*commands: str) -> dict[str, Any]:
    """Callbacks on the start of the task."""
    return {"callbacks": [{"event": "taskStarts", "commands": list(commands)}]}


def test_prerequisites_come_first_then_the_list() -> None:
    """The order of collection is the role's list, then the job's plugins."""
    job = job_of(
        [
            {"name": "a", "plugin": CMD, **callbacks("a")},
            {"name": "b", **callbacks("b")},
            {"name": "plain"},
            {"name": "foreign", "plugin": "org.example.tool", **callbacks("x")},
        ],
        ["image", "b", "plain", "foreign", "a"],
        ({"plugin": "ssh", "parameters": {"jobssh": True}}, {"plugin": "tensorboard"}),
    )
    uses = uses_of(job)
    assert [(u.plugin, u.base_id) for u in uses] == [
        ("cmd", "b"),
        ("cmd", "a"),
        ("ssh", "ssh"),
        ("tensorboard", "tensorboard"),
    ]
    assert uses[2].parameters.plain() == {"jobssh": True}
    assert uses[3].parameters.plain() == {}


def test_a_prerequisites_keys_are_its_parameters() -> None:
    """All but type, plugin and failurePolicy; the place is the prerequisite's."""
    entry = {"name": "a", "plugin": CMD, "failurePolicy": "Ignore", "uri": "u", **callbacks("x")}
    (use,) = uses_of(job_of([entry], ["a"]))
    assert set(use.parameters.plain()) == {"name", "uri", "callbacks"}
    assert use.failure_policy == "ignore"
    assert use.place.source.line(use.place.line).lstrip("- ").startswith("type: script")


def test_requirements_come_before_what_requires_them_and_once() -> None:
    """Depth first, in the order of the lists."""
    entries = [
        {"name": "top", "require": ["left", "right"], **callbacks("top")},
        {"name": "left", "require": ["base"], **callbacks("left")},
        {"name": "right", "require": ["base", "image"], **callbacks("right")},
        {"name": "base", **callbacks("base")},
    ]
    job = job_of(entries, ["right", "top"])
    assert [u.base_id for u in uses_of(job)] == ["base", "right", "left", "top"]


def test_properties_are_inherited_from_what_is_required() -> None:
    """`this` looks in the prerequisite, then depth first in those it requires."""
    entries = [
        {
            "name": "top",
            "require": ["left", "right"],
            "own": "top's",
            **callbacks("<% this.own %> <% this.parameters.deep %> <% this.uri[0] %>"),
        },
        {"name": "left", "require": ["base"], "own": "left's"},
        {"name": "right", "deep": "right's"},
        {"name": "base", "type": "data", "deep": "base's", "uri": ["u0"]},
    ]
    (use,) = uses_of(job_of(entries, ["top"]))
    assert use.parameters.plain()["callbacks"][0]["commands"] == ["top's base's u0"]


@pytest.mark.parametrize("name", ["Worker_1", "worker1"])
def test_a_filter_takes_either_form_of_a_roles_name(name: str) -> None:
    """The raw name is what users write, the sanitised one what old jobs had to write."""
    items = ({"plugin": "ssh", "taskroles": [name]}, {"plugin": "git", "taskroles": ["other"]})
    job = job_of([], [], items, roles=("Worker_1", "other"))
    assert [[u.plugin for u in collect(job, role)[0]] for role in job.roles] == [["ssh"], ["git"]]
    assert job.role("worker1") is job.role("Worker_1") is job.roles[0]


def collected(job: Job) -> tuple[list[str], Problems]:
    """The names of a role's plugins, and what was wrong."""
    role: Role = job.roles[0]
    uses, problems = collect(job, role)
    return [u.plugin for u in uses], problems


def test_an_unknown_tag_is_an_error_unless_failures_are_ignored() -> None:
    """With `ignore` the plugin is left out, with a warning."""
    item = {"plugin": "git", "parameters": {"repo_uri": "<% $parameters.repo %>"}}
    names, problems = collected(job_of([], [], (item,)))
    assert [(p.id, p.severity) for p in problems] == [("PR510", "error")]
    names, problems = collected(
        job_of([], [], ({**item, "failurePolicy": "IGNORE"}, {"plugin": "ssh"}))
    )
    assert names == ["ssh"]
    assert [(p.id, p.severity) for p in problems] == [("PR510", "warning")]


def test_secrets_stay_secret_in_parameters() -> None:
    """A parameter that a secret went into is a secret."""
    item = {"plugin": "git", "parameters": {"repo_uri": "https://<% $secrets.token %>@host"}}
    (use,) = uses_of(job_of([], [], (item,), secrets={"token": "t0ken"}))
    assert use.parameters.plain() == {"repo_uri": Secret("https://t0ken@host")}


def test_single_references_are_not_executed() -> None:
    """A role's `script` gives a name to templates; its callbacks run only from the list."""
    job = job_of([{"name": "a", **callbacks("a")}], [])
    text = job.node.place.source.text.replace(
        "dockerImage: image", "dockerImage: image\n    script: a"
    )
    again, _ = read_job(read_text(Source("job.yaml", "job", text), JS))
    assert again is not None
    assert again.roles[0].script is not None
    assert uses_of(again) == []
