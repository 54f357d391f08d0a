"""Checks a tree against a JSON Schema; reports every violation with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pairun.base.durations import DURATION_PATTERN
from pairun.errors import Place, Problem, did_you_mean, nearest
from pairun.module import Secret
from pairun.playbook.document.plainschema import fits
from pairun.playbook.document.reading import Node

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


class Ids(NamedTuple):
    """The error ids that a format uses for the three ways to violate a schema."""

    unknown: str
    kind: str
    missing: str


PLAYBOOK_IDS = Ids("PR201", "PR204", "PR205")


def violations(
    node: Node,
    schema: Mapping[str, Any],
    ids: Ids = PLAYBOOK_IDS,
    *,
    foreign: Mapping[str, str] | None = None,
    beside: Mapping[str, str] | None = None,
    what: str = "key",
    whole: str = "the document",
) -> Iterator[Problem]:
    """Yield a problem for everything in a tree that its schema does not allow.

    Args:
        node: the tree.
        schema: JSON Schema, draft 2020-12.
        ids: the error ids to use.
        foreign: words of other formats, and their replacements here; ``pod.env`` is the word
            ``env`` below the key ``pod``.
        beside: keys under which people wrongly nest what belongs beside them, and the hint for it.
        what: the name of a mapping's entries in messages (``key``, ``keyword``).
        whole: the name of the tree itself in messages.
    """
    value = _validatable(node)
    if fits(value, schema):
        return
    from jsonschema import Draft202012Validator
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    # An empty registry: references to other schemas are not fetched.
    validator = Draft202012Validator(schema, registry=Registry())
    try:
        for error in validator.iter_errors(value):
            for each in _innermost(error):
                for problem in _problems(node, each, ids, foreign or {}, what, whole):
                    yield _with_help(problem, node, each, beside or {})
    except Unresolvable as e:
        yield Problem(
            ids.kind, f"the schema refers to {e.ref}, which it does not define", node.place
        )


def _with_help(
    problem: Problem, root: Node, error: ValidationError, beside: Mapping[str, str]
) -> Problem:
    """A problem with the hint for a mapping that is nested below a key instead of beside it."""
    path = tuple(error.absolute_path)
    node, key = root.at(path), path[-1] if path else None
    if key in beside and node is not None and isinstance(node.value, dict):
        return problem._replace(hint=beside[str(key)])
    return problem


def _innermost(error: ValidationError) -> list[ValidationError]:
    """For a choice, the errors of the alternative that was most likely meant, if there is one."""
    if error.validator not in ("anyOf", "oneOf"):
        return [error]
    branches: dict[object, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.schema_path[0], []).append(inner)
    meant = [b for b in branches.values() if all(inner.path for inner in b)]
    return [i for inner in meant[0] for i in _innermost(inner)] if len(meant) == 1 else [error]


def _validatable(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {k: _validatable(v) for k, v in node.value.items()}
    if isinstance(node.value, list):
        return [_validatable(v) for v in node.value]
    return node.value.reveal() if isinstance(node.value, Secret) else node.value


def _problems(
    root: Node, error: ValidationError, ids: Ids, foreign: Mapping[str, str], what: str, whole: str
) -> Iterator[Problem]:
    node = root.at(tuple(error.absolute_path)) or root
    path = [str(p) for p in error.absolute_path if isinstance(p, str)]
    schema: Mapping[str, Any] = error.schema if isinstance(error.schema, Mapping) else {}
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = schema.get("properties", {})
        for name, child in node.items():
            if name in known or _by_pattern(name, schema):
                continue
            word = foreign.get(".".join((*path[:1], name))) or foreign.get(name)
            hint = f"in pairun: {word}" if word else None
            yield Problem(
                "PR209" if name in foreign and ids.unknown == "PR201" else ids.unknown,
                f"there is no {what} '{name}' here",
                child.key or child.place,
                hint or did_you_mean(name, known),
            )
    elif error.validator == "required":
        for name in schema["required"]:
            if node.get(name) is None and f"'{name}'" in error.message:
                place = node.key or node.place
                yield Problem(
                    ids.missing, f"'{name}' is missing", place, _meant(name, node, schema)
                )
    elif error.validator == "propertyNames" or "propertyNames" in error.schema_path:
        for name, child in node.items():
            if name == error.instance:
                yield Problem(
                    ids.kind,
                    f"'{name}' is not allowed as a key here",
                    child.key or child.place,
                    did_you_mean(name, schema.get("enum", ())),
                )
    else:
        name = path[-1] if path else whole
        for index in _indices(error):
            name += f"[{index}]"
        yield _wrong_kind(name, node, schema, error, ids)


def _indices(error: ValidationError) -> list[int]:
    """The indices at the end of an error's path."""
    indices: list[int] = []
    for part in error.absolute_path:
        indices = [*indices, part] if isinstance(part, int) else []
    return indices


