"""Checks a tree against a JSON Schema; reports every violation with its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pairun.base.durations import DURATION_PATTERN
from pairun.base.fields import Path
from pairun.contract.kinds import shown
from pairun.errors import Problem, did_you_mean, nearest
from pairun.module import Secret
from pairun.playbook.document.plainschema import fits
from pairun.playbook.document.reading import Node
from pairun.playbook.document.scalars import Timestamp
from pairun.playbook.keywords import FOREIGN

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

Violation = tuple[Path, Node, Problem]
"""The path of what is wrong, the node there (for a missing key its mapping), and the problem."""


class Format(NamedTuple):
    """How a format reports the violations of its schema.

    Attributes:
        unknown: the error id of an unknown key.
        kind: the error id of a wrong value.
        missing: the error id of a missing key.
        what: the name of a mapping's entries in messages (``key``, ``keyword``).
        words: keys of other formats, and their replacements here.
        dotted: whether messages name the whole path, and not only its end.
        adjust: returns the problem to report, or None to report nothing.
    """

    unknown: str
    kind: str
    missing: str
    what: str = "key"
    words: Mapping[str, str] = {}
    dotted: bool = False
    adjust: Callable[[Path, Node, Problem], Problem | None] | None = None


PLAYBOOK = Format("PR201", "PR204", "PR205")


def _with_column(path: Path, node: Node, problem: Problem) -> Problem:
    """The problem, with a hint for a task that is nested below its operation."""
    if path[-1:] in (("before",), ("after",), ("append",)) and isinstance(node.value, dict):
        hint = f"write the module beside '{path[-1]}:', in the same column, not below it"
        return problem._replace(hint=hint)
    return problem


KEYWORD_FORMAT = PLAYBOOK._replace(what="keyword", words=FOREIGN, adjust=_with_column)
"""How playbooks, plugin specs and a job's layer report violations."""


