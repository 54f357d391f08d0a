"""The forms of a secret: every way in which programs write it.

docs/security.md lists the encodings. Programs also trim a secret, split it at line ends, and join
its lines.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator

MASK = "******"
MIN_BYTES = 4
"""Shorter values are not masked: masking every ``1`` would destroy the log and hide nothing. The
same is true of the lines of a value."""

MIN_LINE = 16
"""Shorter lines are encoded with the lines around them: base64 mixes a line's ends with those."""

MAX_JOINED = 256
"""How many characters lines have that are joined: what a line of a key and a few short ones need."""

MAX_QUOTED_TWICE = 4096
"""How many characters a text has that is quoted twice: what a service account in one line needs."""

_JOINS = ("\n", "\r\n", " ", ",", "")


def encoded(text: str) -> bytes:
    """A text as the bytes in a log; keeps surrogates that represent no byte."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def forms_of(secret: str) -> set[bytes]:
    """Every form of a secret; empty if it is shorter than `MIN_BYTES`."""
    if not _is_masked(secret):
        return set()
    trimmed = secret.strip()
    # Without the white space at its ends: what remains of a log's line stays a line.
    parts, wholes = {trimmed if _is_masked(trimmed) else secret}, {secret}
    if len(trimmed.splitlines()) > 1:
        for lines in (trimmed.splitlines(), trimmed.split("\n")):
            parts.update(line.strip() for line in lines)
            parts.update(_joined(lines, MIN_BYTES))
            wholes.update(_joined(lines, MIN_LINE))
    parts = set(filter(_is_masked, parts))
    forms = {form for part in parts for form in _quoted(part)}
    return forms.union(*(_encoded(encoded(whole)) for whole in parts | wholes))


def _is_masked(text: str) -> bool:
    return len(encoded(text)) >= MIN_BYTES


def _joined(lines: list[str], least: int) -> Iterator[str]:
    """Lines in one text, as programs join them.

    A longer line has a form itself, so only short ones are joined, with as few others as possible.
    No line is in two joins, and none is joined with a very long one: all joins together are as long
    as the secret's short lines, times a constant.

    Args:
        lines: the lines of a secret.
        least: a line with fewer bytes is short.
    """
    groups: list[list[str]] = [[]]
    size = 0
    for line in lines:
        if size >= least:
            groups.append([])
            size = 0
        groups[-1].append(line)
        size += len(encoded(line.strip()))
    if size < least and len(groups) > 1:
        groups[-2:] = [groups[-2] + groups[-1]]
    for group in groups:
        if len(group) > 1 and sum(map(len, group)) <= MAX_JOINED:
            for trim in (str, str.strip, str.lstrip, str.rstrip):
                trimmed = [*map(trim, group)]
                for kept in (trimmed, [line for line in trimmed if line.strip()]):
                    yield from (mark.join(kept).strip() for mark in _JOINS)


def _quoted(text: str) -> Iterator[bytes]:
    """Forms in which each character is written for itself, quoted once and twice."""
    if text.isalnum() and text.isascii():
        yield text.encode()
        return
    once = {text, text.replace('"', '""'), re.escape(text)}  # CSV, a regular expression
    for quote in (_json, _yaml, _shell, _python, _html, _url):
        once.update(quote(text))
    yield from map(encoded, once)
    if len(text) <= MAX_QUOTED_TWICE:
        for each in once:
            yield from map(encoded, _outer(each))


def _outer(text: str) -> Iterator[str]:
    """A quoted text within JSON, a shell's quotes, Python, HTML or a URL."""
    from urllib.parse import quote

    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield text.replace("'", r"'\''")
    yield re.sub(r'[\\"$`]', r"\\\g<0>", text)
    yield from _repr(text, repr)
    yield _without_tags(text).replace('"', "&quot;").replace("'", "&#x27;")
    yield quote(encoded(text), safe="")


def _encoded(raw: bytes) -> Iterator[bytes]:
    """Forms that depend on a text as a whole."""
    yield from _base64(raw)
    for digits in (raw.hex(" "), raw.hex(" ").upper()):
        for before, mark in (("", ""), ("", " "), ("", ":"), ("%", "%"), (r"\x", r"\x")):
            yield (before + digits.replace(" ", mark)).encode()


