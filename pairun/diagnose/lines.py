"""A log as lines, without the prefixes of launchers, terminals and loggers.

Lines are offsets into the bytes, so the log is never copied.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import NamedTuple

from pairun.base.escapes import ESCAPE

HEADER = "Traceback (most recent call last)"
"""The start of every Python traceback."""

MAX_LINE = 4000
"""How many bytes of a line are searched; this bounds the cost of an expression."""

_DRAWN_BYTES = 1 << 16

_OWN = re.compile(
    rb"^(?:\[pairun\] |(?:error|warning)\[PR\d{3}\]|\[[^]\n]{20,40}\] \[openpai-runtime\] (?!  \S+ \| )"
    rb"| {9}.* fault: (?:user|platform|unknown)\]$).*$",
    re.MULTILINE,
)
"""pairun's own messages in the container's log and in ``runtime.log``; not the tasks' output."""


_COMMAND_STARTS = re.compile(
    rb"^(?:\[pairun\]|\[[^]\n]{20,40}\] \[openpai-runtime\]) starting the command: ", re.MULTILINE
)
_OF_TASK = re.compile(
    rb"^(?:\[[^]\n]{20,40}\] \[openpai-runtime\] )?  [a-z][a-z0-9_]{0,60} \| .*$", re.MULTILINE
)
"""The output of a task; before the start of the job's command that task has succeeded."""

_STARTING = b"[pairun] starting the command: "
"""PID 1's message when it starts the job's command."""

_COMMAND_ENDED = re.compile(rb"\[pairun\] the command ended with (\d{1,3})\b")
"""PID 1's message when the job's command has ended."""


class Line(NamedTuple):
    """One line.

    Attributes:
        at: offset of its start in the log, in bytes.
        source: the prefix that names its writer (a rank, a worker); may be empty.
        text: the line without prefixes, times and colours.
        shown: the line without colours.
    """

    at: int
    source: str
    text: str
    shown: str


_ESCAPES = re.compile(ESCAPE + r"|[\x00\x08]")
_SOURCE = re.compile(
    r"\[?[Rr]ank:? ?\d+\]?: ?"  # torchrun
    r"|\[[a-z]{2,12}\d+\]:"  # torchrun --tee: [default0]:
    r"|\[(?:\d+,)?\d+\]<std(?:out|err)>: ?"  # mpirun --tag-output, horovodrun
    r"|\[(?:\d+,)?\d+\]: ?"
    r"| {0,4}\d{1,5}: "  # srun --label
    r"|\[(?:[a-z][a-z0-9.]{0,40}-){1,4}\d{1,5}\] "  # [worker-3]
    r"|pdsh@[\w.-]{1,60}: [\w.-]{1,60}: "
    r"|(?:[a-z][\w.]{0,60}-){1,8}\d{1,6}: |(?:\d{1,3}\.){3}\d{1,3}: "  # pdsh, DeepSpeed's launcher
    r"|\((?:[\w.<>-]+ )?(?:[\w./<>=-]+ )*?(?:pid|rank)=\d+[^()]{0,60}\) ?"  # Ray, vLLM
    r"|[\w.-]{1,60} +\| "  # docker compose
    r"|\[pod/[\w./-]+\] "  # kubectl logs --prefix
)
_TIME = re.compile(
    r"\[?\d{4}[-/.]\d\d[-/.]\d\d[T _]?\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?(?:Z| ?[+-]\d\d:?\d\d| UTC)?\]?"
    r"(?: (?:stdout|stderr) [FP])?(?: ?[:|-])?[ \t]"  # ISO 8601; CRI
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?[ \t]"
    r"|\[?(?:[A-Z][a-z]{2} ){2}[ \d]?\d \d\d:\d\d:\d\d(?:\.\d{1,9})? \d{4}\]?:? "  # dmesg -T"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]+ "  # syslog
    r"|\[ *\d{1,9}\.\d{6}\] "  # dmesg
    r"|(?:INFO|WARNING|ERROR|CRITICAL|DEBUG) \d\d-\d\d \d\d:\d\d:\d\d \[[\w.:/ -]{1,80}\] "  # vLLM
    r"|(?:DEBUG|INFO|SUCCESS|WARNING|ERROR|CRITICAL) +\| [\w.<>:]{1,120} - "  # loguru
)
_BAR = re.compile(r"^[^|\n]{0,200}\|[^|\n]{0,300}\| *\d[^\[\n]{0,60}\[[^\]\n]{0,120}\] ?")


