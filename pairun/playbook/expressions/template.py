"""Expressions in playbooks: Jinja's language, strict, bounded, three-valued.

- A name that does not exist is an error that shows its whole dotted path.
- A name that is unknown before run time makes the value unknown, unless the result is the same
  for all its values.
- If an expression uses a secret, the result is a secret.
- The result of an expression is data: it is never rendered again.

Jinja's immutable sandbox evaluates them. Dotted names, as in ``{{ a.b.c }}``, are looked up without
it, because its import takes longer than the review of a job. This file imports only low rooms: late
values need it in the user's container, too.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from pairun.base.cpulimit import CpuBudget, CpuLimitError
from pairun.errors import PairunError, Place, did_you_mean
from pairun.module import Secret
from pairun.plan import Late
from pairun.playbook.expressions.views import (
    GLOBALS,
    MAX_EXPRESSION_TEXT,
    NotKnown,
    Partial,
    Prepared,
    State,
    TooMuch,
    UndefinedName,
    Unknown,
    joined,
    look_up,
    plain,
    work,
    wrap,
)

_BRANCHES = 64
MAX_SECONDS = 2.0
"""CPU time limit of all expressions of a job together, in seconds."""
_LATE = CpuBudget(MAX_SECONDS)
_Result = TypeVar("_Result")
"""For the late values of this process, together."""

_DOTTED = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*"
_LOOKUP = r"\{\{ *(" + _DOTTED + r") *\}\}"

MISSING = {"secrets": "secrets are a job's: only the layer of a job, extras.pairun, can use them"}
"""The hint for a name that some layers have and others do not."""


class Scope(NamedTuple):
    """The names that an expression can use.

    Attributes:
        names: top-level name to value: plain data, `Secret`, `Unknown`, `Partial` or `Late`.
        statements: whether ``{% … %}`` is allowed.
    """

    names: Mapping[str, Any]
    statements: bool = True


def is_template(value: object) -> bool:
    """Whether a value contains an expression or a statement."""
    return isinstance(value, str) and ("{{" in value or "{%" in value)


def render(text: str, place: Place | None, scope: Scope) -> Any:
    """Render a text; one that is a single expression keeps its value's type.

    Returns:
        Plain data, a `Secret`, or a `Late` if it is known only at run time.

    Raises:
        PairunError: the expression is invalid, uses an undefined name, fails, or exceeds a limit.
    """
    _check_length(text, place)

    def prepare() -> Prepared:
        found = _looked_up(text)
        if found and found.names <= scope.names.keys():
            return found
        return _by_jinja(text, place, scope.statements)

    return _evaluate(text, prepare, place, scope)


def condition(text: str, place: Place | None, scope: Scope) -> bool | Late:
    """Evaluate the bare expression of a ``when``.

    Raises:
        PairunError: as `render`.
    """
    _check_condition(text, place)

    def prepare() -> Prepared:
        found = _looked_up_condition(text)
        if found and found.names <= scope.names.keys():
            return found
        return _condition_by_jinja(text, place)

    value = _evaluate("{{ true if (" + text + ") else false }}", prepare, place, scope)
    if isinstance(value, Late):
        return value
    return value.reveal() == "true" if isinstance(value, Secret) else bool(value)


def check_text(text: str, place: Place | None) -> frozenset[str]:
    """Compile the expressions of a text without a scope.

    Returns:
        The names that they use.

    Raises:
        PairunError: one is invalid.
    """
    _check_length(text, place)

    def prepared() -> Prepared:
        return _looked_up(text) or _by_jinja(text, place, statements=True)

    return _bounded(prepared, text, place).names


def check_condition(text: str, place: Place | None) -> frozenset[str]:
    """Compile the bare expression of a ``when``, as `check_text` does."""
    _check_condition(text, place)

    def prepared() -> Prepared:
        return _looked_up_condition(text) or _condition_by_jinja(text, place)

    return _bounded(prepared, text, place).names


def resolve(late: Late, names: Mapping[str, Any]) -> Any:
    """Resolve a late value while the plan runs.

    Args:
        names: the names known at run time: ``results``, ``env``, ``cluster``.

    Raises:
        PairunError: as `render`; also if the value is still unknown.
    """
    known = {k: _resolved(v, names) for k, v in late.vars.items()}
    scope = Scope({**names, **known})
    with work.charged_to(work.budget or _LATE):
        value = render(late.template, None, scope)
    if isinstance(value, Late):
        raise PairunError.of("PR305", f"{late.where}: still unknown: it depends on {value.because}")
    return value


def _resolved(value: Any, names: Mapping[str, Any]) -> Any:
    if isinstance(value, Late):
        return resolve(value, names)
    if isinstance(value, Mapping):
        return {k: _resolved(v, names) for k, v in value.items()}
    return [_resolved(v, names) for v in value] if isinstance(value, list | tuple) else value


# --- places ---------------------------------------------------------------------------------------


def inside(place: Place | None, text: str, needle: str = "{{") -> Place | None:
    """The place of the first expression in a value, if the value's own line shows it."""
    if place is None:
        return None
    head = place.source.line(place.line)[place.column - 1 :]
    # The text of a block scalar starts on the line below its sign.
    last = place.line + (text.count("\n") + 1 if head[:1] in ("|", ">", '"', "'", "") else 0)
    for line in range(place.line, last + 1):
        start = place.column - 1 if line == place.line else 0
        at = place.source.line(line).find(needle, start)
        if at >= 0:
            return Place(place.source, line, at + 1)
    return place


# --- preparing ---------------------------------------------------------------------------------


