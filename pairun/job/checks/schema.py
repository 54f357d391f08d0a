"""Checks a job file against the protocol's schema, and reports each problem at its place."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pairun.errors import Place, Problem, Problems, did_you_mean, nearest
from pairun.formats.protocol import ROLE_KEYS, SCHEMA, Schema, home_of
from pairun.playbook.document.plainschema import fits
from pairun.playbook.document.reading import Node
from pairun.playbook.document.scalars import Timestamp, js_text
from pairun.playbook.keywords import EXPORT

if TYPE_CHECKING:
    import jsonschema


def check_schema(node: Node, problems: Problems) -> None:
    """Report everything in a document that the schema does not allow."""
    value = node.plain()
    if fits(value, SCHEMA):
        return
    if (other := _other_kind(value)) is not None:
        problems.error(
            "PR501",
            f"this is not a job: {other}",
            node.place,
            "create one to start from with `pairun new job`; see docs/jobs.md",
        )
        return
    misplaced = _misplaced(node)
    problems.extend(misplaced.values())
    for error in _validator().iter_errors(value):
        path = tuple(error.absolute_path)
        at = node.at(path)
        assert at is not None
        if path[:1] != ("taskRoles",) or path[1:2] not in misplaced:
            _report(error.validator, error.validator_value, error.schema, path, at, problems)


@functools.cache
def _validator() -> jsonschema.Draft202012Validator:
    """The validator, made once per process for all jobs."""
    import jsonschema

    base = jsonschema.Draft202012Validator
    # For the REST server an unquoted date is an object, not text.
    types = base.TYPE_CHECKER.redefine(
        "string", lambda _, value: isinstance(value, str) and not isinstance(value, Timestamp)
    )
    extend: Callable[..., type[jsonschema.Draft202012Validator]] = jsonschema.validators.extend
    return extend(base, type_checker=types)(SCHEMA)


def _misplaced(document: Node) -> dict[tuple[str | int, ...], Problem]:
    """A problem for each key of a role that is directly in ``taskRoles``, by its path there."""
    roles = document.get("taskRoles")
    misplaced: dict[tuple[str | int, ...], Problem] = {}
    above = None
    for name, value in roles.items() if roles else ():
        is_role = isinstance(value.value, dict) and any(k in ROLE_KEYS for k, _ in value.items())
        if name not in ROLE_KEYS or is_role:
            above = name
            continue
        misplaced[name,] = Problem(
            "PR503",
            f"'{name}' belongs to a role, but is in taskRoles itself",
            value.key or value.place,
            f"indent it deeper than '{above}:', the name of its role"
            if above
            else "write the name of the role above it, and indent it deeper than the name",
        )
    return misplaced


def _report(
    keyword: str,
    allowed: Any,
    schema: Schema,
    path: tuple[str | int, ...],
    at: Node,
    out: Problems,
) -> None:
    name, place, shown = _dotted(path), at.place, _shown(at, path)
    if keyword == "additionalProperties":
        for key, child in _unknown(at, schema):
            _report_unknown(key, child.key or child.place, schema, path, out)
    elif keyword == "required":
        misspelt = _misspelt(at, schema)
        for key in allowed:
            if key not in at.value and key not in misspelt:
                where = f" in {name}" if name else ""
                out.error("PR504", f"'{key}' is missing{where}", at.key or place)
    elif path in {(), ("protocolVersion",)}:
        what = "the document must be a mapping" if not path else "protocolVersion must be 2"
        is_empty = not path and at.value is None
        out.error("PR501", "the file is empty" if is_empty else f"{what}, not {shown}", place)
    else:
        message, hint = _sentence(keyword, allowed, at, shown)
        hint = _command_hint(path, at) or hint
        out.error("PR503", f"{name} {message}", place, hint)


def _misspelt(at: Node, schema: Schema) -> set[str | None]:
    """The known keys that unknown ones most likely mean; unknown keys have their own errors."""
    if schema.get("additionalProperties") is not False:
        return set()
    unknown = (key for key, _ in _unknown(at, schema))
    return {nearest(key, schema["properties"]) for key in unknown if home_of(key) is None}


def _other_kind(value: object) -> str | None:
    """The kind of a document that is clearly not a job but of a well-known format."""
    if not isinstance(value, dict) or "taskRoles" in value:
        return None
    if "services" in value and all(isinstance(s, dict) for s in (value["services"] or {}).values()):
        return "it looks like a file of Docker Compose"
    return None


def _command_hint(path: tuple[str | int, ...], at: Node) -> str | None:
    """How to write a command, for common mistakes."""
    if path[-1:] == ("commands",) and isinstance(at.value, str):
        script = at.value.strip()
        if "\n" in script:
            return "commands are a list: write '- |' in a line below, and indent the text under it"
        return f"commands are a list: [{json.dumps(script)}]"
    if path[-2:-1] == ("commands",) and isinstance(at.value, dict) and len(at.value) == 1:
        key, child = next(iter(at.items()))
        if isinstance(child.value, str | int | float) or child.value is None:
            text = f"{key}: {'' if child.value is None else child.value}".rstrip()
            return f"': ' makes a mapping of it; quote the command: {json.dumps(text)}"
    return None


def _sentence(keyword: str, allowed: Any, at: Node, shown: str) -> tuple[str, str | None]:
    if keyword == "type":
        scalar = not isinstance(at.value, dict | list) and at.value is not None
        hint = "quote it" if "string" in allowed and scalar else None
        return f"must be {_kinds(allowed)}, not {shown}", hint
    if keyword == "enum":
        words = [str(w) for w in allowed]
        hint = did_you_mean(str(at.value), words)
        return f"must be {' or '.join(dict.fromkeys(words))}, not {shown}", hint
    if keyword == "pattern":
        return f"must consist of letters, digits, '_' and '-', which {shown} does not", None
    if keyword == "maxLength":
        return f"must not be longer than {allowed} characters", None
    if keyword == "minimum":
        return f"must be at least {allowed}, not {shown}", None
    if keyword == "maximum":
        return f"must be at most {allowed}, not {shown}", None
    return "must not be empty", None  # minItems, minProperties


def _report_unknown(
    key: str, place: Place, schema: Schema, path: tuple[str | int, ...], out: Problems
) -> None:
    name = _dotted(path)
    where = f" in {name}" if name else ""
    if "patternProperties" in schema:
        out.error(
            "PR503",
            f"'{key}'{where} is not a name: a letter or '_', then letters, digits and '_'",
            place,
        )
    else:
        home = home_of(key) if path[:1] in {(), ("taskRoles",)} else None
        if key in ("env", "environment"):
            hint: str | None = f"set variables with {EXPORT}"
        else:
            hint = f"it belongs in {home}" if home else did_you_mean(key, schema["properties"])
        out.error("PR502", f"unknown key '{key}'{where}", place, hint)


def _unknown(at: Node, schema: Schema) -> Iterator[tuple[str, Node]]:
    known = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    for key, child in at.items():
        if key not in known and not any(re.search(p, key) for p in patterns):
            yield key, child


def _dotted(path: tuple[str | int, ...]) -> str:
    out = ""
    for step in path:
        out += f"[{step}]" if isinstance(step, int) else f".{step}" if out else step
    return out


_SHOWN = 40
_KIND_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "object": "a mapping",
    "array": "a list",
    "null": "null",
}


def _kinds(types: str | list[str]) -> str:
    return " or ".join(_KIND_WORDS[t] for t in ([types] if isinstance(types, str) else types))


def _shown(at: Node, path: tuple[str | int, ...]) -> str:
    value = at.value
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "null"
    if isinstance(value, Timestamp):
        return "a date"
    if path[:1] == ("secrets",) or "auth" in path:
        return "text" if isinstance(value, str) else "a number or truth value"
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN else value[: _SHOWN - 3] + "...")
    return js_text(value)
