"""The kinds of a module's arguments: one table of how each is named, described, read and shown."""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Union

from pairun.base.durations import DURATION_PATTERN
from pairun.base.foreignjson import parse_record
from pairun.module import Duration, Mode, Secret, format_duration, parse_duration
from pairun.secrets.shapes import is_secret_key

Path = tuple[str | int, ...]
_WRONG: Any = object()
"""Returned for a value that is not of a kind."""


class ArgumentProblem(NamedTuple):
    """An invalid argument: its path below the module's key, an error id, a sentence."""

    path: Path
    id: str
    message: str
    hint: str | None = None


class Kind(NamedTuple):
    """One kind of arguments.

    Attributes:
        name: its name for a YAML author.
        schema: its JSON Schema. An expression may replace any value.
        made: makes a value in Python from one in YAML, its path and a list for problems of parts.
        fits: whether a default in Python is of this kind.
        hint: what to write instead of a value; takes the key, too.
        id: the id of the error for a value.
        write: the text in YAML of a number in Python that YAML has as text.
        remedy: what to write instead of a default.
        may_be_secret: whether a value, or a part of it, may be a `Secret`.
    """

    name: str
    schema: dict[str, Any]
    made: Callable[[Any, Path, list[ArgumentProblem]], Any]
    fits: Callable[[Any], bool]
    hint: Callable[[Any, str], str | None] = lambda *_: None
    id: str = "PR605"
    write: Callable[[Any], str] | None = None
    remedy: str = "change the default or the type"
    may_be_secret: bool = False

    def read(self, value: Any, path: Path, problems: list[ArgumentProblem]) -> Any:
        """Make a value in Python from one in YAML; add the problems of a wrong one."""
        made = self.made(value, path, problems)
        if made is not _WRONG:
            return made
        key, what, id_ = str(path[-1]), shown(value), self.id
        hint = self.hint(value, key)
        if isinstance(value, Secret):
            id_ = "PR605"
            hint = "this argument would expose a secret; `pairun doc` lists the arguments that accept one"
        elif _is_number(value) and is_secret_key(key):
            what = "a number"  # a password may be a number
        message = f"'{'.'.join(map(str, path))}' must be {self.name}, not {what}"
        problems.append(ArgumentProblem(path, id_, message, hint))
        return None

    def normal(self, value: Any) -> Any:
        """A value as YAML has it, whether it comes from YAML or from Python."""
        made = value if self.fits(value) else self.made(value, ("",), [])
        return self.write(made) if self.write and isinstance(made, int | float) else value


def _is_a(*types: type) -> Callable[..., bool]:
    """Whether a value has one of some types; in YAML, true is no number."""
    return lambda value: isinstance(value, types) and (bool in types or not isinstance(value, bool))


_is_number = _is_a(int, float)


def _scalar(
    name: str,
    schema: dict[str, Any],
    fits: Callable[[Any], bool],
    made: Callable[[Any], Any] | None = None,
    **rest: Any,
) -> Kind:
    """A kind without parts; ``made`` returns None for a wrong value, and is for values that change."""

    def read(value: Any, *_: Any) -> Any:
        if made is None:
            return value if fits(value) else _WRONG
        return _WRONG if (result := made(value)) is None else result

    return Kind(name, schema, read, fits, **rest)


def _finite(value: Any) -> float | None:
    return float(value) if _is_number(value) and abs(value) < 1e308 else None


def _text_hint(value: Any, key: str) -> str | None:
    if not _is_number(value):
        return None
    return "quote it" if is_secret_key(key) else f"quote it: '{value}'"


def _duration(value: Any) -> Duration | None:
    return parse_duration(value) if isinstance(value, str) else None


def _duration_hint(value: Any, _: str) -> str:
    example = f"did you mean '{value}s'?" if _is_number(value) else "500ms, 10s, 5m, 1h30m"
    return f"durations carry a unit: {example}"


def _mode(value: Any) -> Mode | None:
    is_mode = isinstance(value, str) and re.fullmatch("0?[0-7]{3,4}", value)
    return Mode(int(value, 8)) if is_mode else None


def _mode_hint(value: Any, _: str) -> str:
    quote = "quote it ('0644'): YAML reads an unquoted mode as a number"
    return quote if _is_a(int)(value) else "octal text, for example '0644'"


def _secret(value: Any) -> Secret | None:
    return Secret(value) if isinstance(value, str) else value if isinstance(value, Secret) else None


