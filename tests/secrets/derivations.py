"""What programs make of secrets: trimmed, split, joined, and encoded; and what shows of it.

docs/security.md shows these encodings of `EXAMPLE`.
"""

from __future__ import annotations

import base64
import codecs
import html
import json
import pathlib
import quopri
import re
import shlex
import xml.sax.saxutils
import zlib
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

import yaml

from pairun.secrets.forms import MIN_BYTES

VALUES = [
    "Vk3tok/en88+99==\n",
    " \t Zq7wq'<é>&\"$Wx9K,t\\55 \r\n\n",
    "\n  Jm4'lin&e77\nab\n\tHx5<b>\"22w \ncd\n\nef\r\nWz6\\$th1=ird \n\n",
    "Qaz\nZb\nXcw\nYd\n",
    """-----BEGIN SORT OF KEY-----
R8m0K5z1T9v3Y7q2W4x6B0n5M1k8J3h7G2f9D4s6A0p1
L5o8I2u7Y4t9R3e6W1q0
Z9==
-----END SORT OF KEY-----
""",
]
JOINS = {"line end": "\n", "CR LF": "\r\n", "space": " ", "comma": ",", "nothing": ""}


def lines_of(value: str) -> list[str]:
    """The trimmed lines that are long enough to be masked."""
    lines = {*map(str.strip, value.split("\n")), *map(str.strip, value.splitlines())}
    return sorted(line for line in lines if len(line.encode()) >= MIN_BYTES)


def _trims() -> Iterator[tuple[str, Callable[[str], list[str]]]]:
    for trim in (str.strip, str.lstrip, str.rstrip, lambda v: v.rstrip("\n")):
        yield getattr(trim, "__name__", ""), lambda v, trim=trim: [trim(v)]  # type: ignore[misc]
    yield "splitlines", lines_of
    for name, mark in JOINS.items():
        for trim in (str, str.strip, str.lstrip, str.rstrip):
            for least in (0, 1):
                yield (
                    f"{trim.__name__}, joined by {name}{', no empty' * least}",
                    lambda v, trim=trim, mark=mark, least=least: [  # type: ignore[misc]
                        mark.join(s for s in map(trim, v.splitlines()) if len(s.strip()) >= least)
                    ],
                )


TRANSFORMATIONS = dict(_trims())
"""What a program makes of a value."""


def _inner(quoted: str) -> str:
    return quoted[1:-1]


def _lower(text: str) -> str:
    parts = text.split("%")
    return "%".join([parts[0], *(p[:2].lower() + p[2:] for p in parts[1:])])


def _yaml(text: str, *, any_alphabet: bool) -> str:
    written = yaml.dump(text, default_style='"', width=10**9, allow_unicode=any_alphabet)
    return written.removesuffix("\n")[1:-1]


def _escaped(text: str, written: str) -> str:
    return "".join(written % byte for byte in text.encode())


EXAMPLE = 'it\'s "é"'

QUOTED: dict[str, Callable[[str], str]] = {
    "raw": str,
    "JSON": lambda s: json.dumps(s)[1:-1],
    "JSON, capital digits": lambda s: re.sub(
        r"(\\u)(\w{4})", lambda m: m[1] + m[2].upper(), json.dumps(s)[1:-1]
    ),
    "JSON, any alphabet": lambda s: json.dumps(s, ensure_ascii=False)[1:-1],
    "YAML, double quotes": lambda s: _yaml(s, any_alphabet=False),
    "YAML, double quotes, any alphabet": lambda s: _yaml(s, any_alphabet=True),
    "YAML, single quotes": lambda s: s.replace("'", "''"),
    "CSV": lambda s: s.replace('"', '""'),
    "URL": lambda s: quote(s, safe=""),
    "URL, slashes": quote,
    "URL, form": quote_plus,
    "URL, small digits": lambda s: _lower(quote(s, safe="")),
    "shell, single quotes": lambda s: s.replace("'", "'\\''"),
    "shell, Python's shlex": lambda s: shlex.quote(s + " ")[1:-2],
    "shell, double quotes": lambda s: re.sub(r'([\\"$`])', r"\\\1", s),
    "Python": lambda s: _inner(repr(s)),
    "Python, ASCII": lambda s: _inner(ascii(s)),
    "Python, bytes": lambda s: _inner(repr(s.encode())[1:]),
    "Python, in a text with both quotes": lambda s: repr("'\"" + s)[4:-1],
    "regular expression": re.escape,
    "HTML": html.escape,
    "HTML, no quotes": lambda s: html.escape(s, quote=False),
    "HTML, ASCII": lambda s: html.escape(s).encode("ascii", "xmlcharrefreplace").decode(),
    "XML": lambda s: xml.sax.saxutils.escape(s, {'"': "&quot;", "'": "&apos;"}),
}
"""How programs quote a text."""

OUTER = ("JSON", "JSON, any alphabet", "shell, single quotes", "shell, double quotes", "Python", "HTML", "URL")  # fmt: skip
"""What a quoted text may be quoted for once more."""


def _base64(text: str, before: bytes = b"") -> str:
    return base64.b64encode(before + text.encode()).decode()


def _wrapped(text: str, width: int, indent: str = "") -> str:
    return "\n".join(indent + text[at : at + width] for at in range(0, len(text), width))


