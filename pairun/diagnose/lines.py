"""A log as lines, without the prefixes of launchers, terminals and loggers.

Lines are offsets into the bytes, so the log is never copied.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
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

_OF_TASK = re.compile(
    rb"^(?:\[[^]\n]{20,40}\] \[openpai-runtime\] )?  [a-z][a-z0-9_]{0,60} \| .*$", re.MULTILINE
)
"""The output of a task; before the start of the job's command that task has succeeded."""

_COMMAND_STARTS = re.compile(
    rb"^(?:\[pairun\]|\[[^]\n]{20,40}\] \[openpai-runtime\]) starting the command: ", re.MULTILINE
)
_COMMAND_ENDED = re.compile(rb"^\[pairun\] the command ended with (\d{1,3})\b", re.MULTILINE)
"""PID 1's messages when it starts the job's command, and when that has ended."""


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
_PREFIX = re.compile(
    r"\[?[Rr]ank:? ?(?P<rank1>\d{1,6})\]?: ?"  # torchrun
    r"|\[(?:\d+,)?(?P<rank2>\d{1,6})\]<std(?:out|err)>: ?"  # mpirun --tag-output, horovodrun
    r"|\((?:[\w.<>-]+ )?(?:[\w./<>=-]+ )*?(?:rank=(?P<rank3>\d{1,6})\b|pid=(?P<pid>\d+))[^()]{0,60}\) ?"  # Ray, vLLM
    r"|\[[a-z]{2,12}(?P<local>\d{1,6})\]:"  # torchrun --tee: [default0]:
    r"|\[(?:\d+,)?(?P<bare1>\d{1,6})\]: ?"
    r"| {0,4}(?P<bare2>\d{1,5}): "  # srun --label
    r"|\[pod/(?P<pod1>[\w.-]+)/[\w./-]+\] "  # kubectl logs --prefix
    r"|\[(?P<pod2>(?:[a-z][a-z0-9.]{0,40}-){1,4}\d{1,5})\] "
    r"|(?P<pod3>[\w.-]{1,60}?-\d+)(?:-1)? +\| "  # pairun's live view; docker compose
    r"|pdsh@[\w.-]{1,60}: (?P<pod4>[\w.-]{1,60}): "
    r"|[\w.-]{1,60} +\| |(?:[a-z][\w.]{0,60}-){1,8}\d{1,6}: |(?:\d{1,3}\.){3}\d{1,3}: "
)
"""What launchers and tools put before a line: who wrote it, or a name that may be another thing's."""

