"""A review as text for people, no wider than the terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import IO, Any

import pairun
from pairun.base.escapes import visible
from pairun.module import format_duration
from pairun.plan import EVENTS, Late, Task
from pairun.playbook.content import Content
from pairun.report.shown import container_texts, fit, shown_data
from pairun.report.tint import Tint
from pairun.review.taskreview import Override, Reviewed
from pairun.secrets.vault import Vault

MARKS = {
    "no_change": ("=", "dim"), "will_change": ("~", "yellow"), "unknown": ("?", "cyan"),
    "check": ("!", "blue"),
}  # fmt: skip
"""The symbol and colour of each kind of verdict."""

_MAX_TEXT_LINES = 12
UNPREDICTABLE = "cannot be predicted"
"""The beginning of a verdict on a task whose effect is known only at run time."""


class ReviewText:
    """Prints reviews.

    Args:
        stream: the stream to print to.
        vault: masks secrets.
    """

    def __init__(self, stream: IO[str], vault: Vault) -> None:
        self._stream = stream
        self._vault = vault
        self._style = Tint(stream)

    def line(self, text: str = "") -> None:
        """Print one line."""
        self._stream.write(self._vault.text(text).rstrip() + "\n")

    def wrapped(self, text: str, indent: str = "", color: str = "", hang: str = "") -> None:
        """Wrap and print a text."""
        # Mask before wrapping, because a line break may split a secret.
        text = visible(self._vault.text(text))
        for n, part in enumerate(_wrapped(text, self._style.width - len(indent) - len(hang))):
            self._stream.write(
                indent + hang * (n > 0) + self._style(part, *filter(None, [color])) + "\n"
            )

    def bold(self, text: str) -> str:
        """Make a text bold."""
        return self._style(text, "bold")

    def row(self, mark: tuple[str, str], id_: str, what: str, beside: str = "") -> bool:
        """Print one line on a task; cuts what does not fit.

        Args:
            mark: symbol and colour.
            id_: the task's id.
            what: the text.
            beside: printed after the text, if there is room.

        Returns:
            Whether there was room for ``beside``.
        """
        head = f"    {self._style(*mark)} {self._style(id_.ljust(18), 'bold')} "
        room = self._style.width - 7 - max(18, len(id_))
        what = visible(self._vault.text(what))
        fits = len(what) + len(visible(beside)) <= room
        if beside and fits:
            self.line(head + what + self._style(visible(beside), "dim"))
        else:
            self.line(head + fit(what, max(room, 10)))
        return fits or not beside

    def phase(self, title: str, tasks: list[Reviewed]) -> None:
        """Print the tasks of a phase, then its exit handlers in the order in which they run."""
        self.line("  " + self._style(title, "bold"))
        group = None
        for task in tasks:
            if task.group and task.group != group:
                self.wrapped(f"at once: {task.group}", "    ", "dim")
            group = task.group
            self._task(task, "      " if group else "    ")
        handlers = [h for t in reversed(tasks) if t.task for h in reversed(t.task.on_exit)]
        if handlers:
            self.line("  " + self._style("exit handlers, in this order", "bold"))
            for handler in handlers:
                self._head("    ", (">", "blue"), handler.id, handler.name)
                events = "always" if handler.events == EVENTS else ", ".join(handler.events)
                self.line("        " + self._style(f"on {events}", "dim"))
                self._values(handler, "        ")

    def _head(
        self, indent: str, mark: tuple[str, str], id_: str, name: str, brought: str = ""
    ) -> None:
        """Print symbol, id and name of a task, and its origin if there is room."""
        start = len(indent) + 2 + max(18, len(id_)) + 1
        room = self._style.width - start
        name = visible(self._vault.text(name))
        fits = len(name) <= room
        head = f"{indent}{self._style(*mark)} {self._style(id_.ljust(18), 'bold')}"
        beside = brought if fits and len(name) + len(brought) + 3 <= room else ""
        if fits:
            origin = self._style(f"({beside})", "dim") if beside else ""
            self.line(" ".join(filter(None, (head, name, origin))).rstrip())
        else:
            self.line(f"{indent}{self._style(*mark)} {self._style(id_, 'bold')}")
            self.wrapped(name, indent + "    ")
        if brought and not beside:
            self.wrapped(brought, indent + "    ", "dim")

    def _task(self, item: Reviewed, indent: str) -> None:
        mark, color = MARKS[item.verdict.kind]
        brought = "" if item.layer in ("", "built-in") else f"{item.layer}: {item.where}"
        self._head(indent, ("-" if item.skipped else mark, color), item.id, item.name, brought)
        inner = indent + "    "
        if item.disabled:
            self.wrapped(f"disabled by {item.disabled}", inner, "yellow")
            return
        assert item.task is not None
        if not item.skipped:
            self._values(item.task, inner)
        self.because(item, inner)
        for override in item.overrides:
            self.override(override, inner)

    def because(self, item: Reviewed, indent: str) -> None:
        """Print what a task would do, and why."""
        self.wrapped(verdict_words(item), indent, MARKS[item.verdict.kind][1])

    def _values(self, task: Task, indent: str) -> None:
        """Print non-default arguments and keywords, one per line; long texts below."""
        for name, value in task.args.items():
            self._value(f"{name}", value, indent)
        for name, value in task.environment.items():
            self._value(f"environment.{name}", value, indent)
        keywords = list(_keywords(task))
        if keywords:
            self.wrapped(" · ".join(keywords), indent, "dim")

    def _value(self, name: str, value: Any, indent: str) -> None:
        if value is None or (isinstance(value, str | list | dict) and not value):
            return
        if isinstance(value, Late):
            if texts := container_texts(value):
                words = f"{name}: {', '.join(texts)} (known in the container)"
                self.wrapped(words, indent, "cyan", "  ")
                return
            self.wrapped(f"{name}: (depends on {value.because})", indent, "cyan", "  ")
            return
        text = shown_data(value, self._vault)
        if isinstance(text, str) and "\n" in text.rstrip("\n"):
            lines = text.rstrip("\n").split("\n")
            self.line(f"{indent}{name}:")
            for each in lines[:_MAX_TEXT_LINES]:
                self.line(indent + self._style("| ", "dim") + visible(each))
            if len(lines) > _MAX_TEXT_LINES:
                more = len(lines) - _MAX_TEXT_LINES
                self.line(indent + self._style(f"| … {more} more lines", "dim"))
            return
        words = text if isinstance(text, str) else _compact(text)
        self.wrapped(f"{name}: {words}", indent, hang="  ")

    def override(self, o: Override, indent: str) -> None:
        """Print an override: the value, who set it, and what it replaced."""
        value, before = (_compact(shown_data(v, self._vault)) for v in (o.value, o.before[0]))
        was = "the default" if o.before[0] is None else f"{before} ({o.before[1]} {o.before[2]})"
        self.wrapped(f"{o.path} = {value}  ← {o.layer} {o.where}, was {was}", indent, "green", "  ")


def roots_line(content: Content) -> str:
    """The first line of a review: pairun's version, the content roots, and what it does not read."""
    roots = ", ".join(
        " ".join([r.layer, *([r.path] if r.layer != "built-in" else []), r.digest()])
        for r in content.roots
    )
    line = f"pairun {pairun.__version__} · content roots: {roots}"
    if all(r.layer == "built-in" for r in content.roots):
        return f"{line} · using built-in defaults only"
    ignored = [os.path.join(r.path, x) for r in content.roots[1:] for x in r.ignored()]
    return f"{line} · pairun does not read {', '.join(ignored)}" if ignored else line


