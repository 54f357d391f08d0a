"""A module's arguments: one description, from which documentation, schema and checks derive."""

from __future__ import annotations

import functools
import json
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, Union

import attrs

from pairun.base.durations import DURATION_PATTERN
from pairun.base.foreignjson import parse_record
from pairun.module import Duration, Mode, Module, Secret, format_duration, parse_duration
from pairun.secrets.shapes import is_secret_key


class Argument(NamedTuple):
    """One argument of a module.

    ``replaced_by`` is the task keyword that replaces it, ``bound`` the policy key that limits a
    job's values.
    """

    name: str
    type: Any
    doc: str
    required: bool
    default: Any
    replaced_by: str | None = None
    bound: str | None = None


class ArgumentProblem(NamedTuple):
    """An invalid argument: its path below the module's key, an error id, a sentence."""

    path: tuple[str | int, ...]
    id: str
    message: str
    hint: str | None = None


_KNOWN: dict[type[Module], tuple[Argument, ...]] = {}


def arguments(cls: type[Module]) -> tuple[Argument, ...]:
    """The arguments of a module class, in order of definition."""
    # Resolving annotations takes longer than the rest of a task without changes.
    if cls not in _KNOWN:
        _KNOWN[cls] = tuple(_arguments(cls))
    return _KNOWN[cls]


def fields(cls: type[Module]) -> Mapping[str, attrs.Attribute[Any]]:
    """What attrs knows of a module class's arguments, in order of definition."""
    return attrs.fields_dict(cls)  # type: ignore[arg-type]


def _arguments(cls: type[Module]) -> Iterator[Argument]:
    hints = _types(cls)
    for name, field in fields(cls).items():
        default: Any = field.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
            default = default.factory()
        yield Argument(
            name,
            hints[name],
            field.metadata.get("doc", ""),
            default is attrs.NOTHING,
            None if default is attrs.NOTHING else default,
            field.metadata.get("replaced_by"),
            field.metadata.get("bound"),
        )


def _types(cls: type[Module]) -> dict[str, Any]:
    """The types of the fields by name; `typing.get_type_hints` for all else would take as long."""
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__[:-1]):
        own = {n: a for n, a in base.__annotations__.items() if n in fields(cls)}
        if own:
            alone = types.SimpleNamespace(__annotations__=own)
            hints |= typing.get_type_hints(alone, vars(sys.modules[base.__module__]))
    return hints


def default_text(argument: Argument) -> str:
    """An argument's default, as a YAML author writes it."""
    named = type_name(argument.type)
    if isinstance(argument.default, int | float) and named.startswith("duration"):
        return format_duration(argument.default)
    if isinstance(argument.default, int) and named == "file mode":
        return f"'{argument.default:04o}'"
    return json.dumps(argument.default)


@functools.cache
def may_be_secret(kind: Any) -> bool:
    """Whether a value of a type, or a part of it, may be a `Secret`."""
    return kind is Secret or any(may_be_secret(a) for a in typing.get_args(kind))


def type_name(kind: Any) -> str:
    """The name of a type for a YAML author."""
    names = {
        str: "text", int: "integer", float: "number", bool: "true or false", Duration: "duration",
        Mode: "file mode", Secret: "secret text", type(None): "null", Any: "anything",
    }  # fmt: skip
    if kind in names:
        return names[kind]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        # to an author, text that may be secret is text
        return " or ".join(type_name(a) for a in args if not (a is Secret and str in args))
    if origin is Literal:
        return " | ".join(str(a) for a in args)
    if origin is list:
        return f"list of {type_name(args[0])}"
    return f"mapping to {type_name(args[1])}"


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON Schema of an argument's type. An expression may replace any value."""
    plain: dict[Any, dict[str, Any]] = {
        str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"},
        bool: {"type": "boolean"}, Duration: {"type": "string", "pattern": f"^{DURATION_PATTERN}$"},
        Mode: {"type": "string", "pattern": "^0?[0-7]{3,4}$"}, Secret: {"type": "string"},
        type(None): {"type": "null"}, Any: {},
    }  # fmt: skip
    if kind in plain:
        return plain[kind]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        options = [schema_of(a) for a in args if not (a is Secret and str in args)]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if origin is Literal:
        return {"enum": list(args)}
    if origin is list:
        return {"type": "array", "items": schema_of(args[0])}
    return {"type": "object", "additionalProperties": schema_of(args[1])}


