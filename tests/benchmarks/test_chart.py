"""The page and the drawing of the results of all releases."""

from __future__ import annotations

from html import escape
from typing import Any
from xml.etree import ElementTree

from benchmarks.chart import drawing, page, sentence


def _release(version: str, least: float) -> dict[str, Any]:
    row = {
        "part": "tasks", "what": "one task <of> many", "unit": "ms", "least": least, "median": least,
        "runs": 5, "goal": 4.0, "met": least <= 4.0, "peer": "a peer", "peer_least": 2.0,
        "ratio": least / 2.0, "load": 0.1,
    }  # fmt: skip
    machine = {"processors": 2, "model": "a processor", "python": "3.11.2"}
    return {"pairun": version, "date": "2026-01-01", "machine": machine, "rows": [row],
            "not_measured": {"ssh": "there is no sshd"}}  # fmt: skip


RELEASES = [_release("1.0", 5.0), _release("1.1", 2.0)]


def test_the_drawing_has_a_dot_for_each_release() -> None:
    """The newest is solid, and one beyond its goal has another colour."""
    svg = ElementTree.fromstring("\n".join(drawing(RELEASES)))
    dots = [e.get("class") for e in svg.iter("{http://www.w3.org/2000/svg}circle")]
    assert dots == ["missed older", "met"]


def test_the_drawing_says_in_words_what_it_shows() -> None:
    """For those who do not see it, and it brings a ground for any theme."""
    text = "\n".join(drawing(RELEASES))
    assert escape(sentence(RELEASES)) in text
    assert "1 of 1 goals are met" in sentence(RELEASES)
    assert 'class="ground"' in text
    assert "prefers-color-scheme: dark" in text


def test_the_page_has_the_newest_numbers_with_units() -> None:
    """A table that needs no drawing, and what was not measured."""
    text = "\n".join(page(RELEASES))
    assert (
        "| one task <of> many | 2.00 ms | 2.00 ms | 5 | 4.00 ms | 1 | a peer (2.00 ms) | 0.1 |"
        in text
    )
    assert "Not measured: ssh, because there is no sshd." in text
