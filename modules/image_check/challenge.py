"""The login that a registry asks for: ``WWW-Authenticate`` (RFC 9110, 11.6.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Challenge(NamedTuple):
    """One way to log in to a server; scheme and names in lower case."""

    scheme: str
    parameters: dict[str, str]


_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - a word of the grammar
_PARAMETER = re.compile(rf'({_TOKEN})[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))')
_SCHEME = re.compile(rf"({_TOKEN})(?:[ \t]+[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$)))?")


def challenges(lines: Iterable[str]) -> list[Challenge]:
    """Parse ``WWW-Authenticate`` by RFC 9110 (11.6.1): several lines, several challenges in one.

    Ignores the rest of a line after a syntax error.
    """
    parsed: list[Challenge] = []
    for line in lines:
        at, first = 0, len(parsed)
        while at < len(line):
            if line[at] in " \t,":
                at += 1
            elif len(parsed) > first and (match := _PARAMETER.match(line, at)):
                quoted, plain = match[2], match[3]
                value = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
                parsed[-1].parameters.setdefault(match[1].lower(), value)
                at = match.end()
            elif match := _SCHEME.match(line, at):
                parsed.append(Challenge(match[1].lower(), {}))
                at = match.end()
            else:
                break
    return parsed
