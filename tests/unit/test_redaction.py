"""Secrets leave nowhere: whatever their form, and however a stream is cut."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairun.redaction import MASK, MIN_BYTES, Redactor

SECRETS = st.text(st.characters(codec="utf-8"), min_size=MIN_BYTES, max_size=24).filter(
    lambda s: len(s.encode()) >= MIN_BYTES and not set(s) <= {"*", " "}
)
AROUND = st.text(st.sampled_from('ab *\n\\"/+=%é0'), max_size=12)

FORMS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "json": lambda s: json.dumps(s)[1:-1],
    "json, readable": lambda s: json.dumps(s, ensure_ascii=False)[1:-1],
    "url": lambda s: quote(s, safe=""),
    "url, slashes": quote,
    "url, form": quote_plus,
    "url, lower": lambda s: _lower(quote(s, safe="")),
}


def _lower(text: str) -> str:
    parts = text.split("%")
    return "%".join([parts[0], *(p[:2].lower() + p[2:] for p in parts[1:])])


def in_pieces(redactor: Redactor, data: bytes, cuts: Iterable[int]) -> bytes:
    """What a stream that is cut at these positions lets through."""
    stream, out, last = redactor.stream(), b"", 0
    for cut in [*sorted(cuts), len(data)]:
        out += stream.feed(data[last:cut])
        last = cut
    return out + stream.close()


@pytest.mark.parametrize("form", FORMS)
@given(secret=SECRETS, before=AROUND, after=AROUND)
@settings(max_examples=40, deadline=None)
def test_every_form_is_masked_wherever_a_stream_is_cut(
    form: str, secret: str, before: str, after: str
) -> None:
    """No position of a cut lets a form of the secret through, and all cuts give one result."""
    redactor = Redactor([secret])
    written = FORMS[form](secret)
    data = (before + written + after).encode()
    whole = redactor.redact(data)
    assert MASK.encode() in whole
    assert written.encode() not in whole.replace(MASK.encode(), b"\0")
    for cut in range(len(data) + 1):
        assert in_pieces(redactor, data, [cut]) == whole
    assert in_pieces(redactor, data, range(1, len(data))) == whole


@given(secret=st.binary(min_size=4, max_size=20), before=st.binary(max_size=5), after=st.binary(max_size=5))  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_base64_is_masked_in_every_alignment(secret: bytes, before: bytes, after: bytes) -> None:
    """A secret within something longer that was encoded cannot be decoded any more."""
    text = secret.decode("latin-1")
    raw = text.encode()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        data = encode(before + raw + after)
        masked = Redactor([text]).redact(data)
        assert MASK.encode() in masked
        rest = masked.replace(MASK.encode(), b"")
        # Of the characters that hold nothing but the secret none is left.
        first, last = (len(before) * 8 + 5) // 6, (len(before) + len(raw)) * 8 // 6
        assert len(rest) <= len(data) - (last - first)


@given(
    secrets=st.lists(st.sampled_from(["abcd", "abcdabcd", "bcda", "cdab", "dddd", "abab", "aaaa"]), max_size=3),
    data=st.text(st.sampled_from("abcd"), max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=4),
)  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_overlapping_secrets_give_the_same_whole_or_cut(
    secrets: list[str], data: str, cuts: list[int]
) -> None:
    """However secrets overlap each other, a stream shows what the whole would show."""
    redactor = Redactor(secrets)
    whole = redactor.redact(data.encode())
    assert in_pieces(redactor, data.encode(), [min(c, len(data)) for c in cuts]) == whole
    for secret in secrets:
        assert secret.encode() not in whole.replace(MASK.encode(), b"\0")


@given(
    secret=st.text(st.sampled_from("XYZ09"), min_size=4, max_size=12),
    data=st.binary(max_size=60).filter(lambda b: not set(b) & set(b"XYZ09WFV")),
    cuts=st.lists(st.integers(0, 60), max_size=3),
)
@settings(max_examples=200, deadline=None)
def test_text_without_a_secret_is_never_changed(secret: str, data: bytes, cuts: list[int]) -> None:
    """Bytes that hold no form pass as they are, whatever they are."""
    redactor = Redactor([secret])
    assert redactor.redact(data) == data
    assert in_pieces(redactor, data, [min(c, len(data)) for c in cuts]) == data


def test_short_values_are_left_alone() -> None:
    """Masking every "1" would destroy the log and hide nothing."""
    redactor = Redactor(["a", "abc", ""])
    assert not redactor
    assert redactor.text("a abc") == "a abc"
    assert redactor.stream().feed(b"abc") == b"abc"
    # Two characters of two bytes each are long enough.
    assert Redactor(["éé"]).text("xééx") == f"x{MASK}x"


def test_the_lines_of_a_key_file_are_secrets_too() -> None:
    """A key that is printed line by line, or indented, is masked."""
    key = (
        "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----"
    )
    out = Redactor([key]).text("  MIIEvQIBADANBgkqhkiG9w0B\n  AQEFAASCBKcwggSjAgEAAoIB\n")
    assert "MIIE" not in out
    assert "AQEF" not in out


def test_nothing_is_held_back_longer_than_needed() -> None:
    """A line that cannot begin a secret is written at once: logs are read while they grow."""
    stream = Redactor(["secret-value"]).stream()
    assert stream.feed(b"hello\n") == b"hello\n"
    assert stream.feed(b"a sec") == b"a "
    assert stream.feed(b"ond\n") == b"second\n"
    assert stream.close() == b""


def test_bytes_that_are_no_text_pass() -> None:
    """A log is bytes; what is not UTF-8 comes out as it went in."""
    redactor = Redactor(["secret"])
    assert redactor.redact(b"\xff\xfe secret \x80") == b"\xff\xfe " + MASK.encode() + b" \x80"
    assert redactor.text("\udcff secret") == f"\udcff {MASK}"
