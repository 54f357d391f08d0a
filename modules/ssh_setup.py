"""Ssh between the tasks of a job, and for its user."""

from __future__ import annotations

from typing import Any, NoReturn

from pairun.module import CheckModule, Context, Skip, arg, define


@define
class SshSetup(CheckModule):
    """Accept what OpenPAI's ssh plugin asks for, and say that this version starts no sshd."""

    example = "ssh_setup: {jobssh: true}"
    not_yet = "no sshd is started"

    jobssh: Any = arg("Whether the tasks of the job may reach each other by ssh.", default=False)
    userssh: Any = arg("The public keys of the user, as the plugin passes them.", default=None)
    sshbarrier: Any = arg("Whether to wait until every task can be reached.", default=False)
    sshbarrier_timeout_min: Any = arg("How many minutes to wait.", default=None)

    def check(self, ctx: Context) -> NoReturn:
        """Say it.

        Raises:
            Skip: always.
        """
        raise Skip(f"not part of this version: {self.not_yet}")
