"""What stands around a line that looks like a failure: whether it was handled, and whether the log goes on.

A line is no failure if it says so itself (a warning, a retry, advice, source code), or if the job made
progress, succeeded or went on as usual after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pairun.diagnose import tracebacks
from pairun.diagnose.lines import Line, Log

HANDLED = 60
"""What a line loses of its weight if it was no failure; then it names no class."""

OUTLIVED = 45
"""What a line loses if the log goes on after it."""

LESS = 20
"""What a line loses if it is rather a consequence."""

_LAST_LINES, _TAIL_LINES = 5, 25
_MUCH_PROGRESS, _MOST_PROGRESS = 4, 40
_MANY_LINES, _NEXT_LINES, _USUAL_LINES, _LONG_LINES = 80, 40, 3, 24
_HEALED_LINES = 24

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

_WARNING = re.compile(
    r"(?<!NCCL )\bWARN(?:ING)?\b|\b[Ww]arn(?:ing)?:|^\[?W\d{4}|\[W ?\d{3,4}|\[W\]|\[W \w+\.cpp|\[warn"
    r"|\w+Warning: |\bW tensorflow/"
)
_RETRY = re.compile(
    r"(?i)\bretry(?:ing)?\b(?!-after)|\bretries left|\bwill (?:be )?(?:retr|try again|continue|skip|ignore)"
    r"|\battempt \d+ ?(?:/|of) ?\d+|\bfall(?:ing)? ?back\b|(?<!Error syncing pod, )\bskipp(?:ing|ed)\b|\bignor(?:ing|ed|e)\b"
    r"|\bfrom scratch\b|\busing (?:the )?(?:default|system temp)|\bgoing to \S+ instead\b|\b(?:try|attempt)ing (?:another|the next|(?:port )?\d{2,5})\b"
    r"|\b(?:exists?|found|missing|available)(?: yet)?\W{1,3}(?:download|creat|generat|build|comput|initiali[sz])ing\b|\bcaught (?!signal|collective|\w+ in )|\bre-?connect(?:ing|ed)\b|\brecovered\b|\b(?:safely|harmless)\b|\btrying again\b|\bnon-?fatal\b"
    r"|\b(?:reading|loading|using|taking|trying) (?:[\w'-]+ ){1,6}instead\b"
    r"|[;,.] (?:using|disabling|defaulting to|will use) "
    r"|\b(?:was |were )?(?:refreshed|renewed) (?:automatically|it|successfully)|\bnew (?:session|connection|token|lease)s? (?:was )?(?:opened|created|established|obtained|fetched)"
    r"|\bresumed (?:from|at) (?:step|epoch|iteration|checkpoint)\b"
    r"|\b(?:continuing|proceeding|running|going on) without\b|\bwill not be (?:logged|recorded|collected|measured|shown|reported|tracked)\b"
)
_RETRY_FOLLOWS = re.compile(
    r"(?:.* will be retried\b|\W*(?:\w+ ?[:|-] ?)?(?:[Rr]etrying|[Ww]ill (?:re)?try|[Tt]rying again|[Ff]alling back"
    r"|[Uu]sing (?:the |a )?(?:local|cached|fallback)|[Cc]ontinuing without|'.{1,300}' has appeared)\b)"
    r"(?!.*\b(?P<attempt>\d+) ?(?:/|of) ?(?P=attempt)\b)"
)
_ADVICE = re.compile(r"\b(?:Try|Consider|Please|You (?:can|may|should)) ")
_EXHAUSTED = re.compile(
    r"(?i)max(?:imum)? (?:number of )?retries|retries exceeded|giving up|gave up|retry failed after"
)
_HEALED = re.compile(
    r"(?i)\b(?:error|problem|outage|connection)\b.{0,40}\b(?:resolved|restored|recovered|re-?established)\b"
    r"|^\W*(?:[\w-]{1,40}\W{1,3})?(?:re)?connected\b(?! host)|\b(?:server|service|endpoint|database|broker|backend) is (?:now )?(?:up|ready|reachable)\b|; re-?connected\b|\. Reconnected\b"
    r"|\bnfs: server \S+ OK\b"
)
"""A client reports that it reaches its server again."""

_NEGATED = re.compile(r"(?i)\b(?:no|without(?: a| any)?|zero)\s+(?:further |more )?$")
"""The words before a match that turn it into its opposite."""

_CODE = re.compile(
    r"\s*(?:except \w[\w., ()]{0,120}(?: as \w+)?:|raise \w[\w.]{0,80}\(|\d+ \| )|\+ "
)
"""A line of source code, also as compilers and linters quote it, or a command that a shell shows (``set -x``)."""


def is_shells(line: Line) -> bool:
    """Whether a line is a shell's report of a command that it cannot run."""
    return _OF_SHELL.match(line.text) is not None


def is_of_shell(line: Line) -> bool:
    """Whether a shell or conda reports that a command failed."""
    return is_shells(line) or line.text.startswith(("CommandNotFoundError: ", "CondaError: "))


def is_answered(line: Line) -> bool:
    """Whether a line logs one request and its answer; a program handles any such answer."""
    return _ACCESS.search(line.text) is not None


def is_progress(line: Line) -> bool:
    """Whether a line shows the progress of training."""
    return _PROGRESS.search(line.shown.encode()) is not None


