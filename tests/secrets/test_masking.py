"""Masking: no form of a secret passes, however a stream is cut, and all else passes."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairun.secrets.forms import MASK, MIN_BYTES
from pairun.secrets.vault import Vault
from tests.effort import cases
from tests.secrets.derivations import QUOTED

pytestmark = pytest.mark.usefixtures("scanner")

SECRETS = st.text(st.characters(codec="utf-8"), min_size=MIN_BYTES, max_size=24).filter(
    lambda s: len(s.encode()) >= MIN_BYTES and not set(s) <= {"*", " "}
)
AROUND = st.text(st.sampled_from('ab *\n\\"/+=%é0'), max_size=12)


def in_pieces(vault: Vault, data: bytes, cuts: Iterable[int]) -> bytes:
    """What a stream that is cut at these positions lets through, from a buffer that is used again."""
    stream, out, last, buffer = vault.stream(), b"", 0, bytearray(len(data))
    for cut in [*sorted(cuts), len(data)]:
        buffer[: cut - last] = data[last:cut]
        out += stream.feed(memoryview(buffer)[: cut - last])
        last = cut
    return out + stream.close()


@pytest.mark.parametrize("form", QUOTED)
@given(secret=SECRETS, before=AROUND, after=AROUND)
@settings(max_examples=cases(40))
def test_every_form_is_masked_wherever_a_stream_is_cut(
    form: str, secret: str, before: str, after: str
) -> None:
    """No position of a cut lets a form of the secret through, and all cuts give one result."""
    vault = Vault([secret])
    written = QUOTED[form](secret)
    data = (before + written + after).encode()
    whole = vault.data(data)
    assert MASK.encode() in whole
    assert written.encode() not in whole.replace(MASK.encode(), b"\0")
    for cut in range(len(data) + 1):
        assert in_pieces(vault, data, [cut]) == whole
    assert in_pieces(vault, data, range(1, len(data))) == whole


@given(secret=st.binary(min_size=4, max_size=20), before=st.binary(max_size=5), after=st.binary(max_size=5))  # fmt: skip
@settings(max_examples=cases(150))
def test_base64_is_masked_in_every_alignment(secret: bytes, before: bytes, after: bytes) -> None:
    """A secret within something longer that was encoded cannot be decoded any more."""
    text = secret.decode("latin-1")
    raw = text.encode()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        data = encode(before + raw + after)
        masked = Vault([text]).data(data)
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
@settings(max_examples=cases(300))
def test_overlapping_secrets_give_the_same_whole_or_cut(
    secrets: list[str], data: str, cuts: list[int]
) -> None:
    """However secrets overlap each other, a stream shows what the whole would show."""
    vault = Vault(secrets)
    whole = vault.data(data.encode())
    assert in_pieces(vault, data.encode(), [min(c, len(data)) for c in cuts]) == whole
    for secret in secrets:
        assert secret.encode() not in whole.replace(MASK.encode(), b"\0")


@given(
    secret=st.text(st.sampled_from("XYZ09"), min_size=4, max_size=12),
    data=st.binary(max_size=60).filter(lambda b: not set(b) & set(b"XYZ09WFV")),
    cuts=st.lists(st.integers(0, 60), max_size=3),
)
@settings(max_examples=cases(200))
def test_text_without_a_secret_is_never_changed(secret: str, data: bytes, cuts: list[int]) -> None:
    """Bytes that hold no form pass as they are, whatever they are."""
    vault = Vault([secret])
    assert vault.data(data) == data
    assert in_pieces(vault, data, [min(c, len(data)) for c in cuts]) == data


def test_short_values_are_left_alone() -> None:
    """Masking every "1" would destroy the log and hide nothing."""
    vault = Vault(["a", "abc", ""])
    assert not vault
    assert vault.text("a abc") == "a abc"
    assert vault.stream().feed(b"abc") == b"abc"
    # Two characters of two bytes each are long enough.
    assert Vault(["éé"]).text("xééx") == f"x{MASK}x"


def test_the_lines_of_a_key_file_are_secrets_too() -> None:
    """A key that is printed line by line, or indented, is masked."""
    key = (
        "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----"
    )
    out = Vault([key]).text("  MIIEvQIBADANBgkqhkiG9w0B\n  AQEFAASCBKcwggSjAgEAAoIB\n")
    assert "MIIE" not in out
    assert "AQEF" not in out


def test_nothing_is_held_back_longer_than_needed() -> None:
    """A line that cannot begin a secret is written at once: logs are read while they grow."""
    stream = Vault(["secret-value"]).stream()
    assert stream.feed(b"hello\n") == b"hello\n"
    assert stream.feed(b"a sec") == b"a "
    assert stream.feed(b"ond\n") == b"second\n"
    assert stream.close() == b""


def test_bytes_that_are_no_text_pass() -> None:
    """A log is bytes; what is not UTF-8 comes out as it went in."""
    vault = Vault(["secret"])
    assert vault.data(b"\xff\xfe secret \x80") == b"\xff\xfe " + MASK.encode() + b" \x80"
    assert vault.text("\udcff secret") == f"\udcff {MASK}"


def test_without_secrets_nothing_is_copied() -> None:
    """Where there is nothing to look for, a piece passes as the very object that came."""
    data = b"x" * 1000
    assert Vault().stream().feed(data) is data
    stream = Vault(["secret"]).stream()
    assert stream.feed(data) is data
    assert stream.close() == b""


@given(
    secret=st.binary(min_size=4, max_size=200),
    before=st.binary(max_size=80),
    after=st.binary(max_size=80),
    width=st.sampled_from([16, 20, 33, 60, 64, 76]),
    end=st.sampled_from(["\n", "\r\n", "\n  ", "\r\n\t", "\n" + " " * 40]),
    cuts=st.lists(st.integers(0, 600), max_size=6),
)
@settings(max_examples=cases(300))
def test_wrapped_base64_is_masked(
    secret: bytes, before: bytes, after: bytes, width: int, end: str, cuts: list[int]
) -> None:
    """A secret in base64 is found across wraps, indentation and cuts."""
    text = secret.decode("latin-1")
    raw = text.encode()
    whole = base64.b64encode(before + raw + after).decode()
    data = "".join(whole[at : at + width] + end for at in range(0, len(whole), width)).encode()
    vault = Vault([text])
    masked = vault.data(data)
    assert in_pieces(vault, data, [min(cut, len(data)) for cut in cuts]) == masked
    first, last = (len(before) * 8 + 5) // 6, (len(before) + len(raw)) * 8 // 6
    rest = re.sub(rb"[\r\n\t ]", b"", masked).replace(MASK.encode(), b"")
    assert len(rest) <= len(whole) - (last - first)


@given(
    secret=st.binary(min_size=4, max_size=200),
    around=st.binary(max_size=80),
    width=st.sampled_from([16, 60, 10_000]),
    upper=st.booleans(),
    cut=st.integers(0, 600),
)
@settings(max_examples=cases(200))
def test_hexadecimal_is_masked(
    secret: bytes, around: bytes, width: int, cut: int, *, upper: bool
) -> None:
    """A secret in hexadecimal digits of either case is found, in one line and in many."""
    text = secret.decode("latin-1")
    raw = text.encode()
    whole = (around + raw + around).hex()
    whole = whole.upper() if upper else whole
    data = "".join(f"{whole[at : at + width]}\n" for at in range(0, len(whole), width)).encode()
    vault = Vault([text])
    masked = vault.data(data)
    assert MASK.encode() in masked
    assert in_pieces(vault, data, [min(cut, len(data))]) == masked
    rest = masked.replace(b"\n", b"").replace(MASK.encode(), b"")
    assert len(rest) <= len(whole) - 2 * len(raw)


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_wrapped_base64_in_small_pieces(piece: int) -> None:
    """However small the pieces are, a stream knows how long the line is."""
    key = "".join(chr(33 + n * 7 % 90) for n in range(150))
    data = base64.encodebytes(b"x" * 20 + key.encode() + b"y" * 200)
    stream = Vault([key]).stream()
    out = b"".join(stream.feed(data[at : at + piece]) for at in range(0, len(data), piece))
    out += stream.close()
    assert out == Vault([key]).data(data)
    assert out.count(MASK.encode()) == 1


ESCAPES = ["\x1b[31m", "\x1b[0m", "\x1b[01;31m\x1b[K", "\x1b(B\x1b[m", "\x1b]8;;http://h\x07"]


@given(
    secret=st.text("abcXYZ019'<", min_size=4, max_size=16),
    at=st.lists(st.integers(0, 16), min_size=1, max_size=3),
    codes=st.lists(st.sampled_from(ESCAPES), min_size=3, max_size=3),
    cut=st.integers(0, 80),
)
@settings(max_examples=cases(300))
def test_escape_codes_in_a_secret_hide_it_from_nobody(
    secret: str, at: list[int], codes: list[str], cut: int
) -> None:
    """A secret that colours split is masked; the codes stay."""
    written = secret
    for place, code in zip(
        sorted((min(a, len(secret)) for a in at), reverse=True), codes, strict=False
    ):
        written = written[:place] + code + written[place:]
    data = f"a: {written} é\n".encode()
    vault = Vault([secret])
    masked = vault.data(data)
    assert in_pieces(vault, data, [min(cut, len(data))]) == masked
    plain = re.sub(r"\x1b(?:\[[0-9;]*[mK]|\(B|\]8;;http://h\x07)", "", masked.decode())
    assert plain.startswith(f"a: {MASK}")
    assert masked.decode().count("\x1b") == data.count(b"\x1b")


@given(
    data=st.lists(st.sampled_from(["A" * 70, "bc", "\n", "\r\n", "\x1b[31m", "\x1b[", " "]), max_size=9),
    cuts=st.lists(st.integers(0, 300), max_size=5),
)  # fmt: skip
@settings(max_examples=cases(300))
def test_codes_and_wraps_without_a_secret_are_never_changed(
    data: list[str], cuts: list[int]
) -> None:
    """Seams alone change nothing."""
    whole = "".join(data).encode()
    vault = Vault(["secret-value", "other\nvalue"])
    assert vault.data(whole) == whole
    assert in_pieces(vault, whole, [min(cut, len(whole)) for cut in cuts]) == whole


def test_a_whole_line_of_base64_does_not_wait() -> None:
    """Only what continues a form waits for the next line."""
    stream = Vault(["secret-value"]).stream()
    line = b"q" * 76 + b"\n"
    assert stream.feed(line) == line


def test_a_secret_with_a_line_break_after_a_long_line() -> None:
    """The break of a long line may belong to the secret itself."""
    key = "-----BEGIN KEY-----\n" + "M" * 64 + "\n" + "N" * 64 + "\nOOOO=\n-----END KEY-----\n"
    assert Vault([key]).data(f"a\n{key}b\n".encode()) == f"a\n{MASK}\nb\n".encode()


def test_what_is_added_later_is_hidden_from_then_on() -> None:
    """A stream that exists follows its vault."""
    vault = Vault()
    stream = vault.stream()
    assert stream.feed(b"geheim\n") == b"geheim\n"
    vault.add(["geheim"])
    assert stream.feed(b"geheim\n") == b"******\n"


def released(vault: Vault, data: bytes, cuts: Iterable[int]) -> bytes:
    """What a stream lets through if the output pauses at each of these positions."""
    stream, out, last = vault.stream(), b"", 0
    for cut in [*sorted(cuts), len(data)]:
        out += stream.feed(data[last:cut]) + stream.release()
        last = cut
    return out + stream.close()


@given(secret=SECRETS, before=AROUND, after=AROUND, cuts=st.lists(st.integers(0, 60), max_size=4))
@settings(max_examples=cases(200))
def test_a_pause_reveals_at_most_the_first_bytes(
    secret: str, before: str, after: str, cuts: list[int]
) -> None:
    """A pause within a secret shows fewer bytes of it than could be one; the rest is masked."""
    vault = Vault([secret])
    data = (before + secret + after).encode()
    out = released(vault, data, [min(cut, len(data)) for cut in cuts])
    assert secret.encode() not in out.replace(MASK.encode(), b"\0")
    assert MASK.encode() in out
    # At each pause a secret may begin: its first bytes are shown before the mask, too.
    assert 0 <= len(out) - len(vault.data(data)) <= (MIN_BYTES - 1 + len("\r\n")) * (len(cuts) + 1)


def test_the_last_line_before_a_pause_is_complete() -> None:
    """A line that ends as wrapped base64 would, with the first character of a secret, is shown."""
    stream = Vault(["secret"]).stream()
    line = b"/data/checkpoints/last-checkpoint-s\n"
    assert stream.feed(line) == line[:-2]
    assert [(stream.has_release, stream.release()) for _ in range(2)] == [
        (True, b"s\n"),
        (False, b""),
    ]
    assert stream.feed(b"ecret\nthe next\n") == b"******\nthe next\n"


def test_what_a_pause_has_shown_is_not_shown_again() -> None:
    """Other output than a secret follows the released bytes unchanged."""
    stream = Vault(["secret"]).stream()
    assert [stream.feed(b"a se"), stream.release(), stream.feed(b"t"), stream.close()] == [
        b"a ", b"se", b"t", b"",
    ]  # fmt: skip
    assert stream.feed(b"secre") == b""
    # four bytes could be a secret
    assert stream.release() == b""
    assert stream.close() == b"secre"


def test_bytes_leave_an_earlier_view_as_it_is() -> None:
    """A thread may still write a view when another one masks bytes."""
    stream = Vault(["open-sesame"]).stream()
    assert bytes(stream.feed(memoryview(b"before open-"))) == b"before "
    view = stream.feed(memoryview(b"air concert"))
    assert stream.feed(b", open-sesame") == b", ******"
    assert bytes(view) == b"open-air concert"