_TIME = re.compile(
    r"\[?\d{4}[-/.]\d\d[-/.]\d\d[T _]?\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?(?:Z| ?[+-]\d\d:?\d\d| UTC)?\]?"
    r"(?: (?:stdout|stderr) [FP])?(?: ?[:|-])?[ \t]"  # ISO 8601; CRI
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?[ \t]"
    r"|\[?(?:[A-Z][a-z]{2} ){2}[ \d]?\d \d\d:\d\d:\d\d(?:\.\d{1,9})? \d{4}\]?:? "  # dmesg -T"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?:(?P<pod>[\w.-]{1,64}) (?=[\w./-]{1,64}\[\d+\]: )|[\w.-]+ )?"  # syslog
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


class _Prefix(NamedTuple):
    """What stands before a line: the kind of what it names, or nothing, the name, and its text."""

    kind: str
    name: str
    text: str


def _split(text: str) -> tuple[list[_Prefix], str]:
    """The prefixes of a line, and the rest without times."""
    prefixes = []
    for _ in range(6):
        time = _TIME.match(text)
        match = time or _PREFIX.match(text)
        if match is None:
            break
        group = match.lastgroup or ""
        if group or not time:
            own = "" if time else match[0]
            prefixes.append(_Prefix(group.rstrip("1234"), match[group] if group else "", own))
        text = text[match.end() :]
    return prefixes, text


def names_in(raw: bytes) -> list[tuple[str, str]]:
    """What each prefix of a line names: ``rank``, ``pid``, ``local``, ``bare`` (a number), ``pod`` or nothing."""
    return [(each.kind, each.name) for each in _split(plain(raw))[0]]


def parse(at: int, raw: bytes) -> Line:
    """Separate a line from its prefixes.

    Args:
        at: its offset in the log.
        raw: its bytes, without the newline.
    """
    shown = plain(raw).rstrip()
    prefixes, text = _split(shown)
    if "%|" in text and (bar := _BAR.match(text)):
        rest = text[bar.end() :]
        text = rest if rest.strip() else text
    return Line(at, "".join(each.text for each in prefixes).strip(), text, shown)


class Log:
    """The lines of a file, or of pieces of it.

    pairun's own lines count as blank: they report a failure, and are no evidence of its cause.

    Args:
        data: the bytes.
        name: the name for people.
        numbers: of each line in the file, ascending; several may have one number.
        is_rewritten: whether the lines differ from the file's.

    Attributes:
        command_starts: the offsets at which pairun started the job's command.
        exit_code: of the last command that pairun started; None if the log does not show it.
    """

    def __init__(
        self,
        data: bytes,
        name: str = "-",
        numbers: Sequence[int] = range(1, 1 << 62),
        *,
        is_rewritten: bool = False,
    ) -> None:
        self.data, self.command_starts, self.exit_code = _without_own(_utf8(data))
        self.name, self.numbers, self.is_rewritten = name, numbers, is_rewritten

    def number(self, at: int) -> int:
        """The number of the line at an offset, in its file."""
        return self.numbers[self.data.count(b"\n", 0, at)]

    def numbered(self) -> Iterator[tuple[int, bytes]]:
        """The lines with their numbers in the file."""
        return zip(self.numbers, self.data.split(b"\n"), strict=False)

    def offset(self, number: int) -> int:
        """The offset of the file's line with a number; 0 if the log does not hold it."""
        index = bisect_left(self.numbers, number)
        ends = islice(re.finditer(b"\n", self.data), max(0, index - 1), None)
        end = next(ends, None) if index else None
        return end.end() if end else 0

    def since(self, at: int, until: int | None = None) -> Log:
        """The log from the line at an offset on."""
        numbers = self.numbers[self.data.count(b"\n", 0, at) :]
        return Log(self.data[at:until], self.name, numbers, is_rewritten=self.is_rewritten)

    def part(self, lines: Iterable[tuple[int, bytes]], *, is_rewritten: bool = False) -> Log:
        """A log with some lines, each after its number in the file."""
        numbers, texts = zip(*lines, strict=True)
        is_rewritten = is_rewritten or self.is_rewritten
        return Log(b"\n".join(texts), self.name, numbers, is_rewritten=is_rewritten)

    def line(self, at: int) -> Line:
        """The line at an offset."""
        start = self.data.rfind(b"\n", 0, at) + 1
        stop = self.data.find(b"\n", start)
        return parse(start, _last_drawn(self.data[start : len(self.data) if stop < 0 else stop]))

    def after(self, at: int, count: int) -> Iterator[Line]:
        """The lines after the one at an offset."""
        for _ in range(count):
            at = self.data.find(b"\n", at) + 1
            if not 0 < at < len(self.data):
                return
            yield self.line(at)

    def before(self, at: int, count: int) -> Iterator[Line]:
        """The lines before the one at an offset, nearest first."""
        start = self.data.rfind(b"\n", 0, max(at, 0)) + 1
        for _ in range(count):
            if start <= 0:
                return
            start = self.data.rfind(b"\n", 0, start - 1) + 1
            yield self.line(start)

    def tail(self, count: int) -> list[Line]:
        """The last non-empty lines."""
        end = len(self.data.rstrip())
        above = [self.line(end), *self.before(end, 4 * count)] if end else []
        return [line for line in above if line.text.strip()][:count][::-1]


def _last_drawn(raw: bytes) -> bytes:
    """The text that a terminal shows for a line with carriage returns."""
    if b"\r" not in raw:
        return raw
    return raw[-_DRAWN_BYTES:].rstrip(b"\r").rpartition(b"\r")[2]


def _without_own(data: bytes) -> tuple[bytes, list[int], int | None]:
    """The log with blanks in place of pairun's own lines.

    Once the job's command has started, the output of the tasks before it is also pairun's own.

    Returns:
        The log, the offsets at which pairun started the job's command, and the last command's exit
        code.
    """
    if b"[pairun] " not in data and b"[openpai-runtime] " not in data:
        return data, [], None  # a large log is not copied
    starts = [match.start() for match in _COMMAND_STARTS.finditer(data)]
    last = starts[-1] if starts else 0
    ended = _COMMAND_ENDED.search(data, last)
    data = _OF_TASK.sub(_blank, data[:last]) + data[last:]
    return _OWN.sub(_blank, data), starts, int(ended[1]) if ended else None


def _blank(match: re.Match[bytes]) -> bytes:
    return b" " * len(match[0])


def _utf8(data: bytes) -> bytes:
    """The log in UTF-8; some Windows tools write UTF-16."""
    head = data[:4000]
    if head.count(b"\0") * 4 >= len(head) > 0:
        is_marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return data.decode("utf-16", "replace").encode() if is_marked else data.replace(b"\0", b"")
    return data.removeprefix(codecs.BOM_UTF8)
