"""What a module's process sends: every field is checked, and a bad one is named."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.contract.results import (
    MAX_HIDDEN,
    MAX_MESSAGE,
    MAX_RECORD_BYTES,
    MAX_RESULT_DEPTH,
    BadResult,
    Hidden,
    ProgressRecord,
    Report,
    checked,
    checked_variable,
    dump_line,
    failure,
    read_line,
)

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
anything = plain | st.just(math.inf) | st.just(math.nan) | st.just(10**400)


def deep(levels: int) -> Any:
    """A list in a list in a list."""
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


@given(
    st.builds(
        Report,
        outcome=st.sampled_from(["ok", "changed", "skipped", "failed"]),
        message=st.text(),
        values=st.dictionaries(st.text(max_size=3), plain, max_size=3),
        environment=st.dictionaries(
            st.text(st.characters(exclude_characters="=\0", codec="utf-8"), min_size=1, max_size=4),
            st.none() | st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=4),
            max_size=3,
        ),
        kind=st.sampled_from(["transient", "timeout", "conflict", "permanent", "internal"]),
        fault=st.sampled_from(["user", "platform", "unknown"]),
        hint=st.none() | st.text(),
        retry_after_s=st.none() | st.floats(-1e9, 1e9),
        retry_within_s=st.none() | st.floats(-1e9, 1e9),
        exit_code=st.none() | st.integers(1, 255),
        trace=st.none() | st.text(),
    )
)
def test_a_report_comes_through(report: Report) -> None:
    """What is sent is what arrives."""
    assert read_line(dump_line(report)) == report


def test_progress_comes_through() -> None:
    """A count, a total or none, and a file."""
    for progress in (ProgressRecord(1, 2, "a"), ProgressRecord(0, None, "")):
        assert read_line(dump_line(progress)) == progress


def test_secrets_come_through() -> None:
    """Any text, also one that UTF-8 cannot encode."""
    hidden = Hidden(("one", "\ud800 two", ""))
    assert read_line(dump_line(hidden)) == hidden


@pytest.mark.parametrize(
    "texts", [None, "secret", [1], [None], {"secret": 1}, ["x"] * (MAX_HIDDEN + 1)]
)
def test_bad_secrets(texts: object) -> None:
    """They are a list of texts, and not too many."""
    with pytest.raises(BadResult, match="texts"):
        checked(Hidden, {"texts": texts})


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("outcome", "done", "outcome must be one of ok, changed, skipped, failed"),
        ("outcome", None, "outcome must be one of"),
        ("outcome", ["ok"], "outcome must be one of"),
        ("message", 3, "message must be text, it is a number"),
        ("message", None, "message must be text, it is null"),
        ("values", [], "values must be a mapping, it is a list"),
        ("values", {"x": math.inf}, "values.x must hold finite numbers"),
        ("values", {"x": deep(MAX_RESULT_DEPTH)}, "nested at most"),
        ("values", {"x": {1: 2}}, "values.x must have texts as keys"),
        ("values", {"x": {1, 2}}, "values.x must be plain JSON data, it holds a set"),
        ("environment", ["A=1"], "environment must be a mapping, it is a list"),
        ("environment", {"A": 3}, "environment.A must be text or None, it is a number"),
        ("environment", {"A": True}, "environment.A must be text or None, it is true or false"),
        ("environment", {"A": "x\0y"}, "environment.A must not hold a NUL character"),
        ("environment", {"A": "\ud800"}, "environment.A must be text that UTF-8 can encode"),
        ("environment", {"A=B": "x"}, "environment must have names that are text without '=' and NUL, it has 'A=B'"),
        ("environment", {"A\0": "x"}, "environment must have names that are text without '=' and NUL, it has"),
        ("environment", {"": "x"}, "environment must have names that are text without '=' and NUL, it has ''"),
        ("environment", {"A": "x" * 3_000_000}, "environment.A must be shorter than"),
        ("kind", "oops", "kind must be one of transient"),
        ("fault", "mine", "fault must be one of user"),
        ("fault", {}, "fault must be one of user"),
        ("hint", 3, "hint must be text, it is a number"),
        ("trace", [], "trace must be text, it is a list"),
        ("retry_after_s", "5", "retry_after_s must be a number, it is text"),
        ("retry_after_s", True, "retry_after_s must be a number"),
        ("retry_after_s", math.nan, "retry_after_s must be a finite number"),
        ("retry_after_s", math.inf, "retry_after_s must be a finite number"),
        ("retry_after_s", 10**400, "retry_after_s must be a finite number"),
        ("exit_code", 0, "exit_code must be a number from 1 to 255"),
        ("exit_code", 256, "exit_code must be a number from 1 to 255"),
        ("exit_code", True, "exit_code must be a whole number"),
        ("exit_code", "7", "exit_code must be a whole number"),
        ("exit_status", 3, "it must not have the field 'exit_status'"),
    ],
)  # fmt: skip
def test_bad_fields(field: str, value: Any, words: str) -> None:
    """Each field has its type and bounds, and the message names the field."""
    with pytest.raises(BadResult) as caught:
        checked(Report, {"outcome": "ok", field: value})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"bytes": "half way"}, {"bytes": True}, {"bytes": -1}, {"bytes": 1.5},
        {"bytes": 10**30}, {"bytes": 1, "total": "2"}, {"bytes": 1, "file": 3},
        {"bytes": 1, "file": "a", "speed": 3},
    ],
)  # fmt: skip
def test_bad_progress(fields: dict[str, Any]) -> None:
    """Counts are whole numbers of bytes, and a file is text."""
    with pytest.raises(BadResult):
        checked(ProgressRecord, fields)


@pytest.mark.parametrize(
    "line",
    [
        b"", b"\xff\xfe", b"7", b"null", b"[]", b"{}", b'{"Report": 3}', b'{"Report": {}}',
        b'{"Report": {"outcome": "ok"}, "Progress": {}}', b'{"Result": {}}',
        b"[" * 100_000, b'{"a":' * 50_000,
        b'{"Report": {"outcome": "ok", "values": {"x": NaN}}}',
        b'{"Report": {"outcome": "ok", "values": {"x": 1e999}}}',
        b'{"Report": {"outcome": "ok", "values": {"x": ' + b"9" * 5000 + b"}}}",
    ],
)  # fmt: skip
def test_bad_lines(line: bytes) -> None:
    """What is no line of ours is refused, whatever it is."""
    with pytest.raises(BadResult):
        read_line(line)


@given(st.dictionaries(st.text(max_size=8), anything, max_size=3), st.data())
def test_whatever_comes(fields: dict[str, Any], data: st.DataObject) -> None:
    """With any field replaced by anything, a line is a record or refused, never another error."""
    good: dict[str, Any] = {"outcome": "failed", "message": "x", "values": {}, "environment": {}, "kind": "timeout",
            "fault": "user", "hint": None, "retry_after_s": 3, "trace": None}  # fmt: skip
    name = data.draw(st.sampled_from(sorted(good)))
    document = {**good, name: data.draw(anything), **fields}
    for kind in ("Report", "ProgressRecord"):
        try:
            record = read_line(json.dumps({kind: document}).encode())
        except BadResult:
            continue
        dump_line(record)


@pytest.mark.parametrize("value", [object(), {1, 2}, deep(5000), b"x", math.nan])
def test_what_cannot_be_sent(value: Any) -> None:
    """Values that are not plain JSON data are refused before they are sent."""
    with pytest.raises(BadResult, match="plain JSON data"):
        dump_line(Report(outcome="ok", values={"x": value}))


def test_too_much() -> None:
    """A result that no line may hold is refused before it is sent."""
    with pytest.raises(BadResult, match="at most 16 MiB"):
        dump_line(Report(outcome="ok", values={"x": "x" * MAX_RECORD_BYTES}))


def test_long_texts_are_cut() -> None:
    """A message that is too long stays a message of its kind."""
    report = checked(Report, {"outcome": "failed", "kind": "timeout", "message": "x" * 10**6})
    assert (report.kind, len(report.message)) == ("timeout", MAX_MESSAGE + 1)


def test_texts_that_cannot_be_encoded() -> None:
    """A message that no sink could write is made one that every sink can."""
    for report in (checked(Report, {"outcome": "ok", "message": "ä \ud800"}), failure("ä \ud800")):
        assert report.message == "ä \\ud800"


def test_variables() -> None:
    """None removes a variable; bytes that are no text pass as Python holds them."""
    assert checked_variable("A", None) is None
    assert checked_variable("A", "\udcff") == "\udcff"


def test_a_failure_is_internal_by_default() -> None:
    """What no one foresaw is ours."""
    report = failure("x")
    assert (report.failed, report.kind, report.fault) == (True, "internal", "unknown")
