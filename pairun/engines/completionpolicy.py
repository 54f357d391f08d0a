"""When a job completes: the completion policy of FrameworkController's API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

NEVER = -1


class RolePolicy(NamedTuple):
    """The limits of one role; `NEVER` switches a condition off.

    Attributes:
        role: the role's name.
        instances: how many instances it has.
        min_failed: this many failures fail the job.
        min_succeeded: this many successes complete the job.
    """

    role: str
    instances: int
    min_failed: int
    min_succeeded: int


class Ended(NamedTuple):
    """An instance that has ended.

    Attributes:
        role: name of its role.
        label: role and number.
        code: its exit code.
        phase: the phase that ended it.
    """

    role: str
    label: str
    code: int
    phase: str = "runtime"

    def __str__(self) -> str:
        phase = "'s init phase" if self.phase == "init" else ""
        return f"{self.label}{phase} ended with {self.code}"


class Decision(NamedTuple):
    """How the job ends.

    Attributes:
        succeeded: whether it is a success.
        code: the exit code of the run.
        because: why, as text.
    """

    succeeded: bool
    code: int
    because: str


def decide(policies: Iterable[RolePolicy], ended: list[Ended], total: int) -> Decision | None:
    """Decide how the job ends; None while it runs.

    Args:
        policies: one per role.
        ended: the instances that have ended, in the order in which they ended.
        total: the number of instances of all roles.
    """
    for policy in policies:
        failed = [e for e in ended if e.role == policy.role and e.code != 0]
        succeeded = [e for e in ended if e.role == policy.role and e.code == 0]
        if policy.min_failed != NEVER and len(failed) >= policy.min_failed:
            last = failed[policy.min_failed - 1]
            count = f", {len(failed)} instances of {policy.role} failed" if len(failed) > 1 else ""
            return Decision(
                succeeded=False,
                code=failed[0].code,
                because=f"{last}{count}",
            )
        if policy.min_succeeded != NEVER and len(succeeded) >= policy.min_succeeded:
            of = f"{len(succeeded)} of {policy.instances}"
            return Decision(
                succeeded=True, code=0, because=f"{of} instances of {policy.role} succeeded"
            )
    if len(ended) == total:
        return Decision(succeeded=True, code=0, because="all instances have ended")
    return None
