"""What a log shows after a line: progress, success or more errors.

If the job continued after a line, that line is not the cause.
"""

from __future__ import annotations

import re
from itertools import islice

from pairun.diagnose import tracebacks
from pairun.diagnose.lines import Line, Log

_MANY_LINES = 80
_STRAY_LINES = 40
_NEXT_LINES = 6
_LONG_AFTER = 24
_LAST_LINES = 5
_MUCH_PROGRESS = 40

INFO = re.compile(r"\b(?:INFO|DEBUG)\b|^\[?I\d{4}|\[I\d{0,4}[ \]]|^I tensorflow")
_PROGRESS = re.compile(
    rb"\d(?:it/s|s/it|ba/s| ?ex(?:amples)?/s| ?step/s|ms/step|s/step)"
    rb"|\b(?:loss|lr|acc(?:uracy)?|ppl|throughput|tokens/s)\b['\"]?\s*[=:]\s*[\[\-]?\d"
    rb"|\b[Ee]poch\b\W{0,3}\d|\b(?:[Ss]tep|[Ii]ter(?:ation)?)\b\W{0,3}\d+ ?[/\]:,|]"
    rb"|\b[Ii]teration: \d"
)
_LOADING = re.compile(rb"(?i)load|fetch|map\b|map:|resolv|unpack|extract|tokeniz|filter")
_SUCCESS = re.compile(
    r"(?i)\b(?:training|evaluation|testing|benchmark|experiment|pipeline|inference|export)\b"
    r"(?: \w+)? (?:is |was |has )?(?:done|complete[d]?|finished|succeeded)\b|\b(?:job|run) (?:has )?succeeded\b"
    r"|\bfinished (?:training|evaluation|successfully)|\bcompleted successfully|\bsuccessfully (?:completed|finished)"
    r"|\ball (?:tests passed|\d+ tests)|\bexit(?:ed)?(?: with)?(?: code)?[ :=]+0\b"
    r"|\bApplication startup complete|\bserver is fired up and ready|\bServer started at |\bis ready to serve"
    r"|\b(?:saved|saving) (?:the )?(?:final|best) (?:model|checkpoint)|\bTotal time: "
)
_RAISED = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception)\b: ")
_OF_TRACEBACK = re.compile(r"\s|Traceback \(most|(?:\w+\.)*\w*(?:Error|Exception)\b")
TROUBLE = re.compile(
    r"^(?:\w+\.)*\w*(?:Error|Exception)\b(?:: |$)|^(?:fatal|error|abort\w*)\b[: ](?! ?[\d.]+$)"
    r"|\b(?:FATAL|CRITICAL)\b|Traceback \(most recent|\bpanic: |^\*\*\* Aborted at"
    r"|^F\d{4} |^F [\w./-]{1,200}:\d+\]|[Aa]ssertion [`'].{1,160}' fail"
    r"|(?:exited|failed|finished) with (?:exit |return )?(?:code|status)[ :=]*[1-9-]",
)
ERROR_LEVEL = re.compile(r"^E\d{4} |\[E(?:\d{3}|\] )")


_ACCESS = re.compile(
    r"\"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) \S{1,400} HTTP/\d(?:\.\d)?\" \d{3}\b"
    r"|\] code \d{3}, message |HTTP Request: [A-Z]{3,7} \S{1,400} \"HTTP/\d|\bkube-probe/|\bELB-HealthChecker/"
)
"""The access log of a server, including health checks, or of a client."""


_OF_SHELL = re.compile(
    r"[^\n:]{1,200}: ?(?:line )?\d{1,6}: .{1,200}: (?:command not found|not found|No such file or directory|Permission denied)$"
    r"|(?:/[\w/]{1,80}/)?(?:ba|da|k|z)?sh: (?:.{1,200}: )?(?:command not found|not found|No such file or directory|Permission denied)"
)
"""A shell's report of a command that it cannot run."""


_SERVED = re.compile(rb"\"(?P<method>GET|POST|PUT) \S{1,400} HTTP/\d(?:\.\d)?\" 2\d\d\b")
"""A server's access log: it answered a request."""


def is_shells(line: Line) -> bool:
    """Whether a line is a shell's report of a command that it cannot run."""
    return _OF_SHELL.match(line.text) is not None


def is_answered(line: Line) -> bool:
    """Whether a line logs one request and its answer; a program handles any such answer."""
    return _ACCESS.search(line.text) is not None


