"""Records: construction, equality, immutability, copies."""

from __future__ import annotations

import copy
import pickle
from typing import Any, ClassVar

import pytest

from pairun.base.records import REQUIRED, as_dict, field, fields, is_record, record, replace


@record
class Point:
    """A frozen record with a default, a factory and a class variable."""

    unit: ClassVar[str] = "m"

    x: int
    y: int = 0
    tags: list[str] = field(factory=list)


@record
class Named(Point):
    """A record with the fields of another before its own."""

    name: str
    key: str = field(default="k", shown=False)


@record(kw_only=False)
class Pair:
    """A record whose values have an order."""

    a: Any
    b: Any = None


@record(frozen=False)
class Counter:
    """A record that may change."""

    n: int = 0


@record(frozen=False, eq=False)
class Draft:
    """A record with an identity."""

    n: int = 0

    def __repr__(self) -> str:
        return "a draft"


def test_a_record_has_its_values_and_defaults() -> None:
    """A factory makes a new default for each instance."""
    one, other = Point(x=1), Point(x=1)
    assert (one.x, one.y, one.tags, one.unit) == (1, 0, [], "m")
    assert one.tags is not other.tags


def test_fields_are_inherited_in_order() -> None:
    """The fields of the base come first; a class variable is no field."""
    assert list(fields(Named)) == ["x", "y", "tags", "name", "key"]
    assert fields(Point)["x"].default is REQUIRED
    assert fields(Point)["tags"].make() == []
    assert fields(Point)["y"].type == "int"


@pytest.mark.parametrize(
    ("kind", "given", "values", "why"),
    [
        (Point, (), {}, "Point: without x"),
        (Point, (), {"x": 1, "z": 2, "w": 3}, "Point: no field w, z"),
        (Pair, (1, 2, 3), {}, "Pair: too many values"),
        (Pair, (1,), {"a": 2}, "Pair: too many values"),
    ],
)
def test_wrong_values_are_named(
    kind: Any, given: tuple[int, ...], values: dict[str, int], why: str
) -> None:
    """A missing value and an unknown field are errors."""
    with pytest.raises(TypeError, match=why):
        kind(*given, **values)


def test_values_in_order_need_permission() -> None:
    """Only a record that is not `kw_only` takes values in the order of its fields."""
    assert Pair(1, b=2) == Pair(a=1, b=2) == Pair(1, 2)
    positional: Any = Point
    with pytest.raises(TypeError):
        positional(1)


def test_equality_needs_the_same_class_and_values() -> None:
    """A frozen record has a hash; one that may change has none."""
    assert Pair(1, 2) == Pair(1, 2)
    assert hash(Pair(1, 2)) == hash(Pair(1, 2))
    assert Pair(1) != Pair(2)
    assert Point(x=1) != Named(x=1, name="n")
    other: Any = (1, None)
    assert Pair(1) != other
    assert Counter(n=1) == Counter(n=1)
    with pytest.raises(TypeError):
        hash(Counter())


def test_a_record_with_an_identity_equals_only_itself() -> None:
    """``eq=False`` keeps the equality, the hash and the methods of the class."""
    draft = Draft()
    assert draft != Draft()
    assert len({draft, Draft()}) == 2
    assert repr(draft) == "a draft"


def test_a_frozen_record_does_not_change() -> None:
    """Neither setting nor deleting works."""
    one: Any = Point(x=1)
    with pytest.raises(AttributeError, match="Point is frozen: x"):
        one.x = 2
    with pytest.raises(AttributeError):
        del one.x
    counter = Counter()
    counter.n += 1
    assert counter.n == 1


def test_a_copy_has_the_changes() -> None:
    """`replace` checks the names; the standard library's copies are equal."""
    named = Named(x=1, name="n")
    assert replace(named, y=2) == Named(x=1, y=2, name="n")
    with pytest.raises(TypeError, match="no field z"):
        replace(named, z=1)
    for other in (copy.copy(named), copy.deepcopy(named), pickle.loads(pickle.dumps(named))):
        assert other == named


def test_the_text_of_a_record_omits_what_is_not_shown() -> None:
    """A field with a secret is not in `repr`."""
    assert repr(Named(x=1, name="n")) == "Named(x=1, y=0, tags=[], name='n')"


def test_records_become_mappings() -> None:
    """Records inside mappings, lists and tuples, too."""
    nested = Pair([Pair(1)], {"k": (Counter(),)})
    assert as_dict(nested) == {"a": [{"a": 1, "b": None}], "b": {"k": [{"n": 0}]}}
    assert is_record(nested)
    assert is_record(Pair)
    assert not is_record({})
