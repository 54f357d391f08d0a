"""Errors are an interface: stable ids, places, carets, and advice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pairun
from pairun.catalogue import CATALOGUE, RETIRED
from pairun.errors import (
    PairunError,
    Place,
    Problem,
    Problems,
    Source,
    did_you_mean,
    nearest,
    render,
)
from pairun.playbook.document.reading import read_text

PACKAGE = Path(pairun.__file__).parent
TESTS = Path(__file__).parent
_ID = re.compile(r"\bPR\d{3}\b")


def ids_in_code() -> dict[str, set[str]]:
    """Every id that the code raises, and where."""
    found: dict[str, set[str]] = {}
    for path in [*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "modules").glob("*.py")]:
        if path.name == "catalogue.py":
            continue
        for id_ in _ID.findall(path.read_text()):
            found.setdefault(id_, set()).add(path.name)
    return found


def ids_in_tests() -> set[str]:
    """Every id that a test asks for by name, those that list all of them left out."""
    texts = (p.read_text() for p in TESTS.rglob("test_*.py") if p.name != "test_errors.py")
    return {id_ for text in texts for id_ in _ID.findall(text)}


def test_every_id_in_the_code_has_a_meaning() -> None:
    """``pairun doc ID`` knows every id that a person may see."""
    assert ids_in_code().keys() - CATALOGUE.keys() == set()


def test_every_meaning_belongs_to_an_id_in_the_code() -> None:
    """The catalogue promises no error that nobody raises."""
    assert CATALOGUE.keys() - ids_in_code().keys() == set()


def test_no_error_has_a_retired_id() -> None:
    """An id keeps its meaning for ever, also without a feature."""
    assert set(RETIRED).isdisjoint(ids_in_code().keys() | CATALOGUE.keys())


def test_every_id_is_raised_in_a_test() -> None:
    """No error's text goes unread: each id is asked for by at least one test."""
    assert ids_in_code().keys() - ids_in_tests() == set()


def test_every_meaning_has_a_title_and_advice() -> None:
    """A title in a few words, and a sentence about what to do."""
    for id_, kind in CATALOGUE.items():
        assert _ID.fullmatch(id_)
        assert 0 < len(kind.title) < 60
        assert kind.advice.endswith(".")


TEXT = "first: 1\nsecond: [a, b]\n\tthird: x\n"


def place(line: int, column: int, text: str = TEXT) -> Place:
    """A place in a job's text."""
    return Place(Source("job.yaml", "job", text), line, column)


def test_a_problem_is_rendered_with_place_line_caret_and_help() -> None:
    """The whole text that a person reads."""
    also = (("the policy", Place(Source("policy.yaml", "cluster", "job_may: {}\n"), 1, 1)),)
    problem = Problem("PR402", "not so", place(2, 9), "do this", "error", also)
    assert render(problem).splitlines() == [
        "error[PR402]: not so",
        "  --> job.yaml:2:9 (job)",
        "   | second: [a, b]",
        "   |         ^",
        "  --> policy.yaml:1:1 (cluster) the policy",
        "   | job_may: {}",
        "   | ^",
        "  help: do this",
    ]


def test_a_warning_says_that_it_is_one() -> None:
    """And one without a place or help is a single line."""
    assert render(Problem("PR905", "short", severity="warning")) == "warning[PR905]: short"


def test_colours_change_nothing_else() -> None:
    """Without the escape sequences the text is the same."""
    problem = Problem("PR402", "not so", place(2, 9), "do this")
    colored = render(problem, lambda text, *_: f"\033[31m{text}\033[0m")
    assert "\033[31merror[PR402]" in colored
    assert re.sub(r"\033\[\d+m", "", colored) == render(problem)


@given(length=st.integers(0, 300), column=st.integers(1, 300))
def test_a_caret_stands_below_its_character(length: int, column: int) -> None:
    """Also in a line that is too long to be shown whole."""
    text = "".join(chr(ord("a") + n % 26) for n in range(length))
    lines = render(Problem("PR101", "m", place(1, column, text))).splitlines()
    if not text:
        assert len(lines) == 2
        return
    caret = lines[3].index("^")
    assert len(lines[2]) <= 100
    if column <= length:
        assert lines[2][caret] == text[column - 1]