class Surroundings:
    """How much the lines after a hit reduce its weight.

    Args:
        log: the log.
        failed: whether the job is known to have failed.

    Attributes:
        succeeded_at: offset of a line at the log's end that reports success, or -1.
    """

    def __init__(self, log: Log, *, failed: bool = False) -> None:
        self._log = log
        self._failed = failed
        self._doubts: dict[int, int] = {}
        tail = log.tail(25)
        ends = [n for n, line in enumerate(tail) if _SUCCESS.search(line.text)]
        self.succeeded_at = tail[ends[-1]].at if ends else -1
        after = tail[ends[-1] + 1 :] if ends else []
        if any(TROUBLE.search(each.text) or ERROR_LEVEL.search(each.text) for each in after):
            self.succeeded_at = -1
        troubles = [x for x in tail if TROUBLE.search(x.text) or ERROR_LEVEL.search(x.text)]
        self._ends_quietly = not failed and not troubles
        last = tail[-_LAST_LINES:]
        self._ends_in_progress = any(map(is_progress, last)) and not any(
            TROUBLE.search(each.text) or ERROR_LEVEL.search(each.text) for each in last
        )

    def progress_doubt(self, line: Line) -> int:
        """How much to take from a hit because the job made progress after it."""
        if line.at not in self._doubts:
            self._doubts[line.at] = self._progress_doubt(line)
        return self._doubts[line.at]

    def output_doubt(self, line: Line) -> int:
        """How much to take from a hit outside of tracebacks because more output follows."""
        if is_programs_exception(self._log, line) or ERROR_LEVEL.match(line.shown):
            return 0
        after = [a for a in self._log.after(line.at, 12) if a.text.strip()]
        if len(after) < 2:
            return 0
        if is_shells(line) and not any(is_shells(a) or TROUBLE.search(a.text) for a in after):
            return 50  # the shell ran the next commands without an error
        if sum(each.shown.startswith("+") for each in after) > 2:
            return 50  # `set -x` shows that the shell continued
        info_lines = sum(bool(INFO.search(a.shown) or INFO.search(a.text)) for a in after)
        return 16 if info_lines < 2 else 35

    def outlived_doubt(self, at: int) -> int:
        """How much to take from the report that a job ended, at an offset, because it trains on."""
        if self._failed or not self._ends_in_progress:
            return 0
        counted = islice(_PROGRESS.finditer(self._log.data, at, at + (1 << 16)), _MUCH_PROGRESS)
        return 60 if sum(1 for _ in counted) == _MUCH_PROGRESS else 0

    def served_doubt(self, line: Line, *, is_cause: bool) -> int:
        """How much to take from an exception after which a server answered requests.

        A server whose accelerator fails still answers the requests for its health.
        """
        answers = _SERVED.finditer(self._log.data, line.at, line.at + (1 << 16))
        methods = ("POST", "PUT") if is_cause else ("GET", "POST", "PUT")
        return 55 if any(each["method"].decode() in methods for each in answers) else 0

    def stray_doubt(self, line: Line) -> int:
        """How much to take from an exception without a traceback that normal messages follow."""
        if tracebacks.place(self._log, line) is not None:
            return 0
        after = list(self._log.after(line.at, _STRAY_LINES))
        if any(TROUBLE.search(each.text) and each.text != line.text for each in after):
            return 0
        return 40 if sum(bool(INFO.search(each.shown)) for each in after) > 4 else 0

    def _progress_doubt(self, line: Line) -> int:
        at = line.at
        data = self._log.data
        count = 0
        start = data.find(b"\n", at) + 1
        if not start:
            return 0
        for progress in _PROGRESS.finditer(data, start, start + (1 << 15)):
            begin = (
                max(data.rfind(b"\n", 0, progress.start()), data.rfind(b"\r", 0, progress.start()))
                + 1
            )
            if not _LOADING.search(data, begin, min(progress.start(), begin + 200)):
                count += 1
        if self.succeeded_at > at:
            return 60 if count >= 2 else 35
        if 4 <= count < _MUCH_PROGRESS:
            # a program may flush earlier output after its traceback
            frame = tracebacks.place(self._log, line)
            return 55 if frame is None or frame.is_library else 35
        if count >= _MUCH_PROGRESS:
            return 60
        goes_on = count >= 2 and self._ends_in_progress and not self._failed
        if goes_on and (
            tracebacks.place(self._log, line) is None or tracebacks.is_logged(self._log, line)
        ):
            return 55
        is_long_after = data.count(b"\n", at, at + (1 << 16)) > _LONG_AFTER
        if self._ends_quietly and is_long_after and is_outlived(self._log, line):
            return 55
        doubt = 18 if count >= 2 else 12 * count
        if data.count(b"\n", at, at + (1 << 16)) > _MANY_LINES and not tracebacks.place(
            self._log, line
        ):
            # the program printed much more, so this line did not end it
            doubt += 10 if self._failed else 45
        return doubt


def is_progress(line: Line) -> bool:
    """Whether a line shows the progress of training."""
    return bool(_PROGRESS.search(line.shown.encode()))


def is_outlived(log: Log, line: Line) -> bool:
    """Whether a logger printed the exception on a line, and the program went on as usual."""
    if not tracebacks.is_logged(log, line):
        return False
    texts = [each for each in log.after(line.at, 2 * _NEXT_LINES) if each.text.strip()]
    # the traceback itself, if the line is the message above it
    first = next((n for n, each in enumerate(texts) if not _OF_TRACEBACK.match(each.text)), 0)
    usual = 0
    for each in texts[first : first + _NEXT_LINES]:
        if TROUBLE.search(each.text):
            break
        usual += bool(INFO.search(each.shown)) or is_progress(each)
    return usual > 1


def is_programs_exception(log: Log, line: Line) -> bool:
    """Whether a line is an exception of a program, not the output of a script's command.

    ``python -c`` is such a command, and so is conda, whose errors look like exceptions.
    """
    frame = tracebacks.place(log, line)
    if frame is not None:
        return frame.file != "<string>"
    is_condas = line.text.startswith(("CommandNotFoundError: ", "CondaError: "))
    return bool(_RAISED.match(line.text)) and not is_condas
