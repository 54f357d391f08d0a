"""The HTML file: nothing is loaded, and no text can become markup or script."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import pathlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.report.journal.finding import JournalFile, read_instance
from pairun.report.page.document import document, printable
from pairun.report.page.runpage import run_page
from tests.report.page import stories

HOSTILE = "</script><script>alert(1)</script></style>\"'><img src=x onerror=alert(2)>javascript:alert(3)\u202e\x1b]0;x"


class Parsed(html.parser.HTMLParser):
    """The elements of a page, as an HTML parser sees them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open = tag
        self.tags.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._open = ""


def page_of(folder: pathlib.Path, title: str = "job") -> str:
    """The page on the journals in a folder."""
    files = [
        JournalFile(label=p.parent.name, journal=str(p)) for p in sorted(folder.rglob("*.jsonl"))
    ]
    return run_page([read_instance(f) for f in files], title, ())


def hostile(value: Any) -> Any:
    """The same record with something hostile in every text that is not a name of ours."""
    if isinstance(value, dict):
        kept = ("type", "phase", "outcome", "event")
        return {k: v if k in kept else hostile(v) for k, v in value.items()}
    if isinstance(value, list):
        return [hostile(v) for v in value]
    return f"{value}{HOSTILE}" if isinstance(value, str) else value


def test_hostile_texts_are_text(tmp_path: pathlib.Path) -> None:
    """Whatever a journal's fields hold, the page has the same elements, and no character that hides."""
    journals = {
        f"worker-{i}": records
        for i, records in enumerate((stories.success(), stories.retries(), stories.stopped()))
    }
    journals |= stories.gang(4)
    plain = page_of(stories.write(tmp_path / "plain", journals))
    evil = page_of(
        stories.write(tmp_path / "evil", {k: hostile(v) for k, v in journals.items()}), HOSTILE
    )  # fmt: skip
    assert [tag for tag, _ in Parsed(evil).tags] == [tag for tag, _ in Parsed(plain).tags]
    assert "\u202e" not in evil
    assert "\x1b" not in evil
    text = json.dumps(json.loads(Parsed(evil).texts["script"][0]), ensure_ascii=False)
    assert "\u202e" not in text
    assert "alert(1)" in text


def test_the_policy_allows_what_is_in_the_file_alone(tmp_path: pathlib.Path) -> None:
    """Style and script are those whose hashes the policy names; no element loads anything."""
    page = page_of(stories.write(tmp_path / "logs", {"worker-0": stories.success()}))
    parsed = Parsed(page)
    policy = next(a["content"] for t, a in parsed.tags if a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    for text in (parsed.texts["style"][0], parsed.texts["script"][1]):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not [a for _, a in parsed.tags if {"src", "href", "style"} & a.keys()]
    assert not [a for _, a in parsed.tags if any(name.startswith("on") for name in a)]


@given(
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    ),
)
def test_data_comes_back_as_it_was(title: str, data: Any) -> None:
    """Any title and any data leave the document's elements alone, and the data is read as it was."""
    parsed = Parsed(document("page.html.j2", title, data, style="p{}", script="1;"))
    assert [t for t, _ in parsed.tags] == [
        "html", "head", "meta", "meta", "meta", "meta", "title", "style", "body", "script", "script",
    ]  # fmt: skip
    assert json.loads(parsed.texts["script"][0]) == (data or {})
    assert all(c.isprintable() or c in "\n\t" for c in parsed.texts["title"][0])


@given(st.text(st.characters(categories=["L", "N", "P", "S"])))
def test_printable_text_stays_as_it_is(title: str) -> None:
    """Only characters that no reader can see are changed."""
    parsed = Parsed(document("page.html.j2", title, style="", script=""))
    assert parsed.texts["title"][0] == title


def test_hidden_characters_are_escapes() -> None:
    """What turns the direction of a text, or controls a terminal, is visible."""
    assert printable("a\u202eb\x1b[2J\n") == "a\\u202eb\\x1b[2J\n"


@pytest.mark.parametrize(
    ("count", "most_bytes"), [(1, 150_000), (200, 2_000_000), (1000, 5_000_000)]
)
def test_a_page_stays_small(tmp_path: pathlib.Path, count: int, most_bytes: int) -> None:
    """A page of one instance, of 200 and of a thousand is small enough for a mail."""
    page = page_of(stories.write(tmp_path / "logs", stories.gang(count)))
    assert len(page.encode()) < most_bytes