_SCALARS: dict[Any, Kind] = {
    str: _scalar("text", {"type": "string"}, _is_a(str), hint=_text_hint),
    int: _scalar("integer", {"type": "integer"}, _is_a(int)),
    float: _scalar(
        "number", {"type": "number"}, _is_number, _finite
    ),
    bool: _scalar("true or false", {"type": "boolean"}, _is_a(bool)),
    Duration: _scalar(
        "duration", {"type": "string", "pattern": f"^{DURATION_PATTERN}$"}, _is_number, _duration,
        hint=_duration_hint, id="PR210", write=format_duration,
        remedy="write seconds: default=Duration(10.0)",
    ),
    Mode: _scalar(
        "file mode", {"type": "string", "pattern": "^0?[0-7]{3,4}$"}, _is_a(int), _mode,
        hint=_mode_hint, id="PR211", write="{:04o}".format,
        remedy="write a number: default=Mode(0o644)",
    ),
    Secret: _scalar("secret text", {"type": "string"}, _is_a(Secret), _secret, may_be_secret=True),
    type(None): _scalar("null", {"type": "null"}, _is_a(type(None))),
    Any: _scalar("anything", {}, lambda _: True),
}  # fmt: skip


def kind_of(hint: Any) -> Kind:
    """The kind of a type.

    Raises:
        TypeError: YAML has no such type.
    """
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return _union(args)
    if origin is Literal:
        return _choice(args)
    if origin is list and len(args) == 1:
        item = kind_of(args[0])
        schema = {"type": "array", "items": item.schema}
        return _of_parts(f"list of {item.name}", schema, item, _elements, lambda d: [*d.values()])
    if origin is dict and len(args) == 2 and args[0] is str:
        item = kind_of(args[1])
        schema = {"type": "object", "additionalProperties": item.schema}
        return _of_parts(f"mapping to {item.name}", schema, item, _entries, dict)
    raise TypeError(hint)


def _union(args: tuple[Any, ...]) -> Kind:
    options = [kind_of(a) for a in args]
    # to an author, text that may be secret is text
    named = [k for k, a in zip(options, args, strict=True) if not (a is Secret and str in args)]
    real = [k for k in named if k.name != "null"]
    schemas = [k.schema for k in named]

    def made(value: Any, path: Path, problems: list[ArgumentProblem]) -> Any:
        for option in options:
            found: list[ArgumentProblem] = []
            result = option.read(value, path, found)
            if not found:
                return result
        return real[0].read(value, path, problems) if len(real) == 1 else _WRONG

    return real[0]._replace(
        name=" or ".join(k.name for k in named),
        schema=schemas[0] if len(schemas) == 1 else {"anyOf": schemas},
        made=made,
        fits=lambda value: any(k.fits(value) for k in options),
        hint=lambda value, _: "quote it" if str in args and _is_number(value) else None,
        id="PR605",
        may_be_secret=any(k.may_be_secret for k in options),
    )


def _choice(args: tuple[Any, ...]) -> Kind:
    def hint(value: Any, _: str) -> str | None:
        from pairun.errors import did_you_mean

        return did_you_mean(str(value), [str(a) for a in args])

    def fits(value: Any) -> bool:
        return any(value == a and type(value) is type(a) for a in args)

    return _scalar(" | ".join(map(str, args)), {"enum": list(args)}, fits, hint=hint)


def _of_parts(
    name: str,
    schema: dict[str, Any],
    item: Kind,
    parts: Callable[[Any], Mapping[Any, Any] | None],
    whole: Callable[[dict[Any, Any]], Any],
) -> Kind:
    """The kind of a value with ``parts`` by index or key, None for another value."""

    def made(value: Any, path: Path, problems: list[ArgumentProblem]) -> Any:
        if (found := parts(value)) is None:
            return _WRONG
        return whole({k: item.read(v, (*path, k), problems) for k, v in found.items()})

    def fits(value: Any) -> bool:
        return (found := parts(value)) is not None and all(map(item.fits, found.values()))

    remedy, may_be_secret = item.remedy, item.may_be_secret
    return Kind(name, schema, made, fits, remedy=remedy, may_be_secret=may_be_secret)


def _elements(value: Any) -> dict[int, Any] | None:
    return dict(enumerate(value)) if isinstance(value, list | tuple) else None


def _entries(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Secret) and (inner := parse_record(value.reveal())) is not None:
        # An expression with a secret gives one secret, even if its value is a mapping.
        texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in inner.items()}
        return {k: None if inner[k] is None else Secret(v) for k, v in texts.items()}
    is_mapping = isinstance(value, Mapping) and all(isinstance(k, str) for k in value)
    return value if is_mapping else None


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
