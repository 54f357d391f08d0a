"""A key that nobody can log in with is known before the job runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.desk import Desk

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "A" * 43 + " me@example.com"


def _job(desk: Desk, userssh: str, more: str = "") -> str:
    return desk.job(plugins=f"- plugin: ssh\n  parameters: {{userssh: {userssh}}}\n", more=more)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("nonsense", "it is not a public key"),
        ("ssh-rsa AAAA", "it begins as a key of type ssh-rsa, but the rest is not one"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "it is part of a private key"),
    ],
)
def test_an_invalid_key_of_a_person(desk: Desk, value: str, why: str) -> None:
    """The warning has the place of the key, and never the key."""
    (problem,) = desk.valid(_job(desk, f'{{type: custom, value: "{value}"}}')).problems
    assert (problem.id, problem.severity) == ("PR934", "warning")
    assert problem.message.startswith(f"ssh: userssh.value, line 1: {why}")
    assert problem.place is not None
    line = problem.place.source.line(problem.place.line)
    assert line[problem.place.column - 1 :].startswith(f'"{value}"')


@pytest.mark.parametrize(
    "userssh",
    [f'{{type: custom, value: "{KEY}"}}', "{type: system, value: name}", "{type: custom}"],
)
def test_a_key_that_may_be_right(desk: Desk, userssh: str) -> None:
    """A key in a file of the platform, and stored keys, are known at run time only."""
    assert list(desk.valid(_job(desk, userssh)).problems) == []


def test_a_key_in_a_secret(desk: Desk) -> None:
    """A secret is no text that a review reads."""
    text = _job(
        desk, '{type: custom, value: "<% $secrets.login %>"}', "secrets: {login: nonsense}\n"
    )
    assert [p.id for p in desk.valid(text).problems] == []
