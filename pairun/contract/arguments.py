"""A module's arguments: one description, from which documentation, schema and checks derive."""

from __future__ import annotations

import inspect
import json
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import attrs

from pairun.contract.kinds import ArgumentKind, ArgumentProblem, kind_of
from pairun.module import CheckModule, Module, Phase, StateModule

_USE = (
    "use str, int, float, bool, Duration, Mode, Secret, Literal[…], list[…], dict[str, …], "
    "or several of them with |"
)
_IMPORT = "import it at the top of the file, and not only for type checkers"


class Argument(NamedTuple):
    """One argument of a module.

    ``replaced_by`` is the task keyword that replaces it, ``bound`` the policy key that limits a
    job's values.
    """

    name: str
    kind: ArgumentKind
    doc: str
    required: bool
    default: Any
    replaced_by: str | None = None
    bound: str | None = None

    def default_text(self) -> str:
        """The default, as a YAML author writes it."""
        text = self.kind.normal(self.default)
        if text is self.default:
            return json.dumps(text)
        return f"'{text}'" if text.isdigit() else str(text)


Mistake = tuple[str, str, str | None]
"""What is wrong in a module's class: the attribute, a sentence without a subject, and a hint."""
_PARAMETERS = {
    "probe": ("ctx",), "plan": ("state",), "apply": ("ctx",), "check": ("ctx",),
    "require": (), "writes": (),
}  # fmt: skip
"""The methods that pairun calls, and what it passes to each besides ``self``."""
_KNOWN: dict[type[Module], tuple[Argument, ...]] = {}


def arguments(cls: type[Module]) -> tuple[Argument, ...]:
    """The arguments of a module class without `mistakes`, in order of definition."""
    # Resolving annotations takes longer than the rest of a task without changes.
    if cls not in _KNOWN:
        _KNOWN[cls] = tuple(a for a in _declared(cls) if isinstance(a, Argument))
    return _KNOWN[cls]


def mistakes(cls: type[Module]) -> Iterator[Mistake]:
    """The mistakes in a module's class.

    Args:
        cls: a `StateModule` or `CheckModule` made with ``@define``.
    """
    base = StateModule if issubclass(cls, StateModule) else CheckModule
    needed = ("probe", "plan", "apply") if base is StateModule else ("check",)
    for name in needed:
        if getattr(cls, name) is getattr(base, name):
            kind = "state" if base is StateModule else "check"
            yield name, f"lacks the method '{name}'", f"a {kind} module has {', '.join(needed)}"
    for phase in set(cls.phases) - set(typing.get_args(Phase)):
        yield (
            "phases",
            f"names a phase that does not exist: {phase!r}",
            "a phase is init or runtime",
        )
    for name, passed in _PARAMETERS.items():
        method = getattr(cls, name) if hasattr(base, name) else None
        if callable(method) and method is not getattr(base, name):
            own = inspect.getattr_static(cls, name)
            values = passed if isinstance(own, staticmethod | classmethod) else ("self", *passed)
            try:
                inspect.signature(method).bind(*values)
            except TypeError as e:
                line = f"write `def {name}({', '.join(('self', *passed))})`"
                yield name, f"has a method '{name}' that pairun cannot call: {e}", line
    if len(arguments(cls)) < len(attrs.fields(cls)):  # type: ignore[arg-type]
        yield from (d for d in _declared(cls) if not isinstance(d, Argument))


def _declared(cls: type[Module]) -> Iterator[Argument | Mistake]:
    """Each argument of a module class, or what is wrong with its declaration."""
    fields: Mapping[str, attrs.Attribute[Any]] = attrs.fields_dict(cls)  # type: ignore[arg-type]
    for name, field in fields.items():
        declares = f"declares its argument '{name}'"
        owner = next((c for c in cls.__mro__[:-1] if name in c.__annotations__), None)
        if owner is None:
            yield name, f"{declares} without a type", _USE
            continue
        # `typing.get_type_hints` of the whole class takes as long as all else.
        alone = types.SimpleNamespace(__annotations__={name: owner.__annotations__[name]})
        try:
            hint = typing.get_type_hints(alone, vars(sys.modules[owner.__module__]))[name]
        except Exception as e:  # noqa: BLE001 - an annotation may be any expression
            yield name, f"{declares} with an unknown type: {error_text(e)}", _IMPORT
            continue
        try:
            kind = kind_of(hint)
        except TypeError:
            is_plain = isinstance(hint, type) and not typing.get_args(hint)
            named = hint.__name__ if is_plain else hint
            yield name, f"{declares} with a type that YAML does not have: {named}", _USE
            continue
        default: Any = field.default
        try:
            if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
                default = default.factory()
        except Exception as e:  # noqa: BLE001 - a module's code may raise any exception
            yield name, f"{declares} with a default that fails: {error_text(e)}", None
            continue
        required, more = default is attrs.NOTHING, field.metadata.get
        default = None if required else default
        doc = more("doc", "")
        yield Argument(name, kind, doc, required, default, more("replaced_by"), more("bound"))


def arguments_schema(cls: type[Module]) -> dict[str, Any]:
    """The JSON Schema of a module's arguments, for validators and editors."""
    expression = {"type": "string", "pattern": r"\{\{"}
    properties: dict[str, Any] = {}
    for a in arguments(cls):
        schema = a.kind.schema
        properties[a.name] = (
            {**schema, "description": a.doc}
            if schema.get("type") == "string" and "pattern" not in schema
            else {"anyOf": [schema, expression], "description": a.doc}
        )
    return {
        "type": "object",
        "description": (cls.__doc__ or "").split("\n", 1)[0],
        "properties": properties,
        "required": [a.name for a in arguments(cls) if a.required],
        "additionalProperties": False,
    }


def build(
    cls: type[Module], values: Mapping[str, Any], pending: frozenset[str] = frozenset()
) -> tuple[Module | None, list[ArgumentProblem]]:
    """Make a module from plain data.

    Args:
        values: the arguments; secrets as `Secret`.
        pending: arguments whose values only the run can determine; they are not checked.

    Returns:
        The module and no problems, or None and all problems (None and no problem if arguments are
        pending).
    """
    known = {a.name: a for a in arguments(cls)}
    problems: list[ArgumentProblem] = []
    built: dict[str, Any] = {}
    for name in (n for n in values if n not in known):
        from pairun.errors import did_you_mean

        message = f"there is no argument '{name}'"
        problems.append(ArgumentProblem((name,), "PR604", message, did_you_mean(name, known)))
    for name, a in known.items():
        if name in pending:
            continue
        if name not in values:
            if a.required:
                message = f"the argument '{name}' is missing"
                problems.append(ArgumentProblem((), "PR606", message, a.doc))
        # null means the default, as in every layer
        elif values[name] is not None or a.required:
            built[name] = a.kind.read(values[name], (name,), problems)
    if problems or pending:
        return None, problems
    made = cls(**built)
    problems = [ArgumentProblem(_named(s, values), "PR605", s) for s in made.require()]
    return (None, problems) if problems else (made, [])


def _named(sentence: str, values: Mapping[str, Any]) -> tuple[str, ...]:
    """The path of the argument with which a module's sentence begins, if it was given."""
    quoted = re.match(r"'(\w+)'", sentence)
    return (quoted[1],) if quoted and quoted[1] in values else ()


def error_text(error: BaseException) -> str:
    """An unexpected exception as a sentence."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
