"""The scanners: both find the same forms and the same seams."""

from __future__ import annotations

import array
import re
import threading
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pairun.secrets.masking import mask
from pairun.secrets.scanner import WRAPPED, PythonScanner
from tests.effort import cases


def scan(scanner: Any, data: bytes, *, final: bool) -> tuple[bytes, int]:
    """What a scanner's spans leave of a text, and how many of its bytes that is."""
    spans, size = scanner.spans(data, final)
    out, position = b"", 0
    for start, stop in spans:
        out += data[position:start] + b"***"
        position = stop
    return out + data[position:size], size


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
    assert scan(scanner(forms), data, final=final) == _reference(forms, data, final=final)


def test_a_long_secret_among_short_ones(scanner: Any) -> None:
    """Forms of very different lengths are found side by side, wherever they stand."""
    forms = [b"K" * 5000 + b"end", b"x" * 300, b"abcdefgh", b"zz"]
    data = b"-".join([forms[1], b"K" * 4999, forms[0], b"abcdefg", forms[2], b"zzz"])
    out, size = scan(scanner(forms), data, final=True)
    assert out == b"-".join([b"***", b"K" * 4999, b"***", b"abcdefg", b"***", b"***z"])
    assert size == len(data)
    assert scan(scanner(forms), b"a" + forms[0][:-1], final=False) == (b"a", 1)


def test_thousands_of_forms(scanner: Any) -> None:
    """More forms than a text has bytes are found in it all the same, also very short ones."""
    forms = [*(b"secret-%d-of-many" % n for n in range(2000)), b"abcd", b"xy"]
    found = scanner(sorted(forms, key=len, reverse=True))
    data = b"1 secret-1999-of-many, abcd xy secret-7-of-man"
    assert scan(found, data, final=True)[0] == b"1 ***, *** *** secret-7-of-man"


def test_many_finds_in_one_piece(scanner: Any) -> None:
    """A piece full of secrets is masked to its end."""
    out, size = scan(scanner([b"secret"]), b"a secret\n" * 5000, final=False)
    assert (out, size) == (b"a ***\n" * 5000, 45_000)


def test_scanners_in_threads(scanner: Any) -> None:
    """One scanner serves many streams at once."""
    one, wrong = scanner([b"hunter2", b"tango"]), []

    def work(n: int) -> None:
        data = (b"%d hunter2 and tango " % n) * 2000
        for _ in range(20):
            if scan(one, data, final=True)[0] != (b"%d *** and *** " % n) * 2000:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_unusable_forms_are_refused(compiled: Any) -> None:
    """The scanner in C takes nothing that it could not search."""
    for forms in ([], [b"x"], [b"ab", b"abc"], ["text"], None):
        with pytest.raises((TypeError, ValueError)):
            compiled(forms)
    with pytest.raises(TypeError):
        compiled([b"abcd"]).spans("text", True)


LINES = st.lists(
    st.sampled_from(
        ["A" * WRAPPED, "A" * (WRAPPED - 1), "ab", "\n", "\r\n", "\r", "-_+/", " ", "\x1b[31m", "\x1b[",
         "\x1b", "\x1b]0;title\x07", "\x1b]0;x\x1b\\", "\x1b]", "\x1b(B", "\x1b7", "[", "1;3", "m",
         "\x1b" + "[" + "1" * 65 + "m", "\x1b]" + "t" * 501 + "\x07", "\\", "\x07"]
    ),
    max_size=8,
).map("".join)  # fmt: skip


FORMS = [b"A" * 12, b"mA\x1bA", b"AAab", b"abab"]


@given(text=LINES, before=st.integers(0, WRAPPED))
@example(text="\n" + "A" * WRAPPED + "\n", before=0)
@settings(max_examples=cases(1500))
def test_both_scanners_mask_the_same(compiled: Any, text: str, before: int) -> None:
    """Escape codes and wraps are the same for both, also where the data cuts them.

    How much of a piece waits for the next one may differ: the one in C keeps some seams that no
    form crosses. So the piece is the last. And where the last letter of a code could begin a form,
    which a terminal would not show, one may find a form that the other does not.
    """
    assume(not re.search(r"\x1b\[?[\d;]*[Aa]", text))
    one, other = (
        mask(each(FORMS), text.encode(), final=True, before=before)
        for each in (PythonScanner, compiled)
    )
    assert one == other


@pytest.mark.parametrize(
    ("data", "before", "expected"),
    [
        (b"a\x1b[31mb\x1b[0mc", 0, (b"abc", [(1, 5), (2, 4)])),
        (b"a\x1b[0m\x1b[31mb", 0, (b"ab", [(1, 4), (1, 5)])),
        (b"A" * 16 + b"\nb", 0, (b"A" * 16 + b"b", [(16, 1)])),
        (b"A" * 16 + b"\r\nb", 0, (b"A" * 16 + b"b", [(16, 2)])),
        (b"A" * 16 + b"\n \t b", 0, (b"A" * 16 + b"b", [(16, 4)])),
        (b"A" * 15 + b"\nb", 0, None),
        (b"A" * 15 + b"\nb", 1, (b"A" * 15 + b"b", [(15, 1)])),
        (b" " + b"A" * 15 + b"\nb", 16, None),
        (b"a\x1b[3", 0, (b"a", [(1, 3)])),
        (b"plain\ntext\n", 0, None),
    ],
)
def test_seams(scanner: Any, data: bytes, before: int, expected: object) -> None:
    """An escape code, and the end of a long line of base64, are seams."""
    found = scanner([b"AAAAb", b"abc"]).joined(data, before)
    if found is not None:
        numbers = array.array("q", found[1]).tolist()
        found = found[0], list(zip(numbers[::2], numbers[1::2], strict=True))
    assert found == expected


@pytest.mark.parametrize(
    "data",
    [
        b"c\x1b[3",
        b"A" * 16 + b"\n" + b" " * 65 + b"b",
        b"\x1b[31mred\x1b[0m and \x1b[1mbold\x1b[0m\n",
    ],
)
def test_seams_that_no_form_crosses(compiled: Any, data: bytes) -> None:
    """The scanner in C keeps an escape code between bytes that no form has side by side."""
    assert compiled([b"AAAAb", b"abc"]).joined(data, 0) is None


def test_a_text_that_forms_nearly_cross_everywhere(compiled: Any) -> None:
    """Where every seam looks like one that a form crosses, all are kept, and the form is found."""
    forms = [b"a" * 40]
    data = b"a\x1b[m" * 30 + b"b" + b"a\x1b[m" * 41 + b"b"
    for each in (PythonScanner, compiled):
        out, size = mask(each(forms), data, final=True)
        assert size == len(data)
        assert out == b"a\x1b[m" * 30 + b"b******" + b"\x1b[m" * 40 + b"a\x1b[mb"
