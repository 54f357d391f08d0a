"""Wait until every instance of the job can be reached by ssh."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from pairun.module import (
    CheckModule,
    Context,
    Permanent,
    Result,
    Skip,
    arg,
    define,
    format_duration,
)

from .peers import all_peers
from .tree import Tree

_DEFAULT_MIN = 30.0


@define
class SshBarrier(CheckModule):
    """Wait until every instance of the job accepts logins by ssh.

    The first instance logs in to a few others, each of these to a few more, and so on, all at the
    same time. Each reports to the one above which instances below it are missing. When none is
    missing, the first sends this result down the same way. No instance passes before that.
    """

    phases = ("runtime",)
    privileges = "none; `ssh_setup` must have run"
    example = "ssh_barrier: {}"
    tools: ClassVar[tuple[str, ...]] = ("ssh/ssh",)

    wanted: Any = arg("Whether the instances reach each other by ssh.", default=True)
    timeout_min: Any = arg("How many minutes to wait; 30 by default.", default=None)

    def check(self, ctx: Context) -> Result:
        """Ask the instances below, report to the one above, wait for its result."""
        if str(self.wanted).strip().lower() != "true":
            raise Skip("ssh between the instances (jobssh) is off: there is nothing to wait for")
        peers, own = all_peers(ctx)
        if len(peers) < 2:
            raise Skip("this is the only instance")
        folder = os.path.join(ctx.pai_dir, "run", "ssh")
        if ctx.stat(os.path.join(folder, "id")) is None:
            message = "the job has no key pair: its instances cannot log in to each other"
            hint = "let the user's extension have jobSSH, or give the job a rendezvous key"
            raise Permanent(message, fault="platform", hint=hint)
        limit, began = self._limit_s(ctx), ctx.now()
        tree = Tree(ctx, folder, peers, own, limit)
        try:
            tree.wait()
        finally:
            tree.close()
        seconds = format_duration(ctx.now() - began)
        return Result(message=f"all {len(peers)} instances were reached by ssh after {seconds}")

    def _limit_s(self, ctx: Context) -> float:
        try:
            given = float(self.timeout_min) if self.timeout_min not in (None, "") else _DEFAULT_MIN
        except (TypeError, ValueError):
            given = -1.0
        if not 0 < given < 1e6:
            raise Permanent(
                f"the time of the ssh barrier is not a number of minutes: {self.timeout_min!r}",
                fault="user",
            )
        return given * 60
