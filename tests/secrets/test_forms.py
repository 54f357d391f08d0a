"""The forms of a secret, as the programs themselves write them."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from pairun.secrets.forms import MASK, forms_of
from pairun.secrets.vault import Vault

SECRETS = [
    "it's",
    "a'b c\"d$e`f\\\\g!h",
    "''quoted''",
    "tab\tline\nend",
    "bell\x07esc\x1bdel\x7f",
    "#hash ~tilde",
    "~tilde#",
    "a,b;c&d|e<f>g(h)i{j}k[l]m*n?o^p",
    "ärger's",
    "\\'\\x",
    "back\\slash\nö",
]

WRITERS = {
    "bash -x": ["bash", "-c", 'set -x; : "$SECRET"'],
    "bash -x, within a word": ["bash", "-c", 'set -x; : "a=$SECRET b"'],
    "bash, an assignment": ["bash", "-c", 'set -x; v="$SECRET"'],
    "bash %q": ["bash", "-c", 'printf "%q\\n" "$SECRET"'],
    "bash @Q": ["bash", "-c", 'echo "${SECRET@Q}"'],
    "bash, declare": ["bash", "-c", "declare -p SECRET"],
    "bash, set": ["bash", "-c", "set | grep -a -A3 ^SECRET="],
    "dash -x": ["dash", "-c", 'set -x; : "$SECRET"'],
    "dash, export": ["dash", "-c", "export -p"],
    "busybox -x": ["busybox", "sh", "-c", 'set -x; : "$SECRET"'],
    "base64": ["sh", "-c", 'printf %s "$SECRET" | base64'],
    "base64 in short lines": ["sh", "-c", 'printf %s "$SECRET" | base64 -w 16'],
    "base64, indented": ["sh", "-c", 'printf %s "$SECRET" | base64 -w 16 | sed "s/^/    /"'],
    "od": ["sh", "-c", 'printf %s "$SECRET" | od -An -v -tx1 | tr -d " "'],
    "xxd": ["xxd", "-p"],
    "env": ["env"],
    "python": ["python3", "-c", "import os; print([os.environ['SECRET']], os.environb[b'SECRET'])"],
}


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("writer", WRITERS)
def test_what_a_program_writes_is_masked(writer: str, locale: str, secret: str) -> None:
    """Shells that trace, programs that quote: the secret shows in none of it."""
    argv = WRITERS[writer]
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    env = {"PATH": os.environ["PATH"], "LC_ALL": locale, "SECRET": secret, "PYTHONUTF8": "1"}
    done = subprocess.run(argv, check=True, capture_output=True, env=env, input=secret.encode())
    written = done.stdout + done.stderr
    masked = Vault([secret]).data(written)
    assert MASK.encode() in masked
    assert masked.count(MASK.encode()) >= (2 if writer == "python" else 1)


def test_short_values_have_no_forms() -> None:
    """Three bytes are too short, four are enough."""
    assert not forms_of("abc")
    assert not forms_of("")
    assert b"abcd" in forms_of("abcd")
    # two characters of two bytes each
    assert "éé".encode() in forms_of("éé")


def test_a_token_has_few_forms() -> None:
    """A secret that no program quotes is raw, base64, hexadecimal or a code for every byte."""
    assert len(forms_of("0123456789abcdef")) == 9
    assert len(forms_of("0123456789abcdex_/")) == 21


def test_surrogates_that_stand_for_no_byte() -> None:
    """A secret may hold what JSON writes as half a pair."""
    assert Vault(["a\ud800bcd"]).text("x a\ud800bcd \udcff") == f"x {MASK} \udcff"
    assert Vault(["geheim"]).text("\ud800 geheim \udcff") == f"\ud800 {MASK} \udcff"
