"""Messages that a rule's expression matches: what the rules know, as texts to train with."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

_parser: Any = re._parser

_TRIES, _MOST = 60, 20
_REPEATS = frozenset(("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"))
_ONE_OF_MANY = frozenset(("ANY", "IN", "NOT_LITERAL"))


def expansions(pattern: str) -> list[str]:
    """Up to 20 different texts that an expression describes; each alternative occurs at random.

    The texts need not match: what an expression demands of the surroundings is left out. The same
    expression gives the same texts.
    """
    chance = random.Random(pattern)
    tree = _parser.parse(pattern)
    texts: dict[str, None] = {}
    for _ in range(_TRIES):
        text = "".join(_parts(tree, chance)).strip()
        if text:
            texts.setdefault(text)
        if len(texts) == _MOST:
            break
    return list(texts)


def _parts(tree: Sequence[tuple[Any, Any]], chance: random.Random) -> Iterator[str]:
    for code, value in tree:
        name = str(code)
        if name == "LITERAL":
            yield chr(value)
        elif name == "IN":
            yield _member(value, chance)
        elif name == "NOT_LITERAL":
            yield "x"
        elif name == "ANY":
            yield " "
        elif name == "BRANCH":
            yield from _parts(chance.choice(value[1]), chance)
        elif name == "SUBPATTERN":
            yield from _parts(value[3], chance)
        elif name == "ATOMIC_GROUP":
            yield from _parts(value, chance)
        elif name in _REPEATS:
            yield from _repeated(value[0], value[2], chance)


def _repeated(least: int, tree: Sequence[tuple[Any, Any]], chance: random.Random) -> Iterator[str]:
    if len(tree) == 1 and str(tree[0][0]) in _ONE_OF_MANY:
        # a value or a gap, of any length
        if least or chance.random() < 0.5:
            yield from _parts(tree, chance)
        return
    for _ in range(least or chance.choice((0, 1))):
        yield from _parts(tree, chance)


def _member(members: Sequence[tuple[Any, Any]], chance: random.Random) -> str:
    """A character of a set; a letter that is no word if the set is large."""
    names = {str(code) for code, _ in members}
    categories = {str(value) for code, value in members if str(code) == "CATEGORY"}
    if "NEGATE" in names or any("_NOT_" in each for each in categories):
        return "x"
    if any(each.endswith("_DIGIT") for each in categories):
        return "7"
    if any(each.endswith("_SPACE") for each in categories):
        return " "
    literals = [chr(value) for code, value in members if str(code) == "LITERAL"]
    if literals and not categories:
        return chance.choice(literals)
    return next((chr(value[0]) for code, value in members if str(code) == "RANGE"), "x")
