"""Finds secrets in plain text: what a text must not show, by its keys and its shape."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

from pairun.secrets.secret import Secret

_WORDS = frozenset(
    {"password", "passwd", "passphrase", "pwd", "token", "secret", "authorization", "cookie",
     "credential", "credentials", "apikey"}
)  # fmt: skip
_KEYS = frozenset({"api", "access", "private", "secret"})
"""Words that make a ``key`` secret (``api_key``); other keys are those of mappings."""
_MISSPELT = ("password", "passwd", "token", "secret", "authorization")
_NOT_MISSPELT = frozenset({"tokens", "secrets"})
_CLOSE = 0.85

# Tags, expressions and shell variables are not secrets themselves.
_LOGIN = r"""://([^\s/@:"'<>{}`]*)(?::([^\s/"'<>{}`]*))?@"""
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*$"
_LONGEST_SCHEME = 64
"""How far to search backwards for a scheme: searching one very long word forwards never ends."""
_LONG_USER = 16
"""A name of at least this length before a server without a password counts as a token."""

# Azure credentials: the signature in a storage URL, and an account's key.
_SIGNATURE = r"[?&;]sig=([^&;\s\"'<>{}$]+)"
_ACCOUNT_KEY = "[A-Za-z0-9+/]{86}=="

# Match each word only once, as in _KEY below.
_ASSIGNMENT = r"""(?<![\w-])([\w-]++)=["']?([^\s,;&|"'`<>()]++)"""

# Access keys of AWS, and tokens of GitHub, GitLab, Hugging Face, OpenAI and Slack.
_TOKENS = (
    r"\b(?:A[KS]IA[A-Z0-9]{16}|gh[oprsu]_\w{36,255}|github_pat_\w{40,255}|glpat-[\w-]{20,64}"
    r"|hf_[A-Za-z0-9]{30,64}|sk-[A-Za-z0-9-]{32,200}|xox[abprs]-[\w-]{10,200})"
)

_SCHEMES = r"(?is)(?:bearer|basic|token)\s+(\S.*)"


@functools.lru_cache(maxsize=4096)
def is_secret_key(name: str) -> bool:
    """Whether a key's name, even misspelt, marks its value as a secret."""
    words = [w.lower() for w in re.findall("[A-Z]*[a-z0-9]+|[A-Z]+", name)]
    if not words:
        return False
    if words[-1] in _WORDS or (words[-1] == "key" and len(words) > 1 and words[-2] in _KEYS):
        return True
    whole = "".join(words)
    if whole in _NOT_MISSPELT or whole[0] not in "pats":
        return False
    swapped = any(sorted(whole) == sorted(word) for word in _MISSPELT)
    from difflib import get_close_matches  # most texts do not need it

    return swapped or bool(get_close_matches(whole, _MISSPELT, 1, _CLOSE))


def yaml_lines(text: str) -> list[str]:
    """The lines of a text as libyaml counts them: all line breaks of YAML 1.1, section 4.1.4."""
    return re.split(_BREAK, text)


_BREAK = "\r\n|[\n\r\x85\u2028\u2029]"


def secret_lines(text: str) -> set[int]:
    """The lines (from 1) that may hold secrets, by their shape, because the text may not parse.

    These are: the block of a job's ``secrets``, from that key to the next word in column 0 or, in
    JSON and flow mappings, to the end; values of secret keys; and logins in addresses.
    """
    hidden: set[int] = set()
    lines = yaml_lines(text)
    in_secrets = False
    deeper: int | None = None
    for number, line in enumerate(lines, 1):
        if re.search(_FLOW_SECRETS, line):
            hidden.update(range(number, len(lines) + 1))
            break
        indent = len(line) - len(line.lstrip())
        key = re.match(_FIRST_KEY, line)
        if key and _means_secrets(key[1]):
            in_secrets = True
        elif in_secrets and re.match(_NEXT_BLOCK, line):
            in_secrets = False
        if deeper is not None and line.strip() and indent <= deeper:
            deeper = None
        values = [line[m.end() :].strip() for m in re.finditer(_KEY, line) if _may_be_secret(m[1])]
        if (
            in_secrets
            or deeper is not None
            or any(map(_is_written_out, values))
            or any(logins(line))
        ):
            hidden.add(number)
        if deeper is None and any(re.match(_BLOCK_SCALAR, value) for value in values):
            deeper = indent
    return hidden