def violations(
    node: Node, schema: Mapping[str, Any], form: Format = PLAYBOOK, *, whole: str = "the document"
) -> Iterator[Problem]:
    """Yield a problem for everything in a tree that its schema does not allow.

    Args:
        schema: JSON Schema, draft 2020-12.
        form: the error ids and words to use.
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
                for path, at, problem in _problems(node, each, form, whole):
                    adjusted = form.adjust(path, at, problem) if form.adjust else problem
                    if adjusted is not None:
                        yield adjusted
    except Unresolvable as e:
        yield Problem(
            form.kind, f"the schema refers to {e.ref}, which it does not define", node.place
        )


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
    if isinstance(node.value, Timestamp):
        return object()  # In a job file an unquoted date is not text.
    return node.value.reveal() if isinstance(node.value, Secret) else node.value


def _problems(root: Node, error: ValidationError, form: Format, whole: str) -> Iterator[Violation]:
    path = tuple(error.absolute_path)
    node = root.at(path) or root
    schema: Mapping[str, Any] = error.schema if isinstance(error.schema, Mapping) else {}
    known = schema.get("properties", {})
    where = f" in {_dotted(path)}" if form.dotted and path else ""
    if error.validator == "additionalProperties":
        for key, child in _unknown(node, schema):
            if "patternProperties" in schema and not known:
                yield (*path, key), child, _refused(key, child, where, schema, form)
                continue
            word = form.words.get(key)
            id_ = "PR209" if word and form.unknown == PLAYBOOK.unknown else form.unknown
            message = f"there is no {form.what} '{key}'{where or ' here'}"
            by_indent = None if nearest(key, known) else _indentation(node, key, child)
            hint = f"in pairun: {word}" if word else by_indent or did_you_mean(key, known)
            yield (*path, key), child, Problem(id_, message, child.head, hint)
    elif error.validator == "required":
        unknown = [key for key, _ in _unknown(node, schema)]
        is_closed = schema.get("additionalProperties") is False
        misspelt = {nearest(key, known) for key in unknown} if is_closed else ()
        for key in schema["required"]:
            # A misspelt key has its own error.
            if f"'{key}'" not in error.message or node.get(key) is not None or key in misspelt:
                continue
            near = None if is_closed else nearest(key, unknown)
            hint = f"did you mean '{key}' instead of '{near}'?" if near else None
            message = f"'{key}' is missing{where}"
            yield (*path, key), node, Problem(form.missing, message, node.head, hint)
    elif "propertyNames" in error.schema_path:
        for key, child in node.items():
            if key == error.instance:
                yield (*path, key), child, _refused(key, child, where, schema, form)
    else:
        yield path, node, _wrong_value(_name(path, form, whole), node, schema, error, form)


def _unknown(node: Node, schema: Mapping[str, Any]) -> Iterator[tuple[str, Node]]:
    known, patterns = schema.get("properties", ()), schema.get("patternProperties", ())
    for key, child in node.items():
        if key not in known and not any(re.search(p, key) for p in patterns):
            yield key, child


def _indentation(mapping: Node, key: str, child: Node) -> str | None:
    """How to indent a key that probably belongs to the value of the key above it."""
    above = list(mapping.items())[: list(mapping.value).index(key)]
    if child.key is None or not above:
        return None
    name, value = above[-1]
    last = value.elements()[-1] if value.elements() else None
    if value.value is None and value.key is not None and value.key.column == child.key.column:
        return f"if it belongs to '{name}', indent it deeper than '{name}:'"
    if last is not None and last.value and isinstance(last.value, dict):
        column = last.place.column
        if last.place.line < child.key.line and column > child.key.column:
            return f"if it belongs to the item above, indent it by {column - 1} spaces"
    return None


def _refused(key: str, child: Node, where: str, schema: Mapping[str, Any], form: Format) -> Problem:
    hint = did_you_mean(key, schema.get("enum", ())) or schema.get("$comment")
    message = f"'{key}' is not allowed as a key{where or ' here'}"
    return Problem(form.kind, message, child.head, hint)


def _name(path: Path, form: Format, whole: str) -> str:
    """What a message calls the value at a path."""
    if form.dotted:
        return _dotted(path) or whole
    last = max((i for i, step in enumerate(path) if isinstance(step, str)), default=None)
    return f"'{whole}{_dotted(path)}'" if last is None else f"'{_dotted(path[last:])}'"


def _dotted(path: Path) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def _wrong_value(
    name: str, node: Node, schema: Mapping[str, Any], error: ValidationError, form: Format
) -> Problem:
    value = node.value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if DURATION_PATTERN in str(schema.get("pattern", "")):
        return Problem(
            "PR210",
            f"{name} must be a duration with a unit, not {_shown_at(node)}",
            node.place,
            f"did you mean '{value}s'?" if is_number else "for example 500ms, 10s, 5m, 1h30m",
        )
    hint = None
    if "enum" in schema and isinstance(value, str):
        hint = did_you_mean(value, [str(v) for v in schema["enum"] if v is not None])
    elif error.validator == "type" and "string" in schema["type"]:
        hint = "quote it" if not isinstance(value, dict | list | None) else None
    elif error.validator == "type" and isinstance(value, str):
        hint = _as_number(value, name)
    elif error.validator == "type" and value is None and node.key is not None:
        key = name.strip("'").rpartition(".")[2]
        hint = f"write its value after '{key}:', or below it and indented deeper"
    keyword = str(error.validator)
    is_short = keyword in ("minItems", "minProperties")
    actual = f"one of {len(value)}" if is_short else _shown_at(node)
    message = f"{name} must be {_described(schema, keyword, error.message)}, not {actual}"
    if is_short and not value:
        message = f"{name} must not be empty"
    return Problem(form.kind, message, node.place, hint)


_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_MEGABYTES = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2}


def _as_number(text: str, name: str) -> str | None:
    """How to write a number that a person wrote as text."""
    if re.fullmatch(r"\d+", text):
        return "remove the quotes"
    if text.lower() in _NUMBERS:
        return f"write {_NUMBERS.index(text.lower())}"
    size = re.fullmatch(r"(\d+) ?([KMGT])i?B?", text)
    if size and name.strip("'").endswith("MB"):
        return f"write {max(1, round(int(size[1]) * _MEGABYTES[size[2]]))}, without a unit: it is in MB"
    return None


_KINDS = {
    "string": "text", "integer": "a whole number", "number": "a number",
    "boolean": "true or false", "array": "a list", "object": "a mapping", "null": "null",
}  # fmt: skip
_LIMITS = {
    "minimum": "at least {}", "maximum": "at most {}", "minLength": "at least {} character",
    "maxLength": "at most {} characters", "minItems": "a list of at least {}",
    "minProperties": "a mapping of at least {}", "pattern": "text that matches {}",
}  # fmt: skip


def _described(schema: Mapping[str, Any], keyword: str, fallback: str) -> str:
    """What a schema demands, after a value violated one of its keywords."""
    if "const" in schema:
        return repr(schema["const"])
    if "enum" in schema and "$comment" in schema:
        return f"a known value ({schema['$comment']})"  # too many for one line
    if "enum" in schema:
        # a patch's schema allows null, which restores the default and is not one of the choices
        words = list(dict.fromkeys(str(v) for v in schema["enum"] if v is not None))
        return f"one of {', '.join(words)}" if len(words) > 1 else words[0]
    if keyword == "type" and "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return " or ".join(_KINDS[k] for k in kinds)
    if keyword in ("anyOf", "oneOf"):
        return " or ".join(_described(s, "type", fallback) for s in schema[keyword])
    if keyword == "pattern" and "$comment" in schema:
        return str(schema["$comment"])
    if keyword == "pattern" and schema.get("examples"):
        return f"text such as {' or '.join(map(str, schema['examples']))}"
    return _LIMITS[keyword].format(schema[keyword]) if keyword in _LIMITS else fallback


def _shown_at(node: Node) -> str:
    """A node's value in a message; only its kind if its line is hidden as a secret."""
    place, value = node.place, node.value
    written = "".join(place.source.lines[place.line - 1 : place.line]).strip()
    is_scalar = isinstance(value, str | int | float) and not isinstance(value, bool)
    if written and not place.source.line(place.line) and is_scalar:
        return "text" if isinstance(value, str) else "a number"
    return "a date" if isinstance(value, Timestamp) else shown(value)
