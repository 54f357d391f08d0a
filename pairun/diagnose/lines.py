"""A log as lines, without the prefixes of launchers, terminals and loggers.

Lines are offsets into the bytes, so the log is never copied.
"""

from __future__ import annotations

import codecs
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pairun.base.escapes import ESCAPE

HEADER = "Traceback (most recent call last)"
"""The start of every Python traceback."""

MAX_LINE = 4000
"""How many bytes of a line are searched; this bounds the cost of an expression."""

_DRAWN_BYTES = 1 << 16
_MAX_TEXT = 1 << 20
_LEAST_SHARE = 0.2
"""The least share of a shown line that is worth showing alone."""

_ADDED = re.compile(r"(?:\[pod/[^\]]*\] |\[rank\d+\]: )+")
"""What `pairun.diagnose.layouts` puts before a line."""

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
    """The lines of a file, or of pieces of it.

    pairun's own lines count as empty: they report a failure, and are no evidence of its cause.

    Args:
        data: the bytes.
        name: the name for people.
        runs: pairs of a line's index in `data`, ascending, and its number in the file; the lines
            after it follow each other in the file. Without any, it is the whole file.
        source: the log from whose lines these were rewritten; None if they are the file's.

    Attributes:
        command_starts: the offsets at which pairun started the job's command.
        exit_code: of the last command that pairun started; None if the log does not show it.
    """

    def __init__(
        self,
        data: bytes,
        name: str = "-",
        runs: Sequence[tuple[int, int]] = (),
        source: Log | None = None,
    ) -> None:
        self.data, self.command_starts, self.exit_code = _without_own(_utf8(data))
        self.name = name
        self.runs = runs or [(0, 1)]
        self.source: Log | None = source and (source.source or source)

    def number(self, at: int) -> int:
        """The number of the line at an offset, in its file."""
        index = self.data.count(b"\n", 0, at)
        start, number = self.runs[bisect_right(self.runs, (index, 1 << 62)) - 1]
        return number + index - start

    def numbers(self) -> Iterator[int]:
        """The number in the file of each line."""
        ends = [start for start, _ in self.runs[1:]] + [self.data.count(b"\n") + 1]
        for (start, number), end in zip(self.runs, ends, strict=True):
            yield from range(number, number + end - start)

    def offset(self, number: int) -> int:
        """The offset of the file's line with a number; 0 if the log does not hold it."""
        at = 0
        for each in self.numbers():
            if each == number:
                return at
            at = self.data.find(b"\n", at) + 1
        return 0

    def since(self, at: int) -> Log:
        """The log from the line at an offset on."""
        index = self.data.count(b"\n", 0, at)
        later = [(start - index, number) for start, number in self.runs if start > index]
        return Log(self.data[at:], self.name, [(0, self.number(at)), *later], self.source)

    def part(self, lines: Iterable[tuple[int, bytes]]) -> Log:
        """A log with some lines, each after its number in the file; several may have one number."""
        runs: list[tuple[int, int]] = []
        texts: list[bytes] = []
        due = -1
        for number, text in lines:
            if number != due:
                runs.append((len(texts), number))
            texts.append(text)
            due = number + 1
        return Log(b"\n".join(texts), self.name, runs, self.source)

    def rewritten(self, lines: Iterable[tuple[int, bytes]]) -> Log:
        """A log with other lines in place of the file's; see `part`."""
        log = self.part(lines)
        log.source = self.source or self
        return log

    def written(self, at: int, shown: str) -> str:
        """The part of a shown line that its file has, without what rewriting added.

        That is the longest end of it that the file's line has, in JSON with its escapes.
        """
        if self.source is None:
            return shown
        text = self.source.text_of(self.number(at))
        for word in re.finditer(r"\S+", shown):
            part = shown[word.start() :]
            if len(part) < _LEAST_SHARE * len(shown):
                break
            if part in text or json.dumps(part)[1:-1] in text:
                return part
        return _ADDED.sub("", shown)

    def text_of(self, number: int) -> str:
        """The text of the file's line with a number, without colours."""
        lines = zip(self.numbers(), self.data.split(b"\n"), strict=True)
        raw = b"\n".join(line for each, line in lines if each == number)
        return without_escapes(raw[:_MAX_TEXT].decode("utf-8", "replace"))

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
