"""Reading playbooks: YAML 1.2 core, bounded, and every value knows its place."""

from __future__ import annotations

import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pairun.errors import PairunError, Source
from pairun.job.jsyaml import JS
from pairun.playbook.document.reading import (
    MAX_DOCUMENT_BYTES,
    MAX_DOCUMENT_DEPTH,
    Node,
    decode,
    load_bytes,
    node_of,
    read_file,
    read_text,
)
from pairun.playbook.document.scalars import CORE as DIALECT
from pairun.playbook.document.scalars import resolve_core

if TYPE_CHECKING:
    from pathlib import Path

    from tests.desk import Desk

# YAML 1.2.2, section 10.3.2.
CORE: list[tuple[str, Any]] = [
    ("", None),
    ("~", None),
    ("null", None),
    ("NULL", None),
    ("nULL", "nULL"),
    ("true", True),
    ("False", False),
    ("yes", "yes"),
    ("no", "no"),
    ("on", "on"),
    ("0", 0),
    ("-19", -19),
    ("+12", 12),
    ("012", 12),
    ("0o14", 12),
    ("0x3A", 58),
    ("0b11", "0b11"),
    ("1_000", "1_000"),
    ("1:30", "1:30"),
    ("0.", 0.0),
    ("-.5", -0.5),
    ("12e03", 12000.0),
    ("-2E+05", -200000.0),
    (".inf", float("inf")),
    ("-.Inf", float("-inf")),
    ("1e", "1e"),
    ("e3", "e3"),
    ("2020-01-02", "2020-01-02"),
    ("0x", "0x"),
    ("0o8", "0o8"),
    (".", "."),
    ("+", "+"),
    ("1.2.3", "1.2.3"),
]


def read(text: str) -> Node:
    """A document in the dialect of playbooks."""
    return read_text(Source("p.yaml", "cluster", text))


def problem_ids(text: str) -> list[str]:
    """The ids of what is wrong with a text."""
    with pytest.raises(PairunError) as e:
        read(text)
    return [p.id for p in e.value.problems]


@pytest.mark.parametrize(("text", "value"), CORE)
def test_a_plain_scalar_follows_the_core_schema(text: str, value: Any) -> None:
    """Each form of scalar has YAML 1.2's type and value."""
    node = read(f"k: {text}").get("k")
    assert node is not None
    assert node.value == value
    assert type(node.value) is type(value)


def test_quoted_and_block_scalars_are_text() -> None:
    """What is quoted or in a block is text, whatever it looks like."""
    document = read("a: '1'\nb: \"true\"\nc: |\n  null\nd: >-\n  1\n  2\n")
    assert document.plain() == {"a": "1", "b": "true", "c": "null\n", "d": "1 2"}


@pytest.mark.parametrize(
    ("text", "value"),
    [("!!str 1", "1"), ("!!int '7'", 7), ("!!float 1", 1.0), ("!!null ''", None)],
)
def test_standard_tags_are_obeyed(text: str, value: Any) -> None:
    """A standard tag decides the type."""
    assert read(f"k: {text}").plain() == {"k": value}


@pytest.mark.parametrize("text", ["!!int x", "!!binary aGk=", "!mine {a: 1}", "!!set {a, b}"])
def test_other_tags_are_errors(text: str) -> None:
    """No tag makes an object, and a tag must fit."""
    assert problem_ids(f"k: {text}") == ["PR107"]


def test_every_duplicate_key_is_reported_with_both_places() -> None:
    """A key that is given twice is an error, and all of them are found at once."""
    with pytest.raises(PairunError) as e:
        read("a: 1\nb: {c: 1, c: 2}\na: 2\n")
    found = [
        (p.id, p.place and p.place[1:], [where[1:] for _, where in p.also])
        for p in e.value.problems
    ]
    assert found == [("PR106", (2, 11), [(2, 5)]), ("PR106", (3, 1), [(1, 1)])]


