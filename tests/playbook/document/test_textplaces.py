"""A part of a text has the line and column where the YAML shows it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.errors import Source
from pairun.playbook.document.reading import read_text
from pairun.playbook.document.textplaces import place_in

FORMS = [
    ("a: one MARK", 1, 8),
    ("a: 'one MARK'", 1, 9),
    ('a: "one MARK"', 1, 9),
    ("a: |\n  one\n  MARK\n", 3, 3),
    ("a: |\n  one\n    two MARK\n", 3, 9),
    ("a: |-\n\n  MARK", 3, 3),
    ("a: >\n  one\n  two MARK\n", 3, 7),
    ("a: one\n  two MARK\n", 2, 7),
    ('a: "one\\n MARK"', 1, 11),
    ('{"a": "x\\ny MARK"}', 1, 13),
    ("a:\n  - b\n  - |\n    MARK\n", 4, 5),
    ("a: |\r\n  one\r\n  MARK\r\n", 3, 3),
]


@pytest.mark.parametrize(("text", "line", "column"), FORMS, ids=[repr(f[0]) for f in FORMS])
def test_where_a_part_stands(text: str, line: int, column: int) -> None:
    """In every form in which YAML writes a text."""
    node = read_text(Source("f.yaml", "job", text)).get("a")
    assert node is not None
    node = node.elements()[-1] if node.elements() else node
    place = place_in(node.place, node.value, node.value.index("MARK"))
    assert (place.line, place.column) == (line, column)


def test_a_part_that_no_line_shows() -> None:
    """The text itself is the place of what an escape hides."""
    node = read_text(Source("f.yaml", "job", 'a: "\\x4dARK"')).get("a")
    assert node is not None
    assert place_in(node.place, node.value, 0) == node.place
    assert place_in(node.place, node.value, 99) == node.place


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"])), st.integers(-1, 50))
def test_any_text_has_a_place(text: str, offset: int) -> None:
    """Whatever the text holds, the place is in the file."""
    source = Source("f.json", "job", json.dumps({"a": text}))
    node = read_text(source).get("a")
    assert node is not None
    place = place_in(node.place, node.value, offset)
    assert 1 <= place.line <= source.text.count("\n") + 1
    assert 1 <= place.column <= len(source.text) + 1