def is_trouble(line: Line) -> bool:
    """Whether a line reports an error, by its form."""
    return bool(TROUBLE.search(line.text) or ERROR_LEVEL.search(line.text))


def is_handled(line: Line) -> bool:
    """Whether a line says that the program retries, or continues without what failed; advice says neither."""
    said = _ADVICE.split(line.text, maxsplit=1)[0]
    return bool(_RETRY.search(said)) and not _EXHAUSTED.search(line.text)


def is_mild(line: Line) -> bool:
    """Whether a line is a warning or less, or source code."""
    forms = (_WARNING, INFO)
    return any(each.search(line.shown) for each in forms) or bool(_CODE.match(line.text))


def level_of(line: Line, until: int) -> str:
    """``warning``, ``info`` or nothing, by what stands before an offset in the line's text."""
    head = line.shown[: len(line.shown) - len(line.text) + until]
    return "warning" if _WARNING.search(head) else "info" if INFO.search(head) else ""


def is_taken_back(match: re.Match[str], line: Line, log: Log) -> bool:
    """Whether the line of a match, or the next one, says that it was no failure."""
    following = next(log.after(line.at, 1), None)
    is_code = _CODE.match(line.text) and not any('File "' in b.text for b in log.before(line.at, 1))
    return bool(
        is_code
        or (is_handled(line) and not _RETRY.search(match[0]))
        or (following is not None and _RETRY_FOLLOWS.match(following.text))
        or _NEGATED.search(match.string[: match.start()])
    )


def is_healed(line: Line, log: Log) -> bool:
    """Whether a later line says that the server is back."""
    return any(_HEALED.search(after.text) for after in log.after(line.at, _HEALED_LINES))


class Surroundings:
    """How a log goes on after a line.

    Args:
        log: the log.
        failed: whether the job is known to have failed.

    Attributes:
        succeeded_at: offset of a line at the log's end that reports success, or -1.
    """

    def __init__(self, log: Log, *, failed: bool = False) -> None:
        self._log, self._failed = log, failed
        self._known: dict[int, int] = {}
        tail = log.tail(_TAIL_LINES)
        ends = [n for n, line in enumerate(tail) if _SUCCESS.search(line.text)]
        is_last = bool(ends) and not any(map(is_trouble, tail[ends[-1] + 1 :]))
        self.succeeded_at = tail[ends[-1]].at if is_last else -1
        last = tail[-_LAST_LINES:]
        self._ends_in_progress = any(map(is_progress, last)) and not any(map(is_trouble, last))

    def doubt(self, line: Line) -> int:
        """How much to take from a hit because the job went on after it."""
        if line.at not in self._known:
            self._known[line.at] = self._doubt(line)
        return self._known[line.at]

    def _doubt(self, line: Line) -> int:
        log, data = self._log, self._log.data
        count = self._progress_after(line.at)
        frame = tracebacks.place(log, line)
        # a command of a script, such as ``python -c``, is tried
        is_raised = frame is not None and frame.file != "<string>"
        is_raised = is_raised and not tracebacks.is_logged(log, line)
        if self.succeeded_at > line.at:
            return HANDLED if count > 1 else LESS if is_raised else OUTLIVED
        if count >= _MUCH_PROGRESS:
            # a program may flush earlier output after its traceback
            is_flushed = frame is not None and not frame.is_library and count < _MOST_PROGRESS
            return LESS if is_flushed else HANDLED
        if is_raised or ERROR_LEVEL.match(line.shown):
            return LESS if count > 1 else 0
        if count > 1 and self._ends_in_progress and not self._failed:
            return HANDLED
        after = list(log.after(line.at, _NEXT_LINES))
        # NCCL traces an error at this level
        usual = sum(
            is_progress(each) or bool(INFO.search(each.shown) and "NCCL" not in each.shown)
            for each in after
        )
        if usual > _USUAL_LINES and not any(
            is_trouble(each) for each in after if each.text != line.text
        ):
            return HANDLED if usual > _LONG_LINES else OUTLIVED
        if frame is None and data.count(b"\n", line.at, line.at + (1 << 16)) > _MANY_LINES:
            # the program printed much more, so this line did not end it
            return LESS if self._failed else OUTLIVED
        return LESS if count > 1 else 0

    def _progress_after(self, at: int) -> int:
        """The number of lines of progress that follow, without those of loading."""
        data, count = self._log.data, 0
        start = data.find(b"\n", at) + 1
        for progress in _PROGRESS.finditer(data, start, start + (1 << 15)) if start else ():
            begin = 1 + max(data.rfind(mark, 0, progress.start()) for mark in (b"\n", b"\r"))
            count += not _LOADING.search(data, begin, min(progress.start(), begin + 200))
        return count

    def is_training_after(self, at: int) -> bool:
        """Whether the job trains on long after an offset, at which a system reports its end."""
        if self._failed or not self._ends_in_progress:
            return False
        return self._progress_after(at) >= _MOST_PROGRESS

    def commands_after(self, line: Line) -> bool:
        """Whether a shell ran further commands without an error after one that it could not run."""
        after = [each for each in self._log.after(line.at, 12) if each.text.strip()]
        is_bad: Callable[[Line], bool] = lambda each: is_shells(each) or is_trouble(each)  # noqa: E731
        return len(after) > 1 and not any(map(is_bad, after))
