"""Fields of records that others wrote, checked by the type hints of the record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import attrs
import pytest

from pairun.base.fields import BadField, Count, Seconds, between, decode, field_of


class Inner(NamedTuple):
    """A record in a record."""

    after_s: Seconds
    number: int = 0


@attrs.frozen(kw_only=True)
class Other:
    """A record of another form."""

    items: tuple[int, ...]
    more: Mapping[str, Any] = attrs.field(factory=dict)


class Outer(NamedTuple):
    """A record with every kind of field."""

    name: str = ""
    is_set: bool = False
    kind: Literal["a", "b"] = "a"
    codes: Mapping[Literal["x", "y"], Annotated[int, between(0, 255)]] = {}
    steps: Mapping[int, tuple[Inner, ...]] = {}
    only: frozenset[int] | None = None
    either: Inner | Other | None = None
    listed: list[str] | None = None
    huge: Count = 0


@pytest.mark.parametrize(
    ("fields", "record"),
    [
        ({}, Outer()),
        ({"name": "n", "is_set": True, "kind": "b"}, Outer("n", is_set=True, kind="b")),
        ({"codes": {"x": 7}}, Outer(codes={"x": 7})),
        ({"steps": {"15": [{"after_s": 1}], "1": []}}, Outer(steps={15: (Inner(1.0),), 1: ()})),
        ({"only": [1, 2]}, Outer(only=frozenset({1, 2}))),
        ({"listed": ["a"]}, Outer(listed=["a"])),
        ({"only": None, "either": None}, Outer()),
        ({"either": {"after_s": 0}}, Outer(either=Inner(0.0))),
        ({"either": {"items": [3], "more": {"x": [{}]}}},
         Outer(either=Other(items=(3,), more={"x": [{}]}))),
    ],
)  # fmt: skip
def test_a_record(fields: Any, record: Outer) -> None:
    assert decode(Outer, fields) == record


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([], "it must be a mapping, it is a list"),
        ({"nam": "n"}, "it must not have the field 'nam'"),
        ({"name": 3}, "name must be text, it is a number"),
        ({"is_set": 1}, "is_set must be true or false, it is a number"),
        ({"kind": "c"}, "kind must be one of a, b"),
        ({"kind": ["a"]}, "kind must be one of a, b"),
        ({"codes": {"z": 1}}, "codes must be one of x, y"),
        ({"codes": {"x": 256}}, "codes.x must be a number from 0 to 255"),
        ({"codes": {"x": 1.0}}, "codes.x must be a whole number, it is a number"),
        ({"steps": {"TERM": []}}, "steps must be a whole number, it is text"),
        ({"steps": {"1": {}}}, "steps.1 must be a list, it is a mapping"),
        ({"steps": {"1": [{}]}}, "steps.1[0] must have the field 'after_s'"),
        ({"steps": {"1": [{"after_s": -1}]}}, "steps.1[0].after_s must not be negative"),
        ({"steps": {"1": [{"after_s": 10**400}]}}, "steps.1[0].after_s must be a finite number"),
        ({"either": {"items": 3}}, "either.items must be a list, it is a number"),
        ({"either": 3}, "either must be a mapping, it is a number"),
        ({"huge": 10**400}, "huge must be a number from 0 to 9223372036854775807"),
    ],
)
def test_a_bad_field_is_named(fields: Any, words: str) -> None:
    with pytest.raises(BadField) as caught:
        decode(Outer, fields)
    assert str(caught.value) == words


def test_one_field_of_a_record() -> None:
    """A missing or invalid field is the default."""
    record = {"step": 3, "at": "now"}
    assert field_of(record, "step", Count) == 3
    assert field_of(record, "at", Seconds, 0.0) == 0.0
    assert field_of(record, "epoch", Count) is None
