"""Expressions in playbooks: Jinja's immutable sandbox, strict, bounded, three-valued.

- A name that does not exist is an error with its whole dotted path.
- A name that only the run can tell makes the value unknown, unless the result is the same
  whatever it turns out to be.
- A secret that an expression looked at makes the result a secret.
- Text that comes out of an expression is data: it is never rendered again.

This module stands on Jinja and on the floor alone, because the executor's late values need it in
the user's container too.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os.path
import re
import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, Undefined, UndefinedError
from jinja2 import nodes as ast
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment, SecurityError

from pairun.errors import PairunError, Place, Problem, did_you_mean
from pairun.executor.plan import Late
from pairun.module import Secret

MAX_TEXT = 1_000_000
MAX_RANGE = 10_000
MAX_SECONDS = 2.0
_BRANCHES = 64


class Unknown(NamedTuple):
    """Stands in a scope for what only the run can tell.

    Attributes:
        because: why, in words.
        children: the names that exist below it, or None when any may.
        optional: it may turn out not to exist at all.
    """

    because: str
    children: frozenset[str] | None = None
    optional: bool = False


class Partial(NamedTuple):
    """A mapping of which some entries are known; any other is `Unknown`."""

    known: Mapping[str, Any]
    because: str


class Scope(NamedTuple):
    """What an expression may see.

    Attributes:
        names: top-level name to value: plain data, `Secret`, `Unknown`, `Partial` or `Late`.
        statements: whether ``{% … %}`` is allowed.
    """

    names: Mapping[str, Any]
    statements: bool = True


def is_template(value: object) -> bool:
    """Whether a value has anything to render."""
    return isinstance(value, str) and ("{{" in value or "{%" in value)


def render(text: str, place: Place | None, scope: Scope) -> Any:  # noqa: ANN401 - any plain value
    """Render a text; one that is a single expression keeps its value's type.

    Returns:
        Plain data, a `Secret`, or a `Late` when only the run can tell.

    Raises:
        PairunError: not an expression, an undefined name, a failure, or a bound.
    """
    return _evaluate(text, _prepare(text, place, scope.statements), place, scope)


def condition(text: str, place: Place | None, scope: Scope) -> bool | Late:
    """Evaluate the bare expression of a ``when``.

    Raises:
        PairunError: as `render`.
    """
    if is_template(text):
        raise PairunError(
            Problem("PR302", "'when' is an expression already", place, "leave out the {{ }}")
        )
    # Its truth may be known where its value is not: `unknown or true`.
    wrapped = "{{ true if (" + text + ") else false }}"
    value = _evaluate(wrapped, _prepare(wrapped, place, statements=False), place, scope)
    if isinstance(value, Late):
        return value
    return value.reveal() == "true" if isinstance(value, Secret) else bool(value)


def resolve(late: Late, names: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Resolve a late value while the plan runs.

    Args:
        late: what could not be known before.
        names: what is known now: ``results``, ``env``, ``cluster``.

    Raises:
        PairunError: as `render`; and when it is still not known.
    """
    known = {k: resolve(v, names) if isinstance(v, Late) else v for k, v in late.vars.items()}
    scope = Scope({**names, **known})
    value = render(late.template, None, scope)
    if isinstance(value, Late):
        raise PairunError(
            Problem("PR305", f"{late.where}: still not known: it depends on {value.because}")
        )
    return value


# --- preparing ---------------------------------------------------------------------------------


class _Prepared(NamedTuple):
    run: Callable[[dict[str, Any]], Any]
    expression: bool
    names: frozenset[str]


def _prepare(text: str, place: Place | None, statements: bool) -> _Prepared:
    if len(text) > MAX_TEXT:
        raise PairunError(Problem("PR304", "the text is too long for expressions", place))
    try:
        return _compiled(text, statements)
    except TemplateSyntaxError as e:
        raise PairunError(
            Problem("PR302", f"not a valid expression: {e.message}", _inside(place, text))
        ) from e
    except RecursionError:
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


class _Statement(Exception):
    pass


