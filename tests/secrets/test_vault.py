"""The vault: whatever is hidden shows in no text, byte, stream or record that it masks."""

from __future__ import annotations

import base64
import html
import itertools
import json
import shlex
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pairun.secrets.forms import MASK, MIN_BYTES
from pairun.secrets.vault import Vault
from tests.effort import cases

SECRETS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0*"), min_size=4, max_size=40
)
WRITTEN: Mapping[str, Callable[[str], str]] = {
    "raw": lambda s: s,
    "JSON": json.dumps,
    "repr": repr,
    "shell": shlex.quote,
    "HTML": html.escape,
    "URL": lambda s: urllib.parse.quote(s, safe=""),
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "hexadecimal": lambda s: s.encode().hex(),
}


def written(secret: str, form: str) -> str:
    """A secret as a program writes it, without the quotes around it."""
    return WRITTEN[form](secret).strip("\"'=")


@given(secret=SECRETS, form=st.sampled_from(sorted(WRITTEN)), before=st.text(max_size=9))
@settings(max_examples=cases(400))
def test_every_form_is_masked(secret: str, form: str, before: str) -> None:
    """No text that holds a form keeps it."""
    shown = written(secret, form)
    assume(len(shown.encode()) >= MIN_BYTES and shown not in before)
    text = Vault([secret]).text(f"{before} {WRITTEN[form](secret)} ")
    assert MASK in text
    assert shown not in text.replace(MASK, "")


@given(secret=SECRETS, text=st.text(max_size=40))
def test_masking_a_masked_text_changes_nothing(secret: str, text: str) -> None:
    """A sink behind a sink does no harm."""
    vault = Vault([secret])
    once = vault.text(f"{text}{secret}{text}")
    assume(MASK not in text)
    assert vault.text(once).count(MASK) == once.count(MASK)


@given(secret=SECRETS, text=st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
def test_a_text_without_a_secret_is_kept(secret: str, text: str) -> None:
    """Nothing else is changed: what comes back is what was given, or holds a mask."""
    out = Vault([secret]).text(text)
    assert out == text or MASK in out


@given(secret=SECRETS, keep=st.integers(4, 39), mark=st.sampled_from(["...", "…"]))
@settings(max_examples=cases(200))
def test_what_a_cut_has_left_is_masked(secret: str, keep: int, mark: str) -> None:
    """The start of a secret in front of an ellipsis is not shown."""
    # A secret of several lines is also masked line by line, and each without blanks around it.
    assume(len(secret.splitlines()) == 1 and secret == secret.strip())
    start = secret[:keep]
    assume(len(start.encode()) >= MIN_BYTES and mark not in secret and "." not in secret)
    text = Vault([secret]).text(f"not '{start}{mark}' but")
    # A form that a shell quotes begins with the quote.
    assert text in {f"not '{MASK}{mark}' but", f"not {MASK}{mark}' but"}


def test_a_cut_elsewhere_is_kept() -> None:
    """An ellipsis after other words hides nothing of them."""
    text = "one … two, sec... and three secr..."
    assert Vault(["secret-value"]).text(text) == f"one … two, sec... and three {MASK}..."


DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def keys_of(value: Any) -> list[str]:
    """Every key of a mapping at any depth, in order."""
    if isinstance(value, dict):
        return [key for k, v in value.items() for key in (k, *keys_of(v))]
    return [key for each in value for key in keys_of(each)] if isinstance(value, list) else []


@given(secret=SECRETS, record=st.dictionaries(st.text(max_size=5), DATA, max_size=4))
@example(secret="type", record={"type": "type", "a": [{"type": "x type y"}]})
@settings(max_examples=cases(200))
def test_a_record_keeps_its_shape(secret: str, record: dict[str, Any]) -> None:
    """Values are masked, keys never: a secret that equals a key breaks no record."""
    masked = Vault([secret]).record({**record, "here": [secret, {"there": f"a{secret}b"}]})
    assert keys_of(masked) == keys_of({**record, "here": ["", {"there": ""}]})
    # an escape code in a secret stays, behind the mask; so does white space around it
    assert masked["here"][0].strip().startswith(MASK)
    assert secret not in masked["here"][1]["there"]


def test_other_types_are_kept() -> None:
    """Numbers and booleans are no texts; a tuple becomes the list that JSON makes of it."""
    record = {"n": 1234, "x": 0.5, "no": None, "yes": True, "t": ("a1234", "b")}
    assert Vault(["1234"]).record(record) == {**record, "t": ["a******", "b"]}


@given(
    secret=SECRETS,
    form=st.sampled_from(sorted(WRITTEN)),
    cuts=st.lists(st.integers(0, 200), max_size=6),
)
@settings(max_examples=cases(200))
def test_a_stream_gives_what_the_whole_gives(secret: str, form: str, cuts: list[int]) -> None:
    """However writes cut the bytes, the stream masks as the vault does."""
    vault = Vault([secret])
    data = f"a {WRITTEN[form](secret)} b\n".encode() * 2
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    stream = vault.stream()
    pieces = [stream.feed(data[a:b]) for a, b in itertools.pairwise(places)]
    assert b"".join([*pieces, stream.close()]) == vault.data(data)


@pytest.mark.parametrize("value", ["", "1", "abc", "é1"])
def test_short_values_are_not_hidden(value: str) -> None:
    """To mask every short text would destroy the log, and hide nothing."""
    vault = Vault([value])
    assert not vault
    assert vault.texts == ()
    assert vault.text(f"x{value}x") == f"x{value}x"


@given(first=SECRETS, second=SECRETS)
def test_values_add_up(first: str, second: str) -> None:
    """What was hidden once stays hidden, in streams that exist, too."""
    vault = Vault([first])
    stream = vault.stream()
    vault.add([second])
    vault.add([])
    assert vault.texts == tuple(sorted({first, second}))
    data = stream.feed(f" {first} {second} \n".encode()) + stream.close()
    assert data == Vault([first, second]).data(f" {first} {second} \n".encode())
    assert MASK.encode() in data


def test_an_empty_vault_gives_back_what_it_gets() -> None:
    """Where nothing is hidden nothing is copied."""
    text, data = "text...", b"data"
    assert Vault().text(text) is text
    assert Vault().data(data) is data
