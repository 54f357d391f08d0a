"""The plan: a finished, validated, resolved playbook of one phase.

The executor runs only plans. `pairun.volume` writes and reads them as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Protocol

import attrs

from pairun.base.fields import Seconds, between
from pairun.contract.loading import ModuleFile
from pairun.module import FailureKind, Phase

USER_COMMAND = "user_command"
"""The only module that PID 1 runs itself; it is the last task of its phase."""

Event = Literal["success", "failure", "signal"]
EVENTS: tuple[Event, ...] = ("success", "failure", "signal")
FailurePolicy = Literal["fail", "ignore"]
RunOn = Literal["all", "first_of_role", "first_of_job"]
RUN_ON: tuple[RunOn, ...] = ("all", "first_of_role", "first_of_job")

DEFAULT_RETRY_ON: tuple[FailureKind, ...] = ("transient", "timeout", "conflict")
DEFAULT_DELAY_S = 1.0
DEFAULT_GRACE_S = 30.0

EXPAND = "{{ text | expand(env) }}"
"""The template of a `Late` text with variables that only the user's container has: ``$HOME/x``."""


@attrs.frozen(kw_only=True)
class Late:
    """A value that is known only at run time.

    Attributes:
        template: the text with its expressions.
        expression: the whole value is this one expression, and keeps its type.
        because: why it is not known earlier, for people.
        where: its place in the input, for messages.
        vars: all known names that the expressions use; each plain or late.
    """

    template: str
    because: str
    where: str = ""
    expression: bool = False
    vars: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Task:
    """One use of a module, resolved.

    Attributes:
        id: its stable name in the journal, in results and in patches.
        name: one sentence for people; a `Late` if it depends on what is known at run time.
        module: the module's name.
        args: its arguments as plain data; values may be `Late` or `Secret`.
        when: true, false, or `Late`.
        environment: variables of this task.
        retries: further attempts after the first.
        delay_s: base of the exponential wait between attempts.
        retry_on: kinds of failure that are retried.
        timeout_s: of one attempt.
        deadline_s: of the task with all attempts and waits.
        failure_policy: whether a failure fails the phase.
        run_on: the instances that run it; the others use its verdict.
        exit_codes: kind of failure to exit code of the phase.
        on_exit: the handlers this task registers.
        events: for a handler: the outcomes it runs for.
        of_plugin: whether it comes from a plugin of the job protocol.
        where: its place in the input.
    """

    id: str
    name: str | Late
    module: str
    args: Mapping[str, Any]
    when: Any = True
    environment: Mapping[str, Any] = attrs.field(factory=dict)
    retries: Annotated[int, between(0, 2**31 - 1)] = 0
    delay_s: Seconds = DEFAULT_DELAY_S
    retry_on: tuple[FailureKind, ...] = DEFAULT_RETRY_ON
    timeout_s: Seconds | None = None
    deadline_s: Seconds | None = None
    failure_policy: FailurePolicy = "fail"
    run_on: RunOn = "all"
    exit_codes: Mapping[FailureKind, Annotated[int, between(0, 255)]] = attrs.field(factory=dict)
    on_exit: tuple[Task, ...] = ()
    events: tuple[Event, ...] = ()
    of_plugin: bool = False
    where: str = ""

    @property
    def title(self) -> str:
        """Its name before it runs."""
        return self.name.template if isinstance(self.name, Late) else self.name


@attrs.frozen(kw_only=True)
class Group:
    """Tasks that run in parallel; fails if one of them fails."""

    name: str
    tasks: tuple[Task, ...]
    where: str = ""


Step = Task | Group


@attrs.frozen(kw_only=True)
class Plan:
    """A phase, ready to run.

    Attributes:
        phase: ``init`` or ``runtime``.
        steps: in the order in which they run.
        modules: module name to file.
        grace_s: the platform's seconds between TERM and KILL.
        pairun: version that made the plan.
    """

    phase: Phase
    steps: tuple[Step, ...]
    modules: Mapping[str, ModuleFile]
    grace_s: Seconds = DEFAULT_GRACE_S
    pairun: str = ""

    def tasks(self) -> Iterator[Task]:
        """Every task of the plan in order, including those in groups, without handlers."""
        for step in self.steps:
            yield from step.tasks if isinstance(step, Group) else (step,)


PeerVerdict = Mapping[str, Any]
"""A task's result: ``outcome``, ``message``, ``values``, ``by``; of a failure also its kind."""


class Peers(Protocol):
    """The other instances of the job, as far as tasks need them."""

    @property
    def name(self) -> str:
        """This instance's name for people: its role and number."""

    def first(self, run_on: RunOn) -> str | None:
        """The name of the instance that runs a task for others; None if it is this one."""

    def topic(self, run_on: RunOn, task: str) -> str:
        """The name under which the instances exchange the verdict of a task."""

    def take(self, topic: str, timeout_s: float) -> PeerVerdict:
        """Wait for a verdict.

        Raises:
            Failure: there is no verdict within the timeout, or none can come.
        """

    def give(self, topic: str, verdict: PeerVerdict, timeout_s: float) -> None:
        """Publish a verdict to the other instances; replaces an earlier one.

        Raises:
            Failure: the verdict cannot be published.
        """
