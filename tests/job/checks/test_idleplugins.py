"""A plugin that does nothing says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.desk import Desk

IDLE = [
    "{plugin: teamwise_storage, parameters: {storageConfigNames: [a]}}",
    "{plugin: ssh, parameters: {jobssh: false}}",
    "{plugin: cmd, parameters: {preCommands: []}}",
    "{plugin: tensorboard}",
]
BUSY = [
    "{plugin: teamwise_storage, parameters: {mount: true}}",
    "{plugin: ssh, parameters: {jobssh: true}}",
    "{plugin: cmd, parameters: {preCommands: [a]}}",
    "{plugin: tensorboard, parameters: {port: 80}}",
    "{plugin: dind}",
]


@pytest.mark.parametrize("item", IDLE)
def test_a_plugin_without_effect(desk: Desk, item: str) -> None:
    """The place is where the job asks for it."""
    (problem,) = desk.valid(desk.job(plugins=f"- {item}\n")).problems
    assert (problem.id, problem.severity) == ("PR929", "warning")
    assert problem.place is not None
    assert item in problem.place.source.line(problem.place.line)
    if "teamwise" in item:
        assert "it runs tasks only if parameters.mount" in (problem.hint or "")


@pytest.mark.parametrize("item", BUSY)
def test_a_plugin_with_effect(desk: Desk, item: str) -> None:
    """One task is enough."""
    problems = desk.valid(desk.job(plugins=f"- {item}\n")).problems
    assert [p.id for p in problems if p.id == "PR929"] == []


def test_one_that_is_wrong_is_not_idle_too(desk: Desk) -> None:
    """An unknown plugin, wrong parameters and a denied plugin are other errors."""
    root = desk.root({"playbooks/policy.yaml": "job_may: {plugins: {allow: '*', deny: [ssh]}}\n"})
    for item in ("{plugin: nope}", "{plugin: git, parameters: {}}", "{plugin: ssh}"):
        problems = desk.review(desk.job(plugins=f"- {item}\n"), root).problems
        assert [p.id for p in problems if p.id == "PR929"] == []
        assert problems.errors
