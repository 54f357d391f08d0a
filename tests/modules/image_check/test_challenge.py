"""WWW-Authenticate headers are read as RFC 9110 says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.modules.image_check.conftest import (
    Part,
)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], []),
        ([""], []),
        (["Basic"], [("basic", {})]),
        (['Basic realm="a"'], [("basic", {"realm": "a"})]),
        (['BASIC Realm = "a"'], [("basic", {"realm": "a"})]),
        (["Basic realm=a"], [("basic", {"realm": "a"})]),
        (
            ['Bearer realm="https://a/t",service="s",scope="repository:a/b:pull,push"'],
            [
                (
                    "bearer",
                    {
                        "realm": "https://a/t",
                        "service": "s",
                        "scope": "repository:a/b:pull,push",
                    },
                )
            ],
        ),
        (
            ['Newauth realm="apps", type=1, title="Login to \\"apps\\"", Basic realm="simple"'],
            [
                ("newauth", {"realm": "apps", "type": "1", "title": 'Login to "apps"'}),
                ("basic", {"realm": "simple"}),
            ],
        ),
        (["Negotiate", 'Basic realm="a"'], [("negotiate", {}), ("basic", {"realm": "a"})]),
        (
            ['Negotiate YWJj+/==, Basic realm="a"'],
            [("negotiate", {}), ("basic", {"realm": "a"})],
        ),
        (["Negotiate, Basic"], [("negotiate", {}), ("basic", {})]),
        ([' , ,Basic realm="a" , , charset="UTF-8",'], [("basic", {"realm": "a", "charset": "UTF-8"})]),
        (["Bearer realm=https://a/t,service=s"], [("bearer", {"realm": "https://a/t", "service": "s"})]),
        (['Basic realm="a", realm="b"'], [("basic", {"realm": "a"})]),
        (['Bearer realm="never closed'], [("bearer", {}), ("realm", {})]),
        (['"no scheme"'], []),
    ],
)  # fmt: skip
def test_challenges_are_read_by_the_rfc(
    part: Part, lines: list[str], expected: list[tuple[str, dict[str, str]]]
) -> None:
    """Several lines, several challenges in one, commas and quotes within quotes."""
    assert [tuple(c) for c in part("challenge").challenges(lines)] == expected


@given(
    st.lists(
        st.tuples(
            st.from_regex("[A-Za-z]{1,9}", fullmatch=True),
            st.dictionaries(
                st.from_regex("[a-z]{1,9}", fullmatch=True),
                st.text(st.characters(min_codepoint=32, max_codepoint=126)),
                max_size=4,
            ),
        ),
        max_size=4,
    )
)
def test_challenges_that_are_written_are_read_back(
    part: Part, wanted: list[tuple[str, dict[str, str]]]
) -> None:
    """Any schemes and quoted values, in one line."""

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    line = ", ".join(
        " ".join((scheme, ", ".join(f"{k}={quoted(v)}" for k, v in values.items()))).strip()
        for scheme, values in wanted
    )
    read = part("challenge").challenges([line])
    assert read == [(scheme.lower(), values) for scheme, values in wanted]


@given(st.lists(st.text('Bearer realm=",\\ ()é')))
def test_any_header_is_survived(part: Part, lines: list[str]) -> None:
    """Garbage is no error."""
    part("challenge").challenges(lines)
