"""The classes of modules, and how their arguments are declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal, NamedTuple, NewType, TypeVar, dataclass_transform

import attrs

from pairun.module.context import Context
from pairun.module.failures import FailureKind


class Verdict(NamedTuple):
    """What a task would do: ``no_change``, ``will_change``, ``unknown`` or ``check``.

    Attributes:
        kind: one of these.
        because: what it would change, or why it is unknown.
        before: the value before the change.
        after: the value after it.
        does: what is certain although the kind is unknown: ``runs`` a program, or ``writes``.
    """

    kind: Literal["no_change", "will_change", "unknown", "check"]
    because: str
    before: str | None = None
    after: str | None = None
    does: Literal["", "runs", "writes"] = ""


def no_change(because: str) -> Verdict:
    """There is nothing to change."""
    return Verdict("no_change", because)


def will_change(
    what: str,
    before: str | None = None,
    after: str | None = None,
    *,
    does: Literal["", "runs", "writes"] = "",
) -> Verdict:
    """``apply`` will change something: what, and optionally its value before and after.

    A review shows it as ``writes``, unless ``does`` says that it ``runs`` something.
    """
    return Verdict("will_change", what, before, after, does)


def unknown(because: str) -> Verdict:
    """Unknown until the run."""
    return Verdict("unknown", because)


def runs(what: str) -> Verdict:
    """``apply`` runs a program, whose changes are unknown: ``runs("your command")``."""
    return Verdict("unknown", f"runs {what}", does="runs")


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


Phase = Literal["init", "runtime"]

Mode = NewType("Mode", int)
"""File permission bits; written in YAML as quoted octal text (``'0644'``)."""

_T = TypeVar("_T")

_NO_DEFAULT: Any = attrs.NOTHING


class Module:
    """Common to both kinds; see `StateModule` and `CheckModule`.

    Attributes:
        phases: where the module may run.
        privileges: what it needs, as text.
        example: a task's module entry in YAML, as ``pairun doc`` prints it and a test runs it.
        tools: programs of pairun's image that init copies to ``tools`` on the shared volume for the
            runtime phase. If the image lacks one, the module must say so.
        asks_servers: it uses `Context.fetch`, `Context.post` or `Context.fetch_file`: the executor
            imports the HTTP client once, and every attempt finds it there.
    """

    phases: ClassVar[tuple[Phase, ...]] = ("init", "runtime")
    privileges: ClassVar[str] = "none"
    example: ClassVar[str] = ""
    tools: ClassVar[tuple[str, ...]] = ()
    asks_servers: ClassVar[bool] = False

    @property
    def harmless(self) -> frozenset[FailureKind]:
        """The kinds of failure that do no harm; none by default.

        The executor retries them as any other. When the last attempt fails with such a kind, its
        own timeouts and deadlines included, the task is ignored, whatever its ``failure_policy``.
        A module may set a class attribute, or define a property that depends on its arguments.
        """
        return frozenset()

    def require(self) -> Iterator[str]:
        """Yield a sentence for each combination of arguments that is invalid."""
        yield from ()


class StateModule(Module):
    """Brings the world into a state; a second run finds nothing to do.

    Attributes:
        verify: after `apply`, run `probe` and `plan` again and require "no change". Set it to False
            in a module that verifies while it writes, or that cannot promise this (a command).
        certainly: what it does in every new Pod, even where a review does not know its arguments:
            ``runs`` a program, or ``writes``; empty if that depends.
    """

    verify: ClassVar[bool] = True
    certainly: ClassVar[Literal["", "runs", "writes"]] = ""

    def writes(self) -> Iterable[str]:
        """The absolute paths that `apply` makes or replaces, as far as the arguments tell.

        A review warns where two tasks of a phase write the same path.
        """
        return ()

    def probe(self, ctx: Context) -> Any:
        """Read the world; change nothing."""
        raise NotImplementedError

    def plan(self, state: Any) -> Verdict:
        """Compare: pure, no context, no clock."""
        raise NotImplementedError

    def apply(self, ctx: Context) -> Result | None:
        """Change the world."""
        raise NotImplementedError


class CheckModule(Module):
    """Checks, waits or sends a request; changes nothing that a later task sees."""

    def check(self, ctx: Context) -> Result | None:
        """Return if the check passes; raise a `Failure` if not."""
        raise NotImplementedError


def arg(
    doc: str,
    *,
    default: Any = _NO_DEFAULT,
    factory: Callable[[], Any] | None = None,
    replaced_by: Literal["retries"] | None = None,
    bound: str | None = None,
) -> Any:
    """An argument of a module: one line of documentation, and a default unless it is required.

    Args:
        doc: the line.
        default: its value if none is set.
        factory: makes the default.
        replaced_by: the task keyword that does the same now. The argument counted attempts: it
            still sets the keyword, with a warning, and never reaches the module.
        bound: of a duration: the key of the policy that holds the longest one a job may set.
    """
    metadata = {"doc": doc, "replaced_by": replaced_by, "bound": bound}
    if factory is not None:
        return attrs.field(factory=factory, metadata=metadata)
    return attrs.field(default=default, metadata=metadata)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(arg, attrs.field))
def define(cls: type[_T]) -> type[_T]:
    """Make a class of annotated `arg` fields a frozen, keyword-only record."""
    return attrs.frozen(kw_only=True, slots=False)(cls)
