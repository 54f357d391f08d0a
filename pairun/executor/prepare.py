"""Before the first attempt: resolves late values, and makes the module from its arguments."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import attrs

from pairun.contract.arguments import build
from pairun.contract.results import Report, failure, variable_text
from pairun.errors import PairunError
from pairun.executor.child import described, trace_of
from pairun.executor.shared import Shared
from pairun.handover.journal import CONDITION_IS_FALSE
from pairun.module import FAILURE_KINDS, FailureKind, Module
from pairun.plan import Late, Task

_MODULE_ERRORS = ("PR602", "PR603", "PR703")
"""Errors in a module's file: the platform's fault, not the user's."""


@attrs.frozen
class Prepared:
    """A task ready for attempts: its module, its environment, its harmless kinds of failure."""

    module: Module
    env: Mapping[str, str]
    harmless: frozenset[FailureKind]


def prepare(task: Task, shared: Shared) -> Prepared | Report:
    """Prepare a task for its attempts; returns a report if there is nothing to attempt."""

    def resolved(value: Any) -> Any:
        if isinstance(value, Late):
            return shared.resolve(value, shared.results, shared.env)
        if isinstance(value, Mapping):
            return {k: resolved(v) for k, v in value.items()}
        return [resolved(v) for v in value] if isinstance(value, list | tuple) else value

    try:
        if not resolved(task.when):
            return Report(outcome="skipped", message=CONDITION_IS_FALSE)
        variables = {k: v for k, v in resolved(task.environment).items() if v is not None}
        module, problems = build(shared.load(task.module), resolved(task.args))
        if module is None:
            return failure("; ".join(p.message for p in problems), "permanent", "user")
        if module.asks_servers:
            # Expensive: import once, before the first attempt is forked.
            importlib.import_module("pairun.net.session")
        env = {**shared.env, **{k: variable_text(k, v) for k, v in variables.items()}}
        return Prepared(module, env, _harmless(module))
    except PairunError as e:
        problem = e.problems[0]
        message = f"[{problem.id}] {problem.message}"
        if problem.id in _MODULE_ERRORS:
            return failure(message, "internal", "platform", hint=problem.hint)
        return failure(message, "permanent", "user", hint=problem.hint)
    except Exception as e:  # noqa: BLE001 - the exit handlers must run after any error
        return failure(described(e), trace=trace_of(e))


def _harmless(module: Module) -> frozenset[FailureKind]:
    kinds = frozenset(module.harmless)
    if not kinds <= frozenset(FAILURE_KINDS):
        named = sorted(map(str, kinds))
        raise TypeError(f"{type(module).__name__}.harmless must hold kinds of failure, not {named}")
    return kinds
