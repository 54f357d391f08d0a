"""Which of the known differences a job's file has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pairun.openpai.original.met import Met, cases_of
from pairun.openpai.original.table import AREAS, differences

if TYPE_CHECKING:
    from tests.desk import Desk

SECRETS = "secrets: {{word: {}}}\n"


def met(desk: Desk, text: str) -> dict[str, Met]:
    """The cases of the job's first role, by id."""
    plan = desk.review(text).plans[0]
    return {c.id: c for c in cases_of(plan.job, plan.role, plan.uses)}


def plugin(desk: Desk, parameters: str, name: str = "cmd", more: str = "") -> str:
    """A job with one plugin."""
    return desk.job(plugins=f"- {{plugin: {name}, parameters: {parameters}{more}}}\n")


def test_the_table() -> None:
    """Ids are unique, and every case is in an area of the page."""
    ids = [d.id for d in differences()]
    assert len(set(ids)) == len(ids)
    assert {d.area for d in differences()} == set(AREAS)


def test_a_job_without_any(desk: Desk) -> None:
    """An ordinary job means the same to both."""
    assert met(desk, desk.job()) == {}
    assert met(desk, plugin(desk, "{preCommands: [echo a, 'echo \"b\"']}")) == {}


@pytest.mark.parametrize(
    ("old", "new", "ids", "ends"),
    [
        ("worker:", "Worker_1:", {"role-name", "raw-names"}, 1),
        ("ubuntu:22.04", "nvidia/cuda:12.0-Ubuntu", {"image-name"}, 254),
        ("ubuntu:22.04", "a/b@sha256:" + "0" * 64, {"image-name"}, 254),
        ("ubuntu:22.04", "http://example.com/a/b:1", {"image-name"}, 254),
        (
            'uri: "ubuntu:22.04"', 'uri: "a/b:1", auth: {username: u, password: p}',
            {"image-login"}, 254,
        ),
        ("taskRoles:", "  - {name: image, type: data, uri: [a]}\ntaskRoles:", {"image-twin"}, 254),
    ],
)  # fmt: skip
def test_what_a_role_says(desk: Desk, old: str, new: str, ids: set[str], ends: int) -> None:
    """Its name and its image."""
    cases = met(desk, desk.job().replace(old, new))
    assert set(cases) == ids
    assert ends in {c.ends for c in cases.values()}


@pytest.mark.parametrize(
    ("parameters", "id_", "ends"),
    [
        ('{preCommands: ["it\'s \\"here\\""]}', "parameter-text", 1),
        ('{preCommands: ["a\\nb"]}', "parameter-text", None),
        ("{preCommands: ['<% $parameters.port %>']}", "parameter-tag", 1),
        ("{preCommands: ['<% $parameters.absent %>']}", "parameter-tag", 1),
        ("{preCommands: [a], postCommands: null}", "parameter-null", None),
        ("{preCommands: [a], other: yes}", "yaml", None),
        ("{preCommands: [a], other: on}", "yaml", None),
        ("{callbacks: [{event: taskFails, commands: [a]}]}", "callback-events", None),
    ],
)
def test_parameters(desk: Desk, parameters: str, id_: str, ends: int | None) -> None:
    """They are passed on as the original passes them on: through Python's text and YAML."""
    text = plugin(desk, parameters) + "parameters: {port: 80}\n"
    cases = met(desk, text)
    assert set(cases) == {id_}
    assert cases[id_].ends == ends
    assert cases[id_].place.source.file == "job.yaml"


@pytest.mark.parametrize(
    ("value", "id_"), [("'a&b'", "secret-escaping"), ("true", "secret-value"), ("'plain'", "")]
)
def test_secrets(desk: Desk, value: str, id_: str) -> None:
    """The case names the secret, and never its value."""
    text = desk.job(more=SECRETS.format(value)).replace("[train]", '["login <% $secrets.word %>"]')
    cases = met(desk, text)
    assert set(cases) == ({id_} if id_ else set())
    assert all("a&b" not in c.what for c in cases.values())


def test_tags_in_a_job_with_secrets(desk: Desk) -> None:
    """The original makes what nothing defines empty."""
    text = desk.job(more=SECRETS.format("plain"))
    text = text.replace("[train]", '["a <% $secrets.absent %>"]')
    assert set(met(desk, text)) == {"unknown-tag"}


def test_a_parameter_beside_a_secret_is_defined(desk: Desk) -> None:
    """The REST server renders parameters and prerequisites; only secrets remain for the runtime."""
    text = desk.job(more=SECRETS.format("plain") + "parameters: {epochs: 90}\n")
    text = text.replace("[train]", '["a <% $parameters.epochs %> <% $secrets.word %>"]')
    assert met(desk, text) == {}


def test_plugins(desk: Desk) -> None:
    """What the original's plugins do otherwise, and what only pairun knows."""
    cases = met(desk, plugin(desk, "{repo_uri: r, clone_dir: /a, branch: b}", "git"))
    assert set(cases) == {"git-files", "git-revision"}
    cases = met(desk, plugin(desk, "{jobssh: true, sshbarrier: true}", "ssh"))
    assert set(cases) == {"ssh-extension", "ssh-barrier-time"}
    assert set(met(desk, plugin(desk, "{port: 8080}", "tensorboard"))) == {"tensorboard-log"}
    cases = met(desk, plugin(desk, "{preCommands: [a]}", more=", failurePolicy: Ignore"))
    assert set(cases) == {"failure-policy-case"}
    assert set(met(desk, desk.job("init: [{disable: port_check}]"))) == {"overrides"}
