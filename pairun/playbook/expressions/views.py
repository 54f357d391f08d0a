"""Data as expressions see it: each view has its path and tracks secrets, unknowns and cost."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pairun.base.cpulimit import CpuBudget
from pairun.module import Secret
from pairun.plan import Late

MAX_EXPRESSION_TEXT = 1_000_000
MAX_RANGE = 10_000
MAX_WORK = 16_000_000
GLOBALS = frozenset({"range"})
"""Names that every expression can use."""


class Unknown(NamedTuple):
    """A value of a scope that is unknown before run time.

    Attributes:
        children: the names below it, or None if any name may exist.
        optional: it may not exist at all.
    """

    because: str
    children: frozenset[str] | None = None
    optional: bool = False


class Partial(NamedTuple):
    """A mapping with some known entries; any other entry is `Unknown`."""

    known: Mapping[str, Any]
    because: str


class NotKnown(Exception):
    """An evaluation needs a value that is unknown before run time."""

    def __init__(self, because: str) -> None:
        super().__init__(because)
        self.because = because


class UndefinedName(Exception):
    """A name that does not exist; has its path and the names that do exist."""

    def __init__(self, path: str, known: Sequence[str], message: str | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.known = list(known)


class Prepared(NamedTuple):
    """An expression, or a text with expressions, that can be evaluated.

    Attributes:
        run: takes the names as the expression sees them, returns plain data.
        expression: whether it is one expression, whose value keeps its type.
    """

    run: Callable[[Mapping[str, Any]], Any]
    expression: bool
    names: frozenset[str]


class State:
    """What one evaluation reads and assumes."""

    def __init__(self) -> None:
        self.secret = False
        self.unknown = ""
        self.asked = ""
        self.taken: list[bool] = []
        self.given = 0

    def begin(self, choices: list[bool]) -> None:
        """Start another evaluation with these truth values of unknowns."""
        self._choices = choices
        self.given = len(choices)
        self.taken = []

    def choose(self, because: str) -> bool:
        """The truth value of an unknown in this evaluation."""
        self.asked = self.asked or because
        n = len(self.taken)
        self.taken.append(self._choices[n] if n < self.given else False)
        return self.taken[-1]


class TooMuch(Exception):
    """An expression exceeds its limits."""


class _Work:
    """Counts the characters and elements that one evaluation creates.

    Attributes:
        budget: the CPU time for the expressions of a job; None for one expression at a time.
    """

    done = 0
    budget: CpuBudget | None = None

    @contextlib.contextmanager
    def charged_to(self, budget: CpuBudget) -> Iterator[None]:
        """Take the CPU time of every expression from one budget."""
        before, self.budget = self.budget, budget
        try:
            yield
        finally:
            self.budget = before

    def spend(self, size: int) -> None:
        """Count a text or list of that length."""
        self.done += size
        if size > MAX_EXPRESSION_TEXT:
            raise TooMuch("a text or list that long")
        if self.done > MAX_WORK:
            raise TooMuch("more text than it may make")


work = _Work()


def made(value: Any) -> Any:
    """Count the size of a value that an operation created, and return the value."""
    if isinstance(value, str | list | tuple):
        work.spend(len(value))
    return value


def wrap(value: Any, path: str, state: State) -> Any:
    """A value as an expression sees it; records the use of a secret."""
    if isinstance(value, Secret):
        state.secret = True
        return value.reveal()
    if isinstance(value, Unknown):
        return UnknownView(value, path, state)
    if isinstance(value, Late):
        return UnknownView(Unknown(value.because), path, state)
    if isinstance(value, Partial):
        return MapView(value.known, path, state, value.because)
    if isinstance(value, Mapping):
        return MapView(value, path, state)
    if isinstance(value, list | tuple):
        return ListView(value, path, state)
    return value


def plain(value: Any) -> Any:
    """The plain data of an evaluation's result."""
    if isinstance(value, UnknownView):
        raise NotKnown(value.unknown.because)
    if isinstance(value, MapView | dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, Sequence | Iterator):
        return [plain(v) for v in value]
    str(value)  # a name that does not exist raises with its path
    raise TypeError(f"an expression must not return {type(value).__name__}")


