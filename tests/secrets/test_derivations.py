"""What programs make of a secret by trimming, splitting, joining and encoding is masked like it."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pairun.secrets.forms import MASK, MAX_JOINED, MIN_BYTES, forms_of
from pairun.secrets.vault import Vault
from tests.effort import cases
from tests.secrets.derivations import (
    EXAMPLE,
    EXCLUDED,
    OUTER,
    QUOTED,
    TRANSFORMATIONS,
    VALUES,
    WRITTEN,
    shown_of,
)

PAGE = Path(__file__).parents[2] / "docs" / "security.md"


@pytest.mark.parametrize("form", WRITTEN)
def test_every_transformation_is_masked_in_every_form(form: str) -> None:
    """No piece of a line shows, and of the raw texts nothing but what separates the lines."""
    for value in VALUES:
        vault = Vault([value])
        for name, change in TRANSFORMATIONS.items():
            for text in change(value):
                written = WRITTEN[form](text)
                masked = vault.data(f"a {written} b\n".encode()).decode()
                assert shown_of(masked) == [], (name, value, masked)
                if form == "raw":
                    assert re.sub(r"[\s,]|\*{6}", "", masked) == "ab", (name, value)


@pytest.mark.parametrize("outer", OUTER)
def test_what_is_quoted_twice_is_masked(outer: str) -> None:
    """A quoted text within JSON, a shell's quotes, Python, HTML or a URL."""
    values = [EXAMPLE, *(text for value in VALUES for text in TRANSFORMATIONS["splitlines"](value))]
    for value, (inner, quote) in itertools.product(values, QUOTED.items()):
        written = WRITTEN[outer](quote(value))
        masked = Vault([value]).data(f"a {written} b".encode())
        assert masked == f"a {MASK} b".encode(), (inner, masked)


ROWS = re.findall(r"^\| (.+?) \| (?:`` (.+?) `` )?\| (yes|no) \|$", PAGE.read_text(), re.MULTILINE)


def test_the_page_lists_every_encoding() -> None:
    """What is masked, and what is not."""
    listed = {name: masked for name, _, masked in ROWS}
    assert listed == {**dict.fromkeys(WRITTEN, "yes"), **dict.fromkeys(EXCLUDED, "no")}


@pytest.mark.parametrize(("name", "shown", "masked"), ROWS)
def test_an_encoding_of_the_page(name: str, shown: str, masked: str) -> None:
    """The page promises no more than is true, and no less."""
    written = {**WRITTEN, **EXCLUDED}[name](EXAMPLE)
    assert shown in ("", written)
    out = Vault([EXAMPLE]).text(f"a {written} b")
    if masked == "no":
        assert MASK not in out
    elif "base64" in name:  # its ends depend on what is around it
        assert MASK in out
    else:
        assert out == f"a {MASK} b"


TEXTS = st.text(st.sampled_from("abXY09'\"\\<&é \t\n\r"), min_size=MIN_BYTES, max_size=40)


@given(value=TEXTS, change=st.sampled_from(sorted(TRANSFORMATIONS)))
@example(value="ab\n\n cd", change="strip, joined by comma")
@settings(max_examples=cases(400))
def test_what_is_long_enough_is_masked(value: str, change: str) -> None:
    """Whatever a value holds: what is trimmed, split or joined shows no more than the floor."""
    if len(value.strip().encode()) < MIN_BYTES:
        return
    for text in TRANSFORMATIONS[change](value):
        if len(text.strip().encode()) >= MIN_BYTES:
            masked = Vault([value]).data(text.encode()).decode()
            assert re.sub(r"[\s,]|\*{6}", "", masked) == "", masked


def test_a_line_under_the_floor_is_shown() -> None:
    """A line of three bytes would be found in every log; with a neighbour it is a secret."""
    vault = Vault(["abc\nsecret\n"])
    assert vault.text("abc def") == "abc def"
    assert vault.text("abc, abc,secret") == f"abc, {MASK}"


def test_lines_of_a_log_stay_lines() -> None:
    """The line end of a secret is not masked: the next line begins where it did."""
    assert Vault(["secret\n"]).text("a=secret\nb\n") == f"a={MASK}\nb\n"


def test_forms_grow_as_the_secret_does() -> None:
    """Twice as many lines have at most twice as many bytes of forms, also where lines are short."""
    for line in ("x" * 64, "y" * 9, "zz", "  uu  "):
        sizes = [
            sum(map(len, forms_of("\n".join(f"{line}{n:03}" for n in range(100, 100 + count)))))
            for count in (40, 80)
        ]
        assert sizes[1] < 2.2 * sizes[0]
    # a brace beside a very long line
    beside = "{\n" + "k" * 20 * MAX_JOINED + "\n}"
    assert sum(map(len, forms_of(beside))) < 3 * sum(map(len, forms_of(beside[2:-2])))
