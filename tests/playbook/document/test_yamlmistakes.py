"""What a person meant by a text that is not YAML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.errors import PairunError, Source, render
from pairun.playbook.document.reading import read_text
from pairun.playbook.document.yamlmistakes import likely_mistake


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "a:\n  b:\n    c: 1\n   d: 2\n",
            "indent it by 4 spaces, as line 3, or by 2, as line 2; it has 3",
        ),
        (
            "a:\n  - b: 1\n    c: 2\n   - b: 2\n",
            "indent it by 4 spaces, as line 3, or by 2, as line 2; it has 3",
        ),
        (
            "a:\n    b: c\n     d: 1\n",
            "indent it by 4 spaces, as line 2; it has 5",
        ),
        (
            "a:\n    b: 'c'\n     d:\n    - 1\n",
            "indent it by 4 spaces, as line 2; it has 5",
        ),
        (
            "a:\n    b: {c: 1}\n\n     # d\n     d: 1\n",
            "indent it by 4 spaces, as line 2; it has 5",
        ),
        (
            "- a: b\n   c: 1\n",
            "indent it by 2 spaces, as line 1; it has 3",
        ),
        (
            "a: {b: 1}\n c: 1\n",
            "do not indent it, as line 1; it has 1",
        ),
        (
            "a:\n  b:\n  c: 1\n    d: 2\n",
            "indent line 3 by 4 spaces, as this one; it has 2",
        ),
        (
            "a:\n    b: 1\nc: 2\n    d: 3\n",
            "indent line 3 by 4 spaces, as this one; it has 0",
        ),
        ("a:\n  b: c: d\n", "quote the text if it contains ': ', or put the key on its own line"),
        ("a:\n\tb: 1\n", "indent with spaces, not with tabs"),
        (
            'a: "C:\\users"\n',
            "use single quotes, or write the backslash twice: it begins an escape in double quotes",
        ),
        (
            'a: "\\d+"\n',
            "use single quotes, or write the backslash twice: it begins an escape in double quotes",
        ),
        ("a: b: c\n", "quote the text if it contains ': ', or put the key on its own line"),
        ("a: @b\n", "quote text that begins with a special character of YAML"),
        ("- *.py\n", "quote text that begins with a special character of YAML"),
        ("- *a.py -x\n", "quote text that begins with a special character of YAML"),
        ('- "echo hi" && ls\n', """quote the whole text: '"echo hi" && ls'"""),
        ('a: "b" c\n', """quote the whole text: '"b" c'"""),
        ("a:\n  - 'x' | y's\n", "quote the whole text: '''x'' | y''s'"),
    ],
)
def test_the_hint_says_what_was_meant(text: str, hint: str) -> None:
    """Each mistake that people make has its own sentence."""
    with pytest.raises(PairunError) as caught:
        read_text(Source("job", "job.yaml", text))
    (problem,) = caught.value.problems
    assert (problem.id, problem.hint) == ("PR101", hint)


@pytest.mark.parametrize(
    "text",
    [
        'secrets:\n  token: "hunter2-hunter2" x\n',
        'a:\n  password: "hunter2-hunter2" x\n',
        '- "curl https://user:hunter2-hunter2@host/" && ls\n',
    ],
)
def test_no_hint_shows_a_secret(text: str) -> None:
    """A line that may hold one is not quoted."""
    with pytest.raises(PairunError) as caught:
        read_text(Source("job", "job.yaml", text))
    (problem,) = caught.value.problems
    assert problem.hint == "quote the whole text"
    assert "hunter2" not in render(problem)


@given(st.text(), st.lists(st.text()), st.integers(1, 50), st.integers(1, 50))
def test_any_error_has_a_hint_or_none(
    problem: str, lines: list[str], line: int, column: int
) -> None:
    """Whatever the parser says, and wherever, nothing is raised."""
    hint = likely_mistake(problem, lines, line, column)
    assert hint is None or hint
