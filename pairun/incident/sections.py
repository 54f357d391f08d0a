"""Reads several logs that a tool has put into one, each under a header with its name.

``tail`` and ``head`` print ``==> FILE <==``; dshbak and ``clush -b`` print the host between two rules.
"""

from __future__ import annotations

import re

from pairun.incident.columnvalues import are_names
from pairun.incident.numbered import NumberedLog

_HEADER = re.compile(
    rb"(?m)^(?:==> (?P<file>[^\n]{1,200}) <==|-{8,}\n(?P<host>[\w.-]{1,100})\n-{8,})$"
)
_ENDING = re.compile(r"\.(?:log|txt|out|err|stdout|stderr)$")


def with_sections(log: NumberedLog) -> NumberedLog:
    """A log whose lines name the section in which they are; itself if it has no sections."""
    if b"==> " not in log.data and b"--------\n" not in log.data:
        return log
    headers = [(match, _name(match)) for match in _HEADER.finditer(log.data)]
    if not are_names(dict.fromkeys((name for _, name in headers), 2)):
        return log
    shown = [log.data[: headers[0][0].start()]]
    ends = [match.start() for match, _ in headers[1:]] + [len(log.data)]
    for (match, name), end in zip(headers, ends, strict=True):
        prefix = b"[pod/%s/main] " % name.encode()
        blank = b"\n" * match[0].count(b"\n")
        text = log.data[match.end() : end]
        lines = [prefix + line if line.strip() else line for line in text.split(b"\n")]
        shown.append(blank + b"\n".join(lines))
    return NumberedLog(b"".join(shown), log.name, log.runs, log)


def _name(match: re.Match[bytes]) -> str:
    """The name of a section's writer: of its host, or of its file without folder and ending."""
    name = (match["host"] or match["file"].rpartition(b"/")[2]).decode("ascii", "replace")
    return re.sub(r"[^\w.-]", "-", _ENDING.sub("", name))
