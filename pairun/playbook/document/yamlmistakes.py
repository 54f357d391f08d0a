"""Suggests what a person most likely meant by a text that is not valid YAML."""

from __future__ import annotations

import re
from collections.abc import Sequence

LABELS = r"^( *)(?:- +)?[^\s#][^#]*:(?: |$)"
"""A line that starts a value under a key, or an item that holds one."""

_QUOTED = r"""^ *(?:- +)*(?:[^\s#"'-][^#"']*?: +)?(?P<text>(?P<quote>["']).*(?P=quote) .*\S) *$"""
"""A line whose value starts with a quoted part and has more text after it."""

_NAME = r"(?:^|\s)[*&][\w-]*$"
"""An anchor or an alias where the parser stopped."""

_KEY = r"^( *(?:- +)*)[^\s#-][^#]*?:(?: +([^\s#].*)?)?$"
"""A line that starts with a key: the text before the key, and its value on this line."""


def likely_mistake(
    problem: str, lines: Sequence[str], line: int, column: int, *, secret: bool = False
) -> str | None:
    """How to fix an error of the YAML parser; None if no fix is likely.

    Args:
        line: where the parser stopped, from 1.
        column: where the parser stopped, from 1.
        secret: show nothing of the line.
    """
    here = lines[line - 1] if line <= len(lines) else ""
    before = here[: column - 1]
    if "\t" in here[:column]:
        return "indent with spaces, not with tabs"
    if "escape" in problem or "hexdecimal" in problem:
        return (
            "use single quotes, or write the backslash twice: it begins an escape in double quotes"
        )
    if "mapping values are not allowed" in problem:
        if ": " not in before and (hint := _too_deep(lines, line)):
            return hint
        return "quote the text if it contains ': ', or put the key on its own line"
    if (quoted := re.match(_QUOTED, here)) and len(before) > quoted.start("text"):
        whole, doubled = "quote the whole text", quoted["text"].replace("'", "''")
        return whole if secret else f"{whole}: '{doubled}'"
    if "alias" in problem:
        return "define the anchor (&name) before the alias (*name)"
    if here[column - 1 : column] in {"@", "`", "%", "*", "&"} or re.search(_NAME, before):
        return "quote text that begins with a special character of YAML"
    if "did not find expected" in problem:
        return _too_deep(lines, line) or _indentation(
            lines, line, len(before) - len(before.lstrip()) if before.strip() else column - 1
        )
    return None


def _too_deep(lines: Sequence[str], line: int) -> str | None:
    """The indentation of the key above, if that key has a value and this one is indented deeper."""
    here = re.match(_KEY, lines[line - 1]) if line <= len(lines) else None
    above = ((n, re.match(_KEY, lines[n - 1])) for n in range(min(line, len(lines) + 1) - 1, 0, -1))
    keys = ((n, match) for n, match in above if match)
    number, sibling = next(keys, (0, None))
    if here is None or sibling is None or not sibling[2]:
        return None
    indent, deeper = len(sibling[1]), len(here[1])
    if "-" in here[1] or deeper <= indent:
        return None
    _, before = next(keys, (0, None))
    if before and (len(before[1]) == deeper or (len(before[1]) == indent and not before[2])):
        # The lines around that one are deeper, or it is the value of the key above it.
        return f"indent line {number} by {deeper} spaces, as this one; it has {indent}"
    advice = f"indent it by {indent} spaces" if indent else "do not indent it"
    return f"{advice}, as line {number}; it has {deeper}"


def _indentation(lines: Sequence[str], line: int, indent: int) -> str | None:
    """The two lines whose indentations surround this one's, if it matches neither."""
    above = [
        (number, len(match[1]))
        for number, text in enumerate(lines[: line - 1], 1)
        if (match := re.match(LABELS, text))
    ]
    deeper = next(((n, i) for n, i in reversed(above) if i > indent), None)
    outer = next(((n, i) for n, i in reversed(above) if i < indent), None)
    if deeper is None or outer is None:
        return None
    return (
        f"indent it by {deeper[1]} spaces, as line {deeper[0]}, or by {outer[1]}, as line {outer[0]}; "
        f"it has {indent}"
    )