def _meant(name: str, node: Node, schema: Mapping[str, Any]) -> str | None:
    """A hint if a key is missing but a misspelt one exists."""
    if schema.get("additionalProperties") is False:
        return None  # the unknown key has its own error
    near = nearest(name, [k for k, _ in node.items() if k not in schema.get("properties", ())])
    return f"did you mean '{name}' instead of '{near}'?" if near else None


def _by_pattern(name: str, schema: Mapping[str, Any]) -> bool:
    import re

    return any(re.search(p, name) for p in schema.get("patternProperties", ()))


def _wrong_kind(
    name: str, node: Node, schema: Mapping[str, Any], error: ValidationError, ids: Ids
) -> Problem:
    place: Place = node.place
    value = node.value
    if DURATION_PATTERN in str(schema.get("pattern", "")):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return Problem(
            "PR210",
            f"'{name}' must be a duration with a unit, not {shown(value)}",
            place,
            f"did you mean '{value}s'?" if number else "for example 500ms, 10s, 5m, 1h30m",
        )
    hint = None
    if "enum" in schema and isinstance(value, str):
        hint = did_you_mean(value, [str(v) for v in schema["enum"] if v is not None])
    actual = shown(value)
    if error.validator in ("minItems", "minProperties"):
        actual = f"one of {len(value)}" if value else "an empty one"
    return Problem(
        ids.kind, f"'{name}' must be {_described(schema, error)}, not {actual}", place, hint
    )


def _described(schema: Mapping[str, Any], error: ValidationError) -> str:
    words = {
        "string": "text", "integer": "a whole number", "number": "a number",
        "boolean": "true or false", "array": "a list", "object": "a mapping", "null": "null",
    }  # fmt: skip
    if "const" in schema:
        return repr(schema["const"])
    if "enum" in schema and "$comment" in schema:
        return f"a known value ({schema['$comment']})"  # too many for one line
    if "enum" in schema:
        # a patch's schema allows null, which restores the default and is not one of the choices
        return "one of " + ", ".join(str(v) for v in schema["enum"] if v is not None)
    if error.validator == "type":
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return " or ".join(words[k] for k in kinds)
    if error.validator in ("anyOf", "oneOf"):
        return " or ".join(_described(s, _as_type(error)) for s in schema[str(error.validator)])
    limits = {
        "minimum": "at least {}", "maximum": "at most {}", "minLength": "at least {} character",
        "maxLength": "at most {} characters", "minItems": "a list of at least {}",
        "minProperties": "a mapping of at least {}", "pattern": "text that matches {}",
    }  # fmt: skip
    if error.validator == "pattern" and schema.get("examples"):
        return f"text such as {' or '.join(map(str, schema['examples']))}"
    template = limits.get(str(error.validator))
    return template.format(error.validator_value) if template else error.message


def _as_type(error: ValidationError) -> ValidationError:
    import copy

    as_type = copy.copy(error)
    as_type.validator = "type"
    return as_type


def shown(value: object) -> str:
    """A value in a message: short, with secrets masked."""
    if isinstance(value, Secret):
        return "a secret"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    if len(text) > 40:
        text = text[:37] + "..."
    return f"'{text}'" if isinstance(value, str) else text
