"""Checks every field of what a module's process returns, which is untrusted."""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import attrs

from pairun.base.foreignjson import parse_record
from pairun.module import FAILURE_KINDS, FailureKind, Fault

MAX_LINE_BYTES = 16 * 1024 * 1024
"""The maximum length of a line from a module's process, in bytes."""

MAX_TEXT = 65_536
"""The maximum length of a message, hint or trace, in characters; the rest is cut off."""

MAX_DEPTH = 64
"""The maximum nesting depth of a result's values."""

MAX_COUNT = 2**63
"""More bytes than any file has."""

MAX_HIDDEN = 1000
"""The maximum number of texts that a module may hide at once; each slows down the search."""

AttemptOutcome = Literal["ok", "changed", "skipped", "failed"]


class BadResult(Exception):
    """An invalid field of a module's result; the message names it, never its value.

    Args:
        message: one sentence.
        method: the method that returned it, if it is neither ``check`` nor ``apply``.
    """

    def __init__(self, message: str, method: str = "") -> None:
        super().__init__(message)
        self.method = method


@attrs.frozen(kw_only=True)
class Report:
    """The end of an attempt.

    Attributes:
        outcome: ok, changed, skipped or failed.
        message: one sentence for people.
        values: for later tasks, as ``results.<id>.values``.
        environment: variables for later tasks and the user's command; None removes one.
        kind: of a failure.
        fault: of a failure: whose fault it is.
        hint: of a failure: what to do.
        retry_after_s: of a failure: seconds that a server asked us to wait.
        retry_within_s: of a failure: seconds in which retries make sense, from the first such
            failure.
        exit_code: of a failure: the exit code of the program that failed.
        trace: of an internal failure: the end of the Python traceback.
    """

    outcome: AttemptOutcome
    message: str = ""
    values: Mapping[str, Any] = attrs.field(factory=dict)
    environment: Mapping[str, str | None] = attrs.field(factory=dict)
    kind: FailureKind = "internal"
    fault: Fault = "unknown"
    hint: str | None = None
    retry_after_s: float | None = None
    retry_within_s: float | None = None
    exit_code: int | None = None
    trace: str | None = None

    @property
    def failed(self) -> bool:
        """Whether the attempt failed."""
        return self.outcome == "failed"


@attrs.frozen
class Progress:
    """The progress of an attempt.

    Attributes:
        bytes: number of bytes done.
        total: total number of bytes, or None.
        file: the file with these bytes.
    """

    bytes: int
    total: int | None = None
    file: str = ""


@attrs.frozen
class Hidden:
    """Secrets that a module has learned; they never appear in any output.

    Attributes:
        texts: to mask from now on.
    """

    texts: tuple[str, ...]


Line = Report | Progress | Hidden
"""The records that a module's process sends, one per line."""


def failure(
    message: str,
    kind: FailureKind = "internal",
    fault: Fault = "unknown",
    hint: str | None = None,
    trace: str | None = None,
) -> Report:
    """The report of a failed attempt; an internal one by default."""
    return Report(
        outcome="failed",
        message=_clean(message),
        kind=kind,
        fault=fault,
        hint=hint,
        trace=None if trace is None else _clean(trace),
    )


def dump_line(record: Line) -> bytes:
    """One line of JSON for `read_line`; omits fields with their default value.

    Raises:
        BadResult: the values are not plain data, or too large.
    """
    kind = type(record)
    fields = {name: getattr(record, name) for name in _CHECKS[kind]}
    fields = {
        name: value
        for name, value in fields.items()
        if name == _REQUIRED[kind] or value != getattr(_MINIMAL[kind], name)
    }
    try:
        data = _ENCODER.encode({kind.__name__: fields}).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as e:
        raise BadResult(f"values must be plain JSON data: {e}") from e
    if len(data) > MAX_LINE_BYTES:
        raise BadResult(f"the result must be at most {MAX_LINE_BYTES >> 20} MiB of JSON")
    return data


def read_line(line: bytes) -> Line:
    """Check one line of a module's process.

    Raises:
        BadResult: it is none of these records, or has an invalid field.
    """
    if len(data := parse_record(line) or {}) == 1:
        ((kind, fields),) = data.items()
        if kind == "Report" and isinstance(fields, dict):
            return checked_report(fields)
        if kind == "Progress" and isinstance(fields, dict):
            return checked_progress(fields)
        if kind == "Hidden" and isinstance(fields, dict):
            return checked_hidden(fields)
    raise BadResult("a line is neither a report nor progress")


def checked_report(fields: Mapping[str, Any]) -> Report:
    """The report with these fields.

    Raises:
        BadResult: a field is missing, unknown, of a wrong type or out of range.
    """
    return Report(**_checked(Report, fields))


def checked_progress(fields: Mapping[str, Any]) -> Progress:
    """The progress with these fields.

    Raises:
        BadResult: a field is missing, unknown, of a wrong type or out of range.
    """
    return Progress(**_checked(Progress, fields))


def checked_hidden(fields: Mapping[str, Any]) -> Hidden:
    """The secrets in these fields.

    Raises:
        BadResult: a field is missing, unknown, of a wrong type or out of range.
    """
    return Hidden(**_checked(Hidden, fields))