_FLOW_SECRETS = r"""[{,]\s*["']?secrets["']?\s*:|"secrets"\s*:"""
_FIRST_KEY = r"""["']?([\w-]+)["']?\s*:"""
_NEXT_BLOCK = r"""[\w"']"""
# Match each word only once: otherwise a text of one very long word takes far too long.
_KEY = r"""(?<![\w-])([\w-]++)["']?[ \t]*:(?=[ \t]|$)"""
_BLOCK_SCALAR = r"[|>][-+0-9]*\s*(?:#|$)"
_NOT_WRITTEN_OUT = r"""$|#|["']?(?:\{\{|<%|\$)|[|>][-+0-9]*\s*(?:#|$)"""


def _is_written_out(value: str) -> bool:
    return not re.match(_NOT_WRITTEN_OUT, value)


def _may_be_secret(key: str) -> bool:
    """Whether a key's line should be hidden; also true if only the key's last word is secret."""
    return is_secret_key(key) or key.lower().endswith(_MISSPELT)


def _means_secrets(word: str) -> bool:
    """Whether a key is ``secrets``, even misspelt."""
    if word == "secrets" or word[:1] not in "sS":
        return word == "secrets"
    from difflib import SequenceMatcher

    return SequenceMatcher(None, word.lower(), "secrets").ratio() >= 0.8


def logins(text: str) -> Iterator[str]:
    """The passwords and tokens before the ``@`` of a text's addresses, raw and URL-decoded."""
    if "://" not in text:
        return
    from urllib.parse import unquote

    for login in re.finditer(_LOGIN, text):
        scheme = re.search(_SCHEME, text[max(0, login.start() - _LONGEST_SCHEME) : login.start()])
        if scheme is None:
            continue
        user, password = login[1], login[2] or ""
        token = scheme[0].lower() in ("http", "https") and len(user) >= _LONG_USER
        for part in (password, user if token and not password else ""):
            if part and not part.startswith("$"):
                yield from {part, unquote(part)}


def plain_secrets(key: str, value: Any) -> Iterator[str]:
    """The parts of a key's value to hide, as far as they are literal."""
    if not isinstance(value, str):
        return
    yield from logins(value)
    yield from _signatures(value)
    yield from re.findall(_TOKENS, value)
    if value and is_secret_key(key) and not value.startswith("$") and not _is_made(value):
        yield value
        if header := re.fullmatch(_SCHEMES, value):
            yield header[1]


def script_secrets(text: str) -> Iterator[str]:
    """The parts of a script to hide: those of any text, and the values of ``password=x``.

    A number after a word like ``max_token`` is a count; after ``password`` it is a secret.
    """
    yield from plain_secrets("", text)
    for key, value in re.findall(_ASSIGNMENT, text):
        is_count = key.lower().endswith("token") and value.isdecimal()
        if is_secret_key(key) and not value.startswith("$") and not is_count:
            yield value


def _signatures(text: str) -> Iterator[str]:
    if re.fullmatch(_ACCOUNT_KEY, text):
        yield text
    if "sig=" in text:
        from urllib.parse import unquote

        for found in re.findall(_SIGNATURE, text):
            yield from {found, unquote(found)}


def _is_made(value: str) -> bool:
    """Whether a text consists of references to others, which decide whether it is secret."""
    return "{{" in value or "<%" in value


def with_secrets(value: Any, key: str = "") -> Any:
    """Plain data in which every text with a match of `plain_secrets` is a `Secret`."""
    if isinstance(value, dict):
        return {k: with_secrets(v, str(k)) for k, v in value.items()}
    if isinstance(value, list):
        return [with_secrets(v, key) for v in value]
    # placeholders are texts of another type
    return Secret(value) if type(value) is str and any(plain_secrets(key, value)) else value
