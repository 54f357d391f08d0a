"""The contract of modules: durations, arguments, their schema, and building from plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.contract.arguments import arguments, arguments_schema, build
from pairun.module import (
    CheckModule,
    Conflict,
    Duration,
    Failure,
    Mode,
    Permanent,
    Secret,
    TimedOut,
    Transient,
    arg,
    define,
    format_duration,
    parse_duration,
    reveal,
)


@define
class Everything(CheckModule):
    """Has an argument of every type."""

    text: str = arg("A text.")
    count: int = arg("An integer.", default=1)
    share: float = arg("A number.", default=0.5)
    on: bool = arg("A switch.", default=False)
    wait: Duration = arg("A duration.", default=Duration(1.0))
    mode: Mode = arg("A mode.", default=Mode(0o644))
    token: str | Secret = arg("A secret, perhaps.", default="")
    key: Secret | None = arg("A secret.", default=None)
    kind: Literal["a", "b"] = arg("A word.", default="a")
    names: list[str] = arg("A list.", factory=list)
    ports: dict[str, list[int]] = arg("A mapping.", factory=dict)
    maybe: str | None = arg("A text or nothing.", default=None)
    anything: Any = arg("Anything.", default=None)

    def require(self) -> Iterator[str]:
        """One combination cannot work."""
        if self.on and self.count == 0:
            yield "'on' needs a count"


# --- durations -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("10s", 10), ("1h30m", 5400), ("2d", 172800), ("1.5h", 5400), ("0s", 0)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    """Units from milliseconds to days, alone and together."""
    assert parse_duration(text) == Duration(seconds)


@pytest.mark.parametrize(
    "text", ["", "10", "10 s", "s", "-1s", "1s!", "1w", "1S", " 1s", "1e3s", "1s\n"]
)
def test_other_texts_are_no_durations(text: str) -> None:
    """Without a unit, with a sign, with spaces: none of it is guessed."""
    assert parse_duration(text) is None


@given(st.integers(0, 10_000_000))
def test_whole_seconds_survive_a_round_trip(seconds: int) -> None:
    """What is written for people reads back as the same duration."""
    assert parse_duration(format_duration(seconds)) == Duration(seconds)


@given(st.floats(0.001, 59.0))
def test_short_durations_are_written_to_three_digits(seconds: float) -> None:
    """Below a minute the error of the written form is under one percent."""
    written = parse_duration(format_duration(seconds))
    assert written is not None
    assert abs(written - seconds) <= seconds / 100


@given(st.floats(0, 1e9))
def test_every_duration_can_be_written(seconds: float) -> None:
    """Whatever is written is a duration."""
    assert parse_duration(format_duration(seconds)) is not None


@given(st.text(max_size=12))
def test_no_text_breaks_the_reader(text: str) -> None:
    """Any text is a duration of at least nothing, or None."""
    found = parse_duration(text)
    assert found is None or found >= 0


# --- arguments -----------------------------------------------------------------------------------


def test_arguments_are_described() -> None:
    """Name, documentation, default and whether one is required, in order of definition."""
    found = {a.name: a for a in arguments(Everything)}
    assert next(iter(found)) == "text"
    assert [a.name for a in found.values() if a.required] == ["text"]
    assert found["count"].doc == "An integer."
    assert (found["count"].default, found["names"].default) == (1, [])


def test_plain_data_becomes_typed_values() -> None:
    """Durations, modes and secrets are read; the record is frozen."""
    made, problems = build(
        Everything,
        {
            "text": "x", "share": 1, "wait": "1m", "mode": "0600", "token": Secret("t"),
            "key": "k", "kind": "b", "names": ["a"], "ports": {"p": [1]}, "anything": {"a": [None]},
        },
    )  # fmt: skip
    assert problems == []
    assert isinstance(made, Everything)
    assert (made.share, made.wait, made.mode, made.kind) == (1.0, 60.0, 0o600, "b")
    assert isinstance(made.share, float)
    assert (reveal(made.token), made.key, made.anything) == ("t", Secret("k"), {"a": [None]})
    assert (made.names, made.ports, made.maybe) == (["a"], {"p": [1]}, None)
    with pytest.raises(AttributeError):
        made.text = "y"  # type: ignore[misc]


WRONG: list[tuple[dict[str, Any], tuple[str | int, ...], str, str]] = [
    ({}, (), "PR606", "the argument 'text' is missing"),
    ({"txet": "x", "text": "x"}, ("txet",), "PR604", "there is no argument 'txet'"),
    ({"text": 1}, ("text",), "PR605", "'text' must be text, not 1"),
    ({"text": None}, ("text",), "PR605", "'text' must be text, not null"),
    ({"text": True}, ("text",), "PR605", "'text' must be text, not true"),
    ({"text": Secret("hunter2")}, ("text",), "PR605", "'text' must be text, not a secret"),
    ({"text": "x", "count": True}, ("count",), "PR605", "'count' must be integer, not true"),
    ({"text": "x", "count": "1"}, ("count",), "PR605", "'count' must be integer, not '1'"),
    ({"text": "x", "share": True}, ("share",), "PR605", "must be number, not true"),
    ({"text": "x", "share": 10**400}, ("share",), "PR605", "must be number, not 1000"),
    ({"text": "x", "share": float("nan")}, ("share",), "PR605", "must be number, not nan"),
    ({"text": "x", "on": 1}, ("on",), "PR605", "'on' must be true or false, not 1"),
    ({"text": "x", "on": "yes"}, ("on",), "PR605", "'on' must be true or false, not 'yes'"),
    ({"text": "x", "wait": 600}, ("wait",), "PR210", "'wait' must be duration, not 600"),
    ({"text": "x", "wait": "10"}, ("wait",), "PR210", "'wait' must be duration, not '10'"),
    ({"text": "x", "mode": 420}, ("mode",), "PR211", "'mode' must be file mode, not 420"),
    ({"text": "x", "mode": "0999"}, ("mode",), "PR211", "must be file mode, not '0999'"),
    ({"text": "x", "kind": "c"}, ("kind",), "PR605", "'kind' must be a | b, not 'c'"),
    ({"text": "x", "names": "a"}, ("names",), "PR605", "'names' must be list of text, not 'a'"),
    ({"text": "x", "names": ["a", 2]}, ("names", 1), "PR605", "'names.1' must be text, not 2"),
    ({"text": "x", "ports": []}, ("ports",), "PR605", "must be mapping to list of integer"),
    ({"text": "x", "ports": {"p": ["1"]}}, ("ports", "p", 0), "PR605", "'ports.p.0' must be"),
    ({"text": "x", "token": 5}, ("token",), "PR605", "'token' must be text, not a number"),
    ({"text": "x", "maybe": [1]}, ("maybe",), "PR605", "'maybe' must be text, not a list"),
    ({"text": "x", "on": True, "count": 0}, ("on",), "PR605", "'on' needs a count"),
]


@pytest.mark.parametrize(("values", "path", "id_", "says"), WRONG, ids=lambda v: str(v)[:40])
def test_what_does_not_fit_is_said(
    values: dict[str, Any], path: tuple[str | int, ...], id_: str, says: str
) -> None:
    """Each problem has its path, its id and its sentence; a secret is not in it."""
    made, problems = build(Everything, values)
    assert made is None
    assert [(p.path, p.id) for p in problems] == [(path, id_)]
    assert says in problems[0].message
    assert "hunter2" not in str(problems)


def test_hints_name_the_nearest_right_thing() -> None:
    """A number of seconds, an unquoted mode and a misspelt name get the correction."""
    _, problems = build(Everything, {"text": 7, "wait": 600, "mode": 420, "cuont": 1, "kind": "A"})
    hints = {p.path[0]: p.hint or "" for p in problems}
    assert "'600s'" in hints["wait"]
    assert "quote it" in hints["mode"]
    assert "'7'" in hints["text"]
    assert "count" in hints["cuont"]


@pytest.mark.parametrize("kind", ["str", "str | Secret | None", "str | Secret | bool | None"])
def test_a_number_may_be_a_password(kind: str) -> None:
    """Neither sentence nor hint has it."""
    made: Any = define(type("Login", (), {"__annotations__": {"password": eval(kind)}}))
    _, (problem,) = build(made, {"password": 271828})
    assert problem.hint == "quote it"
    assert "271828" not in str(problem)


def test_all_problems_are_found_at_once() -> None:
    """One wrong argument does not hide the next."""
    _, problems = build(Everything, {"count": "x", "names": [1, 2], "wait": 1})
    assert len(problems) == 5


def test_null_returns_to_the_default() -> None:
    """Null is the way back to a default, as in every layer."""
    made, problems = build(Everything, {"text": "x", "count": None, "names": None, "wait": None})
    assert problems == []
    assert isinstance(made, Everything)
    assert (made.count, made.names, made.wait) == (1, [], 1.0)


def test_pending_arguments_are_not_looked_at() -> None:
    """What only the run can tell is neither missing nor wrong; the others are checked."""
    assert build(Everything, {"count": "{{ x }}"}, frozenset({"text", "count"})) == (None, [])
    _, problems = build(Everything, {"on": 3}, frozenset({"text"}))
    assert [p.path for p in problems] == [("on",)]


def test_a_secret_shows_nowhere() -> None:
    """Neither a secret nor a module that holds one prints it."""
    made, _ = build(Everything, {"text": "x", "token": Secret("hunter2"), "key": "hunter3"})
    assert "hunter" not in repr(made) + str(made) + f"{Secret('hunter2')} {Secret('hunter2')!r}"
    assert Secret("a") == Secret("a") != Secret("b")
    assert len({Secret("a"), Secret("a")}) == 1


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = st.sampled_from([a.name for a in arguments(Everything)])


@given(st.dictionaries(FIELDS, PLAIN, max_size=6))
def test_building_never_breaks_and_agrees_with_the_schema(values: dict[str, Any]) -> None:
    """Any plain data is a module or problems; what the builder takes, the schema takes too."""
    made, problems = build(Everything, values)
    assert (made is None) == bool(problems)
    if made is not None:
        # null returns to the default, which no schema of one value can say
        given_values = {k: v for k, v in values.items() if v is not None}
        jsonschema.validate(given_values, arguments_schema(Everything))


def test_the_schema_is_one() -> None:
    """The schema is valid, knows what is required, and allows an expression anywhere."""
    schema = arguments_schema(Everything)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["text"]
    assert schema["properties"]["count"]["description"] == "An integer."
    jsonschema.validate({"text": "x", "count": "{{ n }}", "ports": "{{ p }}"}, schema)
    for wrong in ({}, {"text": "x", "nope": 1}, {"text": "x", "wait": "10"}, {"text": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


@pytest.mark.parametrize(
    ("cls", "kind"),
    [
        (Transient, "transient"),
        (TimedOut, "timeout"),
        (Conflict, "conflict"),
        (Permanent, "permanent"),
    ],
)
def test_failures_carry_what_the_executor_needs(cls: type[Failure], kind: str) -> None:
    """Kind, fault, advice and a wait that the other side asked for."""
    failure = cls("no", fault="platform", hint="wait", retry_after_s=3)
    assert (failure.kind, failure.fault, failure.hint) == (kind, "platform", "wait")
    assert (str(failure), failure.retry_after_s) == ("no", 3)