def verdict_words(item: Reviewed) -> str:
    """What a task would do, and why."""
    because = item.verdict.because
    says_kind = because.startswith(("skipped", UNPREDICTABLE))
    kind = {
        "no_change": "no change: ",
        "will_change": "will change: ",
        "unknown": "unknown until run: ",
        "check": "",
    }
    return ("" if says_kind else kind[item.verdict.kind]) + reason(item)


def reason(item: Reviewed) -> str:
    """Why a task would do this, and what it would change."""
    verdict = item.verdict
    if not (verdict.before or verdict.after):
        return verdict.because
    return f"{verdict.because} ({verdict.before or 'nothing'} → {verdict.after or 'nothing'})"


def _keywords(task: Task) -> Iterator[str]:
    if task.retries:
        yield f"{task.retries} retries from {format_duration(task.delay_s)}"
    if task.timeout_s is not None:
        yield f"timeout {format_duration(task.timeout_s)}"
    if task.deadline_s is not None:
        yield f"deadline {format_duration(task.deadline_s)}"
    if task.failure_policy == "ignore":
        yield "failures are ignored"
    if task.run_on != "all":
        whose = task.run_on.removeprefix("first_of_")
        yield f"the first instance of the {whose} runs it for the others"
    for kind, code in task.exit_codes.items():
        yield f"{kind} exits with {code}"


def _compact(value: Any) -> str:
    if isinstance(value, str):
        return fit(value.replace("\n", "⏎"), 200)
    return fit(json.dumps(value, ensure_ascii=False), 200)


def _wrapped(text: str, width: int) -> list[str]:
    if len(text) <= width and text.isprintable():
        return [text.rstrip(" ")]
    import textwrap  # 1 ms, and most lines fit

    return textwrap.wrap(text, width, subsequent_indent="", break_on_hyphens=False) or [""]


def print_phase(phase: str, tasks: list[Reviewed], vault: Vault, stream: IO[str]) -> None:
    """Print the review of one phase.

    Args:
        phase: the phase's name.
        tasks: its reviewed tasks.
        vault: masks secrets.
        stream: the stream to print to.
    """
    text = ReviewText(stream, vault)
    text.phase(phase, tasks)
    text.line(summary({phase: tasks}))


def summary(roles: dict[str, list[Reviewed]]) -> str:
    """One sentence about all tasks of all roles."""
    counts = dict.fromkeys(MARKS, 0)
    skipped = 0
    for tasks in roles.values():
        for task in tasks:
            if task.skipped:
                skipped += 1
            else:
                counts[task.verdict.kind] += 1
    parts = [
        f"{counts['will_change']} would change something",
        f"{counts['unknown']} unknown until run",
        f"{counts['check']} check{'s' if counts['check'] != 1 else ''}",
        f"{counts['no_change']} without change",
        f"{skipped} skipped",
    ]
    return f"{sum(counts.values()) + skipped} tasks: " + ", ".join(parts)