def arguments_schema(cls: type[Module]) -> dict[str, Any]:
    """The JSON Schema of a module's arguments, for validators and editors."""
    expression = {"type": "string", "pattern": r"\{\{"}
    properties: dict[str, Any] = {}
    for a in arguments(cls):
        schema = schema_of(a.type)
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
        cls: the module's class.
        values: the arguments; secrets as `Secret`.
        pending: arguments whose values only the run can determine; they are not checked.

    Returns:
        The module and no problems, or None and all problems (None and no problem if arguments are
        pending).
    """
    known = {a.name: a for a in arguments(cls)}
    problems: list[ArgumentProblem] = []
    built: dict[str, Any] = {}
    for name in values:
        if name not in known:
            from pairun.errors import did_you_mean

            problems.append(
                ArgumentProblem(
                    (name,), "PR604", f"there is no argument '{name}'", did_you_mean(name, known)
                )
            )
    for name, a in known.items():
        if name in pending:
            continue
        if name not in values:
            if a.required:
                problems.append(
                    ArgumentProblem((), "PR606", f"the argument '{name}' is missing", a.doc)
                )
            continue
        # null means the default, as in every layer
        if values[name] is None and not a.required:
            continue
        converted = list(_convert(values[name], a.type, (name,)))
        problems += [p for p in converted if isinstance(p, ArgumentProblem)]
        built[name] = converted[-1] if converted else None
    if problems or pending:
        return None, problems
    made = cls(**built)
    problems = [ArgumentProblem(_named(s, values), "PR605", s) for s in made.require()]
    return (None, problems) if problems else (made, [])


def _named(sentence: str, values: Mapping[str, Any]) -> tuple[str, ...]:
    """The path of the argument with which a module's sentence begins, if it was given."""
    quoted = re.match(r"'(\w+)'", sentence)
    return (quoted[1],) if quoted and quoted[1] in values else ()


def _convert(value: Any, kind: Any, path: tuple[str | int, ...]) -> Iterator[Any]:
    """Yield the problems of a value, then, if there are none, the value in its Python type."""
    name = ".".join(map(str, path))

    def wrong(hint: str | None = None, id_: str = "PR605") -> ArgumentProblem:
        shown = "a secret" if isinstance(value, Secret) else _shown(value)
        if _is_number(value) and is_secret_key(str(path[-1])):
            shown = "a number"  # a password may be a number
        return ArgumentProblem(path, id_, f"'{name}' must be {type_name(kind)}, not {shown}", hint)

    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        yield value
    elif origin in (Union, types.UnionType):
        for option in args:
            converted = list(_convert(value, option, path))
            if converted and not isinstance(converted[-1], ArgumentProblem):
                yield converted[-1]
                return
        real = [a for a in args if a is not type(None) and not (a is Secret and str in args)]
        quoted = "quote it" if str in real and _is_number(value) else None
        yield from _convert(value, real[0], path) if len(real) == 1 else [wrong(quoted)]
    elif kind is Secret and isinstance(value, str | Secret):
        yield value if isinstance(value, Secret) else Secret(value)
    elif origin is dict and (inner := _secret_mapping(value)) is not None:
        yield from _convert(inner, kind, path)
    elif isinstance(value, Secret):
        yield wrong(
            "this argument would expose a secret; `pairun doc` lists the arguments that accept one"
        )
    elif kind is Duration:
        if isinstance(value, str) and (seconds := parse_duration(value)) is not None:
            yield seconds
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield wrong(f"durations carry a unit: did you mean '{value}s'?", "PR210")
        else:
            yield wrong("durations carry a unit: 500ms, 10s, 5m, 1h30m", "PR210")
    elif kind is Mode:
        if isinstance(value, str) and re.fullmatch("0?[0-7]{3,4}", value):
            yield Mode(int(value, 8))
        elif isinstance(value, int) and not isinstance(value, bool):
            yield wrong("quote it ('0644'): YAML reads an unquoted mode as a number", "PR211")
        else:
            yield wrong("octal text, for example '0644'", "PR211")
    elif origin is Literal:
        if value in args and type(value) in {type(a) for a in args}:
            yield value
        else:
            from pairun.errors import did_you_mean

            yield wrong(did_you_mean(str(value), [str(a) for a in args]))
    elif origin is list:
        if not isinstance(value, list | tuple):
            yield wrong()
            return
        items = [list(_convert(v, args[0], (*path, i))) for i, v in enumerate(value)]
        yield from (p for item in items for p in item if isinstance(p, ArgumentProblem))
        if all(not isinstance(item[-1], ArgumentProblem) for item in items):
            yield [item[-1] for item in items]
    elif origin is dict:
        if not isinstance(value, Mapping):
            yield wrong()
            return
        entries = {k: list(_convert(v, args[1], (*path, k))) for k, v in value.items()}
        yield from (p for e in entries.values() for p in e if isinstance(p, ArgumentProblem))
        if all(not isinstance(e[-1], ArgumentProblem) for e in entries.values()):
            yield {k: e[-1] for k, e in entries.items()}
    elif kind is float and _is_number(value):
        yield float(value)
    elif kind is str and _is_number(value):
        yield wrong("quote it" if is_secret_key(str(path[-1])) else f"quote it: '{value}'")
    elif isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        yield value
    else:
        yield wrong()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _secret_mapping(value: object) -> dict[str, Secret | None] | None:
    """The mapping in a secret JSON text, with each value a secret; None if it is not a mapping.

    An expression with a secret gives one secret, even if its value is a mapping.
    """
    if not isinstance(value, Secret):
        return None
    if (inner := parse_record(value.reveal())) is None:
        return None
    return {
        k: None if v is None else Secret(v if isinstance(v, str) else json.dumps(v))
        for k, v in inner.items()
    }


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return repr(text if len(text) <= 40 else text[:37] + "...") if isinstance(value, str) else text
