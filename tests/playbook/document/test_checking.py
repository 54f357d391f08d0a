"""Trees against schemas: every violation in words, at its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.contract.kinds import shown
from pairun.errors import Place, Source
from pairun.module import Secret
from pairun.playbook.document.checking import Format, violations
from pairun.playbook.document.reading import Node, node_of

if TYPE_CHECKING:
    from tests.desk import Desk

FORMAT = Format("PR502", "PR503", "PR504")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["name", "kind"],
    "additionalProperties": False,
    "patternProperties": {"^x-": {}},
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 4},
        "kind": {"enum": ["fast", "slow"]},
        "version": {"const": 2},
        "count": {"type": ["integer", "null"], "minimum": 1, "maximum": 9},
        "list": {"type": "array", "minItems": 1, "items": {"type": "number"}},
        "map": {"type": "object", "minProperties": 1, "propertyNames": {"enum": ["a", "b"]}},
        "choice": {"anyOf": [{"const": "*"}, {"type": "array", "items": {"type": "string"}}]},
        "pattern": {"type": "string", "pattern": "^a"},
    },
}


@pytest.mark.parametrize(
    ("text", "id_", "caret", "message"),
    [
        ("name: abc\nkind: fast\nx-more: 1\n", "", "", ""),
        ("name: abc\n", "PR504", "name: abc", "'kind' is missing"),
        ("name: abc\nkind: fast\ncuont: 1\n", "PR502", "cuont", "there is no key 'cuont' here"),
        ("name: a\nkind: fast\n", "PR503", "a", "'name' must be at least 2 character, not 'a'"),
        ("name: abcde\nkind: fast\n", "PR503", "abcde", "'name' must be at most 4 characters, not 'abcde'"),
        ("name: abc\nkind: fats\n", "PR503", "fats", "'kind' must be one of fast, slow, not 'fats'"),
        ("name: abc\nkind: fast\nversion: 3\n", "PR503", "3", "'version' must be 2, not 3"),
        ("name: abc\nkind: fast\ncount: x\n", "PR503", "x", "'count' must be a whole number or null, not 'x'"),
        ("name: abc\nkind: fast\ncount: 0\n", "PR503", "0", "'count' must be at least 1, not 0"),
        ("name: abc\nkind: fast\ncount: 10\n", "PR503", "10", "'count' must be at most 9, not 10"),
        ("name: abc\nkind: fast\nlist: []\n", "PR503", "[]", "'list' must not be empty"),
        ("name: abc\nkind: fast\nlist: [1, true]\n", "PR503", "true", "'list[1]' must be a number, not true"),
        ("name: abc\nkind: fast\nmap: {c: 1}\n", "PR503", "c: 1", "'c' is not allowed as a key here"),
        ("name: abc\nkind: fast\nmap: {}\n", "PR503", "{}", "'map' must not be empty"),
        ("name: abc\nkind: fast\nchoice: b\n", "PR503", "b", "'choice' must be '*' or a list, not 'b'"),
        ("name: abc\nkind: fast\nchoice: [1]\n", "PR503", "1", "'choice[0]' must be text, not 1"),
        ("name: abc\nkind: fast\npattern: b\n", "PR503", "b", "'pattern' must be text that matches ^a, not 'b'"),
        ("[a]\n", "PR503", "[a]", "'the document' must be a mapping, not a list"),
    ],
)  # fmt: skip
def test_a_violation(desk: Desk, text: str, id_: str, caret: str, message: str) -> None:
    """One violation is one sentence about what stands there, with the caret on it."""
    found = list(violations(desk.node(text), SCHEMA, FORMAT))
    assert [(p.id, p.message) for p in found] == ([(id_, message)] if id_ else [])
    for p in found:
        assert desk.at(p.place).startswith(caret)


def test_a_value_without_a_text_is_shown() -> None:
    node = node_of({"name": "abc", "kind": "fats"}, Place(Source("f", "job", ""), 1, 1))
    (problem,) = violations(node, SCHEMA, FORMAT)
    assert problem.message == "'kind' must be one of fast, slow, not 'fats'"


def test_all_violations_are_found_at_once(desk: Desk) -> None:
    """A tree with four mistakes has four problems."""
    node = desk.node("name: a\nkind: fats\nlist: [x, y]\n")
    assert len(list(violations(node, SCHEMA, FORMAT))) == 4


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Secret("hunter2"), "a secret"),
        ({}, "a mapping"),
        ([1], "a list"),
        (None, "null"),
        (True, "true"),
        (5, "5"),
        ("x" * 99, "'" + "x" * 37 + "...'"),
    ],
)
def test_a_value_in_a_message(value: object, text: str) -> None:
    """Short, in YAML's words, and never a secret."""
    assert shown(value) == text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=12,
    )
)  # fmt: skip
def test_any_tree_is_checked_without_a_crash(value: Any) -> None:
    """Whatever a file holds, checking it ends in problems with places."""
    node: Node = node_of(value, Place(Source("f", "job", ""), 1, 1))
    for p in violations(node, SCHEMA, FORMAT):
        assert p.place is not None
        assert p.message
