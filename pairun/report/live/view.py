"""The view of a running job: a live foot on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import io
import select
from collections.abc import Sequence
from typing import IO, Protocol

import attrs

from pairun.report.live.activity import Activity
from pairun.report.live.outputline import clean
from pairun.report.tint import is_terminal
from pairun.secrets.vault import Vault

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


class View(Protocol):
    """Shows a job.

    Attributes:
        moves: whether it shows the current activity, so that lines need not.
        interval_s: how often it must be refreshed.
        lost: why a line could not be shown, for the first such line; or None.
    """

    moves: bool
    interval_s: float
    lost: OSError | None

    def output(self, label: str, line: bytes) -> None:
        """Add a line of an instance's output, with secrets masked."""

    def note(self, line: str) -> None:
        """Add a line about the job."""

    def refresh(self, standing: Standing) -> None:
        """Show the added lines and the state of the job."""

    def close(self) -> None:
        """Restore the stream."""


class PlainView:
    """Prints whole lines, without terminal codes.

    Args:
        stream: where to print.
        labels: the names of all instances.
        vault: masks the view's own texts.
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
        """Print a line immediately."""
        self._write(f"{label:<{self._width}} | {clean(line)}")

    def note(self, line: str) -> None:
        """Print a line immediately."""
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
        """Do nothing: every line is already written."""

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
        return PlainView(stream, labels, vault)
    # the terminal library takes 0.1 s to import
    from pairun.report.live.terminalview import TerminalView

    return TerminalView(stream, labels, vault, color=color, moves=moves)
