"""Finds characters that look like ASCII quotes and spaces, as editors and web pages insert them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from pairun.errors import Place, Problem, Problems
from pairun.formats.shell.reading import read_shell
from pairun.playbook.document.reading import Node
from pairun.playbook.document.textplaces import place_in

_QUOTES = dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"') | dict.fromkeys(
    "\u2018\u2019\u201a\u201b\u2032", "'"
)
_DASHES = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
_SPACES = dict.fromkeys(
    "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
    " ",
)
_INVISIBLE = dict.fromkeys("\u00ad\u180e\u200b\u200c\u200d\u2060\ufeff", "")
_DIRECTIONS = dict.fromkeys(
    "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", ""
)
_ASCII = {**_QUOTES, **_DASHES, **_SPACES, **_INVISIBLE, **_DIRECTIONS}
"""Each such character and its replacement; empty if it is to be removed."""

_COMMANDS = frozenset({"commands", "preCommands", "postCommands", "script", "unless"})
_ADDRESSES = frozenset({"uri", "registryuri", "repo_uri", "repo", "url"})
_TEXTS = frozenset({"description", "contributor", "summary"})


def check_characters(document: Node, problems: Problems) -> None:
    """Warn of typographic and invisible characters in keys, addresses and commands.

    Args:
        document: a job.
        problems: takes the warnings.
    """
    todo = [("", document)]
    seen: set[int] = set()
    while todo:
        key, node = todo.pop()
        if isinstance(node.value, str):
            problems.extend(_text_warnings(key, node))
        elif id(node.value) not in seen:  # an alias shares its value
            seen.add(id(node.value))
            for name, child in node.items():
                problems.extend(_key_warnings(name, child))
                todo.append((name, child))
            todo += [(key, child) for child in node.elements()]


def _key_warnings(key: str, child: Node) -> Iterator[Problem]:
    place = child.key or child.place
    for char in dict.fromkeys(c for c in key if c in _ASCII):
        at = place.source.text.split("\n")[place.line - 1].find(char, place.column - 1)
        exact = Place(place.source, place.line, at + 1) if at >= 0 else place
        yield _warning(f"the key '{_readable(key)}' has", char, exact)


def _text_warnings(key: str, node: Node) -> Iterator[Problem]:
    text: str = node.value
    if text.isascii() or key in _TEXTS:
        return
    if key in _COMMANDS:
        offsets = _in_command(text)
        what = "the command has"
    elif key in _ADDRESSES or ("://" in text and " " not in text):
        offsets = (n for n, c in enumerate(text) if c in _ASCII)
        what = "the address has"
    else:
        return
    seen: set[str] = set()
    for offset in offsets:
        if (char := text[offset]) not in seen:
            seen.add(char)
            yield _warning(what, char, place_in(node, offset))


def _in_command(text: str) -> Iterator[int]:
    """The positions of such characters in a command, outside of text for people."""
    yield from (n for n, c in enumerate(text) if c in _DIRECTIONS)
    for offset, char in read_shell(text).bare:
        before, after = text[:offset][-1:], text[offset + 1 : offset + 2]
        begins = not before or before.isspace() or before in "=(,;|&<>"
        if (
            char in _SPACES
            or char in _INVISIBLE
            or (char in _QUOTES and begins)
            or (
                char in _DASHES
                and (begins or before == "-")
                and (after.isalnum() or after in _DASH_TOO)
            )
        ):
            yield offset


_DASH_TOO = frozenset({"-", *_DASHES})


def _warning(what: str, char: str, place: Place) -> Problem:
    name = unicodedata.name(char, "an invisible character").lower()
    meant = _ASCII[char]
    hint = f"write {'a space' if meant == ' ' else meant}" if meant else "remove it"
    message = f"{what} U+{ord(char):04X} ({name})"
    if meant:
        message += f" in place of {'a space' if meant == ' ' else meant}"
    return Problem("PR928", message, place, hint, "warning")


def _readable(key: str) -> str:
    return "".join(f"<U+{ord(c):04X}>" if c in _ASCII and c not in _QUOTES else c for c in key)
