"""The forms of a secret: every way in which programs write it.

A secret is written raw, in hexadecimal digits, base64-encoded in one of three alignments,
URL-encoded, or quoted for JSON, a shell, Python or HTML.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator

MASK = "******"
MIN_BYTES = 4
"""Shorter values are not masked: masking every ``1`` would destroy the log and hide nothing."""

MIN_LINE = 16
"""A line of a secret with at least as many characters is masked as a separate secret."""


def encoded(text: str) -> bytes:
    """A text as the bytes in a log; keeps surrogates that represent no byte."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def forms_of(secret: str) -> set[bytes]:
    """Every form of a secret; empty if it is shorter than `MIN_BYTES`."""
    if len(encoded(secret)) < MIN_BYTES:
        return set()
    lines = [line.strip() for line in secret.splitlines()]
    # Programs print a key file line by line, or indented.
    parts = [line for line in lines if len(line) >= MIN_LINE] if len(lines) > 1 else []
    return {form for text in (secret, *parts) for form in _forms(text)}


def _forms(text: str) -> Iterator[bytes]:
    raw = encoded(text)
    yield raw
    for quote in (_json, _shell, _python, _html):
        yield from map(encoded, quote(text))
    yield from _url(raw)
    yield from _base64(raw)
    yield raw.hex().encode()
    yield raw.hex().upper().encode()


def _json(text: str) -> Iterator[str]:
    for ascii_only in (True, False):
        escaped = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield escaped
        # PHP escapes slashes; Go escapes characters that HTML could misread.
        yield escaped.replace("/", r"\/")
        yield escaped.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _url(raw: bytes) -> Iterator[bytes]:
    # slow to import, and needed only if there are secrets
    from urllib.parse import quote, quote_plus

    # RFC 3986, paths, forms, and JavaScript's encodeURIComponent
    for form in (quote(raw, safe=""), quote(raw), quote_plus(raw), quote(raw, safe="!'()*")):
        yield form.encode()
        yield re.sub(r"%[0-9A-F]{2}", lambda m: m[0].lower(), form).encode()


def _base64(raw: bytes) -> Iterator[bytes]:
    for shift in range(3):
        # Only the characters that depend on the secret alone.
        padded = base64.b64encode(bytes(shift) + raw)
        inner = padded[(shift * 8 + 5) // 6 : (shift + len(raw)) * 8 // 6]
        if len(inner) >= MIN_BYTES:
            yield inner
            yield inner.translate(bytes.maketrans(b"+/", b"-_"))


_BACKSLASHED = re.compile(r"""[ \t!"$&'()*,;<>?\[\\\]^`{|}]""")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_NOT_PRINTABLE = re.compile(r"[^\x20-\x7e]+")
_CODES = dict(zip("\a\b\t\n\v\f\r", "abtnvfr", strict=True))


def _shell(text: str) -> Iterator[str]:
    """A word as shells and tools print it: ``set -x``, ``printf %q``, ``${x@Q}``, ``export``."""
    single = text.replace("'", r"'\''")
    yield single
    yield text.replace("'", "'\"'\"'")  # Python's shlex
    yield text.replace("'", "''")  # zsh's rc_quotes; also YAML and SQL
    # No other pair follows quotes at the end of a word.
    end = "'" if text.endswith("'") else ""
    yield re.sub("'+", lambda m: f"'\"{m[0]}\"'", text).removesuffix(end)  # dash, busybox
    zsh = re.sub("'+", lambda m: "'" + r"\'" * len(m[0]) + "'", text).removesuffix(end)
    yield zsh.removeprefix("'") if text.startswith("'") else zsh
    yield re.sub(r'[\\"$`]', r"\\\g<0>", text)
    backslashed = _BACKSLASHED.sub(r"\\\g<0>", text)
    yield backslashed
    yield backslashed.replace(r"\,", ",")
    if text[0] in "#~":
        yield "\\" + backslashed
    yield from ("".join(map(code, text)) for code in (_bash_code, _bash_code_c, _zsh_code))
    yield "".join(c if c.isprintable() and not c.isascii() else _zsh_code(c) for c in text)
    for special in (_CONTROL, _NOT_PRINTABLE):  # coreutils
        quoted = special.sub(lambda m: "'$'" + "".join(map(_code, m[0])) + "''", single)
        yield quoted.removesuffix("'") if special.match(text[-1]) else quoted


def _code(character: str) -> str:
    """A character in ``$'…'``, as a letter or in octal."""
    if code := _CODES.get(character):
        return "\\" + code
    return "".join(f"\\{byte:03o}" for byte in encoded(character))


def _bash_code(character: str) -> str:
    if character in "\x1b\\'":
        return "\\" + character.replace("\x1b", "E")
    return _code(character) if _CONTROL.match(character) else character


def _bash_code_c(character: str) -> str:
    """As `_bash_code`, in the locale C."""
    return _bash_code(character) if character.isascii() else _code(character)


def _zsh_code(character: str) -> str:
    return "".join(map(_zsh_byte, encoded(character)))


def _zsh_byte(byte: int) -> str:
    if byte >= 0x80:
        return r"\M-" + _zsh_byte(byte - 0x80)
    if byte in b"\\'\n\t":
        return {"\n": r"\n", "\t": r"\t"}.get(chr(byte), "\\" + chr(byte))
    return rf"\C-{chr(byte ^ 0x40)}" if _CONTROL.match(chr(byte)) else chr(byte)


def _python(text: str) -> Iterator[str]:
    """As ``repr`` writes text and bytes; the surrounding text determines the quotes."""
    for written in (repr, ascii):
        yield written('"' + text)[2:-1]
        if '"' not in text:
            yield written("'" + text)[2:-1]
    raw = encoded(text)
    yield repr(b'"' + raw)[3:-1]
    if b'"' not in raw:
        yield repr(b"'" + raw)[3:-1]


_HTML_QUOTES = (
    ('"', "'"),
    ("&quot;", "&#x27;"),  # Python, handlebars
    ("&#34;", "&#39;"),  # Jinja, Go
    ("&quot;", "&#39;"),
    ("&quot;", "&#039;"),  # PHP
    ("&quot;", "&apos;"),  # XML
    ("&quot;", "'"),
)


def _html(text: str) -> Iterator[str]:
    if text.isalnum() and text.isascii():
        return
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for double, single in _HTML_QUOTES:
        quoted = plain.replace('"', double).replace("'", single)
        yield quoted
        yield "".join(c if c.isascii() else f"&#{ord(c)};" for c in quoted)
    yield plain.replace('"', "&#34;").replace("'", "&#39;").replace("+", "&#43;")  # Go