@functools.lru_cache(maxsize=4096)
def _compiled(text: str, statements: bool) -> _Prepared:  # noqa: FBT001
    tree = _ENVIRONMENT.parse(text)
    if not statements and any(not isinstance(n, ast.Output) for n in tree.body):
        raise _Statement
    names = frozenset(find_undeclared_variables(tree))
    body = tree.body
    single = (
        len(body) == 1
        and isinstance(body[0], ast.Output)
        and len(body[0].nodes) == 1
        and not isinstance(body[0].nodes[0], ast.TemplateData)
    )
    if single:
        inner = text.strip()[2:-2].strip("-+ ")
        expression = _ENVIRONMENT.compile_expression(inner, undefined_to_none=False)
        return _Prepared(lambda given: expression(**given), True, names)  # noqa: FBT003
    template = _ENVIRONMENT.from_string(text)
    return _Prepared(lambda given: template.render(given), False, names)  # noqa: FBT003


def _inside(place: Place | None, text: str, needle: str = "{{") -> Place | None:
    """The place of the first expression within a value, where the value's own line shows it."""
    if place is None:
        return None
    for line in range(place.line, place.line + text.count("\n") + 2):
        start = place.column - 1 if line == place.line else 0
        at = place.source.line(line).find(needle, start)
        if at >= 0:
            return Place(place.source, line, at + 1)
    return place


# --- evaluating --------------------------------------------------------------------------------


def _evaluate(text: str, prepared: _Prepared, place: Place | None, scope: Scope) -> Any:  # noqa: ANN401
    state = _State()
    names = {n: v for n, v in scope.names.items() if n in prepared.names}
    outcomes: list[Any] = []
    waiting: list[list[bool]] = [[]]
    try:
        with _deadline():
            while waiting:
                state.begin(waiting.pop())
                outcomes.append(_once(prepared, names, state))
                # An unknown that was asked for its truth is tried the other way as well.
                waiting += [
                    [*state.taken[:i], True] for i in range(state.given, len(state.taken))
                ]
                if len(outcomes) > _BRANCHES:
                    outcomes.append(_NotKnown("too much that is unknown"))
                    break
    except _UndefinedName as e:
        raise PairunError(
            Problem(
                "PR301",
                f"'{e.path}' is not defined",
                _inside(place, text, e.path) if place else None,
                did_you_mean(e.path.rpartition(".")[2], e.known or scope.names),
            )
        ) from e
    except (_TooMuch, MemoryError, OverflowError) as e:
        raise PairunError(
            Problem("PR304", f"the expression costs too much: {e}", _inside(place, text))
        ) from e
    except (TemplateError, ArithmeticError, TypeError, ValueError, LookupError, RecursionError) as e:
        raise PairunError(
            Problem("PR305", f"the expression fails: {e}", _inside(place, text))
        ) from e
    unknown = next((o for o in outcomes if isinstance(o, _NotKnown)), None)
    if unknown is None and any(o != outcomes[0] for o in outcomes[1:]):
        unknown = _NotKnown(state.asked)
    if unknown is not None:
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


class _NotKnown(Exception):  # noqa: N818
    def __init__(self, because: str) -> None:
        super().__init__(because)
        self.because = because


def _once(prepared: _Prepared, names: Mapping[str, Any], state: _State) -> Any:  # noqa: ANN401
    try:
        value = prepared.run({n: _wrap(v, n, state) for n, v in names.items()})
        return _plain(value)
    except _NotKnown as e:
        return e


class _State:
    """What one evaluation saw and chose."""

    def __init__(self) -> None:
        self.secret = False
        self.asked = ""
        self.taken: list[bool] = []
        self.given = 0

    def begin(self, choices: list[bool]) -> None:
        self._choices = choices
        self.given = len(choices)
        self.taken = []

    def choose(self, because: str) -> bool:
        self.asked = self.asked or because
        n = len(self.taken)
        self.taken.append(self._choices[n] if n < self.given else False)
        return self.taken[-1]