def _check_length(text: str, place: Place | None) -> None:
    if len(text) > MAX_EXPRESSION_TEXT:
        raise PairunError.of("PR304", "the text is too long for expressions", place)


def _check_condition(text: str, place: Place | None) -> None:
    if is_template(text):
        raise PairunError.of(
            "PR302", "'when' is an expression already", place, "leave out the {{ }}"
        )


@functools.lru_cache(maxsize=4096)
def _looked_up(text: str) -> Prepared | None:
    """A text whose expressions are dotted names; None if it has any other, or statements."""
    literals, names = (parts := re.split(_LOOKUP, text))[::2], parts[1::2]
    # Jinja makes every end of a line a line feed.
    if not names or any(is_template(each) or "\r" in each for each in literals):
        return None
    first_names = frozenset(name.partition(".")[0] for name in names)
    if literals == ["", ""]:
        return Prepared(lambda given: plain(_value(names[0], given)), True, first_names)

    def run(given: Mapping[str, Any]) -> str:
        values = [*(_value(name, given) for name in names), ""]
        return joined(part for pair in zip(literals, values, strict=True) for part in pair)

    return Prepared(run, False, first_names)


@functools.lru_cache(maxsize=1024)
def _looked_up_condition(text: str) -> Prepared | None:
    """The truth of a dotted name; None if the text is anything else."""
    if not re.fullmatch(_DOTTED, text):
        return None
    first = text.partition(".")[0]
    return Prepared(lambda given: bool(_value(text, given)), True, frozenset({first}))


def _value(name: str, given: Mapping[str, Any]) -> Any:
    """The value of a dotted name, as an expression sees it."""
    first, *others = name.split(".")
    value = given[first]
    for other in others:
        value = look_up(value, other, method=True)
    return value


def _by_jinja(text: str, place: Place | None, statements: bool) -> Prepared:
    from pairun.playbook.expressions.jinjacode import prepare

    return prepare(text, place, statements=statements)


def _condition_by_jinja(text: str, place: Place | None) -> Prepared:
    from pairun.playbook.expressions.jinjacode import prepare_condition

    return prepare_condition(text, place)


# --- evaluating --------------------------------------------------------------------------------


def _bounded(do: Callable[[], _Result], text: str, place: Place | None) -> _Result:
    """Do the work of an expression; stop one that costs too much.

    The CPU time limit works between bytecodes, so single operations need limits, too.
    """
    work.done = 0
    try:
        return (work.budget or CpuBudget(MAX_SECONDS)).spend(do)
    except (CpuLimitError, TooMuch, MemoryError, OverflowError) as e:
        why = str(e) or "more memory than there is"
        raise PairunError.of(
            "PR304", f"the expression costs too much: {why}", inside(place, text)
        ) from e


def _evaluate(text: str, prepare: Callable[[], Prepared], place: Place | None, scope: Scope) -> Any:
    state = State()
    outcomes: list[Any] = []

    def evaluated() -> tuple[Prepared, dict[str, Any]]:
        prepared = prepare()
        names = {n: v for n, v in scope.names.items() if n in prepared.names}
        waiting: list[list[bool]] = [[]]
        while waiting:
            state.begin(waiting.pop())
            outcomes.append(_once(prepared, names, state))
            # If an unknown's truth value was needed, evaluate with the other value, too.
            waiting += [[*state.taken[:i], True] for i in range(state.given, len(state.taken))]
            if len(outcomes) > _BRANCHES:
                outcomes.append(NotKnown("too much that is unknown"))
                break
        return prepared, names

    try:
        prepared, names = _bounded(evaluated, text, place)
    except UndefinedName as e:
        known = e.known or ([] if "." in e.path or "[" in e.path else scope.names)
        hint = MISSING.get(e.path) or did_you_mean(e.path.rpartition(".")[2], known)
        where = inside(place, text, e.path)
        raise PairunError.of("PR301", f"'{e.path}' is not defined", where, hint) from e
    except (ArithmeticError, TypeError, ValueError, LookupError, RecursionError) as e:
        why = "the reason is hidden because it may contain a secret" if state.secret else str(e)
        raise PairunError.of("PR305", f"the expression fails: {why}", inside(place, text)) from e
    unknown = next((o for o in outcomes if isinstance(o, NotKnown)), None)
    if unknown is None and any(o != outcomes[0] for o in outcomes[1:]):
        unknown = NotKnown(state.asked)
    if unknown is not None:
        _check_names(prepared, place, text, scope)
        return Late(
            template=text,
            expression=prepared.expression,
            because=unknown.because,
            where=str(place or ""),
            vars={n: v for n, v in names.items() if not isinstance(v, Unknown | Partial)},
        )
    value = outcomes[0]
    if not state.secret:
        return value
    return Secret(value if isinstance(value, str) else json.dumps(value))


def _check_names(prepared: Prepared, place: Place | None, text: str, scope: Scope) -> None:
    """Reject a late expression with a name that its scope does not have.

    More names exist at run time than a job may use (``env``), so check for missing names now.
    """
    for name in sorted(prepared.names - scope.names.keys() - GLOBALS):
        hint = MISSING.get(name) or did_you_mean(name, scope.names)
        raise PairunError.of("PR301", f"'{name}' is not defined", inside(place, text, name), hint)


def _once(prepared: Prepared, names: Mapping[str, Any], state: State) -> Any:
    try:
        return prepared.run({n: wrap(v, n, state) for n, v in names.items()})
    except NotKnown as e:
        return e
    except TypeError:
        # `in`, `/` and other operators raise TypeError for an unknown.
        if state.unknown:
            return NotKnown(state.unknown)
        raise
