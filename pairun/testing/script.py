"""The scripted answers of a world, and the record of a module's calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from pairun.errors import did_you_mean
from pairun.module import Context, Secret
from pairun.module.context import Effect

_World = TypeVar("_World", bound=Context)


class Call(NamedTuple):
    """A call of a context method, with all its arguments by name, including defaults."""

    method: str
    arguments: Mapping[str, Any]


def in_turn(*answers: Any) -> Callable[..., Any]:
    """Answers to return one after another; a call after the last one fails the test."""
    remaining = iter(answers)

    def following(*args: Any, **kwargs: Any) -> Any:
        for scripted in remaining:
            return answer(scripted, args, kwargs)
        raise AssertionError("the module asked once more than the test has answers")

    return following


def answer(scripted: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The result of a scripted answer to a call.

    Args:
        scripted: a value; an exception, which is raised; a function, which is called.
        args: the positional arguments of the call.
        kwargs: the keyword arguments of the call.
    """
    if isinstance(scripted, BaseException):
        raise scripted
    return scripted(*args, **kwargs) if callable(scripted) else scripted


class Script:
    """The scripted answers of a world, and the record of its calls.

    Args:
        answers: context method to its answer. A function that returns `NotImplemented` passes the
            call to the world.

    Attributes:
        calls: every call, in order.

    Raises:
        AssertionError: the context has no such method.
    """

    def __init__(self, answers: Mapping[str, Any]) -> None:
        for name in answers:
            if name not in Context.effects():
                hint = did_you_mean(name, list(Context.effects())) or "see pairun.module.Context"
                raise AssertionError(f"the context has no method '{name}'; {hint}")
        self._answers = answers
        self._read_only = False
        self.calls: list[Call] = []

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Fail the test if something changes the world inside the ``with`` block."""
        self._read_only = True
        try:
            yield
        finally:
            self._read_only = False

    def context_class(self, world: type[_World], rest: Callable[..., Any]) -> type[_World]:
        """A class of contexts that follow the script.

        Args:
            world: the base class.
            rest: called if the script has no answer, with the context, the call and its arguments
                as the module passed them.
        """
        methods = {n: self._method(n, e, rest) for n, e in Context.effects().items()}
        return type(f"Scripted{world.__name__}", (world,), methods)

    def _method(self, name: str, effect: Effect, rest: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(getattr(Context, name))

        def method(context: Context, *args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(context, *args, **kwargs)
            bound.apply_defaults()
            arguments = {k: v for k, v in bound.arguments.items() if k != "self"}
            if effect.changes and self._read_only:
                raise AssertionError(f"the module called {name} in probe, where it may only read")
            _require_declared_types(name, signature, arguments)
            call = Call(name, arguments)
            self.calls.append(call)
            response = answer(self._answers.get(name, NotImplemented), args, kwargs)
            return rest(context, call, args, kwargs) if response is NotImplemented else response

        return method


def _require_declared_types(
    method: str, signature: inspect.Signature, arguments: Mapping[str, Any]
) -> None:
    """Reject a text for bytes, bytes for a text, and a command that is one text.

    Raises:
        TypeError: an argument does not have the declared type.
    """
    for name, value in arguments.items():
        declared = str(signature.parameters[name].annotation).split(" | ")
        text = declared[0] in ("bytes", "str", "Sequence[str]") and isinstance(value, str | bytes)
        if text and type(value).__name__ != declared[0]:
            raise TypeError(f"{method}: '{name}' must be {declared[0]}, not {type(value).__name__}")
        if name == "argv" and any(isinstance(word, Secret) for word in value):
            raise TypeError(f"{method}: 'argv' may not hold a secret; every user could read it")
