"""Jinja's immutable sandbox, made strict: dotted paths in errors, limits on size and repetition."""

from __future__ import annotations

import functools
import json
import os.path
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jinja2 import StrictUndefined, Undefined
from jinja2 import nodes as ast
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.filters import make_attrgetter
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from pairun.playbook.expressions.views import (
    MAX_RANGE,
    ListView,
    TooMuch,
    UndefinedName,
    UnknownView,
    finalized,
    joined,
    look_up,
    made,
    plain,
    three_valued,
    word,
    work,
)


class _Undefined(StrictUndefined):
    """A name that does not exist."""

    __slots__ = ()


def _undefined(path: str, known: Sequence[str]) -> _Undefined:
    return _Undefined(
        name=path,
        exc=functools.partial(UndefinedName, path, known),  # type: ignore[arg-type]
    )


class _Root(_Undefined):
    """A name that the scope does not have."""

    def __init__(self, hint: str | None = None, obj: Any = None, name: str | None = None) -> None:
        made = _undefined(name or hint or "", [])
        super().__init__(hint, obj, name, made._undefined_exception)


_LOOP = frozenset({"first", "index", "index0", "last", "length"})
_FILTERS = frozenset(
    {"abs", "default", "d", "dictsort", "first", "float", "int", "items", "join", "last",
     "length", "count", "list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse",
     "round", "select", "selectattr", "sort", "sum", "trim", "unique", "upper"}
)  # fmt: skip


class SandboxEnvironment(ImmutableSandboxedEnvironment):
    """The sandbox, with dotted paths in errors and limits on every operation that can grow."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def make_globals(self, _: Any) -> dict[str, Any]:
        # No template has globals of its own, and copying Jinja's ChainMap is slow.
        return self.globals

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self._look_up(obj, attribute, method=True)

    def getitem(self, obj: Any, argument: Any) -> Any:
        return self._look_up(obj, argument, method=False)

    def _look_up(self, obj: Any, key: Any, *, method: bool) -> Any:
        if isinstance(obj, Undefined):
            str(obj)  # raises with the path
        if isinstance(obj, LoopContext) and key in _LOOP:
            return getattr(obj, key)
        try:
            return look_up(obj, key, method=method)
        except UndefinedName as e:
            return _undefined(e.path, e.known)

    def call(self, context: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        return made(super().call(context, function, *args, **kwargs))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, UnknownView) or isinstance(right, UnknownView):
            return left if isinstance(left, UnknownView) else right
        if operator == "**":
            numbers = isinstance(left, int | float) and isinstance(right, int | float)
            if not numbers or abs(left) > 10_000 or abs(right) > 64:
                raise TooMuch("a power that large")
        elif operator == "%" and isinstance(left, str):
            raise SecurityError("use ~ to put texts together, not %")
        elif operator == "*":
            for a, b in ((left, right), (right, left)):
                if isinstance(a, str | list | tuple | ListView) and isinstance(b, int):
                    work.spend(max(0, len(a) * b))
                elif isinstance(a, int) and isinstance(b, int) and a.bit_length() > 10_000:
                    raise TooMuch("a number that large")
        elif operator == "+" and isinstance(left, str | list | tuple | ListView):
            work.spend(len(left) + (len(right) if isinstance(right, Sequence) else 0))
        return super().call_binop(context, operator, left, right)


def _bounded_range(*bounds: int) -> range:
    made = range(*bounds)
    if len(made) > MAX_RANGE:
        raise TooMuch(f"a range of more than {MAX_RANGE}")
    return made


def _replace(text: str, old: str, new: str) -> str:
    text, old, new = word(text), word(old), word(new)
    work.spend(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def _join(values: Iterable[Any], d: str = "", attribute: str | None = None) -> str:
    if attribute is not None:
        values = map(make_attrgetter(ENVIRONMENT, attribute), values)
    separated = ((d, value) if n else (value,) for n, value in enumerate(values))
    return joined(text for pair in separated for text in pair)


_SHELL_NAME = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")


def _expand(text: str, env: Mapping[str, str]) -> str:
    """Expand only ``$NAME``, ``${NAME}`` and a leading ``~``, as a shell does."""
    text = re.sub(r"^~(?=/|$)", lambda _: env.get("HOME", "~"), word(text))
    return _SHELL_NAME.sub(lambda name: env.get(name[1] or name[2], ""), text)


def _defined(value: Any) -> Any:
    if isinstance(value, UnknownView) and value.unknown.optional:
        return value
    return not isinstance(value, Undefined)


class _Generator(CodeGenerator):
    """Compiles concatenation (``~``) to a function that counts its result."""

    def visit_Concat(self, node: ast.Concat, frame: Frame) -> None:  # noqa: N802 - Jinja's name
        self.write("environment.concat((")
        for each in node.nodes:
            self.visit(each, frame)
            self.write(", ")
        self.write("))")


SandboxEnvironment.code_generator_class = _Generator
SandboxEnvironment.concat = staticmethod(joined)


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that counts its results."""

    @functools.wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        return made(function(*args, **kwargs))

    return counted


def _make_environment() -> SandboxEnvironment:
    # Disable comments: they would match the shell's ${#list[@]}.
    environment = SandboxEnvironment(
        undefined=_Root,
        finalize=finalized,
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
        "expand": _expand,
        "tojson": lambda value: json.dumps(plain(value)),
        "quote": lambda value: shlex.quote(word(value)),
        "basename": lambda value: os.path.basename(word(value)),
        "dirname": lambda value: os.path.dirname(word(value)),
        "lower": lambda value: word(value).lower(),
        "upper": lambda value: word(value).upper(),
        "trim": lambda value, chars=None: word(value).strip(chars),
        "string": lambda value: str(finalized(value)),
    }
    environment.filters = {n: _counted(f) for n, f in environment.filters.items()}
    environment.tests = {n: three_valued(t) for n, t in environment.tests.items()}
    environment.tests["defined"] = _defined
    environment.tests["undefined"] = lambda value: not _defined(value)
    environment.globals = {"range": _bounded_range}
    return environment


ENVIRONMENT = _make_environment()
