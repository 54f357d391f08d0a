"""Checks a module's class: its methods, and whether YAML can give its arguments."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Union

from pairun.contract.arguments import ArgumentProblem, arguments, build, fields
from pairun.module import CheckModule, Duration, Mode, Module, Secret, StateModule

_USE = (
    "use str, int, float, bool, Duration, Mode, Secret, Literal[…], list[…], dict[str, …], "
    "or several of them with |"
)
_IMPORT = "import it at the top of the file, and not only for type checkers"
_PLAIN = (str, int, float, bool, Duration, Mode, Secret, type(None), Any)


def mistakes(cls: type[Module]) -> Iterator[tuple[str, str | None]]:
    """The mistakes in a module's class: sentences without a subject, each with a hint or None.

    Args:
        cls: a `StateModule` or `CheckModule` made with ``@define``.
    """
    base = StateModule if issubclass(cls, StateModule) else CheckModule
    needed = ("probe", "plan", "apply") if base is StateModule else ("check",)
    for name in needed:
        if getattr(cls, name) is getattr(base, name):
            kind = "state" if base is StateModule else "check"
            yield f"lacks the method '{name}'", f"a {kind} module has {', '.join(needed)}"
    try:
        known = arguments(cls)
    except Exception as e:  # noqa: BLE001 - a module's code may raise any exception
        unread = (f"has arguments that cannot be read: {error_text(e)}", None)
        yield from list(_unresolved(cls)) or [unread]
        return
    for a in known:
        if not _supported(a.type):
            yield (
                f"declares its argument '{a.name}' with a type that YAML does not have: {_written(a.type)}",
                _USE,
            )


def _unresolved(cls: type[Module]) -> Iterator[tuple[str, str | None]]:
    """Annotations that `typing.get_type_hints` cannot resolve, one by one."""
    import inspect  # 5 ms, and only wrong modules need it

    for name, field in fields(cls).items():
        owner = next((c for c in cls.__mro__ if name in inspect.get_annotations(c)), None)
        if owner is None:
            yield f"declares its argument '{name}' without a type", _USE
            continue
        alone = types.SimpleNamespace(__annotations__={name: field.type})
        try:
            typing.get_type_hints(alone, vars(sys.modules[owner.__module__]))
        except Exception as e:  # noqa: BLE001 - an annotation may be any expression
            yield (
                f"declares its argument '{name}' with an unknown type: {error_text(e)}",
                _IMPORT,
            )


def _supported(kind: Any) -> bool:
    if kind in _PLAIN:
        return True
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        return all(map(_supported, args))
    if origin is list:
        return len(args) == 1 and _supported(args[0])
    if origin is dict:
        return len(args) == 2 and args[0] is str and _supported(args[1])
    return origin is Literal


def _written(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and not typing.get_args(kind) else str(kind)


def argument_problems(
    cls: type[Module], values: Mapping[str, Any], pending: frozenset[str]
) -> list[ArgumentProblem]:
    """The problems that `build` finds; a failure of the module itself is one, too."""
    try:
        return build(cls, values, pending)[1]
    except Exception as e:  # noqa: BLE001 - a module's checks may raise any exception
        return [ArgumentProblem((), "PR603", f"the module fails on its arguments: {error_text(e)}")]


def error_text(error: BaseException) -> str:
    """An unexpected exception as a sentence."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
