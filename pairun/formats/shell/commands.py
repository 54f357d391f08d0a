"""The effect of a script's simple command on variables; bash(1), SHELL BUILTIN COMMANDS."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile, pairwise, takewhile
from typing import NamedTuple

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[^\]]*\])?\+?=")

_DECLARES = frozenset(
    {"export", "declare", "typeset", "local", "readonly", "read", "mapfile", "readarray", "getopts",
     "wait", "let", "unset", "coproc"}
)  # fmt: skip
"""Builtins whose arguments are names of variables that they set."""

_UNKNOWN = frozenset(
    {"source", ".", "eval", "conda", "mamba", "micromamba", "module", "ml", "spack", "workon", "nvm",
     "pyenv"}
)  # fmt: skip
"""Commands that may set variables that the script does not show."""

_PREFIXES = ("command", "builtin")
_NOUNSET_OFF = re.compile(r"\+[a-zA-Z]*u")


class Word(NamedTuple):
    """A word of a command: its text without quotes, and its position.

    Attributes:
        text: the word without quotes.
        start: its position in the script.
        end: the position after it.
        quoted: whether any part of it was quoted.
    """

    text: str
    start: int
    end: int
    quoted: bool


class Effect(NamedTuple):
    """A command's effect: names that it sets or guards, and whether the rest is then unknown."""

    sets: tuple[tuple[str, int], ...] = ()
    guards: tuple[tuple[str, int], ...] = ()
    unknown: bool = False


def effect(words: Sequence[Word]) -> Effect:
    """The effect of a simple command, without keywords such as ``then``."""
    descriptors = ((re.fullmatch(r"\{([A-Za-z_]\w*)\}", w.text), w) for w in words)
    sets = [(m[1], w.end) for m, w in descriptors if m]
    assigned = takewhile(lambda w: ASSIGNMENT.match(w.text), words)
    sets += [(w.text.partition("=")[0].partition("[")[0].rstrip("+"), w.end) for w in assigned]
    rest = list(dropwhile(lambda w: w.text in _PREFIXES or ASSIGNMENT.match(w.text), words))
    if not rest:
        return Effect(tuple(sets))
    command, *args = rest
    name = command.text
    if name in _DECLARES:
        sets += _names(args)
    if name == "getopts":
        sets += [("OPTARG", command.end), ("OPTIND", command.end)]
    elif name == "printf" and args and args[0].text.startswith("-v"):
        joined = args[0].text[2:]
        sets += [(joined, args[0].end)] if joined else _names(args[1:2])
    elif name == "set":
        texts = [a.text for a in args]
        off = any(_NOUNSET_OFF.fullmatch(t) for t in texts) or _pair(texts, "+o", "nounset")
        return Effect(tuple(sets), unknown=off)
    guards = tuple(_guarded(args)) if name in ("[", "[[", "test") else ()
    return Effect(tuple(sets), guards, name.rpartition("/")[2] in _UNKNOWN or name == "activate")


def _names(words: Sequence[Word]) -> list[tuple[str, int]]:
    matches = [(NAME.match(w.text), w) for w in words]
    return [(m[0], w.end) for m, w in matches if m]


def _guarded(args: Sequence[Word]) -> Iterator[tuple[str, int]]:
    for option, word in pairwise(args):
        if option.text == "-v" and (name := NAME.match(word.text)):
            yield name[0], word.start


def _pair(texts: Sequence[str], first: str, second: str) -> bool:
    return (first, second) in pairwise(texts)
