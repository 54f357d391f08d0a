"""What ``plan`` returns, and what ``apply`` and ``check`` return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import attrs


class Verdict(NamedTuple):
    """What a task would do: ``no_change``, ``will_change``, ``unknown`` or ``check``."""

    kind: Literal["no_change", "will_change", "unknown", "check"]
    because: str
    before: str | None = None
    after: str | None = None


def no_change(because: str) -> Verdict:
    """There is nothing to change."""
    return Verdict("no_change", because)


def will_change(what: str, before: str | None = None, after: str | None = None) -> Verdict:
    """``apply`` will change something: what, and optionally its value before and after."""
    return Verdict("will_change", what, before, after)


def unknown(because: str) -> Verdict:
    """Unknown until the run."""
    return Verdict("unknown", because)


@attrs.frozen(kw_only=True)
class Result:
    """What ``apply`` or ``check`` returns.

    Attributes:
        values: what ``results.<id>.values`` holds for later tasks; plain data.
        environment: variables for every later task and the user's command; None removes one.
        message: one line for people.
    """

    values: Mapping[str, Any] = attrs.field(factory=dict)
    environment: Mapping[str, str | None] = attrs.field(factory=dict)
    message: str = ""
