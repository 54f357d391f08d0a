"""Decodes what `pairun.handover.reader` read to a typed plan, and checks every field."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

import attrs

from pairun.base.paths import runtime_file
from pairun.contract.loading import ModuleFile
from pairun.errors import PairunError, Problem
from pairun.handover.door import Door
from pairun.handover.planwriting import SCHEMA
from pairun.handover.reader import PLAN_FILE, hide_job_key, read_document, read_secrets
from pairun.module import FAILURE_KINDS, Phase, Secret
from pairun.plan import EVENTS, RUN_ON, FailurePolicy, Group, Late, Plan, Step, Task
from pairun.secrets.vault import Vault


def read_plan(root: str, vault: Vault) -> Plan:
    """The runtime plan that init wrote.

    Args:
        root: the shared volume.
        vault: takes every secret that is read.

    Raises:
        PairunError: it is missing or invalid.
    """
    door = Door(root)
    hide_job_key(door, vault)
    secrets, document = read_secrets(door, vault), read_document(door)
    return load_plan(document, secrets, runtime_file(root, PLAN_FILE))


def load_plan(document: object, secrets: object, file: str) -> Plan:
    """Decode a plan, and check the type of every field.

    Args:
        document: the parsed JSON of the plan.
        secrets: the parsed JSON of the secrets file (`SecretStore.dump`).
        file: the plan's name in messages.

    Raises:
        PairunError: it is not a plan, or of another version; the message names the field.
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
    """A field has a type or a value that the plan does not allow."""

    def __init__(self, where: str, must: str) -> None:
        super().__init__(f"{where} must {must}")


class _OtherSchema(Exception):
    """The plan is of another version."""


class _Decoder:
    """Decodes plain data to a plan; ``where`` is the place of a value, as ``steps[0].args.x``."""

    def __init__(self, secrets: object) -> None:
        values = _mapping(secrets, "the secrets file").get("values", {})
        self._secrets = _mapping(values, "the values of the secrets file")
        self._task_fields: dict[str, Callable[[Any, str], Any]] = {
            **dict.fromkeys(("id", "name", "module", "where"), _text),
            "args": self._values, "environment": self._values, "when": self._value,
            "retries": _count, "delay_s": _seconds, "timeout_s": _optional_seconds,
            "deadline_s": _optional_seconds, "retry_on": _all_of(FAILURE_KINDS),
            "failure_policy": _one_of(get_args(FailurePolicy)), "run_on": _one_of(RUN_ON),
            "exit_codes": _exit_codes, "on_exit": self._tasks, "events": _all_of(EVENTS),
            "of_plugin": _boolean,
        }  # fmt: skip

    def plan(self, document: object) -> Plan:
        fields = _mapping(document, "the plan")
        schema = fields.get("schema")
        if schema != SCHEMA or isinstance(schema, bool):
            raise _OtherSchema(schema)
        modules = _mapping(_required(fields, "modules"), "modules")
        steps = _list(_required(fields, "steps"), "steps")
        return Plan(
            phase=_one_of(get_args(Phase))(_required(fields, "phase"), "phase"),
            steps=tuple(self._step(step, f"steps[{n}]") for n, step in enumerate(steps)),
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
        _check_names(fields, where, self._task_fields.keys())
        for name in ("id", "name", "module", "args"):
            _required(fields, name, where)
        checks = self._task_fields
        return Task(**{n: checks[n](value, f"{where}.{n}") for n, value in fields.items()})

    def _values(self, values: object, where: str) -> dict[str, Any]:
        """Arguments or variables: a mapping of names to plain data or one of the three objects."""
        mapping = _mapping(values, where)
        if "$literal" in mapping:
            _check_names(mapping, where, {"$literal"})
            mapping = _mapping(mapping["$literal"], f"{where}.$literal")
        return {k: self._value(v, f"{where}.{k}") for k, v in mapping.items()}

    def _value(self, value: object, where: str) -> Any:
        if isinstance(value, list):
            return [self._value(v, f"{where}[{n}]") for n, v in enumerate(value)]
        if not isinstance(value, dict):
            return value
        if "$literal" not in value:
            if "$secret" in value:
                return self._secret(value, where)
            if "$late" in value:
                return self._late(value, where)
        return self._values(value, where)

    def _secret(self, value: dict[str, Any], where: str) -> Secret:
        _check_names(value, where, {"$secret"})
        name = _text(value["$secret"], f"{where}.$secret")
        if name not in self._secrets:
            raise _BadField(f"{where}.$secret", f"be in the secrets file, which has no {name!r}")
        return Secret(_text(self._secrets[name], f"the value {name!r} of the secrets file"))

    def _late(self, value: dict[str, Any], where: str) -> Late:
        _check_names(value, where, {"$late"})
        where += ".$late"
        fields = _mapping(value["$late"], where)
        checks: dict[str, Callable[[Any, str], Any]] = {
            **dict.fromkeys(("template", "because", "where"), _text),
            "expression": _boolean, "vars": self._values,
        }  # fmt: skip
        _check_names(fields, where, checks.keys())
        for name in ("template", "because"):
            _required(fields, name, where)
        return Late(**{n: checks[n](v, f"{where}.{n}") for n, v in fields.items()})


def _module_file(raw: object, where: str) -> ModuleFile:
    given = _mapping(raw, where)
    known = attrs.fields_dict(ModuleFile)
    _check_names(given, where, known)
    checked: dict[str, Any] = {}
    for name, field in known.items():
        check = _boolean if str(field.type) == "bool" else _text
        checked[name] = check(_required(given, name, where), f"{where}.{name}")
    return ModuleFile(**checked)


def _required(fields: Mapping[str, Any], name: str, where: str = "the plan") -> Any:
    if name not in fields:
        raise _BadField(where, f"have the field {name!r}")
    return fields[name]


def _check_names(fields: Mapping[str, Any], where: str, known: Iterable[str]) -> None:
    if unknown := sorted(fields.keys() - set(known)):
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


def _optional_seconds(value: object, where: str) -> float | None:
    return None if value is None else _seconds(value, where)


def _one_of(allowed: tuple[Any, ...]) -> Callable[[object, str], Any]:
    def check(value: object, where: str) -> Any:
        if not isinstance(value, str) or value not in allowed:
            raise _BadField(where, f"be one of {', '.join(allowed)}")
        return value

    return check


def _all_of(allowed: tuple[Any, ...]) -> Callable[[object, str], tuple[Any, ...]]:
    check = _one_of(allowed)
    return lambda value, where: tuple(check(each, where) for each in _list(value, where))


def _exit_codes(value: object, where: str) -> dict[str, int]:
    check = _one_of(FAILURE_KINDS)
    return {
        check(kind, where): _count(code, f"{where}.{kind}", 255)
        for kind, code in _mapping(value, where).items()
    }
