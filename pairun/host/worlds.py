"""Contexts in which a module may only read, generated from the declarations in `Context`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pairun.module import Context, UnknownUntilRun
from pairun.module.context import Effect

_World = TypeVar("_World", bound=Context)


def read_only(world: type[_World], name: str) -> type[_World]:
    """A subclass of a context in which every change raises: it is a bug of the module."""
    doc = f"`{world.__name__}`, to read: a change is a bug of the module."
    return type(name, (world,), {"__doc__": doc, **_refusals()})


def empty_pod(name: str) -> type[Context]:
    """A context in which only the run itself can answer questions.

    It knows only the shared volume, which is still empty. A change raises.
    """
    answers = {
        method: _answer(method, effect)
        for method, effect in Context.effects().items()
        if not effect.changes
    }
    doc = "The empty Pod of a review: nothing of this machine is read."
    return type(name, (Context,), {"__doc__": doc, **answers, **_refusals()})


def _refusals() -> dict[str, Callable[..., Any]]:
    effects = Context.effects().items()
    return {method: _refusal(method, effect) for method, effect in effects if effect.changes}


def _refusal(method: str, effect: Effect) -> Callable[..., Any]:
    def refuse(self: Context, *args: Any, **kwargs: Any) -> Any:
        what = _sentence(effect, _arguments(method, self, args, kwargs))
        raise RuntimeError(f"the module tried to {what} where it may only read")

    return refuse


def _answer(method: str, effect: Effect) -> Callable[..., Any]:
    def answer(self: Context, *args: Any, **kwargs: Any) -> Any:
        arguments = _arguments(method, self, args, kwargs)
        if effect.none_in_review == "always":
            return None
        if effect.none_in_review == "below the volume" and _below(self.pai_dir, arguments["path"]):
            return None
        raise UnknownUntilRun(f"depends on {_sentence(effect, arguments)}")

    return answer


def _arguments(
    method: str, context: Context, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by name.

    Raises:
        TypeError: the method has no such arguments.
    """
    import inspect  # 4 ms, and the review of most jobs asks for no change

    return inspect.signature(getattr(Context, method)).bind(context, *args, **kwargs).arguments


def _sentence(effect: Effect, arguments: Mapping[str, Any]) -> str:
    """The sentence of a declaration for one call."""
    shown = {name: _SHOWN.get(name, str)(value) for name, value in arguments.items()}
    return effect.sentence.format_map(shown)


def _host_of(url: Any) -> str:
    """The host of an address, without credentials before or after it."""
    return str(url).partition("://")[2].partition("/")[0].rpartition("@")[2]


_SHOWN: Mapping[str, Callable[[Any], str]] = {
    "url": _host_of,
    "argv": lambda argv: os.path.basename(argv[0]),
}
"""How an argument is shown in a sentence, which people outside of the job may read."""


def _below(volume: str, path: str) -> bool:
    return os.path.normpath(path).startswith(os.path.normpath(volume).rstrip("/") + "/")


ReviewContext = empty_pod("ReviewContext")
"""The empty Pod of a review."""
