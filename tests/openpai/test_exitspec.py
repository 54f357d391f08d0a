"""The cluster's exit spec: Go's regular expressions, and what is wrong with a spec."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.diagnose.words import words_needed
from pairun.errors import PairunError, Problems, Source
from pairun.job.goregex import GO_FLAGS, from_go
from pairun.openpai.exitspec import read_exit_spec
from pairun.runtime.exitmatching import ExitEvidence, match

# Pattern, a text, what Go's regexp finds in it first (None: nothing).
GO = [
    (r"(?i)Command Not Found", "bash: foo: command not found", "command not found"),
    (r"a(?i)b|c", "xC", "C"),
    (r"a(?i)b|c", "AB", None),
    (r"(?i:x)y", "Xy XY", "Xy"),
    (r"end$", "end\n", None),
    (r"(?m)end$", "the end\nof it", "end"),
    (r"a\z", "ba", "a"),
    (r"\Aa", "ba", None),
    (r"a.b", "a\nb", None),
    (r"(?s)a.b", "a\nb", "a\nb"),
    (r"[[:digit:]]+[[:space:]]x", "12 x", "12 x"),
    (r"[]a]+", "]]", "]]"),
    (r"[^]a]+", "]b", "b"),
    (r"\Q(2)\E : out", "error (2) : out", "(2) : out"),
    (r"a{,3}", "a{,3}", "a{,3}"),
    (r"a{2,}?", "aaaa", "aa"),
    (r"(?P<n>a)(?P<m>b)", "ab", "ab"),
    (r"\x{4f60}", "你好", "你"),
    (r"\x41\102", "AB", "AB"),
    (r"\d+", "٣7", "7"),
    (r"\w+", "é_a", "_a"),
    (r"\s", "\v\t", "\t"),
    (r"[^\s]+", "\v", "\v"),
    (r"\bfoo\b", "éfoo", "foo"),
    (r"(?:a|ab)(?:c|bcd)", "abcd", "abcd"),
    (r"(|a)+", "aa", ""),
    (r"x*", "y", ""),
    (r"\.\-\_\/", ".-_/", ".-_/"),
]
REFUSED = ["a**", "a++", "a{2}{3}", "(?=a)", "(?!a)", "(?<=a)b", r"(a)\1", "(a", "a)", "*a", "[a", "a{1001}",
           "a{3,2}", r"\pL", "(?U)a", "(?)", "a\\", r"\8", "[z-a]", r"\x{110000}", "(" * 300 + ")" * 300]  # fmt: skip


@pytest.mark.parametrize(("pattern", "text", "found"), GO)
def test_a_go_pattern_finds_what_go_finds(pattern: str, text: str, found: str | None) -> None:
    """A pattern means in Python what it means in Go."""
    result = re.search(from_go(pattern), text, GO_FLAGS)
    assert (result[0] if result else None) == found


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_go_refuses_is_refused(pattern: str) -> None:
    """A pattern that Go does not compile, or Python cannot say, is refused in words."""
    with pytest.raises(ValueError, match=r".+"):
        from_go(pattern)


@given(
    pattern=st.text(alphabet=r"ab()[]|*+?{},^$.\-:i0dswQEx", max_size=14), text=st.text("ab01 .x\n")
)
def test_any_text_is_translated_or_refused(pattern: str, text: str) -> None:
    """No pattern does anything but translate or raise ValueError; its words never hide a match."""
    try:
        python = from_go(pattern)
    except ValueError:
        return
    words = words_needed(python)
    if re.search(python, text, GO_FLAGS) and words is not None:
        assert any(word in text.lower() for word in words)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(?i)Out Of Memory", ["out of memory"]),
        ("(error|failure) in .*cuda", ["error", "failure"]),
        ("(foo)?barbar", ["barbar"]),
        ("a|bcd", None),
        (".*", None),
        ("(?:(?:abc)+x)+", ["abc"]),
    ],
)
def test_the_words_of_a_pattern(pattern: str, words: list[str] | None) -> None:
    """A log without any of a pattern's words cannot match it."""
    assert words_needed(from_go(pattern)) == words


def _read(text: str) -> tuple[Mapping[str, Any], Problems]:
    problems = Problems()
    source = Source("runtime-exit-spec.yaml", "cluster", text)
    return read_exit_spec(source, problems).data, problems


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ("- {containerExitCode: 1, patterns: [{exitcode: 3}]}", "PR741"),
        ("- {containerExitCode: one, patterns: []}", "PR742"),
        ("- {patterns: [{exitCode: 3}]}", "PR743"),
        ("- {containerExitCode: 128, patterns: [null]}", "PR744"),
        ("- {containerExitCode: 128, patterns: [{userLogRegex: 'a**'}]}", "PR745"),
    ],
)
def test_what_is_wrong_with_a_spec_is_said(text: str, id_: str) -> None:
    """A mistake is named with its place, and its entry counts for nothing."""
    spec, problems = _read(text)
    assert [p.id for p in problems] == [id_]
    assert next(iter(problems)).place is not None
    assert spec["specs"] == []


