"""Finds the defaults in a module's class that do not have their argument's type."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, Union

from pairun.contract.arguments import arguments, type_name
from pairun.contract.declarations import Declaration, declaration
from pairun.contract.sources import ModuleSource
from pairun.module import Duration, Mode, Module

MAX_SHOWN = 40
"""Characters of a default that a message shows."""


class WrongDefault(NamedTuple):
    """A default of the wrong type.

    Attributes:
        at: where its argument is declared.
        message: what is wrong, as text.
        hint: what to write instead.
    """

    at: Declaration
    message: str
    hint: str


def wrong_defaults(cls: type[Module], source: ModuleSource) -> Iterator[WrongDefault]:
    """The defaults that do not have the declared type of their argument.

    Args:
        cls: the module's class.
        source: its source.
    """
    for a in arguments(cls):
        if a.required or _fits(a.default, a.type):
            continue
        message = f"the default of '{a.name}' must be {type_name(a.type)}, not {_shown(a.default)}"
        yield WrongDefault(declaration(cls, a.name, source), message, _hint(a.type, a.default))


def _fits(value: Any, kind: Any) -> bool:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, a) for a in args)
    if origin is Literal:
        return value in args
    if origin is list:
        return isinstance(value, list | tuple) and all(_fits(v, args[0]) for v in value)
    if origin is dict:
        return isinstance(value, Mapping) and all(
            isinstance(k, str) and _fits(v, args[1]) for k, v in value.items()
        )
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    if kind in (float, Duration):
        return isinstance(value, int | float)
    return isinstance(value, int if kind is Mode else kind)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def _hint(kind: Any, value: Any) -> str:
    if value is None:
        return "add `| None` to its type, or give another default"
    within = {kind, *typing.get_args(kind)}
    if Duration in within:
        return "write seconds: default=Duration(10.0)"
    if Mode in within:
        return "write a number: default=Mode(0o644)"
    return "change the default or the type"
