"""When a job is decided: the completion policy of FrameworkController, as its API states it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

NEVER = -1


class RolePolicy(NamedTuple):
    """What decides the job, for one role; `NEVER` switches a condition off."""

    role: str
    min_failed: int
    min_succeeded: int


class Ended(NamedTuple):
    """An instance that has ended, in the order in which they ended."""

    role: str
    label: str
    code: int


class Decision(NamedTuple):
    """How the job ends.

    Attributes:
        succeeded: whether it is a success.
        code: the exit code of the run.
        because: why, in words.
    """

    succeeded: bool
    code: int
    because: str


def decide(policies: Iterable[RolePolicy], ended: list[Ended], total: int) -> Decision | None:
    """The decision, or None while the job goes on.

    Args:
        policies: one per role.
        ended: the instances that have ended, first one first.
        total: the number of instances of all roles.
    """
    by_role = {p.role: p for p in policies}
    for role, policy in by_role.items():
        failed = [e for e in ended if e.role == role and e.code != 0]
        succeeded = [e for e in ended if e.role == role and e.code == 0]
        if policy.min_failed != NEVER and len(failed) >= policy.min_failed:
            last = failed[policy.min_failed - 1]
            return Decision(
                succeeded=False,
                code=failed[0].code,
                because=f"{last.label} ended with {last.code}"
                + _count(len(failed), policy.min_failed, "failed"),
            )
        if policy.min_succeeded != NEVER and len(succeeded) >= policy.min_succeeded:
            return Decision(
                succeeded=True,
                code=0,
                because=f"{policy.min_succeeded} of {role} succeeded, "
                f"which is what the job waits for",
            )
    if len(ended) == total:
        return Decision(succeeded=True, code=0, because="all instances have ended")
    return None


def _count(number: int, needed: int, what: str) -> str:
    return f", the {number}. that {what} of {needed}" if needed > 1 else ""
