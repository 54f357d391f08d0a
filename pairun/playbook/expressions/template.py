"""Expressions in playbooks: Jinja's immutable sandbox, strict, bounded, three-valued.

- A name that does not exist is an error that shows its whole dotted path.
- A name that is unknown before run time makes the value unknown, unless the result is the same
  for all its values.
- If an expression uses a secret, the result is a secret.
- The result of an expression is data: it is never rendered again.

This file imports only Jinja and low rooms: late values need it in the user's container, too.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from jinja2 import TemplateError, TemplateSyntaxError
from jinja2 import nodes as ast
from jinja2.environment import TemplateExpression
from jinja2.meta import find_undeclared_variables
from jinja2.parser import Parser

from pairun.errors import PairunError, Place, Problem, did_you_mean
from pairun.module import Secret
from pairun.plan import Late
from pairun.playbook.expressions.plainpaths import (
    NOT_PLAIN,
    NotPlain,
    plain_condition,
    plain_expression,
)
from pairun.playbook.expressions.sandbox import ENVIRONMENT, UndefinedName
from pairun.playbook.expressions.views import (
    MAX_TEXT,
    NotKnown,
    Partial,
    State,
    TooMuch,
    Unknown,
    deadline,
    plain,
    wrap,
)

_BRANCHES = 64

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
    value = plain_expression(text, scope.names)
    if isinstance(value, Unknown):
        return Late(template=text, expression=True, because=value.because, where=str(place or ""))
    if value is not NOT_PLAIN:
        return value
    return _evaluate(text, _prepare(text, place, scope.statements), place, scope)


def condition(text: str, place: Place | None, scope: Scope) -> bool | Late:
    """Evaluate the bare expression of a ``when``.

    Raises:
        PairunError: as `render`.
    """
    truth = plain_condition(text, scope.names)
    if not isinstance(truth, NotPlain):
        return truth
    prepared = _prepare_condition(text, place)
    value = _evaluate("{{ true if (" + text + ") else false }}", prepared, place, scope)
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
    return _prepare(text, place, statements=True).names


def check_condition(text: str, place: Place | None) -> frozenset[str]:
    """Compile the bare expression of a ``when``, as `check_text` does."""
    return _prepare_condition(text, place).names


def resolve(late: Late, names: Mapping[str, Any]) -> Any:
    """Resolve a late value while the plan runs.

    Args:
        late: the value that was unknown before.
        names: the names known at run time: ``results``, ``env``, ``cluster``.

    Raises:
        PairunError: as `render`; also if the value is still unknown.
    """
    known = {k: _resolved(v, names) for k, v in late.vars.items()}
    scope = Scope({**names, **known})
    value = render(late.template, None, scope)
    if isinstance(value, Late):
        raise PairunError(
            Problem("PR305", f"{late.where}: still unknown: it depends on {value.because}")
        )
    return value


def _resolved(value: Any, names: Mapping[str, Any]) -> Any:
    if isinstance(value, Late):
        return resolve(value, names)
    if isinstance(value, Mapping):
        return {k: _resolved(v, names) for k, v in value.items()}
    return [_resolved(v, names) for v in value] if isinstance(value, list | tuple) else value


# --- preparing ---------------------------------------------------------------------------------


class _Prepared(NamedTuple):
    run: Callable[[dict[str, Any]], Any]
    expression: bool
    names: frozenset[str]


def _prepare(text: str, place: Place | None, statements: bool) -> _Prepared:
    if len(text) > MAX_TEXT:
        raise PairunError(Problem("PR304", "the text is too long for expressions", place))
    with _syntax(text, place):
        return _compiled(text, statements)


def _prepare_condition(text: str, place: Place | None) -> _Prepared:
    if is_template(text):
        raise PairunError(
            Problem("PR302", "'when' is an expression already", place, "leave out the {{ }}")
        )
    with _syntax(text, place):
        return _compiled_condition(text)


class _Statement(Exception):
    pass


@contextlib.contextmanager
def _syntax(text: str, place: Place | None) -> Iterator[None]:
    """Turn errors of parsing into problems."""
    try:
        yield
    except TemplateSyntaxError as e:
        raise PairunError(
            Problem("PR302", f"not a valid expression: {e.message}", _broken(place, text, e.lineno))
        ) from e
    except (RecursionError, MemoryError):
        raise PairunError(Problem("PR304", "the expression is nested too deeply", place)) from None
    except _Statement:
        raise PairunError(
            Problem(
                "PR303",
                "statements ({% … %}) are not allowed in a job's layer",
                _inside(place, text, "{%"),
                "use an expression: {{ a if b else c }}",
            )
        ) from None


@functools.lru_cache(maxsize=4096)
def _compiled(text: str, statements: bool) -> _Prepared:
    tree = ENVIRONMENT.parse(text)
    body = tree.body
    if all(isinstance(n, ast.Output) for n in body):
        names = _names_in(tree)
    elif statements:
        names = frozenset(find_undeclared_variables(tree))
    else:
        raise _Statement
    single = (
        len(body) == 1
        and isinstance(body[0], ast.Output)
        and len(body[0].nodes) == 1
        and not isinstance(body[0].nodes[0], ast.TemplateData)
    )
    if single:
        # One sign at either end belongs to the delimiter, any further sign to the expression.
        inner = re.sub(r"^[-+]|[-+]$", "", text.strip()[2:-2])
        expression = ENVIRONMENT.compile_expression(inner, undefined_to_none=False)
        return _Prepared(lambda given: expression(**given), True, names)
    template = ENVIRONMENT.from_string(text)
    return _Prepared(template.render, False, names)


@functools.lru_cache(maxsize=1024)
def _compiled_condition(text: str) -> _Prepared:
    """Its truth value may be known even if its value is not: ``unknown or true``."""
    parser = Parser(ENVIRONMENT, text, state="variable")
    test = parser.parse_expression()
    if not parser.stream.eos:
        raise TemplateSyntaxError("chunk after expression", parser.stream.current.lineno)
    truth = ast.CondExpr(test, ast.Const(True), ast.Const(False))
    result = ast.Assign(ast.Name("result", "store"), truth, lineno=1)
    tree = ast.Template([result], lineno=1)
    tree.set_environment(ENVIRONMENT)
    expression = TemplateExpression(ENVIRONMENT.from_string(tree), undefined_to_none=False)
    return _Prepared(lambda given: expression(**given), True, _names_in(truth))


def _names_in(tree: ast.Node) -> frozenset[str]:
    """The names that expressions use; they define none, so no code needs to be generated."""
    names = {name.name for name in tree.find_all(ast.Name)}
    return frozenset(names - ENVIRONMENT.globals.keys() - {"self"})


def _broken(place: Place | None, text: str, number: int) -> Place | None:
    """The place of a syntax error; a literal block keeps the lines of the text."""
    if place is None or place.source.line(place.line)[place.column - 1 :][:1] != "|":
        tags = [tag for tag in ("{{", "{%") if tag in text]
        return _inside(place, text, min(tags, key=text.index, default="{{"))
    line = place.source.line(place.line + number)
    positions = [at for tag in ("{{", "{%") if (at := line.find(tag)) >= 0]
    return Place(
        place.source,
        place.line + number,
        min(positions, default=len(line) - len(line.lstrip())) + 1,
    )


def _inside(place: Place | None, text: str, needle: str = "{{") -> Place | None:
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


# --- evaluating --------------------------------------------------------------------------------


def _evaluate(text: str, prepared: _Prepared, place: Place | None, scope: Scope) -> Any:
    state = State()
    names = {n: v for n, v in scope.names.items() if n in prepared.names}
    outcomes: list[Any] = []
    waiting: list[list[bool]] = [[]]
    try:
        with deadline():
            while waiting:
                state.begin(waiting.pop())
                outcomes.append(_once(prepared, names, state))
                # If an unknown's truth value was needed, evaluate with the other value, too.
                waiting += [[*state.taken[:i], True] for i in range(state.given, len(state.taken))]
                if len(outcomes) > _BRANCHES:
                    outcomes.append(NotKnown("too much that is unknown"))
                    break
    except UndefinedName as e:
        raise PairunError(
            Problem(
                "PR301",
                f"'{e.path}' is not defined",
                _inside(place, text, e.path) if place else None,
                MISSING.get(e.path)
                or did_you_mean(e.path.rpartition(".")[2], e.known or _top_names(e.path, scope)),
            )
        ) from e
    except (TooMuch, MemoryError, OverflowError) as e:
        why = str(e) or "more memory than there is"
        raise PairunError(
            Problem("PR304", f"the expression costs too much: {why}", _inside(place, text))
        ) from e
    except (
        TemplateError,
        ArithmeticError,
        TypeError,
        ValueError,
        LookupError,
        RecursionError,
    ) as e:
        why = "the reason is hidden because it may contain a secret" if state.secret else str(e)
        raise PairunError(
            Problem("PR305", f"the expression fails: {why}", _inside(place, text))
        ) from e
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


def _top_names(path: str, scope: Scope) -> list[str]:
    return [] if "." in path or "[" in path else list(scope.names)


def _check_names(prepared: _Prepared, place: Place | None, text: str, scope: Scope) -> None:
    """Reject a late expression with a name that its scope does not have.

    More names exist at run time than a job may use (``env``), so check for missing names now.
    """
    for name in sorted(prepared.names - scope.names.keys() - ENVIRONMENT.globals.keys()):
        raise PairunError(
            Problem(
                "PR301",
                f"'{name}' is not defined",
                _inside(place, text, name),
                MISSING.get(name) or did_you_mean(name, scope.names),
            )
        )


def _once(prepared: _Prepared, names: Mapping[str, Any], state: State) -> Any:
    try:
        value = prepared.run({n: wrap(v, n, state) for n, v in names.items()})
        return plain(value)
    except NotKnown as e:
        return e
    except TypeError:
        # `in`, `/` and other operators raise TypeError for an unknown.
        if state.unknown:
            return NotKnown(state.unknown)
        raise
