"""Tables of cases: files before, arguments, and the expected outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from pairun.errors import did_you_mean
from pairun.module import Module, StateModule
from pairun.testing.runs import Outcome, make, review, run
from pairun.testing.world import World


@attrs.frozen(kw_only=True)
class Case:
    """One row of a table; fields that are None are not compared.

    ``{tmp}`` in a text is replaced by the world's folder.

    Attributes:
        what: the promise; the name of the test.
        args: the module's arguments.
        files: what exists before: path to text (None: a directory).
        review: the kind of the verdict of a review.
        verdict: the kind of the plan's verdict.
        because: a part of the verdict's reason.
        before: a part of the verdict's ``before``.
        after: a part of the verdict's ``after``.
        failure: the kind of the failure; None for no failure.
        fault: whose fault the failure is.
        says: a part of the failure's or the skip's sentence.
        skipped: whether the module raises `Skip`.
        values: the result's values.
        exported: the result's environment.
        leaves: what exists afterwards: path to text (None: nothing).
    """

    what: str
    args: Mapping[str, Any]
    files: Mapping[str, str | None] = attrs.field(factory=dict)
    review: str | None = None
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
    leaves: Mapping[str, str | None] = attrs.field(factory=dict)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Case:
        """A case from a row of plain data, for example from YAML.

        Raises:
            AssertionError: the row has an unknown key.
        """
        known = list(attrs.fields_dict(cls))
        for key in row:
            if key not in known:
                hint = did_you_mean(key, known) or f"known are {', '.join(known)}"
                raise AssertionError(f"a case has no key '{key}'; {hint}")
        return cls(**row)


def run_case(cls: type[Module], row: Mapping[str, Any] | Case, world: World) -> Outcome:
    """Run one row of a table, including the second run, and compare.

    Args:
        cls: the module's class.
        row: a `Case`, or its fields as a mapping.
        world: where the module runs.

    Raises:
        AssertionError: the outcome differs from the row.
    """
    case = row if isinstance(row, Case) else Case.from_row(row)
    for path, text in case.files.items():
        world.put(world.fill(path), world.fill(text))
    module = make(cls, world.fill(case.args))
    if case.review is not None:
        assert isinstance(module, StateModule), "a review runs no check module"
        _same("the review's verdict", review(module, world.pai_dir).kind, case.review)
    outcome = run(module, world)
    _compare(case, outcome, world)
    return outcome


def _compare(case: Case, outcome: Outcome, world: World) -> None:
    failure, skip, result = outcome.failure, outcome.skip, outcome.result
    _same(f"the failure ({failure})", failure.kind if failure else None, case.failure)
    _same("skipped", skip is not None, case.skipped)
    if case.verdict is not None:
        _same("the verdict", outcome.verdict and outcome.verdict.kind, case.verdict)
    if case.fault is not None:
        _same("the fault", failure and failure.fault, case.fault)
    if case.values is not None:
        _same("the values", result and result.values, world.fill(case.values))
    if case.exported is not None:
        _same("the environment", result and result.environment, world.fill(case.exported))
    sentence = failure.message if failure else skip.because if skip else ""
    parts: dict[str, tuple[Any, str | None]] = {"the sentence": (sentence, case.says)}
    for name in ("because", "before", "after"):
        parts[f"the verdict's {name}"] = (getattr(outcome.verdict, name, None), getattr(case, name))
    for what, (text, part) in parts.items():
        if part is not None and world.fill(part) not in str(text):
            raise AssertionError(f"{what}: {text!r}, expected a text with {world.fill(part)!r}")
    for path, content in case.leaves.items():
        _same(path, world.text(world.fill(path)), world.fill(content))


def _same(what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise AssertionError(f"{what}: {actual!r}, expected {expected!r}")