WRITTEN: dict[str, Callable[[str], str]] = {
    **QUOTED,
    "JSON within JSON": lambda s: json.dumps(json.dumps(s)[1:-1])[1:-1],
    "base64": _base64,
    "base64 for URLs": lambda s: base64.urlsafe_b64encode(s.encode()).decode(),
    "base64 after a name": lambda s: _base64(s, b"user:"),
    "base64 in lines": lambda s: _wrapped(_base64(s), 16),
    "base64 in indented lines": lambda s: _wrapped(_base64(s), 20, "    "),
    "hexadecimal": lambda s: s.encode().hex(),
    "hexadecimal, capital digits": lambda s: s.encode().hex().upper(),
    "hexadecimal, spaces": lambda s: s.encode().hex(" "),
    "hexadecimal, colons": lambda s: s.encode().hex(":").upper(),
    "`%` for every byte": lambda s: _escaped(s, "%%%02X"),
    r"`\x` for every byte": lambda s: _escaped(s, r"\x%02x"),
}
"""How programs write a text."""

EXCLUDED: dict[str, Callable[[str], str]] = {
    "JSON within JSON within JSON": lambda s: json.dumps(json.dumps(json.dumps(s)[1:-1])[1:-1])[
        1:-1
    ],
    "base64 twice": lambda s: _base64(_base64(s)),
    "base32": lambda s: base64.b32encode(s.encode()).decode(),
    "base85": lambda s: base64.b85encode(s.encode()).decode(),
    "hexadecimal, two bytes each": lambda s: s.encode().hex(" ", -2),
    "decimal bytes": lambda s: str([*s.encode()]),
    "octal for every byte": lambda s: _escaped(s, r"\%03o"),
    "a code for every character": lambda s: "".join(f"&#{ord(c)};" for c in s),
    "quoted-printable": lambda s: quopri.encodestring(s.encode(), quotetabs=True).decode(),
    "reversed": lambda s: s[::-1],
    "other letters": lambda s: codecs.encode(s, "rot13"),
    "UTF-16": "\0".join,
    "the first half": lambda s: s[: len(s) // 2],
    "compressed or encrypted": lambda s: zlib.compress(s.encode()).decode("latin-1"),
}
"""How programs may write a text so that no sink masks it."""

SHELL = r"""
say() { printf '%s\n' "$1"; }  # echo decodes backslashes
x=$(cat "$F"); say "cat $x"; set -x; : "trace $x"; set +x
read -r x < "$F"; say "read $x"
while read -r x; do [ ${#x} -lt 4 ] || say "while $x"; done < "$F"
while IFS= read -r x; do [ ${#x} -lt 6 ] || say "blanks $x"; done < "$F"
x=$(cat "$F"; echo .); P=${x%.}; set -f
IFS='
'; set -- $P; say "lines $*"; IFS=,; say "commas $*"; unset IFS
set -- $P; say "words $*"; [ "$1" != "$*" ] || say "first $1"
paste -sd, "$F"; paste -sd' ' "$F"; tr '\n' ' ' < "$F"; echo; tr -d '\r\n' < "$F"; echo
sed 's/^[[:space:]]*//; s/[[:space:]]*$//' "$F" | tr '\n' ,; echo; sed 's/$/\r/' "$F"
printf %s "$x" | base64 -w 16; tr -d '\n' < "$F" | base64; od -An -v -tx1 "$F" | tr -d ' \n'; echo
[ -z "$BASH_VERSION" ] || { printf '%q\n' "$P"; say "${P@Q}"; set -x; : "trace $P"; set +x; }
"""
"""What a shell makes of the file F."""


def printing(folder: pathlib.Path) -> str:
    """A command that prints all of this, with the raw texts last, where an end of a log has them.

    Args:
        folder: where the command's files may be.
    """
    texts = {
        written(text)
        for value in VALUES
        for change in TRANSFORMATIONS.values()
        for text in change(value)
        for written in reversed(WRITTEN.values())
    }
    # A line between two texts: they are not neighbours in any log.
    (folder / "derived").write_text("".join(f"next\n{t}\n" for t in sorted(texts)), newline="")
    (folder / "script").write_text(SHELL)
    shells = []
    for n, value in enumerate(VALUES):
        (folder / f"value{n}").write_text(value, newline="")
        for shell in ("bash", "sh"):
            shells.append(f"F={folder}/value{n} {shell} {folder}/script 2>&1")
    return f"cat {folder}/derived; {'; '.join(shells)}"


def shown_of(text: str) -> list[str]:
    """What of the values a text shows, in whatever form."""
    found = {piece for piece in _pieces() if piece in text}
    found |= set(re.findall(r"Qaz\W{0,6}Zb|Zb\W{0,6}Xcw|Xcw\W{0,6}Yd", text))
    return sorted(found)


def _pieces() -> Iterator[str]:
    for value in VALUES:
        for line in lines_of(value):
            if line.startswith("-----"):
                continue  # other keys have it, too
            # what no form changes
            yield from re.findall(r"[A-Za-z0-9]{4,}", line)
            raw = line.encode()
            for n in range(3):
                inner = base64.b64encode(bytes(n) + raw)[(n * 8 + 5) // 6 : (n + len(raw)) * 8 // 6]
                yield from _windows(inner.decode(), 6)
            yield from _windows(raw.hex(), 8)
            yield from _windows(raw.hex().upper(), 8)


def _windows(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(len(text) - size + 1))