class MapView(Mapping[str, Any]):
    """A mapping that knows its path; missing entries of a `Partial` are unknown."""

    methods = frozenset({"items", "keys", "values", "get"})

    def __init__(
        self, data: Mapping[str, Any], path: str, state: State, rest: str | None = None
    ) -> None:
        self.data, self.path, self.state, self.rest = data, path, state, rest

    def __getitem__(self, key: str) -> Any:
        if key not in self.data and self.rest is not None:
            return UnknownView(Unknown(self.rest, optional=True), f"{self.path}.{key}", self.state)
        return wrap(self.data[key], f"{self.path}.{key}", self.state)

    def __iter__(self) -> Iterator[str]:
        if self.rest is not None:
            raise NotKnown(self.rest)
        return iter(self.data)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class ListView(Sequence[Any]):
    """A list that knows its path."""

    def __init__(self, data: Sequence[Any], path: str, state: State) -> None:
        self.data, self.path, self.state = data, path, state

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return ListView(self.data[index], self.path, self.state)
        return wrap(self.data[index], f"{self.path}[{index}]", self.state)

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


class UnknownView:
    """An unknown value in an expression; an operation that needs it makes the result unknown."""

    __slots__ = ("path", "state", "unknown")

    def __init__(self, unknown: Unknown, path: str, state: State) -> None:
        self.unknown, self.path, self.state = unknown, path, state
        state.unknown = state.unknown or unknown.because

    def child(self, name: str) -> UnknownView:
        """An entry of it, which is also unknown."""
        return UnknownView(
            Unknown(self.unknown.because, None, self.unknown.optional),
            f"{self.path}.{name}",
            self.state,
        )

    def _same(self, *_: Any, **__: Any) -> UnknownView:
        return self

    def _fail(self, *_: Any) -> Any:
        raise NotKnown(self.unknown.because)

    def __bool__(self) -> bool:
        return self.state.choose(self.unknown.because)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _same  # type: ignore[assignment]
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _same
    __truediv__ = __floordiv__ = __neg__ = __pos__ = __call__ = __getitem__ = _same
    __str__ = __repr__ = __int__ = __float__ = __len__ = __iter__ = __contains__ = _fail
    __index__ = __hash__ = __html__ = _fail


def look_up(value: Any, key: Any, *, method: bool) -> Any:
    """An entry of a value.

    Args:
        value: as an expression sees it.
        key: the name or index of the entry.
        method: whether the key may name a method: ``a.key``, not ``a['key']``.

    Raises:
        UndefinedName: there is none.
    """
    if isinstance(value, UnknownView):
        known = value.unknown.children
        if known is not None and key not in known:
            raise UndefinedName(f"{value.path}.{key}", sorted(known))
        return value.child(str(key))
    if isinstance(value, MapView):
        if key in value.data or (value.rest is not None and key not in value.methods):
            return value[key]
        if method and key in value.methods:
            return getattr(value, key)
        raise UndefinedName(f"{value.path}.{key}", list(value.data))
    if isinstance(value, str) and method:
        if key in _STR_METHODS:
            return getattr(value, key)
        raise UndefinedName(f"text.{key}", sorted(_STR_METHODS))
    if isinstance(value, Sequence | Mapping) and not (method and isinstance(value, list)):
        with contextlib.suppress(LookupError, TypeError):
            return value[key]
        raise UndefinedName(f"{getattr(value, 'path', 'list')}[{key}]", [])
    raise UndefinedName(f"{type(value).__name__}.{key}", [])


_STR_METHODS = frozenset(
    {"split", "strip", "lstrip", "rstrip", "lower", "upper", "startswith", "endswith",
     "splitlines", "removeprefix", "removesuffix"}
)  # fmt: skip


def finalized(value: Any) -> Any:
    """A value inside a text, as YAML would write it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float | UnknownView):
        return value
    return json.dumps(plain(value))


def word(value: Any) -> str:
    """The text of a single value; Python's text of any other may contain a memory address.

    Raises:
        TypeError: the value is a mapping, a list or no data.
    """
    if not isinstance(value, str | int | float | UnknownView | None):
        str(value)  # a name that does not exist raises with its path
        raise TypeError("only a single value is a text; use tojson or join for any other")
    return str(value)


def joined(texts: Iterable[Any]) -> str:
    """The joined texts; their size is counted before they are joined."""
    parts = []
    for each in texts:
        parts.append(str(finalized(each)))
        work.spend(len(parts[-1]))
    return "".join(parts)


def three_valued(test: Any) -> Callable[..., Any]:
    """A test whose result is unknown if its value is unknown."""

    @functools.wraps(test)
    def asked(*args: Any, **kwargs: Any) -> Any:
        unknown = next((a for a in args if isinstance(a, UnknownView)), None)
        return test(*args, **kwargs) if unknown is None else unknown

    return asked
