"""Lines above the foot."""

from __future__ import annotations

import io

from pairun.report.live.terminalview import MANY, MOST_PENDING, TerminalView
from pairun.report.live.view import Standing
from pairun.secrets.vault import Vault


def view_of(count: int, color: str = "never") -> tuple[TerminalView, io.StringIO]:
    stream = io.StringIO()
    labels = [f"w-{n}" for n in range(count)]
    return TerminalView(stream, labels, Vault(), color=color, moves=False), stream


def test_outcomes_and_instances_have_colours() -> None:
    """Each instance its own; the user's text has none."""
    view, stream = view_of(2, "always")
    view.output("w-0", b"plain")
    view.output("w-1", b"changed  git: done (1s)")
    view.refresh(Standing(running=()))
    first, second = stream.getvalue().splitlines()
    assert first == "\033[36mw-0 | \033[0mplain"
    assert second == "\033[35mw-1 | \033[0m\033[33mchanged\033[0m  git: done (1s)"


def test_of_many_instances_a_line_that_several_print_stands_once() -> None:
    """With how many more; what two print, and what one prints twice, stands as it came."""
    view, stream = view_of(MANY + 1)
    for n in range(MANY):
        view.output(f"w-{n}", b"same")
    for label in ("w-0", "w-0", "w-1"):
        view.output(label, b"other")
    view.refresh(Standing(running=()))
    assert stream.getvalue().splitlines() == [
        f"w-0 +{MANY - 1}  | same", "w-0      | other", "w-0      | other", "w-1      | other",
    ]  # fmt: skip


def test_a_flood_of_lines_is_shown_and_not_kept() -> None:
    view, stream = view_of(1)
    for _ in range(MOST_PENDING):
        view.output("w-0", b"x")
    assert stream.getvalue().count("\n") == MOST_PENDING
    view.note("the end [bold]")
    view.close()
    assert stream.getvalue().endswith("\nthe end [bold]\n")
