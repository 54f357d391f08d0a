"""The kinds of a module's arguments: one table of how each is named, described, read and shown."""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Union

from pairun.base.durations import DURATION_PATTERN
from pairun.base.fields import BadField, Path, Walk
from pairun.base.foreignjson import parse_record
from pairun.module import Duration, Mode, Secret, format_duration, parse_duration
from pairun.secrets.shapes import is_secret_key


class ArgumentProblem(NamedTuple):
    """An invalid argument: its path below the module's key, an error id, a sentence."""

    path: Path
    id: str
    message: str
    hint: str | None = None


class ArgumentKind(NamedTuple):
    """One kind of arguments.

    Attributes:
        hint: its type in Python.
        name: its name for a YAML author.
        schema: its JSON Schema. An expression may replace any value.
        advice: what to write instead of a value; takes the key, too.
        id: the id of the error for a value.
        write: the text in YAML of a number in Python that YAML has as text.
        remedy: what to write instead of a default.
        may_be_secret: whether a value, or a part of it, may be a `Secret`.
    """

    hint: Any
    name: str
    schema: dict[str, Any]
    advice: Callable[[Any, str], str | None] = lambda *_: None
    id: str = "PR605"
    write: Callable[[Any], str] | None = None
    remedy: str = "change the default or the type"
    may_be_secret: bool = False

    def read(self, value: Any, path: Path, problems: list[ArgumentProblem]) -> Any:
        """Make a value in Python from one in YAML; add the problems of a wrong one."""
        walk = Walk(_FROM_YAML)
        made = walk.read(self.hint, value, path)
        problems += map(_argument_problem, walk.problems)
        return made

    def fits(self, value: Any) -> bool:
        """Whether a default in Python is of this kind."""
        walk = Walk()
        walk.read(self.hint, value)
        return not walk.problems

    def normal(self, value: Any) -> Any:
        """A value as YAML has it, whether it comes from YAML or from Python."""
        made = value if self.fits(value) else self.read(value, ("",), [])
        return self.write(made) if self.write and isinstance(made, int | float) else value


def _argument_problem(field: BadField) -> ArgumentProblem:
    kind, value, key = kind_of(field.kind), field.value, str(field.path[-1])
    what, id_, hint = shown(value), kind.id, kind.advice(value, key)
    if isinstance(value, Secret):
        id_ = "PR605"
        hint = (
            "this argument would expose a secret; `pairun doc` lists the arguments that accept one"
        )
    elif _is_number(value) and is_secret_key(key):
        what = "a number"  # a password may be a number
    message = f"'{'.'.join(map(str, field.path))}' must be {kind.name}, not {what}"
    return ArgumentProblem(field.path, id_, message, hint)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text_advice(value: Any, key: str) -> str | None:
    if not _is_number(value):
        return None
    return "quote it" if is_secret_key(key) else f"quote it: '{value}'"


def _duration_advice(value: Any, _: str) -> str:
    example = f"did you mean '{value}s'?" if _is_number(value) else "500ms, 10s, 5m, 1h30m"
    return f"durations carry a unit: {example}"


def _mode_advice(value: Any, _: str) -> str:
    quote = "quote it ('0644'): YAML reads an unquoted mode as a number"
    return (
        quote if isinstance(value, int) and _is_number(value) else "octal text, for example '0644'"
    )


_SCALARS: dict[Any, ArgumentKind] = {
    kind.hint: kind
    for kind in (
        ArgumentKind(str, "text", {"type": "string"}, _text_advice),
        ArgumentKind(int, "integer", {"type": "integer"}),
        ArgumentKind(float, "number", {"type": "number"}),
        ArgumentKind(bool, "true or false", {"type": "boolean"}),
        ArgumentKind(Duration, "duration", {"type": "string", "pattern": f"^{DURATION_PATTERN}$"},
             _duration_advice, "PR210", format_duration, "write seconds: default=Duration(10.0)"),
        ArgumentKind(Mode, "file mode", {"type": "string", "pattern": "^0?[0-7]{3,4}$"},
             _mode_advice, "PR211", "{:04o}".format, "write a number: default=Mode(0o644)"),
        ArgumentKind(Secret, "secret text", {"type": "string"}, may_be_secret=True),
        ArgumentKind(types.NoneType, "null", {"type": "null"}),
        ArgumentKind(Any, "anything", {}),
    )
}  # fmt: skip


def kind_of(hint: Any) -> ArgumentKind:
    """The kind of a type.

    Raises:
        TypeError: YAML has no such type.
    """
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return _union(hint, args)
    if origin is Literal:
        return _choice(hint, [str(a) for a in args])
    if origin is list and len(args) == 1:
        item = kind_of(args[0])
        name, schema = f"list of {item.name}", {"type": "array", "items": item.schema}
    elif origin is dict and len(args) == 2 and args[0] is str:
        item = kind_of(args[1])
        name = f"mapping to {item.name}"
        schema = {"type": "object", "additionalProperties": item.schema}
    else:
        raise TypeError(hint)
    return ArgumentKind(hint, name, schema, remedy=item.remedy, may_be_secret=item.may_be_secret)


def _union(hint: Any, args: tuple[Any, ...]) -> ArgumentKind:
    # to an author, text that may be secret is text
    named = [kind_of(a) for a in args if not (a is Secret and str in args)]
    real = next(k for k in named if k.name != "null")
    schemas = [k.schema for k in named]
    return real._replace(
        hint=hint,
        name=" or ".join(k.name for k in named),
        schema=schemas[0] if len(schemas) == 1 else {"anyOf": schemas},
        advice=lambda value, _: "quote it" if str in args and _is_number(value) else None,
        id="PR605",
        may_be_secret=any(kind_of(a).may_be_secret for a in args),
    )


def _choice(hint: Any, words: list[str]) -> ArgumentKind:
    def advice(value: Any, _: str) -> str | None:
        from pairun.errors import did_you_mean

        return did_you_mean(str(value), words)

    return ArgumentKind(hint, " | ".join(words), {"enum": list(typing.get_args(hint))}, advice)


def _mode(value: Any) -> int | None:
    is_mode = isinstance(value, str) and re.fullmatch("0?[0-7]{3,4}", value)
    return int(value, 8) if is_mode else None


def _entries(value: Any) -> Any:
    if isinstance(value, Secret) and (inner := parse_record(value.reveal())) is not None:
        # An expression with a secret gives one secret, even if its value is a mapping.
        texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in inner.items()}
        return {k: None if inner[k] is None else Secret(v) for k, v in texts.items()}
    return value


_FROM_YAML: dict[Any, Callable[[Any], Any]] = {
    Duration: lambda value: parse_duration(value) if isinstance(value, str) else None,
    Mode: _mode,
    Secret: lambda value: Secret(value) if isinstance(value, str) else value,
    dict: _entries,
}


def shown(value: object) -> str:
    """A value in a message: short, with secrets masked."""
    if isinstance(value, Secret):
        return "a secret"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    text = text if len(text) <= 40 else f"{text[:37]}..."
    # Not repr: the vault masks the text of a secret, also one that is cut, but not its escapes.
    return f"'{text}'" if isinstance(value, str) else text