def plain(raw: bytes) -> str:
    """Decode a line, without colours and control characters."""
    if len(raw) > MAX_LINE:
        raw = raw[: MAX_LINE * 3 // 4] + b" ... " + raw[-MAX_LINE // 4 :]
    return without_escapes(raw.decode("utf-8", "replace"))


def without_escapes(text: str) -> str:
    """A text without colours and control characters."""
    return _ESCAPES.sub("", text) if "\x1b" in text or "\0" in text or "\b" in text else text


def parse(at: int, raw: bytes) -> Line:
    """Separate a line from its prefixes.

    Args:
        at: its offset in the log.
        raw: its bytes, without the newline.
    """
    shown = plain(raw).rstrip()
    text, source = shown, ""
    for _ in range(6):
        if prefix := _TIME.match(text):
            text = text[prefix.end() :]
        elif prefix := _SOURCE.match(text):
            source += prefix[0]
            text = text[prefix.end() :]
        else:
            break
    if "%|" in text and (bar := _BAR.match(text)):
        rest = text[bar.end() :]
        text = rest if rest.strip() else text
    return Line(at, source.strip(), text, shown)


class Log:
    """The bytes of a log.

    pairun's own lines count as empty: they report a failure, and are no evidence of its cause.

    Args:
        data: the whole log, or its end.
        name: the name for people.
        first_line: the number of its first line.

    Attributes:
        command_starts: the offsets at which pairun started the job's command.
        exit_code: of the last command that pairun started; None if the log does not show it.
    """

    def __init__(self, data: bytes, name: str = "-", first_line: int = 1) -> None:
        self.data, self.command_starts, self.exit_code = _without_own(_utf8(data))
        self.name = name
        self._first_line = first_line

    def number(self, at: int) -> int:
        """The number of the line at an offset."""
        return self._first_line + self.data.count(b"\n", 0, at)

    def written(self, at: int, shown: str) -> str:
        """What the file has of a line that is shown; all of it, unless the log was rewritten.

        Args:
            at: an offset in the line.
            shown: the line, or a part of it.
        """
        return shown

    def first(self) -> Line:
        """The first line."""
        end = self.data.find(b"\n")
        return parse(0, _last_drawn(self.data if end < 0 else self.data[:end]))

    def after(self, at: int, count: int, until: int | None = None) -> Iterator[Line]:
        """The lines after the one at an offset.

        Args:
            at: an offset within the line before them.
            count: maximum number of lines.
            until: the offset at which to end; None for the end of the log.
        """
        data, end = self.data, len(self.data) if until is None else until
        for _ in range(count):
            start = data.find(b"\n", at, end) + 1
            if start <= 0 or start >= end:
                return
            stop = data.find(b"\n", start)
            stop = len(data) if stop < 0 else stop
            yield parse(start, _last_drawn(data[start:stop]))
            at = start

    def before(self, at: int, count: int) -> Iterator[Line]:
        """The lines before the one at an offset, nearest first."""
        data = self.data
        start = data.rfind(b"\n", 0, at) + 1
        for _ in range(count):
            if start <= 0:
                return
            stop = start - 1
            start = data.rfind(b"\n", 0, stop) + 1
            yield parse(start, _last_drawn(data[start:stop]))

    def tail(self, count: int) -> list[Line]:
        """The last non-empty lines."""
        last: list[Line] = []
        end = len(self.data)
        while end and self.data[end - 1] in b" \t\r\n":
            end -= 1
        start = self.data.rfind(b"\n", 0, end) + 1
        if end:
            last.append(parse(start, _last_drawn(self.data[start:end])))
        last += [line for line in self.before(start, 4 * count) if line.text.strip()]
        return last[:count][::-1]


def _last_drawn(raw: bytes) -> bytes:
    """The text that a terminal shows for a line with carriage returns."""
    if b"\r" not in raw:
        return raw
    return raw[-_DRAWN_BYTES:].rstrip(b"\r").rpartition(b"\r")[2]


def _without_own(data: bytes) -> tuple[bytes, list[int], int | None]:
    """The log with empty lines in place of pairun's own; line numbers stay the same.

    Once the job's command has started, the output of the tasks before it is also pairun's own.

    Returns:
        The log, the offsets at which pairun started the job's command, and the last command's exit
        code.
    """
    if b"[pairun] " not in data and b"[openpai-runtime] " not in data:
        return data, [], None  # a large log is not copied
    if began := [match.start() for match in _COMMAND_STARTS.finditer(data)]:
        data = _OF_TASK.sub(b"", data[: began[-1]]) + data[began[-1] :]
    starts: list[int] = []
    removed = 0
    code: int | None = None

    def emptied(match: re.Match[bytes]) -> bytes:
        nonlocal removed, code
        if match[0].startswith(_STARTING):
            starts.append(match.start() - removed)
            code = None
        elif ended := _COMMAND_ENDED.match(match[0]):
            code = int(ended[1])
        removed += len(match[0])
        return b""

    without = _OWN.sub(emptied, data)
    return without, starts, code


def _utf8(data: bytes) -> bytes:
    """The log in UTF-8; some Windows tools write UTF-16."""
    head = data[:4000]
    zeros = head.count(b"\0") * 4 >= len(head) > 0
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if zeros and head.startswith(mark):
            return data[2:].decode(encoding, "replace").encode()
    if zeros:
        return data.replace(b"\0", b"")
    # a large log in UTF-8 is not copied
    return data.removeprefix(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else data