GOOD = """\
- containerExitCode: 130
  patterns: [{exitCode: 130}]
"""
LAST = """
# the last one
- containerExitCode: 137
  patterns: [{exitCode: 137}]
"""
# A slip, the error id, and the line of the slip in the file (GOOD has two lines).
SLIPS = {
    "wrong type": ("- containerExitCode: one\n  patterns: [{exitCode: 3}]", "PR742", 3),
    "code too large": ("- containerExitCode: 900\n  patterns: [{exitCode: 3}]", "PR742", 3),
    "missing code": ("- patterns: [{exitCode: 3}]", "PR743", 3),
    "missing patterns": ("- containerExitCode: 1", "PR743", 3),
    "patterns that are text": ("- containerExitCode: 1\n  patterns: exitCode", "PR742", 4),
    "no mapping": ("- 137", "PR742", 3),
    "unknown key": ("- containerExitCode: 1\n  patterns: [{exitcode: 3}]", "PR741", 4),
    "pattern of a wrong type": ("- containerExitCode: 1\n  patterns: [exitCode]", "PR742", 4),
    "duplicate key": (
        "- containerExitCode: 1\n  patterns: [{exitCode: 3}]\n  containerExitCode: 2", "PR106", 5,
    ),
    "duplicate key of a pattern": (
        "- containerExitCode: 1\n  patterns:\n  - exitCode: 3\n    exitCode: 4", "PR106", 6,
    ),
    "bad regex": ("- containerExitCode: 1\n  patterns: [{userLogRegex: 'a**'}]", "PR745", 4),
    "bad YAML": ("- containerExitCode: 1\n  patterns: [{exitCode: 3}", "PR101", 3),
    "unclosed quote": ("- containerExitCode: 1\n  patterns: [{userLogRegex: 'a}]", "PR101", 3),
    "tab": ("- containerExitCode: 1\n\tpatterns: [{exitCode: 3}]", "PR101", 4),
    "unknown anchor": ("- containerExitCode: 1\n  patterns: *absent", "PR101", 4),
}  # fmt: skip


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_costs_one_entry(slip: str) -> None:
    """The other entries hold, and the problem names the line."""
    entry, id_, line = SLIPS[slip]
    spec, problems = _read(f"{GOOD}{entry}\n{LAST}")
    assert [entry["code"] for entry in spec["specs"]] == [130, 137]
    (problem,) = problems
    assert problem.place is not None
    assert problem.id == id_
    assert line in {problem.place.line, *(place.line for _, place in problem.also)}
    assert "pairun skips" in problem.message


def test_a_bad_pattern_costs_no_other_pattern_of_its_entry() -> None:
    """OpenPAI's entries have up to 13 patterns."""
    spec, problems = _read(
        "- {containerExitCode: 1, patterns: [{exitcode: 3}, {exitCode: 4}, {userLogRegex: '('}]}"
    )
    assert [p["exitCode"] for p in spec["specs"][0]["patterns"]] == [4]
    assert [p.id for p in problems] == ["PR741", "PR745"]


@pytest.mark.parametrize("text", ["- [", "{{{", "containerExitCode: 1\npatterns: []", "", "none"])
def test_a_file_without_entries_is_refused(text: str) -> None:
    with pytest.raises(PairunError):
        _read(text)


def test_the_first_entry_that_matches_wins_and_every_part_must() -> None:
    """Entries count in order; a pattern needs its exit code and both logs."""
    spec, problems = _read(
        """
- containerExitCode: 200
  patterns: [{exitCode: 2, userLogRegex: boom}]
- containerExitCode: 201
  patterns: [{userLogRegex: boom, platformLogRegex: told}, {exitCode: 9}]
- containerExitCode: 202
  patterns: [{userLogRegex: boom}]
"""
    )
    assert not problems.errors
    for code, platform, wanted in ((2, b"", 200), (1, b"told", 201), (9, b"", 201), (1, b"", 202)):
        found = match(spec, ExitEvidence(code, b"it went boom", platform, double_ecc=False))
        assert found.code == wanted


def test_an_expression_that_runs_away_is_stopped_and_named() -> None:
    """It does not match, is named as the cluster wrote it, and later entries still count."""
    spec, _ = _read(
        """
- containerExitCode: 200
  patterns: [{userLogRegex: '(x+x+)+y'}]
- containerExitCode: 201
  patterns: [{exitCode: 1}]
"""
    )
    evidence = ExitEvidence(1, b"x" * 200 + b" y" + b"x" * 200, b"", double_ecc=False)
    found = match(spec, evidence)
    assert (found.code, found.stopped) == (201, ("(x+x+)+y",))
