"""The view of a running job: a live foot on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import io
import re
import select
from collections.abc import Sequence
from typing import IO

import attrs

from pairun.base.durations import shown_duration
from pairun.base.escapes import ESCAPE, visible
from pairun.base.sizes import format_size
from pairun.report.tint import is_terminal
from pairun.secrets.vault import Vault
from pairun.volume.journal import CONDITION_IS_FALSE

COMMAND_ACTIVITY = "command"
"""The activity of an instance while the user's command runs."""


@attrs.frozen(kw_only=True)
class Activity:
    """The state of one instance at one moment.

    Attributes:
        label: role and number.
        phase: ``init``, ``runtime``, or the phase of its Pod.
        doing: the task, ``command``, or what else it does.
        detail: the attempt, or why it waits; may be empty.
        elapsed_s: for how long, in seconds; None if unknown.
        limit_s: the time limit, in seconds; None for no limit.
        done: bytes so far, from a task that reports progress.
        total: bytes in total, if the task knows.
        troubled: whether it retries after a failure, or waits for a person.
    """

    label: str
    phase: str
    doing: str
    detail: str = ""
    elapsed_s: float | None = None
    limit_s: float | None = None
    done: int | None = None
    total: int | None = None
    troubled: bool = False

    @property
    def time(self) -> str:
        """The elapsed time and the limit: ``12 s of 20 m``."""
        if self.elapsed_s is None:
            return ""
        elapsed = shown_duration(max(0, int(self.elapsed_s)))
        return elapsed if self.limit_s is None else f"{elapsed} of {shown_duration(self.limit_s)}"

    @property
    def amount(self) -> str:
        """The bytes so far and in total: ``12 MiB of 30 MiB``."""
        if self.done is None:
            return ""
        of = f" of {format_size(self.total)}" if self.total else ""
        return f"{format_size(self.done)}{of}"

    @property
    def line(self) -> str:
        """All of it in one line, for a view without columns."""
        parts = (self.phase, self.doing, self.detail, self.amount, self.time)
        return "  ".join(filter(None, parts))


FIRST_NEWS_S = 10.0
"""A plain view reports what an instance does after so many seconds, then at doubled times."""

SLOWEST_NEWS_S = 300.0
"""The longest time between two such reports, in seconds."""


@attrs.frozen(kw_only=True)
class Standing:
    """The state of a job at one moment.

    Attributes:
        running: what the running instances do.
        succeeded: how many instances succeeded.
        failed: how many instances failed.
        seconds: the time since the job began.
        total: how many instances the job has.
    """

    running: Sequence[Activity]
    succeeded: int = 0
    failed: int = 0
    seconds: float = 0.0
    total: int = 0


class View:
    """Shows a job: prints whole lines, without terminal codes.

    Args:
        stream: where to print.
        labels: the names of all instances.
        vault: masks the view's own texts.

    Attributes:
        moves: whether it shows the current activity, so that lines need not.
        interval_s: how often it must be refreshed, in seconds.
        lost: why a line could not be shown, for the first such line; or None.
    """

    moves = False
    interval_s = 1.0

    def __init__(self, stream: IO[str], labels: Sequence[str], vault: Vault) -> None:
        self.lost: OSError | None = None
        self._stream = stream
        self._width = max(map(len, labels), default=0)
        self._vault = vault
        self._next_news: dict[tuple[str, str, str], float] = {}
        self._hang_up = select.poll()
        with contextlib.suppress(io.UnsupportedOperation):
            # Only POLLERR: the reader of a pipe is gone (poll(2)).
            self._hang_up.register(stream.fileno(), 0)

    def output(self, label: str, line: bytes) -> None:
        """Show a line of an instance's output, with secrets masked."""
        self._write(f"{label:<{self._width}} | {clean(line)}")

    def note(self, line: str) -> None:
        """Show a line about the job."""
        self._write(self._vault.text(line))

    def refresh(self, standing: Standing) -> None:
        """Report what takes long, and check whether the reader is gone."""
        keys = set()
        for each in standing.running:
            key = (each.label, each.phase, each.doing)
            keys.add(key)
            due = self._next_news.setdefault(key, FIRST_NEWS_S)
            if each.elapsed_s is not None and each.elapsed_s >= due:
                self._next_news[key] = due + min(due, SLOWEST_NEWS_S)
                line = self._vault.text(each.line)
                self._write(f"{each.label:<{self._width}} | running  {line}")
        self._next_news = {k: v for k, v in self._next_news.items() if k in keys}
        if self.lost is None and any(e & select.POLLERR for _, e in self._hang_up.poll(0)):
            self.lost = BrokenPipeError(32, "Broken pipe")

    def close(self) -> None:
        """Restore the stream."""

    def _write(self, line: str) -> None:
        if self.lost is None:
            try:
                self._stream.write(line + "\n")
                self._stream.flush()
            except OSError as e:
                self.lost = e


def open_view(stream: IO[str], labels: Sequence[str], vault: Vault, *, color: str = "auto") -> View:
    """Open the view for a stream.

    Args:
        stream: standard output, or standard error.
        labels: the names of all instances.
        vault: masks the view's own texts.
        color: ``auto``, ``always`` or ``never``.
    """
    if isinstance(stream, io.TextIOWrapper):
        # A character that the stream cannot encode must not end the run.
        stream.reconfigure(errors="backslashreplace")
    moves = is_terminal(stream)
    if not moves and color != "always":
        return View(stream, labels, vault)
    # the terminal library takes 0.1 s to import
    from pairun.report.live.terminalview import TerminalView

    return TerminalView(stream, labels, vault, color=color, moves=moves)


_ESCAPES = re.compile(ESCAPE)
_OUTCOME = re.compile(
    r"(?=.{9})(ok {7}|changed {2}|skipped {2}|ignored {2}|failed {3}|retry {4})\S"
)
_PROGRESS = re.compile(r"progress \S+: .*[0-9] (?:bytes?|[KMGTPE]iB)(?: \([0-9]+ %\))?")
_SKIPPED = re.compile(rf"skipped  \S+: {CONDITION_IS_FALSE}")
_TAB = 8


def clean(line: bytes) -> str:
    """The text of a line as a terminal would leave it: no escape codes, progress bars resolved."""
    text = line.decode("utf-8", "replace")
    if text.isascii() and text.isprintable():
        return text
    # A terminal does not show what a carriage return overwrote, either.
    text = text.rstrip("\r").rpartition("\r")[2]
    return visible(_ESCAPES.sub("", text).expandtabs(_TAB)).replace("\n", " ")


def outcome_of(text: str) -> str:
    """The outcome at the start of a line of a phase's console, such as ``changed``; else empty."""
    match = _OUTCOME.match(text)
    return match[1].rstrip() if match else ""


def is_progress(text: str) -> bool:
    """Whether a line of a phase's console reports progress."""
    return _PROGRESS.fullmatch(text) is not None


def is_skipped_by_condition(text: str) -> bool:
    """Whether a line of a phase's console reports a task whose condition is false."""
    return _SKIPPED.fullmatch(text) is not None
