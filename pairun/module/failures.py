"""How a module ends without a result: failures by kind, skips, what a review cannot know."""

from __future__ import annotations

import typing
from typing import Any, ClassVar, Literal

FailureKind = Literal["transient", "timeout", "conflict", "permanent", "internal"]

Fault = Literal["user", "platform", "unknown"]

FAILURE_KINDS: tuple[FailureKind, ...] = typing.get_args(FailureKind)


class Failure(Exception):
    """A failure that a module expects. Raise one of the subclasses.

    Args:
        message: what happened, in one sentence.
        fault: whose fault it is.
        hint: what to do about it.
        retry_after_s: the seconds that a server asks to wait; the next attempt starts no earlier.
        retry_within_s: the seconds after the first failure of this kind in which retries make sense.
        exit_code: of the program that failed, 1 to 255; 128 + n where signal n ended it.
    """

    kind: ClassVar[FailureKind] = "internal"

    def __init__(
        self,
        message: str,
        *,
        fault: Fault = "unknown",
        hint: str | None = None,
        retry_after_s: float | None = None,
        retry_within_s: float | None = None,
        exit_code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.fault: Fault = fault
        self.hint = hint
        self.retry_after_s = retry_after_s
        self.retry_within_s = retry_within_s
        self.exit_code = exit_code


class Transient(Failure):
    """A retry may succeed: a broken network, 429, 5xx."""

    kind = "transient"


NEW_NAME_S = 45.0
"""How long a host's name is retried that does not exist: DNS servers of clusters keep the answer "no
such name" for up to 30 s (CoreDNS, plugin ``cache``)."""


class NoSuchHost(Transient):
    """A host's name does not exist: a typo, or a DNS entry that is not there yet."""

    def __init__(self, message: str, **more: Any) -> None:
        hint = (
            "check the name for a typo; a name without dots is resolved in the Pod's search domains"
        )
        super().__init__(message, **{"hint": hint, "retry_within_s": NEW_NAME_S, **more})

    @classmethod
    def named(cls, host: str, because: str) -> NoSuchHost:
        """The failure for a name, or what else names the server, and the name service's words."""
        return cls(f"{host}: no such host ({because})")


class TimedOut(Failure):
    """The time limit was exceeded."""

    kind = "timeout"


class Conflict(Failure):
    """Something is in use here, and may be free on another node: a port, a lock."""

    kind = "conflict"


class Permanent(Failure):
    """A retry fails again: 401, 403, 404, invalid input."""

    kind = "permanent"


class Skip(Exception):
    """There is nothing to do; the task is skipped, and people read the reason."""

    def __init__(self, because: str) -> None:
        super().__init__(because)
        self.because = because


class UnknownUntilRun(Exception):
    """A module asked in a review for something that is unknown until the run."""

    def __init__(self, because: str) -> None:
        super().__init__(because)
        self.because = because
