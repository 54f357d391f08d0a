"""A small harness: load a module by path, build it, and let it act on a real directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from pairun.contract.arguments import ArgumentProblem, build
from pairun.contract.loading import load_module
from pairun.contract.sources import built_in_modules
from pairun.host.context import HostContext
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
)


@attrs.frozen(kw_only=True)
class Case:
    """One row of a table; a key that is not here fails the test.

    ``{tmp}`` in any text stands for the test's directory.

    Attributes:
        what: the promise, for the test's name.
        args: the module's arguments.
        env: further variables.
        files: what stands there before: path to text (None: a directory).
        verdict: the kind of the plan's verdict.
        because: a part of the verdict's reason.
        before: the verdict's `before`.
        after: the verdict's `after`.
        failure: the kind of the failure.
        fault: whose it is.
        says: a part of the failure's or skip's sentence.
        skipped: the module raises Skip.
        values: the result's values.
        exported: the result's environment.
        leaves: what stands there afterwards: path to text (None: nothing).
        review: the verdict's kind in the empty Pod, or ``unknown until run``.
    """

    what: str
    args: Mapping[str, Any]
    env: Mapping[str, str] = attrs.Factory(dict)
    files: Mapping[str, str | None] = attrs.Factory(dict)
    verdict: str | None = None
    because: str | None = None
    before: str | None = None
    after: str | None = None
    failure: str | None = None
    fault: str | None = None
    says: str | None = None
    skipped: bool = False
    values: Mapping[str, Any] | None = None
    exported: Mapping[str, str | None] | None = None
    leaves: Mapping[str, str | None] = attrs.Factory(dict)
    review: str | None = None


@attrs.frozen(kw_only=True)
class Outcome:
    """What became of one run."""

    verdict: Verdict | None = None
    result: Result | None = None
    failure: Failure | None = None
    skip: Skip | None = None


class Harness:
    """Runs modules on real files below one directory.

    Attributes:
        tmp: the directory.
        log: the lines that modules said.
    """

    def __init__(self, tmp: Path) -> None:
        self.tmp = tmp
        self.log: list[str] = []
        self.pai_dir = tmp / "pai"
        self.pai_dir.mkdir()

    def load(self, name: str) -> type[Module]:
        """The class of a built-in module."""
        return load_module(name, built_in_modules()[name])

    def make(self, name: str, args: Mapping[str, Any]) -> Module:
        """A built module; its arguments must be right."""
        module, problems = build(self.load(name), self._filled(args))
        assert module is not None, problems
        return module

    def problems(self, name: str, args: Mapping[str, Any]) -> list[ArgumentProblem]:
        """What is wrong with arguments."""
        return build(self.load(name), self._filled(args))[1]

    def context(self, env: Mapping[str, str] | None = None, **more: Any) -> HostContext:
        """This machine, with a small environment."""
        base = {"PATH": os.environ["PATH"], "HOME": str(self.tmp), "LANG": "C.UTF-8"}
        full = {**base, **self._filled(env or {})}
        return HostContext(full, str(self.pai_dir), emit_log=self.log.append, **more)

    def run(
        self, name: str, args: Mapping[str, Any], env: Mapping[str, str] | None = None, **more: Any
    ) -> Outcome:
        """Probe, plan and apply, or check; what was done must hold at the second look."""
        return self._run(self.make(name, args), self.context(env, **more))

    def _run(self, module: Module, context: HostContext) -> Outcome:
        verdict = None
        try:
            if isinstance(module, CheckModule):
                return Outcome(result=module.check(context))
            assert isinstance(module, StateModule)
            verdict = module.plan(module.probe(context))
            if verdict.kind == "no_change":
                return Outcome(verdict=verdict)
            result = module.apply(context)
        except Failure as e:
            return Outcome(verdict=verdict, failure=e)
        except Skip as e:
            return Outcome(skip=e)
        if module.verify:
            assert module.plan(module.probe(context)).kind == "no_change"
        return Outcome(verdict=verdict, result=result)

    def table(self, name: str, row: Mapping[str, Any]) -> Outcome:
        """Run one row of a table, a second time too, and compare."""
        case = Case(**row)
        for path, text in case.files.items():
            place = Path(self._filled(path))
            place.parent.mkdir(parents=True, exist_ok=True)
            place.mkdir() if text is None else place.write_text(self._filled(text))
        module = self.make(name, case.args)
        if case.review is not None:
            assert self.review(module) == case.review
        outcome = self._run(module, self.context(case.env))
        self._compare(case, outcome)
        if isinstance(module, StateModule) and module.verify and outcome.failure is None:
            self.changes_nothing(module, case.env)
        return outcome

    def review(self, module: Module) -> str:
        """The kind of verdict in the empty Pod."""
        assert isinstance(module, StateModule)
        try:
            return module.plan(module.probe(ReviewContext({}, str(self.pai_dir)))).kind
        except UnknownUntilRun as e:
            assert e.because
            return "unknown until run"

    def changes_nothing(self, module: Module, env: Mapping[str, str] | None = None) -> None:
        """Run once more: the same verdict everywhere, not one inode or time differs."""
        before = self.snapshot()
        assert isinstance(module, StateModule)
        assert module.plan(module.probe(self.context(env))).kind == "no_change"
        assert self._run(module, self.context(env)).result is None
        assert self.snapshot() == before

    def snapshot(self) -> dict[str, tuple[int, int, int, int]]:
        """Every path below the directory with its identity."""
        paths = [self.tmp, *self.tmp.rglob("*")]
        stats = {str(p): p.lstat() for p in paths}
        return {p: (s.st_ino, s.st_mtime_ns, s.st_mode, s.st_size) for p, s in stats.items()}

    def _compare(self, case: Case, outcome: Outcome) -> None:
        failure, skip, result = outcome.failure, outcome.skip, outcome.result
        assert (failure.kind if failure else None) == case.failure, failure
        assert (skip is not None) == case.skipped
        if case.verdict is not None:
            assert outcome.verdict is not None
            assert outcome.verdict.kind == case.verdict
        for name in ("because", "before", "after"):
            if (wanted := getattr(case, name)) is not None:
                assert self._filled(wanted) in str(getattr(outcome.verdict, name))
        if case.fault is not None:
            assert failure is not None
            assert failure.fault == case.fault
        if case.says is not None:
            said = failure.message if failure else skip.because if skip else ""
            assert self._filled(case.says) in said
        if case.values is not None:
            assert result is not None
            assert result.values == case.values
        if case.exported is not None:
            assert result is not None
            assert result.environment == case.exported
        for path, text in case.leaves.items():
            place = Path(self._filled(path))
            assert (place.read_text() if place.exists() else None) == text

    def _filled(self, value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("{tmp}", str(self.tmp))
        if isinstance(value, Mapping):
            return {k: self._filled(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self._filled(v) for v in value]
        return value


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    """A harness on a directory of the test's own."""
    return Harness(tmp_path)