def _checked(record: type[Line], fields: Mapping[str, Any]) -> dict[str, Any]:
    checks, checked = _CHECKS[record], {}
    for name, value in {_REQUIRED[record]: None, **fields}.items():
        if name not in checks:
            raise BadResult(f"there is no field {name!r}")
        checked[name] = checks[name](name, value)
    return checked


def checked_variable(name: object, value: object) -> str | None:
    """A variable that the kernel accepts in an environment (execve(2)); None removes it.

    Raises:
        BadResult: the name or the value is invalid.
    """
    if not isinstance(name, str) or not name or "=" in name or "\0" in name:
        raise BadResult(f"environment has the name {name!r}; a name is text without '=' and NUL")
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadResult(f"environment.{name} must be text or None, it is {_type(value)}")
    if "\0" in value:
        raise BadResult(f"environment.{name} must not hold a NUL character")
    try:
        size = len(os.fsencode(f"{name}={value}"))
    except UnicodeEncodeError as e:
        raise BadResult(f"environment.{name} must be text that UTF-8 can encode") from e
    if size >= _longest_variable():
        raise BadResult(
            f"environment.{name} must be shorter than {_longest_variable() >> 10} KiB, "
            "the most that Linux passes to a program"
        )
    return value


@functools.cache
def _longest_variable() -> int:
    """MAX_ARG_STRLEN of execve(2): 32 pages, including the NUL at the end."""
    return 32 * os.sysconf("SC_PAGE_SIZE")


def _check_plain(where: str, value: object, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise BadResult(f"values must be nested at most {MAX_DEPTH} deep")
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise BadResult(f"{where} must have texts as keys, one is {_type(key)}")
            _check_plain(where if depth else f"{where}.{key}", inner, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            _check_plain(where, inner, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise BadResult(f"{where} must hold finite numbers")
    elif value is not None and not isinstance(value, str | int | float):
        raise BadResult(f"{where} must be plain JSON data, it holds {_type(value)}")


def _mapping(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise BadResult(f"{name} must be a mapping, it is {_type(value)}")
    return dict(value)


def _values(name: str, value: object) -> dict[str, Any]:
    values = _mapping(name, value)
    _check_plain(name, values, 0)
    return values


def _environment(name: str, value: object) -> dict[str, str | None]:
    return {each: checked_variable(each, text) for each, text in _mapping(name, value).items()}


def _secrets(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise BadResult(f"{name} to hide must be a list of texts, it is {_type(value)}")
    if len(value) > MAX_HIDDEN:
        raise BadResult(f"{name} to hide must be at most {MAX_HIDDEN} texts")
    return tuple(value)


def _one_of(*allowed: str) -> Callable[[str, object], Any]:
    def check(name: str, value: object) -> Any:
        if not isinstance(value, str) or value not in allowed:
            raise BadResult(f"{name} must be one of {', '.join(allowed)}")
        return value

    return check


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadResult(f"{name} must be text, it is {_type(value)}")
    return _clean(value)


def _clean(text: str) -> str:
    """A text that every output can encode, cut to a readable length."""
    encodable = text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
    return encodable if len(encodable) <= MAX_TEXT else encodable[:MAX_TEXT] + "…"


def _optional_text(name: str, value: object) -> str | None:
    return None if value is None else _text(name, value)


def _optional_seconds(name: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadResult(f"{name} must be a number of seconds, it is {_type(value)}")
    if not -MAX_COUNT < value < MAX_COUNT:
        raise BadResult(f"{name} must be a finite number of seconds")
    return float(value)


def _optional_exit_code(name: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 255:
        raise BadResult(f"{name} of a failure must be a whole number from 1 to 255")
    return value


def _count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadResult(f"{name} of progress must be a whole number, it is {_type(value)}")
    if not 0 <= value < MAX_COUNT:
        raise BadResult(f"{name} of progress must be a number of bytes")
    return value


def _optional_count(name: str, value: object) -> int | None:
    return None if value is None else _count(name, value)


def _type(value: object) -> str:
    """The name of a value's type for people."""
    for types, words in _WORDS.items():
        if isinstance(value, types):
            return words
    return f"a {type(value).__name__}"


_WORDS: dict[type | tuple[type, ...], str] = {
    type(None): "null", bool: "true or false", (int, float): "a number", str: "text",
    (list, tuple): "a list", dict: "a mapping",
}  # fmt: skip

_CHECKS: dict[type[Line], dict[str, Callable[[str, object], Any]]] = {
    Report: {
        "outcome": _one_of(*get_args(AttemptOutcome)), "message": _text, "values": _values,
        "environment": _environment, "kind": _one_of(*FAILURE_KINDS),
        "fault": _one_of(*get_args(Fault)), "hint": _optional_text,
        "retry_after_s": _optional_seconds, "retry_within_s": _optional_seconds, "exit_code": _optional_exit_code,
        "trace": _optional_text,
    },
    Progress: {"bytes": _count, "total": _optional_count, "file": _text},
    Hidden: {"texts": _secrets},
}  # fmt: skip
"""All fields that a module's process may send; each field's check takes its name and value."""

_REQUIRED: dict[type, str] = {Report: "outcome", Progress: "bytes", Hidden: "texts"}
_MINIMAL: dict[type, Line] = {
    Report: Report(outcome="ok"), Progress: Progress(0), Hidden: Hidden(())
}  # fmt: skip
_ENCODER = json.JSONEncoder(allow_nan=False)
