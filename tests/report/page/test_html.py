"""Elements of a page: text is always text."""

from __future__ import annotations

import html.parser

from hypothesis import given
from hypothesis import strategies as st

from pairun.report.page.html import NOTHING, element, escape, facts, joined


class Reading(html.parser.HTMLParser):
    """What an HTML parser reads: the tags with their attributes, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(), st.text())
def test_any_text_is_one_text(text: str, value: str) -> None:
    """Whatever a text or an attribute holds, the parser reads one element with one attribute."""
    parsed = Reading(element("p", text, title=value))
    assert [(tag, list(attributes)) for tag, attributes in parsed.tags] == [("p", ["title"])]
    assert all(c.isprintable() or c in "\n\t" for c in parsed.text)


@given(st.text(st.characters(categories=["L", "N", "P", "S"])))
def test_printable_text_stays_as_it_is(text: str) -> None:
    """Only characters that no reader can see are changed."""
    parsed = Reading(element("p", text, title=text))
    assert parsed.text == text
    assert parsed.tags[0][1]["title"] == text


def test_hidden_characters_are_escapes() -> None:
    """What turns the direction of a text, or controls a terminal, is visible."""
    assert escape("a\u202eb\x1b[2J\n") == "a\\u202eb\\x1b[2J\n"


def test_attributes_and_children() -> None:
    """True is an attribute without value, False none; markup is kept, text is escaped."""
    inner = element("b", "<x>", class_="a", data_kind="k", open=True, hidden=False)
    assert inner == '<b class="a" data-kind="k" open>&lt;x&gt;</b>'
    assert joined(inner, "&", NOTHING) == f"{inner}&amp;"
    assert facts([("a", "1"), ("b", "")]) == "<dl><div><dt>a</dt><dd>1</dd></div></dl>"
