"""Loads a module, builds it, and runs it twice."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import attrs

from pairun.contract.arguments import build
from pairun.contract.loading import load_module
from pairun.host.worlds import ReviewContext
from pairun.module import (
    CheckModule,
    Failure,
    Module,
    Result,
    Skip,
    StateModule,
    UnknownUntilRun,
    Verdict,
    unknown,
)
from pairun.testing.world import World


@attrs.frozen(kw_only=True)
class Outcome:
    """The end of a run.

    Attributes:
        verdict: the module's plan; None for a check module.
        result: its return value; None if it had nothing to do or returned nothing.
        failure: the exception, if it is a `Failure`.
        skip: the exception, if it is a `Skip`.
        changed: whether it changed the world.
    """

    verdict: Verdict | None = None
    result: Result | None = None
    failure: Failure | None = None
    skip: Skip | None = None
    changed: bool = False


def load(path: str | os.PathLike[str]) -> type[Module]:
    """The module class of a file or folder.

    Raises:
        PairunError: it is not a valid module.
    """
    path = os.fspath(path)
    return load_module(os.path.basename(os.path.normpath(path)).removesuffix(".py"), path)


def make(cls: type[Module], args: Mapping[str, Any]) -> Module:
    """A module with arguments as in a playbook: ``10s`` for a duration.

    Raises:
        AssertionError: the arguments are invalid.
    """
    module, wrong = build(cls, args)
    if module is None:
        raise AssertionError(f"the arguments are not valid: {[p.message for p in wrong]}")
    return module


def problems(cls: type[Module], args: Mapping[str, Any]) -> list[str]:
    """The problems of arguments, one sentence each; empty if they are valid."""
    return [problem.message for problem in build(cls, args)[1]]


def run(module: Module, world: World) -> Outcome:
    """Run a module as an attempt does: probe, plan, apply, or check.

    Runs a state module a second time; see `changes_nothing`. Not if it has ``verify = False``.

    Raises:
        AssertionError: ``probe`` changed something, a method returned something else than it may, or
            the second run found something to do.
    """
    outcome = run_once(module, world)
    if isinstance(module, StateModule) and module.verify and not (outcome.failure or outcome.skip):
        changes_nothing(module, world)
    return outcome


def run_once(module: Module, world: World) -> Outcome:
    """Run a module as an attempt does, without a second run."""
    verdict = None
    try:
        if isinstance(module, CheckModule):
            return Outcome(result=_returned(module.check(world.ctx), "check"))
        assert isinstance(module, StateModule)
        verdict = _planned(module, world)
        if verdict.kind == "no_change":
            return Outcome(verdict=verdict)
        result = _returned(module.apply(world.ctx), "apply")
        return Outcome(verdict=verdict, result=result, changed=True)
    except Failure as e:
        return Outcome(verdict=verdict, failure=e)
    except Skip as e:
        return Outcome(verdict=verdict, skip=e)


def changes_nothing(module: Module, world: World) -> None:
    """Require that a run finds nothing to do and changes nothing.

    Raises:
        AssertionError: the verdict differs, its probe or plan fails, or an inode, a time, a mode or
            a size differs.
    """
    assert isinstance(module, StateModule), "a check module changes nothing"
    before = world.snapshot()
    try:
        verdict = _planned(module, world)
    except AssertionError:
        raise
    except Exception as e:
        raise AssertionError(
            f"the second run must find nothing to do, but it failed: {type(e).__name__}: {e}"
        ) from e
    if verdict.kind != "no_change":
        raise AssertionError(f"the second run must find nothing to do, but: {_in_words(verdict)}")
    after = world.snapshot()
    touched = sorted(p for p in {*before, *after} if before.get(p) != after.get(p))
    if touched:
        raise AssertionError(f"the second run touched {', '.join(touched)}")


def review(module: Module, pai_dir: str = "/usr/local/pai") -> Verdict:
    """The verdict of a review, in an empty Pod; ``unknown`` if it depends on the run."""
    assert isinstance(module, StateModule), "a review runs no check module"
    try:
        return module.plan(module.probe(ReviewContext({}, pai_dir)))
    except UnknownUntilRun as e:
        return unknown(e.because)


def _in_words(verdict: Verdict) -> str:
    change = f" ({verdict.before} → {verdict.after})" if verdict.before or verdict.after else ""
    return f"{verdict.kind.replace('_', ' ')}: {verdict.because}{change}"


def _planned(module: StateModule, world: World) -> Verdict:
    with world.script.read_only():
        state = module.probe(world.ctx)
    verdict: object = module.plan(state)
    assert isinstance(verdict, Verdict), f"plan() must return a Verdict, it returned {verdict!r}"
    return verdict


def _returned(result: object, method: str) -> Result | None:
    """What an attempt accepts from ``check`` and ``apply``."""
    wrong = f"{method}() must return a Result or None, it returned {result!r}"
    assert result is None or isinstance(result, Result), wrong
    return result
