"""What a method of the context asks or changes, in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

NoneInReview = Literal["never", "below the volume", "always"]
_Method = TypeVar("_Method", bound=Callable[..., Any])


class Effect(NamedTuple):
    """What a method of `Context` does to the world.

    Attributes:
        changes: it changes the world; only ``apply`` may call it.
        sentence: what it asks or changes, with its arguments in braces.
        none_in_review: where it answers None in a review, because the Pod is still empty.
    """

    changes: bool
    sentence: str
    none_in_review: NoneInReview = "never"


def reads(what: str, *, none_in_review: NoneInReview = "never") -> Callable[[_Method], _Method]:
    """Declare a method of `Context` that reads; a review says "depends on ``what``"."""
    return _declare(Effect(False, what, none_in_review))


def changes(what: str) -> Callable[[_Method], _Method]:
    """Declare a method of `Context` that changes the world: it tries to ``what``."""
    return _declare(Effect(True, what))


def _declare(effect: Effect) -> Callable[[_Method], _Method]:
    def mark(method: _Method) -> _Method:
        vars(method)["effect"] = effect
        return method

    return mark
