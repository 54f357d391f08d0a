"""Searching within lines finds what a search of the whole log finds."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from pairun.diagnose.progress import last_match

STEP = re.compile(rb"(?i)step[^\n]{0,3}(?P<step>\d+)")
LOGS = st.lists(
    st.sampled_from([b"step 7", b"step 12 of 90", b"", b"x" * 3000, b"Step: 3 step: 4", b"loss 1"]),
    max_size=40,
).map(b"\n".join)


@given(LOGS)
def test_the_search_from_the_end_finds_the_last_match(log: bytes) -> None:
    """The last match is that of a search from the beginning, also far from the end."""
    matches = list(STEP.finditer(log))

    match = last_match(STEP, log)

    assert (match and (match.start(), match[0])) == (
        (matches[-1].start(), matches[-1][0]) if matches else None
    )
