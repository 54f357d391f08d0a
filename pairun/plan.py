"""The plan: a finished, validated, resolved playbook of one phase, as plain data.

The executor runs plans and nothing else. A plan is JSON; three objects in it are not themselves:

- ``{"$late": {"template": …, "because": …, "where": …}}``: an expression that only the run can
  resolve;
- ``{"$secret": "s1"}``: a value that stands in the secrets file;
- ``{"$literal": {…}}``: a mapping of the user's that has one of these keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol

import attrs

from pairun.contract.loading import ModuleFile
from pairun.errors import PairunError, Problem
from pairun.module import FailureKind, Phase, Secret

SCHEMA = 1
USER_COMMAND = "user_command"
"""The one module that PID 1 runs itself; it is the last task of its phase."""

Event = Literal["success", "failure", "signal"]
EVENTS: tuple[Event, ...] = ("success", "failure", "signal")
FailurePolicy = Literal["fail", "ignore"]
RunOn = Literal["all", "first_of_role", "first_of_job"]
RUN_ON: tuple[RunOn, ...] = ("all", "first_of_role", "first_of_job")

DEFAULT_RETRY_ON: tuple[FailureKind, ...] = ("transient", "timeout", "conflict")
DEFAULT_DELAY_S = 1.0
DEFAULT_GRACE_S = 30.0


@attrs.frozen(kw_only=True)
class Late:
    """A value that only the run can tell.

    Attributes:
        template: the text with its expressions.
        expression: the whole value is this one expression, and keeps its type.
        because: why it is not known before, in words.
        where: the place that wrote it, for messages.
        vars: every name that the expressions use and that was known, itself plain or late.
    """

    template: str
    because: str
    where: str = ""
    expression: bool = False
    vars: Mapping[str, Any] = attrs.Factory(dict)


@attrs.frozen(kw_only=True)
class Task:
    """One use of a module, resolved.

    Attributes:
        id: stable handle in the journal, in results and in patches.
        name: one sentence for people.
        module: the module's name.
        args: its arguments as plain data; values may be `Late` or `Secret`.
        when: true, false, or `Late`.
        environment: variables of this task.
        retries: further attempts after the first.
        delay_s: base of the exponential wait between attempts.
        retry_on: kinds of failure that are tried again.
        timeout_s: of one attempt.
        deadline_s: of the task with all attempts and waits.
        failure_policy: whether a failure fails the phase.
        run_on: the instances that run it; the others take over what became of it.
        exit_codes: kind of failure to exit code of the phase.
        on_exit: the handlers this task registers.
        events: for a handler: the outcomes it runs for.
        where: the place that wrote the task.
    """

    id: str
    name: str
    module: str
    args: Mapping[str, Any]
    when: Any = True
    environment: Mapping[str, Any] = attrs.Factory(dict)
    retries: int = 0
    delay_s: float = DEFAULT_DELAY_S
    retry_on: tuple[FailureKind, ...] = DEFAULT_RETRY_ON
    timeout_s: float | None = None
    deadline_s: float | None = None
    failure_policy: FailurePolicy = "fail"
    run_on: RunOn = "all"
    exit_codes: Mapping[str, int] = attrs.Factory(dict)
    on_exit: tuple[Task, ...] = ()
    events: tuple[Event, ...] = ()
    where: str = ""


@attrs.frozen(kw_only=True)
class Group:
    """Tasks that run at once; fails as a whole when one fails."""

    name: str
    tasks: tuple[Task, ...]
    where: str = ""


Step = Task | Group


@attrs.frozen(kw_only=True)
class Plan:
    """A phase, ready to run.

    Attributes:
        phase: ``init`` or ``runtime``.
        steps: what runs, in order.
        modules: module name to file.
        grace_s: seconds between TERM and KILL that the platform gives.
        pairun: version that made the plan.
    """

    phase: Phase
    steps: tuple[Step, ...]
    modules: Mapping[str, ModuleFile]
    grace_s: float = DEFAULT_GRACE_S
    pairun: str = ""

    def tasks(self) -> Iterator[Task]:
        """Every task of the plan in order, those of groups included, handlers not."""
        for step in self.steps:
            yield from step.tasks if isinstance(step, Group) else (step,)


PeerVerdict = Mapping[str, Any]
"""What a task came to: ``outcome``, ``message``, ``values``, ``by``; of a failure also its kind."""


class Peers(Protocol):
    """The other instances of the job, as far as tasks need them."""

    @property
    def name(self) -> str:
        """Of this instance, for people: its role and number."""

    def first(self, run_on: RunOn) -> str | None:
        """Who runs a task for others: the name of another instance, or None when it is this one."""

    def topic(self, run_on: RunOn, task: str) -> str:
        """The name under which the verdict of a task is told."""

    def take(self, topic: str, timeout_s: float) -> PeerVerdict:
        """Wait for a verdict.

        Raises:
            Failure: it did not come in time, or cannot come.
        """

    def give(self, topic: str, verdict: PeerVerdict, timeout_s: float) -> None:
        """Tell a verdict, in place of an earlier one.

        Raises:
            Failure: it cannot be told.
        """


# --- to and from JSON --------------------------------------------------------------------------


class SecretStore:
    """Gives secret texts names, so that a plan holds references only.

    Args:
        redact: further texts that no sink may show (the leaves that expressions used).
    """

    def __init__(self, redact: Iterator[str] | tuple[str, ...] = ()) -> None:
        self._names: dict[str, str] = {}
        self._redact = set(redact)

    def name(self, secret: Secret) -> str:
        """The reference of a secret."""
        return self._names.setdefault(secret.reveal(), f"s{len(self._names) + 1}")

    def redact(self, text: str) -> None:
        """Keep a text out of every sink, without a reference to it."""
        self._redact.add(text)

    def dump(self) -> dict[str, Any]:
        """The content of the secrets file."""
        return {
            "schema": SCHEMA,
            "values": {name: text for text, name in self._names.items()},
            "redact": sorted(self._redact),
        }


def dump_plan(plan: Plan, secrets: SecretStore) -> dict[str, Any]:
    """A plan as plain data, with secrets by reference."""

    def encode(value: Any) -> Any:
        if isinstance(value, Secret):
            return {"$secret": secrets.name(value)}
        if isinstance(value, Late):
            return {"$late": {**_plain_fields(value), "vars": encode(value.vars)}}
        if isinstance(value, Mapping):
            encoded = {k: encode(v) for k, v in value.items()}
            return {"$literal": encoded} if any(str(k).startswith("$") for k in value) else encoded
        if isinstance(value, list | tuple):
            return [encode(v) for v in value]
        return value

    def task(t: Task) -> dict[str, Any]:
        out = {
            f.name: getattr(t, f.name)
            for f in attrs.fields(Task)
            if getattr(t, f.name) != _default(f)
        }
        for name in ("args", "when", "environment"):
            if name in out:
                out[name] = encode(out[name])
        if t.on_exit:
            out["on_exit"] = [task(h) for h in t.on_exit]
        return out

    return {
        "schema": SCHEMA,
        "pairun": plan.pairun,
        "phase": plan.phase,
        "grace_s": plan.grace_s,
        "modules": {name: _plain_fields(m) for name, m in plan.modules.items()},
        "steps": [
            {"parallel": s.name, "where": s.where, "tasks": [task(t) for t in s.tasks]}
            if isinstance(s, Group)
            else task(s)
            for s in plan.steps
        ],
    }


def _plain_fields(record: Any) -> dict[str, Any]:
    return {f.name: getattr(record, f.name) for f in attrs.fields(type(record))}


def _default(field: Any) -> Any:
    is_factory = isinstance(field.default, attrs.Factory)  # type: ignore[arg-type]
    return field.default.factory() if is_factory else field.default


def load_plan(text: str | bytes, secrets: Mapping[str, Any], file: str) -> Plan:
    """Read a plan back.

    Args:
        text: the JSON text.
        secrets: the content of the secrets file (`SecretStore.dump`).
        file: the plan's name in messages.

    Raises:
        PairunError: it is not a plan, or one of another version.
    """

    def decode(value: Any) -> Any:
        if isinstance(value, dict):
            if "$secret" in value:
                return Secret(values[value["$secret"]])
            if "$late" in value:
                late = value["$late"]
                return Late(**{**late, "vars": decode(late["vars"])})
            inner = value.get("$literal", value)
            return {k: decode(v) for k, v in inner.items()}
        if isinstance(value, list):
            return [decode(v) for v in value]
        return value

    def task(raw: dict[str, Any]) -> Task:
        fields = dict(raw)
        for name in ("args", "when", "environment"):
            if name in fields:
                fields[name] = decode(fields[name])
        fields["on_exit"] = tuple(task(h) for h in raw.get("on_exit", ()))
        for name in ("retry_on", "events"):
            if name in fields:
                fields[name] = tuple(fields[name])
        return Task(**fields)

    try:
        values: Mapping[str, str] = secrets.get("values", {})
        raw = json.loads(text)
        if raw["schema"] != SCHEMA:
            raise PairunError(
                Problem("PR702", f"{file} has schema {raw['schema']}, this pairun reads {SCHEMA}")
            )
        steps: tuple[Step, ...] = tuple(
            Group(name=s["parallel"], where=s["where"], tasks=tuple(map(task, s["tasks"])))
            if "parallel" in s
            else task(s)
            for s in raw["steps"]
        )
        return Plan(
            phase=raw["phase"],
            steps=steps,
            modules={name: ModuleFile(**m) for name, m in raw["modules"].items()},
            grace_s=raw["grace_s"],
            pairun=raw["pairun"],
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise PairunError(Problem("PR702", f"{file} is not a plan: {type(e).__name__} {e}")) from e