@contextlib.contextmanager
def _deadline() -> Iterator[None]:
    """Stop an expression that runs away; between bytecodes, so single operations are bounded too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise _TooMuch(f"longer than {MAX_SECONDS:g} s")

    old = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


class _TooMuch(Exception):  # noqa: N818
    pass


# --- views: data as expressions see it -----------------------------------------------------------


def _wrap(value: Any, path: str, state: _State) -> Any:  # noqa: ANN401, PLR0911
    if isinstance(value, Secret):
        state.secret = True
        return value.reveal()
    if isinstance(value, Unknown):
        return _UnknownView(value, path, state)
    if isinstance(value, Late):
        return _UnknownView(Unknown(value.because), path, state)
    if isinstance(value, Partial):
        return _MapView(value.known, path, state, value.because)
    if isinstance(value, Mapping):
        return _MapView(value, path, state)
    if isinstance(value, list | tuple):
        return _ListView(value, path, state)
    return value


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Data again, after an evaluation."""
    if isinstance(value, _UnknownView):
        raise _NotKnown(value.unknown.because)
    if isinstance(value, _MapView | dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, Undefined):
        str(value)  # raises with the path
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, Sequence | Iterator):
        return [_plain(v) for v in value]
    raise TypeError(f"an expression may not result in {type(value).__name__}")


class _MapView(Mapping[str, Any]):
    methods = frozenset({"items", "keys", "values", "get"})

    def __init__(
        self, data: Mapping[str, Any], path: str, state: _State, rest: str | None = None
    ) -> None:
        self.data, self.path, self.state, self.rest = data, path, state, rest

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401
        if key not in self.data and self.rest is not None:
            return _UnknownView(
                Unknown(self.rest, optional=True), f"{self.path}.{key}", self.state
            )
        return _wrap(self.data[key], f"{self.path}.{key}", self.state)

    def __iter__(self) -> Iterator[str]:
        if self.rest is not None:
            raise _NotKnown(self.rest)
        return iter(self.data)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _ListView(Sequence[Any]):
    def __init__(self, data: Sequence[Any], path: str, state: _State) -> None:
        self.data, self.path, self.state = data, path, state

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401
        if isinstance(index, slice):
            return _ListView(self.data[index], self.path, self.state)
        return _wrap(self.data[index], f"{self.path}[{index}]", self.state)

    def __len__(self) -> int:
        return len(self.data)

    def __add__(self, other: Any) -> list[Any]:  # noqa: ANN401
        return [*self, *other]

    def __radd__(self, other: Any) -> list[Any]:  # noqa: ANN401
        return [*other, *self]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and [*self] == [*other]

    def __hash__(self) -> int:
        return hash(tuple(self))


class _UnknownView:
    """Takes part in any expression; what needs its value makes the whole unknown."""

    __slots__ = ("path", "state", "unknown")

    def __init__(self, unknown: Unknown, path: str, state: _State) -> None:
        self.unknown, self.path, self.state = unknown, path, state

    def child(self, name: str) -> _UnknownView:
        return _UnknownView(
            Unknown(self.unknown.because, None, self.unknown.optional),
            f"{self.path}.{name}",
            self.state,
        )

    def _same(self, *_: Any, **__: Any) -> _UnknownView:  # noqa: ANN401
        return self

    def _fail(self, *_: Any) -> Any:  # noqa: ANN401
        raise _NotKnown(self.unknown.because)

    def __bool__(self) -> bool:
        return self.state.choose(self.unknown.because)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _same  # type: ignore[assignment]
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _same
    __truediv__ = __floordiv__ = __neg__ = __pos__ = __call__ = __getitem__ = _same
    __str__ = __repr__ = __int__ = __float__ = __len__ = __iter__ = __contains__ = _fail
    __index__ = __hash__ = __html__ = _fail  # type: ignore[assignment]


# --- Jinja -------------------------------------------------------------------------------------


