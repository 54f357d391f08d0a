"""Evaluates simple expressions without Jinja, whose import takes 30 ms and whose compiler 1 ms each.

Simple are names, their entries, texts, whole numbers, lists, ``and``, ``or``, ``not``, ``==``,
``!=``, ``in``, ``+`` between lists, and the filters below. A text that contains anything else is
not simple. An evaluation that finds a missing name, a method or a wrong type raises `NotSimple`;
Jinja then evaluates the expression, or has the error message. The tests compare the results of both.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from pairun.playbook.expressions.views import (
    GLOBALS,
    ListView,
    MapView,
    NotKnown,
    Prepared,
    TooMuch,
    UnknownView,
    finalized,
    joined,
    made,
    plain,
    three_valued,
    work,
)

_Value = Callable[[Mapping[str, Any]], Any]
"""A parsed expression: takes the names, returns the value."""

_MAX_TOKENS = 200
_MAX_DEPTH = 10
"""How deep expressions nest in parentheses; Jinja has the error for those that are too deep."""

_TOKEN = re.compile(
    r"""[ \t\n]*(?:
        (?P<option>[A-Za-z_][A-Za-z0-9_]*)[ \t\n]*=(?!=)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<number>0|[1-9][0-9]*)
      | (?P<text>'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")
      | (?P<sign>==|!=|\{\}|\}\}|[|().,\[\]+])
    )[ \t\n]*""",
    re.VERBOSE | re.DOTALL,
)
_CONSTANTS: dict[str, Any] = {
    "true": True, "True": True, "false": False, "False": False, "none": None, "None": None,
}  # fmt: skip
_RESERVED = frozenset(
    {"and", "or", "not", "in", "is", "if", "else", "self", "super", "caller", "loop",
     "varargs", "kwargs", "context", "environment"} | GLOBALS
)  # fmt: skip
"""Names that Jinja does not read as names of the scope."""


class NotSimple(Exception):
    """Only Jinja can parse or evaluate the expression."""


class _Missing:
    """A name or an entry that does not exist; only ``default`` accepts it."""


_MISSING: Final = _Missing()


class _Decided(NamedTuple):
    """The value of ``and`` or ``or`` whose truth was needed: that of an unknown is asked only once."""

    value: Any
    truth: bool


@functools.lru_cache(maxsize=4096)
def simple_text(text: str) -> Prepared | None:
    """A text with simple expressions; None if it is not simple."""
    first, *rest = text.split("{{", 1)
    # Jinja changes line ends, and looks for other delimiters.
    if not rest or "\r" in text or "\0" in text or "{%" in text:
        return None
    parser = _Parser()
    parts: list[str | _Value] = [first] if first else []
    try:
        while rest:
            parser.begin(rest[0])
            parts.append(parser.expression())
            after, *rest = parser.text_after("}}").split("{{", 1)
            parts += [after] if after else []
    except NotSimple:
        return None
    names = frozenset(parser.names)
    if len(parts) == 1 and not isinstance(parts[0], str):
        return Prepared(_run(parts[0]), True, names, bounded=True)

    def concatenated(given: Mapping[str, Any]) -> str:
        values = (part if isinstance(part, str) else _used(part(given)) for part in parts)
        return joined([_text(value) for value in values])

    return Prepared(_run(concatenated), False, names, bounded=True)


@functools.lru_cache(maxsize=1024)
def simple_condition(text: str) -> Prepared | None:
    """A bare expression, evaluated to its truth; None if it is not simple."""
    if "\r" in text:
        return None
    parser = _Parser()
    try:
        parser.begin(text)
        test = parser.expression()
        parser.end()
    except NotSimple:
        return None
    run = _run(lambda given: _truth(test(given)))
    return Prepared(run, True, frozenset(parser.names), bounded=True)


def _run(value: _Value) -> _Value:
    """Evaluate to plain data; leave every error to Jinja."""

    def run(given: Mapping[str, Any]) -> Any:
        try:
            return plain(_used(value(given)))
        except (NotKnown, TooMuch):
            raise
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as e:
            raise NotSimple from e

    return run


def _used(value: Any) -> Any:
    """A value that exists."""
    if value is _MISSING:
        raise NotSimple
    return value.value if isinstance(value, _Decided) else value


def _truth(value: Any) -> bool:
    return value.truth if isinstance(value, _Decided) else bool(_used(value))


# --- parsing -----------------------------------------------------------------------------------


class _Parser:
    """Parses expressions with Jinja's precedence."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._tokens = 0
        self._depth = 0

    def begin(self, text: str) -> None:
        """Parse this text from here on."""
        self._text, self._at = text, 0
        self._next()

    def end(self) -> None:
        """Require the end of the text."""
        if self._kind:
            raise NotSimple

    def text_after(self, sign: str) -> str:
        """The text behind a sign, which must be the next token."""
        if (self._kind, self._token) != ("sign", sign):
            raise NotSimple
        # A token includes the spaces after it.
        return self._text[self._start + len(sign) :]

    def expression(self) -> _Value:
        """Parse an expression."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise NotSimple
        value = self._conjunction()
        while self._take("or"):
            value = _either(value, self._conjunction())
        self._depth -= 1
        return value

    def _next(self) -> None:
        self._tokens += 1
        match = _TOKEN.match(self._text, self._at)
        if self._tokens > _MAX_TOKENS or (match is None and self._text[self._at :].strip(" \t\n")):
            raise NotSimple
        self._kind, self._token = "", ""
        if match is not None:
            self._kind = match.lastgroup or ""
            self._token = match[self._kind]
            self._start = match.start(self._kind)
            self._at = match.end()

    def _take(self, token: str) -> bool:
        """Take the next token if it is this keyword or sign."""
        if self._kind not in ("name", "sign") or self._token != token:
            return False
        self._next()
        return True

    def _require(self, token: str) -> None:
        if not self._take(token):
            raise NotSimple

    def _name(self) -> str:
        if self._kind != "name":
            raise NotSimple
        name = self._token
        self._next()
        return name

    def _conjunction(self) -> _Value:
        value = self._negation()
        while self._take("and"):
            value = _both(value, self._negation())
        return value

    def _negation(self) -> _Value:
        if self._take("not"):
            return _not(self._negation())
        return self._comparison()

    def _comparison(self) -> _Value:
        left = self._sum()
        if self._take("=="):
            return _compared(operator.eq, left, self._sum())
        if self._take("!="):
            return _compared(operator.ne, left, self._sum())
        if self._take("in"):
            return _compared(lambda a, b: a in b, left, self._sum())
        if self._take("not"):
            self._require("in")
            return _compared(lambda a, b: a not in b, left, self._sum())
        return left

    def _sum(self) -> _Value:
        value = self._filtered()
        while self._take("+"):
            value = _compared(_added, value, self._filtered())
        return value

    def _filtered(self) -> _Value:
        value = self._entry()
        while self._take("|"):
            name = self._name()
            if name not in _FILTERS:
                raise NotSimple
            arguments, options = self._arguments() if self._take("(") else ([], {})
            value = _filter(_FILTERS[name], value, arguments, options)
        return value

    def _arguments(self) -> tuple[list[_Value], dict[str, _Value]]:
        arguments: list[_Value] = []
        options: dict[str, _Value] = {}
        while not self._take(")"):
            if arguments or options:
                self._require(",")
            if self._kind == "option":
                name = self._token
                self._next()
                options[name] = self.expression()
            elif options:
                raise NotSimple
            else:
                arguments.append(self.expression())
        return arguments, options

    def _entry(self) -> _Value:
        value = self._primary()
        while self._take("."):
            value = _entry_of(value, self._name())
        return value

    def _primary(self) -> _Value:
        kind, token = self._kind, self._token
        if self._take("("):
            value = self.expression()
            self._require(")")
            return value
        if self._take("["):
            return self._list()
        if self._take("{}"):
            return lambda _: {}
        if kind not in ("name", "number", "text"):
            raise NotSimple
        self._next()
        if kind == "number":
            return _constant(int(token))
        if kind == "text":
            # as Jinja reads it
            text = token[1:-1].encode("ascii", "backslashreplace")
            try:
                return _constant(text.decode("unicode-escape"))
            except UnicodeDecodeError as e:
                raise NotSimple from e
        if token in _CONSTANTS:
            return _constant(_CONSTANTS[token])
        if token in _RESERVED:
            raise NotSimple
        self.names.add(token)
        return lambda given: given.get(token, _MISSING)

    def _list(self) -> _Value:
        elements: list[_Value] = []
        while not self._take("]"):
            if elements:
                self._require(",")
            elements.append(self.expression())
        return lambda given: [_used(each(given)) for each in elements]


# --- operators ---------------------------------------------------------------------------------


def _constant(value: Any) -> _Value:
    return lambda _: value


def _either(left: _Value, right: _Value) -> _Value:
    def either(given: Mapping[str, Any]) -> Any:
        value = left(given)
        return _Decided(_used(value), True) if _truth(value) else right(given)

    return either


def _both(left: _Value, right: _Value) -> _Value:
    def both(given: Mapping[str, Any]) -> Any:
        value = left(given)
        return right(given) if _truth(value) else _Decided(_used(value), False)

    return both


def _not(value: _Value) -> _Value:
    def negated(given: Mapping[str, Any]) -> bool:
        result = value(given)
        # Python asks twice for the truth of `a or b` in some expressions, once in others.
        if isinstance(result, _Decided) and isinstance(result.value, UnknownView):
            raise NotSimple
        return not _truth(result)

    return negated


def _compared(operation: Callable[[Any, Any], Any], left: _Value, right: _Value) -> _Value:
    return lambda given: operation(_used(left(given)), _used(right(given)))


def _added(left: Any, right: Any) -> Any:
    if isinstance(left, UnknownView) or isinstance(right, UnknownView):
        return left if isinstance(left, UnknownView) else right
    if not (isinstance(left, list | ListView) and isinstance(right, list | ListView)):
        raise NotSimple
    work.spend(len(left) + len(right))
    return left + right


def _entry_of(value: _Value, name: str) -> _Value:
    return lambda given: _read(_used(value(given)), name)


def _read(value: Any, name: str) -> Any:
    """An entry of a mapping or of an unknown value."""
    if isinstance(value, UnknownView):
        known = value.unknown.children
        return _MISSING if known is not None and name not in known else value.child(name)
    if isinstance(value, MapView):
        if name in value.data or (value.rest is not None and name not in value.methods):
            return value[name]
        if name in value.methods:
            raise NotSimple
        return _MISSING
    if isinstance(value, dict) and not value:
        return _MISSING
    raise NotSimple


# --- filters -----------------------------------------------------------------------------------


def _filter(
    function: Callable[..., Any], value: _Value, arguments: list[_Value], options: dict[str, _Value]
) -> _Value:
    def filtered(given: Mapping[str, Any]) -> Any:
        first = value(given)
        if function is not _default or first is not _MISSING:
            first = _used(first)
        others = [_used(each(given)) for each in arguments]
        named = {name: _used(each(given)) for name, each in options.items()}
        return made(function(first, *others, **named))

    return filtered


def _default(value: Any, default_value: Any = "", boolean: bool = False) -> Any:
    return default_value if value is _MISSING or (boolean and not value) else value


def _text(value: Any) -> str:
    if isinstance(value, Iterator):
        raise NotSimple  # its text has a name of Jinja's
    return str(finalized(value))


def _lower(value: Any) -> str:
    if not isinstance(value, str | int | UnknownView):
        raise NotSimple
    return str(value).lower()


def _join(values: Any, d: Any = "") -> str:
    return joined(
        text for n, value in enumerate(values) for text in ((d, value) if n else (value,))
    )


def _selectattr(values: Any, name: Any, test: Any, wanted: Any) -> Iterator[Any]:
    compare = {"equalto": operator.eq, "in": lambda a, b: a in b}.get(test)
    if compare is None:
        raise NotSimple
    tested = three_valued(compare)
    for value in values or ():
        if tested(_attribute(value, name), wanted):
            yield value


def _map(values: Any, *, attribute: Any) -> Iterator[Any]:
    for value in values or ():
        yield _attribute(value, attribute)


def _attribute(value: Any, name: Any) -> Any:
    if not isinstance(name, str) or not name.isidentifier():
        raise NotSimple
    return _used(_read(value, name))


def _total(values: Any, *, start: Any) -> list[Any]:
    lists = [start, *values]
    if not all(isinstance(each, list | ListView) for each in lists):
        raise NotSimple
    return [element for each in lists for element in each]


_FILTERS: dict[str, Callable[..., Any]] = {
    "d": _default, "default": _default, "join": _join, "length": len, "list": list,
    "lower": _lower, "map": _map, "selectattr": _selectattr, "string": _text, "sum": _total,
}  # fmt: skip
