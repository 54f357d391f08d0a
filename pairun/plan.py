"""The plan: a finished, validated, resolved playbook of one phase, as plain data.

The executor runs plans and nothing else. A plan is JSON; three objects in it have a meaning:

- ``{"$late": {"template": …, "because": …, "where": …}}``: an expression that only the run can
  resolve;
- ``{"$secret": "s1"}``: a value in the secrets file;
- ``{"$literal": {…}}``: a mapping of the user's that has one of these keys.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol, get_args

import attrs

from pairun.contract.loading import ModuleFile
from pairun.errors import PairunError, Problem
from pairun.module import FAILURE_KINDS, FailureKind, Phase, Secret

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
    """A value that is known at run time only.

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
        retry_on: kinds of failure that are retried.
        timeout_s: of one attempt.
        deadline_s: of the task with all attempts and waits.
        failure_policy: whether a failure fails the phase.
        run_on: the instances that run it; the others take over its verdict.
        exit_codes: kind of failure to exit code of the phase.
        on_exit: the handlers this task registers.
        events: for a handler: the outcomes it runs for.
        of_plugin: whether a plugin of the job protocol brought it.
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
    of_plugin: bool = False
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
        """The name under which the instances exchange the verdict of a task."""

    def take(self, topic: str, timeout_s: float) -> PeerVerdict:
        """Wait for a verdict.

        Raises:
            Failure: it did not come in time, or cannot come.
        """

    def give(self, topic: str, verdict: PeerVerdict, timeout_s: float) -> None:
        """Give a verdict to the other instances, in place of an earlier one.

        Raises:
            Failure: it cannot be given.
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


def load_plan(document: object, secrets: object, file: str) -> Plan:
    """Read a plan back, and check the type of every field.

    Args:
        document: the parsed JSON of the plan.
        secrets: the parsed JSON of the secrets file (`SecretStore.dump`).
        file: the plan's name in messages.

    Raises:
        PairunError: it is not a plan, or one of another version; the message names the field.
    """
    try:
        return _Decoder(secrets).plan(document)
    except _BadField as e:
        raise PairunError(Problem("PR702", f"{file} is not a plan: {e}")) from e
    except _OtherSchema as e:
        raise PairunError(
            Problem("PR702", f"{file} has schema {e}, this pairun reads {SCHEMA}")
        ) from e
    except RecursionError as e:
        raise PairunError(Problem("PR702", f"{file} is not a plan: it is nested too deep")) from e


class _BadField(Exception):
    """A field has another type, or another value, than the plan allows."""

    def __init__(self, where: str, must: str) -> None:
        super().__init__(f"{where} must {must}")


class _OtherSchema(Exception):
    """The plan is of another version."""


class _Decoder:
    """Plain data to a plan; ``where`` is the place of a value, as ``steps[0].args.x``."""

    def __init__(self, secrets: object) -> None:
        values = _mapping(secrets, "the secrets file").get("values", {})
        self._values = _mapping(values, "the values of the secrets file")

    def plan(self, document: object) -> Plan:
        fields = _mapping(document, "the plan")
        schema = fields.get("schema")
        if schema != SCHEMA or isinstance(schema, bool):
            raise _OtherSchema(schema)
        modules = _mapping(_required(fields, "modules"), "modules")
        return Plan(
            phase=_one_of(_required(fields, "phase"), "phase", get_args(Phase)),
            steps=tuple(
                self._step(step, f"steps[{n}]")
                for n, step in enumerate(_list(_required(fields, "steps"), "steps"))
            ),
            modules={name: _module_file(raw, f"modules.{name}") for name, raw in modules.items()},
            grace_s=_seconds(_required(fields, "grace_s"), "grace_s"),
            pairun=_text(_required(fields, "pairun"), "pairun"),
        )

    def _step(self, raw: object, where: str) -> Step:
        fields = _mapping(raw, where)
        if "parallel" not in fields:
            return self._task(fields, where)
        _check_names(fields, where, {"parallel", "where", "tasks"})
        return Group(
            name=_text(fields["parallel"], f"{where}.parallel"),
            where=_text(_required(fields, "where", where), f"{where}.where"),
            tasks=self._tasks(_required(fields, "tasks", where), f"{where}.tasks"),
        )

    def _tasks(self, raw: object, where: str) -> tuple[Task, ...]:
        return tuple(self._task(t, f"{where}[{n}]") for n, t in enumerate(_list(raw, where)))

    def _task(self, raw: object, where: str) -> Task:
        fields = _mapping(raw, where)
        _check_names(fields, where, {f.name for f in attrs.fields(Task)})
        for name in ("id", "name", "module", "args"):
            _required(fields, name, where)
        checked: dict[str, Any] = {}
        for name, value in fields.items():
            checked[name] = self._field(name, value, f"{where}.{name}")
        return Task(**checked)

    def _field(self, name: str, value: object, where: str) -> Any:
        if name in ("args", "environment"):
            return self._value(_mapping(value, where), where, mapping=True)
        if name == "when":
            return self._value(value, where)
        if name == "on_exit":
            return self._tasks(value, where)
        if name in ("timeout_s", "deadline_s"):
            return None if value is None else _seconds(value, where)
        if name == "exit_codes":
            return {
                _one_of(kind, where, FAILURE_KINDS): _count(code, f"{where}.{kind}", 255)
                for kind, code in _mapping(value, where).items()
            }
        if name in ("retry_on", "events"):
            allowed = FAILURE_KINDS if name == "retry_on" else EVENTS
            return tuple(_one_of(each, where, allowed) for each in _list(value, where))
        if name in ("failure_policy", "run_on"):
            return _one_of(value, where, get_args(FailurePolicy) if name[0] == "f" else RUN_ON)
        if name == "delay_s":
            return _seconds(value, where)
        if name == "of_plugin":
            return _boolean(value, where)
        return _count(value, where) if name == "retries" else _text(value, where)

    def _value(self, value: object, where: str, *, mapping: bool = False) -> Any:
        """An argument: plain data, and the three objects that are not themselves."""
        if isinstance(value, list):
            return [self._value(v, f"{where}[{n}]") for n, v in enumerate(value)]
        if not isinstance(value, dict):
            return value
        if "$literal" not in value:
            if not mapping and ("$secret" in value or "$late" in value):
                return (
                    self._secret(value, where) if "$secret" in value else self._late(value, where)
                )
            inner = value
        else:
            _check_names(value, where, {"$literal"})
            inner = _mapping(value["$literal"], f"{where}.$literal")
        return {k: self._value(v, f"{where}.{k}") for k, v in inner.items()}

    def _secret(self, value: dict[str, Any], where: str) -> Secret:
        _check_names(value, where, {"$secret"})
        name = _text(value["$secret"], f"{where}.$secret")
        if name not in self._values:
            raise _BadField(f"{where}.$secret", f"be in the secrets file, which has no {name!r}")
        return Secret(_text(self._values[name], f"the value {name!r} of the secrets file"))

    def _late(self, value: dict[str, Any], where: str) -> Late:
        _check_names(value, where, {"$late"})
        where += ".$late"
        fields = _mapping(value["$late"], where)
        _check_names(fields, where, {f.name for f in attrs.fields(Late)})
        for name in ("template", "because"):
            _required(fields, name, where)
        variables = _mapping(fields.get("vars", {}), f"{where}.vars")
        return Late(
            **{
                name: _text(fields[name], f"{where}.{name}")
                for name in ("template", "because", "where")
                if name in fields
            },
            expression=_boolean(fields.get("expression", False), f"{where}.expression"),
            vars=self._value(variables, f"{where}.vars", mapping=True),
        )


def _module_file(raw: object, where: str) -> ModuleFile:
    fields = _mapping(raw, where)
    known = {f.name: f for f in attrs.fields(ModuleFile)}
    _check_names(fields, where, set(known))
    checked: dict[str, Any] = {}
    for name, field in known.items():
        check = _boolean if field.type in (bool, "bool") else _text
        checked[name] = check(_required(fields, name, where), f"{where}.{name}")
    return ModuleFile(**checked)


def _required(fields: Mapping[str, Any], name: str, where: str = "the plan") -> Any:
    if name not in fields:
        raise _BadField(where, f"have the field {name!r}")
    return fields[name]


def _check_names(fields: Mapping[str, Any], where: str, known: set[str]) -> None:
    if unknown := sorted(fields.keys() - known):
        raise _BadField(where, f"not have the field {unknown[0]!r}")


def _mapping(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _BadField(where, "be a mapping")
    return value


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise _BadField(where, "be a list")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise _BadField(where, "be text")
    return value


def _boolean(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise _BadField(where, "be true or false")
    return value


def _count(value: object, where: str, most: int = 2**31 - 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise _BadField(where, f"be a whole number from 0 to {most}")
    return value


def _seconds(value: object, where: str) -> float:
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else -1
    if 0 <= number <= sys.float_info.max:
        return float(number)
    raise _BadField(where, "be a number of seconds")


def _one_of(value: object, where: str, allowed: tuple[Any, ...]) -> Any:
    if not isinstance(value, str) or value not in allowed:
        raise _BadField(where, f"be one of {', '.join(allowed)}")
    return value