def test_merge_keys_add_what_is_not_there() -> None:
    """``<<`` takes one mapping or a list of them; the mapping's own keys win, then the first."""
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 3}\nd: {<<: *a}\n"
    document = read(text).plain()
    assert document["c"] == {"x": 3, "y": 1, "z": 2}
    assert document["d"] == {"x": 1, "y": 1}
    assert problem_ids("a: {<<: 1}") == ["PR107"]


def test_an_alias_is_the_same_value_and_keeps_its_place() -> None:
    """An alias has the value of its anchor, and the place where that was written."""
    document = read("a: &x [1, 2]\nb: *x\n")
    b = document.get("b")
    assert b is not None
    assert b.plain() == [1, 2]
    assert b.place[1:] == (1, 4)
    assert b.key is not None
    assert b.key[1:] == (2, 1)


@pytest.mark.parametrize("text", ["a: *x\n", "a: &x [*x]\n", "a: &x {b: *x}\n"])
def test_an_alias_to_nothing_or_to_itself_is_an_error(text: str) -> None:
    """No alias makes a circle."""
    assert problem_ids(text) == ["PR101"]


def test_aliases_cannot_expand_without_bound() -> None:
    """A short text that stands for a billion values is refused at once."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    assert problem_ids("\n".join(lines)) == ["PR105"]


@pytest.mark.parametrize("opening", ["[", "{a: "])
def test_depth_is_bounded(opening: str) -> None:
    """A document may nest to the limit and not beyond, however deep the text goes on."""
    closing = {"[": "]", "{a: ": "}"}[opening]
    read(opening * MAX_DOCUMENT_DEPTH + "1" + closing * MAX_DOCUMENT_DEPTH)
    assert problem_ids(
        opening * (MAX_DOCUMENT_DEPTH + 1) + "1" + closing * (MAX_DOCUMENT_DEPTH + 1)
    ) == ["PR104"]
    assert problem_ids(opening * 100_000) == ["PR104"]


def test_depth_is_bounded_through_aliases() -> None:
    """An alias counts with the levels of what it stands for."""
    half = MAX_DOCUMENT_DEPTH // 2
    inner = "[" * half + "1" + "]" * half
    read(f"[&a {inner}, {'[' * (half - 1)}*a{']' * (half - 1)}]")
    assert problem_ids(f"[&a {inner}, {'[' * half}*a{']' * half}]") == ["PR104"]


def test_size_is_bounded() -> None:
    """A text over the limit is refused without being parsed."""
    with pytest.raises(PairunError) as e:
        decode(b"a" * (MAX_DOCUMENT_BYTES + 1), "big.yaml", "job")
    assert e.value.problems[0].id == "PR103"


def test_bytes_that_are_not_utf8_are_shown_where_they_stand() -> None:
    """The place of a bad byte counts lines and characters before it."""
    with pytest.raises(PairunError) as e:
        decode("a: 1\nb: ü".encode() + b"\xff", "p.yaml", "job")
    problem = e.value.problems[0]
    assert problem.id == "PR102"
    assert problem.place is not None
    assert problem.place[1:] == (2, 5)


def test_a_byte_order_mark_is_allowed(tmp_path: Path) -> None:
    """A file that an editor marked as UTF-8 reads as without the mark."""
    path = tmp_path / "p.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    document = read_file(str(path), "cluster")
    assert document.plain() == {"a": 1}
    assert document.place[1:] == (1, 1)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    """A file that cannot be opened is a problem with the system's reason."""
    with pytest.raises(PairunError, match="No such file"):
        load_bytes(str(tmp_path / "none.yaml"))


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """``-`` reads standard input."""
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"a: 1\n")))
    assert load_bytes("-") == b"a: 1\n"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a:\n\tb: 1\n", "tabs"),
        ("a: b: c\n", "quote"),
        ("a: @b\n", "quote"),
        ("a: *b\n", "anchor"),
    ],
)
def test_common_slips_come_with_advice(text: str, hint: str) -> None:
    """What goes wrong most often is explained."""
    with pytest.raises(PairunError) as e:
        read(text)
    assert hint in (e.value.problems[0].hint or "")


