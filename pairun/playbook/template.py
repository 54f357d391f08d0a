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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, Undefined, UndefinedError
from jinja2 import nodes as ast
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.filters import make_attrgetter
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from pairun.errors import PairunError, Place, Problem, did_you_mean
from pairun.executor.plan import Late
from pairun.module import Secret

MAX_TEXT = 1_000_000
MAX_RANGE = 10_000
MAX_SECONDS = 2.0
MAX_WORK = 16_000_000
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


def render(text: str, place: Place | None, scope: Scope) -> Any:
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
    with _syntax(text, place):
        # By itself, so that a parenthesis too many cannot become part of what follows.
        _ENVIRONMENT.compile_expression(text)
    # Its truth may be known where its value is not: `unknown or true`.
    wrapped = "{{ true if (" + text + ") else false }}"
    value = _evaluate(wrapped, _prepare(wrapped, place, statements=False), place, scope)
    if isinstance(value, Late):
        return value
    return value.reveal() == "true" if isinstance(value, Secret) else bool(value)


def resolve(late: Late, names: Mapping[str, Any]) -> Any:
    """Resolve a late value while the plan runs.

    Args:
        late: what could not be known before.
        names: what is known now: ``results``, ``env``, ``cluster``.

    Raises:
        PairunError: as `render`; and when it is still not known.
    """
    known = {k: _resolved(v, names) for k, v in late.vars.items()}
    scope = Scope({**names, **known})
    value = render(late.template, None, scope)
    if isinstance(value, Late):
        raise PairunError(
            Problem("PR305", f"{late.where}: still not known: it depends on {value.because}")
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


class _Statement(Exception):
    pass


@contextlib.contextmanager
def _syntax(text: str, place: Place | None) -> Iterator[None]:
    """What goes wrong before anything is evaluated."""
    try:
        yield
    except TemplateSyntaxError as e:
        raise PairunError(
            Problem("PR302", f"not a valid expression: {e.message}", _inside(place, text))
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
        # One sign at either end belongs to the delimiter, a further one to the expression.
        inner = re.sub(r"^[-+]|[-+]$", "", text.strip()[2:-2])
        expression = _ENVIRONMENT.compile_expression(inner, undefined_to_none=False)
        return _Prepared(lambda given: expression(**given), True, names)
    template = _ENVIRONMENT.from_string(text)
    return _Prepared(template.render, False, names)


def _inside(place: Place | None, text: str, needle: str = "{{") -> Place | None:
    """The place of the first expression within a value, where the value's own line shows it."""
    if place is None:
        return None
    head = place.source.line(place.line)[place.column - 1 :]
    # The text of a block scalar begins below its sign.
    last = place.line + (text.count("\n") + 1 if head[:1] in ("|", ">", '"', "'", "") else 0)
    for line in range(place.line, last + 1):
        start = place.column - 1 if line == place.line else 0
        at = place.source.line(line).find(needle, start)
        if at >= 0:
            return Place(place.source, line, at + 1)
    return place


# --- evaluating --------------------------------------------------------------------------------


def _evaluate(text: str, prepared: _Prepared, place: Place | None, scope: Scope) -> Any:
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
                waiting += [[*state.taken[:i], True] for i in range(state.given, len(state.taken))]
                if len(outcomes) > _BRANCHES:
                    outcomes.append(_NotKnown("too much that is unknown"))
                    break
    except _UndefinedName as e:
        raise PairunError(
            Problem(
                "PR301",
                f"'{e.path}' is not defined",
                _inside(place, text, e.path) if place else None,
                did_you_mean(e.path.rpartition(".")[2], e.known or _top_names(e.path, scope)),
            )
        ) from e
    except (_TooMuch, MemoryError, OverflowError) as e:
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
        why = "it touches a secret, so no more is said" if state.secret else str(e)
        raise PairunError(
            Problem("PR305", f"the expression fails: {why}", _inside(place, text))
        ) from e
    unknown = next((o for o in outcomes if isinstance(o, _NotKnown)), None)
    if unknown is None and any(o != outcomes[0] for o in outcomes[1:]):
        unknown = _NotKnown(state.asked)
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
    """Refuse a late expression with a name that its scope does not have.

    The run knows more names than a job may use (``env``), so nothing is left for it to find out.
    """
    for name in sorted(prepared.names - scope.names.keys() - _ENVIRONMENT.globals.keys()):
        raise PairunError(
            Problem(
                "PR301",
                f"'{name}' is not defined",
                _inside(place, text, name),
                did_you_mean(name, scope.names),
            )
        )


class _NotKnown(Exception):
    def __init__(self, because: str) -> None:
        super().__init__(because)
        self.because = because


def _once(prepared: _Prepared, names: Mapping[str, Any], state: _State) -> Any:
    try:
        value = prepared.run({n: _wrap(v, n, state) for n, v in names.items()})
        return _plain(value)
    except _NotKnown as e:
        return e
    except TypeError:
        # `in`, `/` and the like refuse what stands for an unknown before it can say so.
        if state.unknown:
            return _NotKnown(state.unknown)
        raise


class _State:
    """What one evaluation saw and chose."""

    def __init__(self) -> None:
        self.secret = False
        self.unknown = ""
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
    _work.done = 0
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


class _TooMuch(Exception):
    pass


class _Work:
    """Counts the characters and elements that one evaluation has made."""

    done = 0

    def spend(self, size: int) -> None:
        self.done += size
        if size > MAX_TEXT:
            raise _TooMuch("a text or list that long")
        if self.done > MAX_WORK:
            raise _TooMuch("more text than it may make")


_work = _Work()


def _made(value: Any) -> Any:
    """A value that an operation has made, once it is paid for."""
    if isinstance(value, str | list | tuple):
        _work.spend(len(value))
    return value


# --- views: data as expressions see it -----------------------------------------------------------


def _wrap(value: Any, path: str, state: _State) -> Any:
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


def _plain(value: Any) -> Any:
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

    def __getitem__(self, key: str) -> Any:
        if key not in self.data and self.rest is not None:
            return _UnknownView(Unknown(self.rest, optional=True), f"{self.path}.{key}", self.state)
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

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return _ListView(self.data[index], self.path, self.state)
        return _wrap(self.data[index], f"{self.path}[{index}]", self.state)

    def __len__(self) -> int:
        return len(self.data)

    def __add__(self, other: Any) -> list[Any]:
        return [*self, *other]

    def __radd__(self, other: Any) -> list[Any]:
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
        state.unknown = state.unknown or unknown.because

    def child(self, name: str) -> _UnknownView:
        return _UnknownView(
            Unknown(self.unknown.because, None, self.unknown.optional),
            f"{self.path}.{name}",
            self.state,
        )

    def _same(self, *_: Any, **__: Any) -> _UnknownView:
        return self

    def _fail(self, *_: Any) -> Any:
        raise _NotKnown(self.unknown.because)

    def __bool__(self) -> bool:
        return self.state.choose(self.unknown.because)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _same  # type: ignore[assignment]
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _same
    __truediv__ = __floordiv__ = __neg__ = __pos__ = __call__ = __getitem__ = _same
    __str__ = __repr__ = __int__ = __float__ = __len__ = __iter__ = __contains__ = _fail
    __index__ = __hash__ = __html__ = _fail


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

    def __init__(self, hint: str | None = None, obj: Any = None, name: str | None = None) -> None:
        made = _undefined(name or hint or "", [])
        super().__init__(hint, obj, name, made._undefined_exception)


_STR_METHODS = frozenset(
    {"split", "strip", "lstrip", "rstrip", "lower", "upper", "startswith", "endswith",
     "splitlines", "removeprefix", "removesuffix"}
)  # fmt: skip
_LOOP = frozenset({"first", "index", "index0", "last", "length"})
_FILTERS = frozenset(
    {"abs", "default", "d", "dictsort", "first", "float", "int", "items", "join", "last",
     "length", "count", "list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse",
     "round", "select", "selectattr", "sort", "sum", "trim", "unique", "upper"}
)  # fmt: skip


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox, with dotted paths in errors and bounds on every operation that can grow."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self._look_up(obj, attribute, method=True)

    def getitem(self, obj: Any, argument: Any) -> Any:
        return self._look_up(obj, argument, method=False)

    def _look_up(self, obj: Any, key: Any, *, method: bool) -> Any:
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
        if isinstance(obj, LoopContext) and key in _LOOP:
            return getattr(obj, key)
        if isinstance(obj, Sequence | Mapping) and not (method and isinstance(obj, list)):
            try:
                return obj[key]
            except (LookupError, TypeError):
                path = getattr(obj, "path", "list")
                return _undefined(f"{path}[{key}]", [])
        return _undefined(f"{type(obj).__name__}.{key}", [])

    def call(self, context: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        return _made(super().call(context, function, *args, **kwargs))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, _UnknownView) or isinstance(right, _UnknownView):
            return left if isinstance(left, _UnknownView) else right
        if operator == "**":
            numbers = isinstance(left, int | float) and isinstance(right, int | float)
            if not numbers or abs(left) > 10_000 or abs(right) > 64:
                raise _TooMuch("a power that large")
        elif operator == "%" and isinstance(left, str):
            raise SecurityError("use ~ to put texts together, not %")
        elif operator == "*":
            for a, b in ((left, right), (right, left)):
                if isinstance(a, str | list | tuple | _ListView) and isinstance(b, int):
                    _work.spend(max(0, len(a) * b))
                elif isinstance(a, int) and isinstance(b, int) and a.bit_length() > 10_000:
                    raise _TooMuch("a number that large")
        elif operator == "+" and isinstance(left, str | list | tuple | _ListView):
            _work.spend(len(left) + (len(right) if isinstance(right, Sequence) else 0))
        return super().call_binop(context, operator, left, right)


def _finalize(value: Any) -> Any:
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
    _work.spend(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def _joined(texts: Iterable[Any]) -> str:
    """The texts as one; counted before they are put together."""
    parts = []
    for each in texts:
        parts.append(str(_finalize(each)))
        _work.spend(len(parts[-1]))
    return "".join(parts)


def _join(values: Iterable[Any], d: str = "", attribute: str | None = None) -> str:
    if attribute is not None:
        values = map(make_attrgetter(_ENVIRONMENT, attribute), values)
    separated = ((d, value) if n else (value,) for n, value in enumerate(values))
    return _joined(text for pair in separated for text in pair)


def _to_json(value: Any) -> str:
    return json.dumps(_plain(value))


def _defined(value: Any) -> Any:
    if isinstance(value, _UnknownView) and value.unknown.optional:
        return value
    return not isinstance(value, Undefined)


class _Generator(CodeGenerator):
    """Puts texts together (``~``) where they are counted."""

    def visit_Concat(self, node: ast.Concat, frame: Frame) -> None:  # noqa: N802 - Jinja's name
        self.write("environment.concat((")
        for each in node.nodes:
            self.visit(each, frame)
            self.write(", ")
        self.write("))")


_Environment.code_generator_class = _Generator
_Environment.concat = staticmethod(_joined)


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter whose results are counted."""

    @functools.wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        return _made(function(*args, **kwargs))

    return counted


def _three_valued(test: Any) -> Callable[..., Any]:
    """A test that does not know the answer for a value that is not known."""

    @functools.wraps(test)
    def asked(*args: Any, **kwargs: Any) -> Any:
        unknown = next((a for a in args if isinstance(a, _UnknownView)), None)
        return test(*args, **kwargs) if unknown is None else unknown

    return asked


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
        "join": _join,
        "tojson": _to_json,
        "quote": lambda value: shlex.quote(str(value)),
        "basename": lambda value: os.path.basename(str(value)),
        "dirname": lambda value: os.path.dirname(str(value)),
        "string": lambda value: str(_finalize(value)),
    }
    environment.filters = {n: _counted(f) for n, f in environment.filters.items()}
    environment.tests = {n: _three_valued(t) for n, t in environment.tests.items()}
    environment.tests["defined"] = _defined
    environment.tests["undefined"] = lambda value: not _defined(value)
    environment.globals = {"range": _bounded_range}
    return environment


_ENVIRONMENT = _make_environment()
