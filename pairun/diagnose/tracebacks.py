"""Python tracebacks in a log: frames, exception, and whether it was handled.

The format is that of the module ``traceback`` (Python Library Reference). Lines of several ranks
may alternate, so a traceback is followed by its lines' prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pairun.diagnose.lines import HEADER, Line, Log

_MAX_FRAMES = 240
_EXCEPTION = re.compile(
    r"(?P<type>[A-Za-z_][\w.]*(?:\[[\w.]+\])?)(?:\([\w.]+\))?(?P<rest>: .*|:?\s*)$"
)
_FRAME = re.compile(r'\s+File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')
_LAST_FRAME = re.compile(r'\s*File "[^"]+", line \d+(?:,|$)')
_MARKS = re.compile(r"[\s~^|]*$")
_LIBRARY = re.compile(
    r"site-packages|dist-packages|/lib(?:64)?/python\d|<frozen "
    r"|/bin/[^/]{1,80}(?<!\.py)$"  # torchrun, accelerate, vllm
    # checkouts of frameworks in images of serving engines
    r"|/(?:torch|torch_npu|vllm|vllm_ascend|sglang/srt|deepspeed|megatron/core|jaxlib|tensorflow/python"
    r"|pytorch_lightning|lightning/pytorch|colossalai|flash_attn|xformers|torchtitan/distributed)/"
)
_HANDLED = "During handling of the above exception"
_CAUSED = "The above exception was the direct cause"
_IGNORED = re.compile(
    r"Exception ignored in|--- Logging error ---|Error in atexit|Exception in thread Thread-\S+ \(_pin"
    r"|most likely raised during interpreter shutdown"
)

_LEVEL = re.compile(r"(?:^|[\s\[|:-])(?:ERROR|WARN(?:ING)?|CRITICAL)(?:$|[\s\]|:-])")
"""The level in a logger's line."""


class Frame(NamedTuple):
    """A frame of a traceback."""

    file: str
    line: int
    function: str

    @property
    def is_library(self) -> bool:
        """Whether its code belongs to an installed package or Python, not to the job."""
        return _LIBRARY.search(self.file) is not None


def is_handled(log: Log, line: Line) -> bool:
    """Whether another exception was raised while that on a line was handled.

    A message may have several lines, with other ranks' lines between them.
    """
    texts = (after.text for after in log.after(line.at, 40) if after.source == line.source)
    ends = (text for text in texts if text.startswith((_HANDLED, _CAUSED, HEADER)))
    return next(ends, "").startswith(_HANDLED)


def is_open(log: Log) -> bool:
    """Whether a log ends within a traceback, before its exception."""
    tail = log.tail(4)
    frames = [n for n, line in enumerate(tail) if _LAST_FRAME.match(line.text)]
    if not frames:
        return bool(tail) and HEADER in tail[-1].text
    after = tail[frames[-1] + 1 :]
    return not any(_EXCEPTION.match(line.text) and line.text[0] not in " \t" for line in after)


def replaces_exception(log: Log, line: Line) -> bool:
    """Whether a line is the ``raise`` at the end of a cut-off traceback."""
    if not line.text.lstrip().startswith("raise "):
        return False
    after = [each for each in log.after(line.at, 3) if each.source == line.source]
    return all(_MARKS.match(each.text) for each in after)


def exception_after(log: Log, header: Line) -> tuple[Line, str] | None:
    """The exception of the traceback that begins on a line.

    Returns:
        The exception's line, and its type without modules; None if there is none.
    """
    seen_frame = False
    for line in log.after(header.at, _MAX_FRAMES):
        if line.source != header.source:
            continue
        if HEADER in line.text:
            return None
        if line.text.startswith((" ", "\t", "|")) or not line.text:
            seen_frame = seen_frame or bool(_FRAME.match(line.text))
            continue
        match = _EXCEPTION.match(line.text)
        if match and seen_frame:
            return line, match["type"].rpartition(".")[2]
        return None
    return None


def is_ignored(log: Log, line: Line) -> bool:
    """Whether Python reports the exception on a line as ignored."""
    return any(_IGNORED.search(above.text) for above in _traceback(log, line))


def is_logged(log: Log, line: Line) -> bool:
    """Whether a logger printed the exception on a line, as ``logging.exception`` does.

    Its message stands above the traceback, or is the line itself.
    """
    following = next(log.after(line.at, 1), None)
    if following is not None and following.text.startswith(HEADER):
        return _LEVEL.search(line.shown) is not None
    *_, header, message = [line, line, *_traceback(log, line)]
    return header.text.startswith(HEADER) and _LEVEL.search(message.shown) is not None


def _traceback(log: Log, line: Line) -> Iterator[Line]:
    """The lines of the same writer above an exception, to its traceback's header and the line above that."""
    for above in log.before(line.at, _MAX_FRAMES):
        if above.source != line.source:
            continue
        yield above
        if HEADER in above.text:
            yield from log.before(above.at, 1)
        if above.text and not above.text.startswith((" ", "\t")):
            return


def is_source(log: Log, line: Line) -> bool:
    """Whether a line is source code in a traceback, not a message."""
    if line.text.lstrip().startswith("│"):
        return _is_boxed(log, line)
    if not line.text.startswith("    "):
        return False
    for before in log.before(line.at, 12):
        if before.source == line.source:
            # the exception of a traceback that is indented as a whole, such as in pip's output
            is_left = _indent(line.text) < _indent(before.text)
            return bool(_FRAME.match(before.text)) and not is_left
    return False


def _indent(text: str) -> int:
    """The number of characters before the first word."""
    return len(text) - len(text.lstrip())


def _is_boxed(log: Log, line: Line) -> bool:
    """Whether a line is in the box of a traceback that ``rich`` prints; the message is below it."""
    for before in log.before(line.at, _MAX_FRAMES):
        text = before.text.lstrip()
        if before.source == line.source and not text.startswith("│"):
            return text.startswith("╭") and "Traceback" in text
    return False


def place(log: Log, line: Line) -> Frame | None:
    """The innermost frame in the job's code before an exception, else the innermost frame."""
    last: Frame | None = None
    for above in _traceback(log, line):
        if HEADER in above.text:
            break
        if match := _FRAME.match(above.text):
            frame = Frame(match["file"], int(match["line"]), match["function"] or "")
            last = last or frame
            if not frame.is_library:
                return frame
    return last
