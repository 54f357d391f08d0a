"""The tasks of the job, and the result of one check of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from pairun.module import Context, Permanent

SHOWN = 10
"""The maximum number of tasks that a message names."""

INSTANCE_VARIABLES = ("FC_TASKROLE_NAME", "FC_TASK_INDEX", "FC_POD_UID")
"""The variables that identify this task."""


class Member(NamedTuple):
    """One task of the job."""

    role: str
    number: int

    def __str__(self) -> str:
        return f"{self.role}-{self.number}"


class Look(NamedTuple):
    """The result of one check.

    Attributes:
        framework: the Framework with every known address.
        members: the tasks that the barrier waits for.
        missing: those without an address, or not ready.
        foreign: why the addresses are not for this Pod; empty if they are.
        state: what those that are not missing do.
        running: whether another task has passed the barrier: this one joins a running gang.
    """

    framework: dict[str, Any]
    members: list[Member]
    missing: list[Member]
    foreign: str = ""
    state: str = "have addresses"
    running: bool = False

    @property
    def complete(self) -> bool:
        """Whether the barrier need not wait any more."""
        return not self.missing and not self.foreign

    def __str__(self) -> str:
        here = len(self.members) - len(self.missing)
        return f"{here} of {len(self.members)} tasks {self.state}"


class Backend(Protocol):
    """Reads the addresses of the tasks."""

    def look(self) -> Look:
        """Read the current addresses.

        Raises:
            Transient: there is no answer now.
            TimedOut: likewise.
            Permanent: there will never be an answer.
        """

    def why(self, missing: list[Member]) -> Iterator[tuple[Member, str]]:
        """Why tasks are missing; omits tasks whose reason is unknown.

        Raises:
            Failure: this Pod cannot find out.
        """


def all_members(framework: Mapping[str, Any]) -> list[Member]:
    """Every task in the job's specification.

    Raises:
        Permanent: the object is not a Framework.
    """
    try:
        roles = framework["spec"]["taskRoles"]
        return [Member(role["name"], i) for role in roles for i in range(role["taskNumber"])]
    except (KeyError, TypeError) as e:
        raise Permanent(
            f"the object that describes the job is not a Framework: {e}", fault="platform"
        ) from e


def own_member(ctx: Context, members: list[Member]) -> Member:
    """This task.

    Raises:
        Permanent: the job does not have it.
    """
    name = f"{ctx.env['FC_TASKROLE_NAME']}-{ctx.env['FC_TASK_INDEX']}"
    for member in members:
        if str(member) == name:
            return member
    raise Permanent(
        f"the task {name} does not belong to its job",
        fault="platform",
        hint="the job may have been scaled down",
    )


def some_of(members: Iterable[Member], reasons: Mapping[Member, str]) -> str:
    """The first `SHOWN` tasks, each with its reason if known, and the number of the others."""
    names = [f"{m} ({reasons[m]})" if m in reasons else str(m) for m in members]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
