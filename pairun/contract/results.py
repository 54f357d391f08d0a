"""Checks every field of what a module's process returns, which is untrusted."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pairun.base.fields import BadField, Count, between, decode, type_words
from pairun.base.foreignjson import parse_record
from pairun.errors import PairunError
from pairun.module import FailureKind, Fault, Secret

MAX_RECORD_BYTES = 16 * 1024 * 1024
"""The maximum length of a line from a module's process, in bytes."""

MAX_MESSAGE = 65_536
"""The maximum length of a message, hint or trace, in characters; the rest is cut off."""

MAX_RESULT_DEPTH = 64
"""The maximum nesting depth of a result's values."""

MAX_HIDDEN = 1000
"""The maximum number of texts that a module may hide at once; each slows down the search."""

AttemptOutcome = Literal["ok", "changed", "skipped", "failed"]


class BadResult(Exception):
    """A module's result is invalid; the message never holds a value.

    Args:
        message: one sentence.
        method: the method that returned it, if it is neither ``check`` nor ``apply``.
    """

    def __init__(self, message: str, method: str = "") -> None:
        super().__init__(message)
        self.method = method


def checked_variable(name: object, value: object) -> str | None:
    """A variable that the kernel accepts in an environment (execve(2)); None removes it.

    Raises:
        BadField: the name or the value is invalid.
    """
    if not isinstance(name, str) or not name or "=" in name or "\0" in name:
        must = f"have names that are text without '=' and NUL, it has {name!r}"
        raise BadField("environment", must)
    where = f"environment.{name}"
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadField(where, f"be text or None, it is {type_words(value)}")
    if "\0" in value:
        raise BadField(where, "not hold a NUL character")
    try:
        size = len(os.fsencode(f"{name}={value}"))
    except UnicodeEncodeError as e:
        raise BadField(where, "be text that UTF-8 can encode") from e
    # MAX_ARG_STRLEN of execve(2): 32 pages, including the NUL at the end.
    if size >= (longest := 32 * os.sysconf("SC_PAGE_SIZE")):
        raise BadField(
            where, f"be shorter than {longest >> 10} KiB, the most that Linux passes to a program"
        )
    return value


def variable_text(name: str, value: object) -> str:
    """A value of a task's ``environment`` as the kernel takes it; booleans as a shell writes them.

    Raises:
        PairunError: it is no text, or not one that the kernel accepts.
    """
    value = value.reveal() if isinstance(value, Secret) else value
    if isinstance(value, list | Mapping):
        raise PairunError.of("PR605", f"the variable {name} must be a text")
    text = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        checked_variable(name, text)
    except BadField as e:
        raise PairunError.of("PR605", str(e)) from e
    return text


def _check_variables(variables: Mapping[str, Any], _where: str) -> dict[str, str | None]:
    return {name: checked_variable(name, value) for name, value in variables.items()}


def _check_values(values: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    _check_plain(where, values, 0)
    return values


def _check_plain(where: str, value: object, depth: int) -> None:
    if depth > MAX_RESULT_DEPTH:
        raise BadField(where.partition(".")[0], f"be nested at most {MAX_RESULT_DEPTH} deep")
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise BadField(where, f"have texts as keys, one is {type_words(key)}")
            _check_plain(where if depth else f"{where}.{key}", inner, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            _check_plain(where, inner, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise BadField(where, "hold finite numbers")
    elif value is not None and not isinstance(value, str | int | float):
        raise BadField(where, f"be plain JSON data, it holds {type_words(value)}")


def _clean(text: str, _where: str = "") -> str:
    """A text that every output can encode, cut to a readable length."""
    encodable = text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
    return encodable if len(encodable) <= MAX_MESSAGE else encodable[:MAX_MESSAGE] + "…"


def _check_hidden(texts: tuple[str, ...], where: str) -> tuple[str, ...]:
    if len(texts) > MAX_HIDDEN:
        raise BadField(where, f"be at most {MAX_HIDDEN}")
    return texts


_Text = Annotated[str, _clean]
_Seconds = Annotated[float, between(-(2**63), 2**63)]


class Report(NamedTuple):
    """The end of an attempt.

    Attributes:
        outcome: ok, changed, skipped or failed.
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
    message: _Text = ""
    values: Annotated[Mapping[str, Any], _check_values] = {}
    environment: Annotated[Mapping[Any, Any], _check_variables] = {}
    kind: FailureKind = "internal"
    fault: Fault = "unknown"
    hint: _Text | None = None
    retry_after_s: _Seconds | None = None
    retry_within_s: _Seconds | None = None
    exit_code: Annotated[int, between(1, 255)] | None = None
    trace: _Text | None = None

    @property
    def failed(self) -> bool:
        """Whether the attempt failed."""
        return self.outcome == "failed"


class ProgressRecord(NamedTuple):
    """The progress of an attempt.

    Attributes:
        bytes: number of bytes done.
        total: total number of bytes, or None.
        file: the file with these bytes.
    """

    bytes: Count
    total: Count | None = None
    file: _Text = ""


class Hidden(NamedTuple):
    """Secrets that a module has learned; they never appear in any output.

    Attributes:
        texts: to mask from now on.
    """

    texts: Annotated[tuple[str, ...], _check_hidden]


ProcessRecord = Report | ProgressRecord | Hidden
"""The records that a module's process sends, one per line."""

_RECORDS: dict[str, type[ProcessRecord]] = {
    each.__name__: each for each in (Report, ProgressRecord, Hidden)
}
_ENCODER = json.JSONEncoder(allow_nan=False)


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


def dump_line(record: ProcessRecord) -> bytes:
    """One line of JSON for `read_line`; omits fields with their default value.

    Raises:
        BadResult: the values are not plain data, or too large.
    """
    defaults = record._field_defaults
    fields = {
        name: value
        for name, value in record._asdict().items()
        if name not in defaults or value != defaults[name]
    }
    try:
        data = _ENCODER.encode({type(record).__name__: fields}).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as e:
        raise BadResult(f"values must be plain JSON data: {e}") from e
    if len(data) > MAX_RECORD_BYTES:
        raise BadResult(f"the result must be at most {MAX_RECORD_BYTES >> 20} MiB of JSON")
    return data


def read_line(line: bytes) -> ProcessRecord:
    """Check one line of a module's process.

    Raises:
        BadResult: it is none of these records, or has an invalid field.
    """
    if len(data := parse_record(line) or {}) == 1:
        ((kind, fields),) = data.items()
        if kind in _RECORDS and isinstance(fields, dict):
            return checked(_RECORDS[kind], fields)
    raise BadResult("a line is neither a report nor progress")


_L = TypeVar("_L", bound=ProcessRecord)


def checked(kind: type[_L], fields: Mapping[str, Any]) -> _L:
    """The record with these fields.

    Raises:
        BadResult: a field is missing, unknown, of a wrong type or out of range.
    """
    try:
        return decode(kind, fields)
    except BadField as e:
        raise BadResult(str(e)) from e