def test_one_document_only() -> None:
    """A second document is an error; an empty text is null."""
    assert problem_ids("a: 1\n---\nb: 2\n") == ["PR109"]
    assert read("").value is None
    assert read("# nothing\n").value is None


def test_a_key_must_be_a_scalar() -> None:
    """Collections are no keys; other scalars become the text they print as."""
    assert problem_ids("? [a]\n: 1\n") == ["PR107"]
    assert read("1: a\ntrue: b\n").plain() == {"1": "a", "true": "b"}


def test_paths_lead_to_nodes() -> None:
    """`at` follows keys and indices, and says None where there is nothing."""
    document = read("a: [{b: 1}]\n")
    found = document.at(("a", 0, "b"))
    assert found is not None
    assert found.value == 1
    assert document.at(("a", 1)) is None
    assert document.at(("a", "b")) is None
    assert document.at(("x", 0)) is None
    assert node_of({"a": [1, (2,)]}, document.place).plain() == {"a": [1, [2]]}


def test_a_quoted_merge_key_is_a_name() -> None:
    """Only a plain `<<` merges."""
    assert read("'<<': null\n\"a\": 1\n").plain() == {"<<": None, "a": 1}
    assert read("<<: {b: 2}\na: 1\n").plain() == {"b": 2, "a": 1}
    assert read("!!str <<: {b: 2}\na: 1\n").plain() == {"<<": {"b": 2}, "a": 1}
    assert read("a: <<\nb: {c: <<, d: 1}\n").plain() == {"a": "<<", "b": {"c": "<<", "d": 1}}
    assert read("[<<, {a: 1}]").plain() == ["<<", {"a": 1}]


words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=20)
trees = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=20,
)


@given(trees, st.booleans())
def test_what_yaml_wrote_reads_back(tree: Any, flow: bool) -> None:
    """A tree of plain data that another tool wrote comes back the same."""
    text = yaml.safe_dump({"k": tree}, allow_unicode=True, default_flow_style=flow)
    assert read(text).plain() == {"k": tree} or _differs_by_schema(tree)


def _differs_by_schema(tree: Any) -> bool:
    """Whether a text in the tree is plain to YAML 1.1 and something else to YAML 1.2."""
    if isinstance(tree, dict):
        return any(_differs_by_schema(t) for pair in tree.items() for t in pair)
    if isinstance(tree, list):
        return any(_differs_by_schema(t) for t in tree)
    return isinstance(tree, str) and (tree == "" or resolve_core(tree) != tree)


identifiers = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
plain_trees = st.recursive(
    identifiers,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(identifiers, inner, min_size=1, max_size=3)
    ),
    max_leaves=15,
)


@given(st.dictionaries(identifiers, plain_trees, min_size=1, max_size=4), st.booleans())
def test_every_scalar_and_key_stands_at_its_place(tree: Any, flow: bool) -> None:
    """Line and column of every scalar, and of every key, point at its text."""
    text = yaml.safe_dump(tree, default_flow_style=flow, width=40)
    lines = text.split("\n")

    def check(node: Node) -> None:
        for key, child in node.items():
            assert child.key is not None
            assert lines[child.key.line - 1][child.key.column - 1 :].lstrip("'\"?").startswith(key)
            check(child)
        for element in node.elements():
            check(element)
        if isinstance(node.value, str):
            shown = lines[node.place.line - 1][node.place.column - 1 :]
            assert shown.lstrip("'\"").startswith(node.value)

    check(read(text))


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    """Any text is read or refused with a place, never with another exception."""
    for dialect in (DIALECT, JS):
        try:
            read_text(Source("p.yaml", "job", text), dialect)
        except PairunError as e:
            assert all(p.place is not None and p.place.line >= 1 for p in e.problems)


def test_a_key_that_yaml_took_for_a_mapping(desk: Desk) -> None:
    """An expression without quotes comes with the quotes."""
    with pytest.raises(PairunError) as e:
        desk.node("name: {{job.name}}\n")
    assert e.value.problems[0].hint == "quote it: '{{ job.name }}'"
