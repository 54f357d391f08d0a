"""Templates: what one statement of a program prints has one template, and a pattern of its own."""

from __future__ import annotations

import re

import pytest

from pairun.diagnose.table import FLAGS
from pairun.learning.templates import pattern_of, template_of, with_other_numbers

SAME = [
    ("reactor 7 scrammed", "reactor 12 scrammed", "reactor <number> scrammed"),
    ("took 1.5s, 2:30 left", "took 10s, 0:03 left", "took <number>s, <number> left"),
    ("cannot read /data/a/b.bin: 5", "cannot read ~/c/d: 61", "cannot read <path>: <number>"),
    ("peer 10.0.0.1:80 left", "peer 10.1.2.3 left", "peer <address> left"),
    ("get https://a.example/x?y=1 fails", "get http://b.example/ fails", "get <address> fails"),
    ("at 0x7ffe12 in f", "at 0xdeadbeef in f", "at <hex> in f"),
    (
        "volume 6f1b2c3d-1111-2222-3333-0123456789ab is gone",
        "volume 00000000-1111-2222-3333-abcdefabcdef is gone",
        "volume <uuid> is gone",
    ),
    ("session Zk3jd92JKd83jdKs9d2x ends", "session aaaaaaaaaaaaaaaaaaaaaaaaa1z ends", "session <id> ends"),
    ("the login ****** is refused", "the login ****** is refused", "the login <secret> is refused"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "template"), SAME, ids=[s[2] for s in SAME])
def test_two_lines_of_one_statement_share_template_and_pattern(
    one: str, other: str, template: str
) -> None:
    """Values are masked, and the pattern of one line matches the other."""
    assert template_of(one) == template_of(other) == template
    assert re.search(pattern_of(one), other, FLAGS)


def test_words_stay_and_signs_of_expressions_are_text() -> None:
    """A pattern matches brackets, dots and stars literally."""
    text = "E (a.b) [x]* c+ | d? ^ $ {e} failed"
    assert re.fullmatch(pattern_of(text), text, FLAGS)
    assert not re.search(pattern_of(text), text.replace(".", "x"), FLAGS)


def test_a_long_line_is_known_by_its_beginning() -> None:
    """A pattern spans few values, whatever the line holds."""
    text = " ".join(f"word {n}" for n in range(200))
    assert pattern_of(text).count("{1,40}") <= 6
    assert re.search(pattern_of(text), text, FLAGS)


def test_other_numbers_make_another_sample() -> None:
    """A line without numbers gets a logger's level instead."""
    assert with_other_numbers("a 19 b") == "a 20 b"
    assert with_other_numbers("a b") == "ERROR: a b"