def _json(text: str) -> Iterator[str]:
    for ascii_only in (True, False):
        escaped = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield escaped
        yield re.sub(r"\\u[0-9a-f]{4}", lambda m: r"\u" + m[0][2:].upper(), escaped)
        # PHP escapes slashes; Go escapes characters that HTML could misread.
        yield escaped.replace("/", r"\/")
        yield escaped.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _yaml(text: str) -> Iterator[str]:
    """A text in double quotes, as libyaml and PyYAML write it with and without other alphabets."""
    for ascii_only in (True, False):
        yield "".join(_yaml_code(c, ascii_only=ascii_only) for c in text)


def _yaml_code(character: str, *, ascii_only: bool) -> str:
    if " " <= character <= "~" and character not in '"\\':
        return character
    if not ascii_only and re.match(
        "[\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]", character
    ):
        return character
    number = ord(character)
    digits = f"x{number:02X}" if number < 0x100 else f"u{number:04X}"
    return "\\" + _YAML_CODES.get(character, digits if number < 0x10000 else f"U{number:08X}")


def _url(text: str) -> Iterator[str]:
    # slow to import, and needed only if there are secrets
    from urllib.parse import quote, quote_plus

    raw = encoded(text)
    # RFC 3986, paths, forms, and JavaScript's encodeURIComponent
    for form in (quote(raw, safe=""), quote(raw), quote_plus(raw), quote(raw, safe="!'()*")):
        yield form
        yield re.sub(r"%[0-9A-F]{2}", lambda m: m[0].lower(), form)


def _base64(raw: bytes) -> Iterator[bytes]:
    for shift in range(3):
        # Only the characters that depend on the secret alone.
        padded = base64.b64encode(bytes(shift) + raw)
        inner = padded[(shift * 8 + 5) // 6 : (shift + len(raw)) * 8 // 6]
        if len(inner) >= MIN_BYTES:
            yield inner
            yield inner.translate(bytes.maketrans(b"+/", b"-_"))


_BACKSLASHED = re.compile(r"""[ \t!"$&'()*,;<>?\[\\\]^`{|}]""")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_CODES = dict(zip("\a\b\t\n\v\f\r\x1b\\'", "abtnvfrE\\'", strict=True))
_YAML_CODES = dict(
    zip('\0\a\b\t\n\v\f\r\x1b"\\\x85\xa0\u2028\u2029', '0abtnvfre"\\N_LP', strict=True)
)


def _shell(text: str) -> Iterator[str]:
    """A word as ``set -x``, ``printf %q``, ``${x@Q}`` and ``export`` of bash, dash and busybox."""
    yield text.replace("'", r"'\''")
    yield text.replace("'", "'\"'\"'")  # Python's shlex
    yield text.replace("'", "''")  # YAML and SQL
    # No other pair follows quotes at the end of a word.
    end = "'" if text.endswith("'") else ""
    yield re.sub("'+", lambda m: f"'\"{m[0]}\"'", text).removesuffix(end)  # dash, busybox
    yield re.sub(r'[\\"$`]', r"\\\g<0>", text)
    backslashed = _BACKSLASHED.sub(r"\\\g<0>", text)
    yield backslashed
    yield backslashed.replace(r"\,", ",")
    yield "".join(_code(c, ascii_only=False) for c in text)
    yield "".join(_code(c, ascii_only=True) for c in text)


def _code(character: str, *, ascii_only: bool) -> str:
    """A character in ``$'…'``, as a letter or in octal; the locale C knows only ASCII."""
    if code := _CODES.get(character):
        return "\\" + code
    if _CONTROL.match(character) or (ascii_only and not character.isascii()):
        return "".join(f"\\{byte:03o}" for byte in encoded(character))
    return character


def _python(text: str) -> Iterator[str]:
    """As ``repr`` writes text and bytes."""
    yield from _repr(text, repr)
    yield from _repr(text, ascii)
    raw = encoded(text)
    yield repr(b'"' + raw)[3:-1]
    if b'"' not in raw:
        yield repr(b"'" + raw)[3:-1]


def _repr(text: str, written: Callable[[str], str]) -> Iterator[str]:
    """The surrounding text determines the quotes."""
    yield written('"' + text)[2:-1]
    if '"' not in text:
        yield written("'" + text)[2:-1]


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
    plain = _without_tags(text)
    for double, single in _HTML_QUOTES:
        quoted = plain.replace('"', double).replace("'", single)
        yield quoted
        yield "".join(c if c.isascii() else f"&#{ord(c)};" for c in quoted)
    yield plain.replace('"', "&#34;").replace("'", "&#39;").replace("+", "&#43;")  # Go


def _without_tags(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