def test_tabs_and_control_characters_do_not_move_the_caret() -> None:
    """A tab is one column, and what a terminal would obey is shown as a sign."""
    lines = render(Problem("PR101", "m", place(1, 4, "a\t\033x"))).splitlines()
    assert lines[2] == "   | a \N{REPLACEMENT CHARACTER}x"
    assert lines[3] == "   |    ^"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("a: 1\nsecrets:\n  b: x\n\n# c\nd: 2\n", {2, 3, 4, 5}),
        ("'secrets':\n  b: x\n'd': 2\n", {1, 2}),
        ('{"a": 1, \n"secrets": {"b":\n"x"}}', {2, 3}),
        ('{"secrets": {}}\n', {1, 2}),
        ("my_secrets: 1\n", set()),
        ("a:\n  secrets: 1\n", set()),
    ],
)
def test_lines_of_secrets_are_in_no_excerpt(text: str, hidden: set[int]) -> None:
    """The block is found by its shape, so also in a text that does not parse."""
    source = Source("job.yaml", "job", text)
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        assert source.line(number) == ("" if number in hidden else line)
    assert source.line(0) == source.line(99) == ""
    source.hide(1, 1)
    assert "-->" in render(Problem("PR101", "m", Place(source, 1, 1)))
    assert source.line(1) == ""


def test_concealed_parts_of_a_text_hide_their_lines() -> None:
    """Every line with such a part is hidden, also one that was shown before; too many hide all."""
    source = Source("f", "job", "a: one11\nb: two22\nc: one11, two22\nd: 4\n")
    assert source.line(2) == "b: two22"
    source.conceal(["one11"])
    assert [source.line(n) for n in (1, 2, 3, 4)] == ["", "b: two22", "", "d: 4"]
    source.conceal(["two22\nd: 4"])
    assert [source.line(n) for n in (1, 2, 3, 4)] == ["", "", "", ""]
    assert source.concealed == {"one11", "two22\nd: 4"}
    many = Source("f", "job", "a: 1\n")
    many.conceal(f"part-{n}" for n in range(300))
    assert many.line(1) == ""


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x85", "\u2028"])
def test_lines_are_counted_as_the_parser_counts_them(end: str) -> None:
    """Whatever ends the lines of a text, a problem shows the line that the parser means."""
    with pytest.raises(PairunError) as e:
        read_text(Source("f", "job", f"a: 1{end}b: 2{end}a: 3{end}"))
    (problem,) = e.value.problems
    assert problem.place is not None
    assert problem.place.line == 3
    assert problem.place.source.line(3) == "a: 3"


def test_problems_come_once_and_in_the_order_of_their_places() -> None:
    """However they were found: by file, line and column; the same one only once."""
    source = Source("f", "job", TEXT)
    problems = Problems()
    for line, column in ((3, 1), (1, 9), (1, 2), (3, 1)):
        problems.error("PR101", f"at {line}:{column}", Place(source, line, column))
    problems.warning("PR905", "no place")
    assert [p.message for p in problems] == ["no place", "at 1:2", "at 1:9", "at 3:1"]
    assert len(problems.errors) == 3
    with pytest.raises(PairunError) as e:
        problems.raise_errors()
    assert [p.message for p in e.value.problems] == ["at 1:2", "at 1:9", "at 3:1"]
    assert str(e.value) == "at 1:2; at 1:9; at 3:1"


def test_warnings_alone_raise_nothing() -> None:
    """Nothing to stop for."""
    problems = Problems()
    problems.warning("PR905", "short")
    problems.raise_errors()
    assert problems
    assert not problems.errors


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("retrys", "retries"),
        ("failurePolicy", "failure_policy"),
        ("exit-codes", "exit_codes"),
        ("RETRIES", "retries"),
        ("banana", None),
        ("", None),
    ],
)
def test_the_nearest_word(word: str, found: str | None) -> None:
    """Slips, other cases, camelCase and dashes find the word; the rest finds none."""
    assert nearest(word, ["retries", "failure_policy", "exit_codes", "timeout"]) == found


def test_a_hint_lists_what_is_known_when_that_is_short() -> None:
    """With no near word, a dozen known ones are shown; of more, none."""
    assert did_you_mean("x", ["b", "a"]) == "known here: a, b"
    assert did_you_mean("x", []) is None
    assert did_you_mean("x", [f"word{n}" for n in range(13)]) is None
