"""Secrets leave nowhere: whatever their form, and however a stream is cut."""

from __future__ import annotations

import base64
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sysconfig
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairun.secrets import forms as redaction
from pairun.secrets.forms import MASK, MIN_BYTES, PythonScanner, Redactor
from tests.effort import cases

SOURCE = pathlib.Path(__file__).parents[2] / "bundle" / "_scan.c"
HEADERS = pathlib.Path(sysconfig.get_paths()["include"])

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


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The scanner that the bundle has linked in, as a module of this Python."""
    if shutil.which("gcc") is None or not (HEADERS / "Python.h").exists():
        pytest.skip("this needs gcc and the headers of this Python")
    path = tmp_path_factory.mktemp("scan") / "_pairun_scan.so"
    flags = ["-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-cast-function-type"]
    subprocess.run(
        ["gcc", *flags, "-Wno-missing-field-initializers", "-Werror", "-shared", "-fPIC",
         f"-I{HEADERS}", str(SOURCE), "-o", str(path)],
        check=True,
    )  # fmt: skip
    spec = importlib.util.spec_from_file_location("_pairun_scan", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Scanner


@pytest.fixture(scope="module", autouse=True, params=["python", "c"])
def scanner(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Every test runs with the scanner in Python and with the one in C."""
    chosen = PythonScanner if request.param == "python" else request.getfixturevalue("compiled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redaction, "_scanner", chosen)
        yield chosen


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
@settings(max_examples=cases(40))
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
@settings(max_examples=cases(150))
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
@settings(max_examples=cases(300))
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
@settings(max_examples=cases(200))
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


def _reference(forms: list[bytes], data: bytes, *, final: bool) -> tuple[bytes, int]:
    """What a scanner should find, as slowly and as plainly as can be."""
    starts = (
        n for n in range(len(data)) if any(f != data[n:] and f.startswith(data[n:]) for f in forms)
    )
    end = len(data) if final else min(starts, default=len(data))
    out, position = b"", 0
    for found in re.compile(b"|".join(map(re.escape, forms))).finditer(data):
        if found.start() < end:
            out += data[position : found.start()] + b"***"
            position = found.end()
    return out + data[position:end], max(end, position)


@given(
    forms=st.lists(st.text("ab\n", min_size=2, max_size=8).map(str.encode), min_size=1, max_size=6, unique=True),
    data=st.text("ab\nc", max_size=60).map(str.encode),
    final=st.booleans(),
)  # fmt: skip
@settings(max_examples=cases(1000))
def test_a_scanner_finds_the_longest_of_the_first(
    scanner: Any, forms: list[bytes], data: bytes, final: bool
) -> None:
    """Both scanners find what an expression of all forms finds, and hold back as much."""
    forms.sort(key=len, reverse=True)
    out, size = scanner(forms, b"***").scan(data, final)
    expected = _reference(forms, data, final=final)
    assert (data[:size] if out is None else out, size) == expected
    if out is None:
        assert expected[0] == data[:size]


def test_a_long_secret_among_short_ones(scanner: Any) -> None:
    """Forms of very different lengths are found side by side, wherever they stand."""
    forms = [b"K" * 5000 + b"end", b"x" * 300, b"abcdefgh", b"zz"]
    data = b"-".join([forms[1], b"K" * 4999, forms[0], b"abcdefg", forms[2], b"zzz"])
    out, size = scanner(forms, b"*").scan(data, True)
    assert out == b"-".join([b"*", b"K" * 4999, b"*", b"abcdefg", b"*", b"*z"])
    assert size == len(data)
    assert scanner(forms, b"*").scan(b"a" + forms[0][:-1], False) == (None, 1)


def test_many_finds_in_one_piece(scanner: Any) -> None:
    """A piece full of secrets is masked to its end."""
    out, size = scanner([b"secret"], b"***").scan(b"a secret\n" * 5000, False)
    assert (out, size) == (b"a ***\n" * 5000, 45_000)


def test_scanners_in_threads(scanner: Any) -> None:
    """One scanner serves many streams at once."""
    one, wrong = scanner([b"hunter2", b"tango"], b"***"), []

    def work(n: int) -> None:
        data = (b"%d hunter2 and tango " % n) * 2000
        for _ in range(20):
            if one.scan(data, True)[0] != (b"%d *** and *** " % n) * 2000:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_without_secrets_nothing_is_copied() -> None:
    """Where there is nothing to look for, a piece passes as the very object that came."""
    data = b"x" * 1000
    assert Redactor().stream().feed(data) is data
    stream = Redactor(["secret"]).stream()
    assert stream.feed(data) is data
    assert stream.close() == b""


def test_unusable_forms_are_refused(compiled: Any) -> None:
    """The scanner in C takes nothing that it could not search."""
    for forms in ([], [b"x"], [b"ab", b"abc"], ["text"], None):
        with pytest.raises((TypeError, ValueError)):
            compiled(forms, b"***")
    with pytest.raises(TypeError):
        compiled([b"abcd"], b"***").scan("text", True)
