"""Before its first attempt: late values are resolved, and the module is made of its arguments."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from pairun.contract.arguments import build
from pairun.contract.results import BadResult, Report, checked_variable, failure
from pairun.errors import PairunError, Problem
from pairun.executor.moduleerrors import described, trace_of
from pairun.handover.journal import Emit
from pairun.module import FAILURE_KINDS, FailureKind, Module, Secret
from pairun.plan import Late, Peers, Task
from pairun.secrets.vault import Vault

OURS = ("PR602", "PR603", "PR703")
"""Errors of a module's file, which are not the user's."""

Resolve = Callable[[Late, Mapping[str, Any], Mapping[str, str]], Any]
"""Resolves a late value from the results so far and the environment."""


@attrs.define(kw_only=True)
class Shared:
    """What the tasks of a phase share.

    Attributes:
        load: module name to class.
        resolve: resolves late values.
        emit: takes every event (`pairun.handover.journal` lists them, and ``output``).
        vault: what no event may hold.
        env: the environment of the tasks, with the exports of those that ended.
        pai_dir: the shared volume.
        peers: the other instances of the job, or None where each runs everything itself.
        results: what the tasks that ended handed over, by id.
        exports: the variables that they handed over; None removes one.
        registered: the exit handlers so far.
        stop_signal: the first stop signal that came.
    """

    load: Callable[[str], type[Module]]
    resolve: Resolve
    emit: Emit
    vault: Vault
    env: dict[str, str]
    pai_dir: str
    peers: Callable[[], Peers | None]
    results: dict[str, dict[str, Any]] = attrs.Factory(dict)
    exports: dict[str, str | None] = attrs.Factory(dict)
    registered: list[Task] = attrs.Factory(list)
    stop_signal: int | None = None

    def export(self, variables: Mapping[str, str | None]) -> None:
        """Merge what a task handed over into the environment."""
        self.exports.update(variables)
        for name, value in variables.items():
            if value is None:
                self.env.pop(name, None)
            else:
                self.env[name] = value


@attrs.frozen
class Prepared:
    """A task that can be attempted.

    Attributes:
        module: what its attempts do.
        env: their environment.
        harmless: the kinds of failure that fail no phase.
    """

    module: Module
    env: Mapping[str, str]
    harmless: frozenset[FailureKind]


def prepare(task: Task, shared: Shared) -> Prepared | Report:
    """Make a task ready for its attempts; a report when there is nothing to attempt."""

    def resolved(value: Any) -> Any:
        if isinstance(value, Late):
            return shared.resolve(value, shared.results, shared.env)
        if isinstance(value, Mapping):
            return {k: resolved(v) for k, v in value.items()}
        return [resolved(v) for v in value] if isinstance(value, list | tuple) else value

    try:
        if not resolved(task.when):
            return Report(outcome="skipped", message="its condition is false")
        variables = {k: v for k, v in resolved(task.environment).items() if v is not None}
        module, problems = build(shared.load(task.module), resolved(task.args))
        if module is None:
            return failure("; ".join(p.message for p in problems), "permanent", "user")
        if module.asks_servers:
            # Heavy: imported once, before the first attempt is forked.
            importlib.import_module("pairun.net.exchange")
        env = {**shared.env, **{k: _variable(k, v) for k, v in variables.items()}}
        return Prepared(module, env, _harmless(module))
    except PairunError as e:
        return _refused(e.problems[0])
    except Exception as e:  # noqa: BLE001 - the exit handlers must run whatever this is
        return failure(described(e), trace=trace_of(e))


def _refused(problem: Problem) -> Report:
    """The report of a value that does not fit, which only the run could know: bad input."""
    ours = problem.id in OURS
    kind: FailureKind = "internal" if ours else "permanent"
    message = f"[{problem.id}] {problem.message}"
    return failure(message, kind, "platform" if ours else "user", hint=problem.hint)


def _harmless(module: Module) -> frozenset[FailureKind]:
    """The kinds of failure that a module calls harmless.

    Raises:
        TypeError: it names something that is no kind.
    """
    kinds = frozenset(module.harmless)
    if not kinds <= frozenset(FAILURE_KINDS):
        named = sorted(map(str, kinds))
        raise TypeError(f"{type(module).__name__}.harmless must hold kinds of failure, not {named}")
    return kinds


def _variable(name: str, value: object) -> str:
    """A variable of a task's own ``environment``, as a shell would write it."""
    value = value.reveal() if isinstance(value, Secret) else value
    if isinstance(value, list | Mapping):
        raise PairunError(Problem("PR605", f"the variable {name} must be a text"))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        checked_variable(name, text)
    except BadResult as e:
        raise PairunError(Problem("PR605", str(e))) from e
    return text