class _UndefinedName(UndefinedError):
    def __init__(self, path: str, known: Sequence[str], message: str | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.known = list(known)


def _undefined(path: str, known: Sequence[str]) -> StrictUndefined:
    return StrictUndefined(
        name=path,
        exc=functools.partial(_UndefinedName, path, known),  # type: ignore[arg-type]
    )


class _Root(StrictUndefined):
    """A name that the scope does not have."""

    def __init__(self, hint: str | None = None, obj: Any = None, name: str | None = None) -> None:  # noqa: ANN401
        made = _undefined(name or hint or "", [])
        super().__init__(hint, obj, name, made._undefined_exception)  # noqa: SLF001


_STR_METHODS = frozenset(
    {"split", "strip", "lstrip", "rstrip", "lower", "upper", "startswith", "endswith",
     "splitlines", "removeprefix", "removesuffix"}
)  # fmt: skip
_FILTERS = frozenset(
    {"abs", "default", "d", "dictsort", "first", "float", "int", "items", "join", "last",
     "length", "count", "list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse",
     "round", "select", "selectattr", "sort", "sum", "trim", "unique", "upper"}
)  # fmt: skip


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox, with dotted paths in errors and bounds on every operation that can grow."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def getattr(self, obj: Any, attribute: str) -> Any:  # noqa: ANN401
        return self._look_up(obj, attribute, method=True)

    def getitem(self, obj: Any, argument: Any) -> Any:  # noqa: ANN401
        return self._look_up(obj, argument, method=False)

    def _look_up(self, obj: Any, key: Any, *, method: bool) -> Any:  # noqa: ANN401, PLR0911
        if isinstance(obj, _UnknownView):
            known = obj.unknown.children
            if known is not None and key not in known:
                return _undefined(f"{obj.path}.{key}", sorted(known))
            return obj.child(str(key))
        if isinstance(obj, _MapView):
            if key in obj.data or (obj.rest is not None and key not in obj.methods):
                return obj[key]
            if method and key in obj.methods:
                return getattr(obj, key)
            return _undefined(f"{obj.path}.{key}", list(obj.data))
        if isinstance(obj, Undefined):
            str(obj)  # raises with the path
        if isinstance(obj, str) and method:
            if key in _STR_METHODS:
                return getattr(obj, key)
            return _undefined(f"text.{key}", sorted(_STR_METHODS))
        if isinstance(obj, Sequence | Mapping) and not (method and isinstance(obj, list)):
            try:
                return obj[key]
            except (LookupError, TypeError):
                path = getattr(obj, "path", "list")
                return _undefined(f"{path}[{key}]", [])
        return _undefined(f"{type(obj).__name__}.{key}", [])

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        if operator == "**":
            numbers = isinstance(left, int | float) and isinstance(right, int | float)
            if not numbers or abs(left) > 10_000 or abs(right) > 64:  # noqa: PLR2004
                raise _TooMuch("a power that large")
        elif operator == "%" and isinstance(left, str):
            raise SecurityError("use ~ to put texts together, not %")
        elif operator == "*":
            for a, b in ((left, right), (right, left)):
                if isinstance(a, str | list | tuple | _ListView) and isinstance(b, int):
                    if len(a) * b > MAX_TEXT:
                        raise _TooMuch("a text that long")
                elif isinstance(a, int) and isinstance(b, int) and a.bit_length() > 10_000:  # noqa: PLR2004
                    raise _TooMuch("a number that large")
        return super().call_binop(context, operator, left, right)


def _finalize(value: Any) -> Any:  # noqa: ANN401
    """A value inside a text, as YAML would write it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, _MapView | _ListView | dict | list):
        return json.dumps(_plain(value))
    return value


def _bounded_range(*bounds: int) -> range:
    made = range(*bounds)
    if len(made) > MAX_RANGE:
        raise _TooMuch(f"a range of more than {MAX_RANGE}")
    return made


def _replace(text: str, old: str, new: str) -> str:
    text, old, new = str(text), str(old), str(new)
    if len(text) + text.count(old) * len(new) > MAX_TEXT:
        raise _TooMuch("a text that long")
    return text.replace(old, new)


def _to_json(value: Any) -> str:  # noqa: ANN401
    return json.dumps(_plain(value))


def _defined(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, _UnknownView) and value.unknown.optional:
        return value
    return not isinstance(value, Undefined)


def _make_environment() -> _Environment:
    # Comments would swallow the shell's ${#list[@]}; there are none.
    environment = _Environment(
        undefined=_Root,
        finalize=_finalize,
        comment_start_string="\0#",
        comment_end_string="#\0",
        keep_trailing_newline=True,
        autoescape=False,
        cache_size=0,
    )
    environment.filters = {n: f for n, f in environment.filters.items() if n in _FILTERS}
    environment.filters |= {
        "replace": _replace,
        "tojson": _to_json,
        "quote": lambda value: shlex.quote(str(value)),
        "basename": lambda value: os.path.basename(str(value)),
        "dirname": lambda value: os.path.dirname(str(value)),
        "string": lambda value: str(_finalize(value)),
    }
    environment.tests["defined"] = _defined
    environment.tests["undefined"] = lambda value: not _defined(value)
    environment.globals = {"range": _bounded_range}
    return environment


_ENVIRONMENT = _make_environment()
