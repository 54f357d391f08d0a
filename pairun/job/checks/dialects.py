"""Finds scalars that versions of OpenPAI's REST server read differently."""

from __future__ import annotations

import re

from pairun.errors import Problems
from pairun.formats.jsyaml import JS, JS4
from pairun.job.hiding import leaves
from pairun.playbook.document.reading import Node
from pairun.playbook.document.scalars import Dialect, Scalar, js_text

_NUMBER = re.compile(r"[-+.]?[0-9][0-9A-Za-z_.:+-]*")


def check_dialects(node: Node, dialect: Dialect, problems: Problems) -> None:
    """Warn of each plain scalar of a job that js-yaml 3 and 4 read differently.

    Args:
        node: the job's document.
        dialect: the dialect in which it was read.
        problems: takes the warnings; they do not show hidden scalars.
    """
    other = JS if dialect is JS4 else JS4
    for leaf in leaves(node):
        # `Source.line` hides secrets. A leaf of plain data has no line in the text.
        own = leaf.place.source.lines[leaf.place.line - 1 : leaf.place.line]
        text = _text_at(leaf, own[0]) if own else ""
        if not text or not _same(leaf.value, mine := dialect.resolve(text)):
            continue
        if _same(mine, theirs := other.resolve(text)):
            continue
        message = f"{other.name} reads this secret differently; {dialect.name} was used"
        if _text_at(leaf, leaf.place.source.line(leaf.place.line)) == text:
            read = f"{text} was read as {_shown(mine)} ({dialect.name})"
            message = f"{read}; {other.name} reads {_shown(theirs)}"
        problems.warning("PR924", message, leaf.place, "quote it, or write it plainly")


def _text_at(leaf: Node, line: str) -> str:
    """The unquoted number or time in a line at the position of a value."""
    token = _NUMBER.match(line[leaf.place.column - 1 :])
    return token[0] if token else ""


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def _shown(value: Scalar) -> str:
    return f"the text {value}" if isinstance(value, str) else js_text(value)
