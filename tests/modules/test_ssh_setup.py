"""The module ssh_setup."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.modules.conftest import Harness


def test_it_says_that_nothing_is_started(harness: Harness) -> None:
    """Whatever the plugin asks for, the task is skipped with the reason."""
    args = {"jobssh": "true", "userssh": {"type": "custom", "value": "ssh-rsa A"}}
    skip = harness.run("ssh_setup", args).skip
    assert skip is not None
    assert "no sshd is started" in skip.because
