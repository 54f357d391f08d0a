"""A review as text for people, no wider than the terminal."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

import pairun
from pairun.base.escapes import visible
from pairun.plan import EVENTS, Late, Task
from pairun.playbook.content import Content
from pairun.report.shown import container_texts, fit, setter_words, shown_data
from pairun.report.tint import Tint
from pairun.review.taskreview import Override, Reviewed, is_unset, keyword_values, sources_of
from pairun.secrets.vault import Vault

if TYPE_CHECKING:
    from pairun.playbook.drafts import Origins

MARKS = {
    "writes": ("~", "yellow"), "runs": ("$", "magenta"), "unknown": ("?", "cyan"),
    "check": ("!", "blue"), "no_change": ("=", "dim"), "skipped": ("-", "dim"),
    "disabled": ("-", "dim"),
}  # fmt: skip
"""The symbol and colour of each kind of task (`Reviewed.kind`)."""

_MAX_TEXT_LINES = 12


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
                self.head("    ", (">", "blue"), handler.id, handler.title)
                events = "always" if handler.events == EVENTS else ", ".join(handler.events)
                self.line("        " + self._style(f"on {events}", "dim"))
                self._values(handler, "        ")

    def head(
        self,
        indent: str,
        mark: tuple[str, str],
        id_: str,
        name: str,
        brought: str = "",
        *,
        cut: bool = False,
    ) -> None:
        """Print symbol, id and name of a task, and its origin; what has no room goes below.

        Args:
            indent: the blanks before it.
            mark: symbol and colour.
            id_: the task's id.
            name: its name.
            brought: its origin.
            cut: cut a long name instead.
        """
        room = self._style.width - len(indent) - 3 - max(18, len(id_))
        name, brought = visible(self._vault.text(name)), visible(brought)
        name = fit(name, max(room, 10)) if cut else name
        has_room = cut or len(name) <= room
        beside = brought if has_room and len(name) + len(brought) + 3 <= room else ""
        if has_room:
            head = f"{indent}{self._style(*mark)} {self._style(id_.ljust(18), 'bold')}"
            origin = self._style(f"({beside})", "dim") if beside else ""
            self.line(" ".join(filter(None, (head, name, origin))).rstrip())
        else:
            self.line(f"{indent}{self._style(*mark)} {self._style(id_, 'bold')}")
            self.wrapped(name, indent + "    ")
        if brought and not beside:
            self.wrapped(brought, indent + "    ", "dim")

    def _task(self, item: Reviewed, indent: str) -> None:
        brought = "" if item.layer in ("", "built-in") else f"{item.layer}: {item.where}"
        self.head(indent, MARKS[item.kind], item.id, item.name, brought)
        inner = indent + "    "
        if item.disabled:
            self.wrapped(f"disabled by {item.disabled}", inner, "yellow")
            return
        assert item.task is not None
        if not item.skipped:
            self._values(item.task, inner, item.origins)
        self.because(item, inner)
        for override in item.overrides:
            self.override(override, inner)

    def because(self, item: Reviewed, indent: str) -> None:
        """Print what a task would do, and why."""
        self.wrapped(verdict_words(item), indent, MARKS[item.kind][1])

    def _values(self, task: Task, indent: str, origins: Origins | None = None) -> None:
        """Print non-default arguments and keywords, one per line; long texts below."""
        by: dict[str, str] = {}
        for path, setter in sources_of(origins) if origins else ():
            by.setdefault(path, f"  ← {setter_words(setter)}")
        for name, value in task.args.items():
            self._value(f"{name}", value, indent, by.get(f"args.{name}", ""))
        for name, value in task.environment.items():
            path = f"environment.{name}"
            self._value(path, value, indent, by.get(path, ""))
        keywords = list(_keywords(task))
        if keywords:
            self.wrapped(" · ".join(keywords), indent, "dim")

    def _value(self, name: str, value: Any, indent: str, by: str = "") -> None:
        if value is None or (isinstance(value, str | list | dict) and not value):
            return
        if isinstance(value, Late):
            if texts := container_texts(value):
                words = f"{', '.join(texts)} (known in the container)"
            else:
                words = f"(depends on {value.because})"
            self.wrapped(f"{name}: {words}{by}", indent, "cyan", "  ")
            return
        text = shown_data(value, self._vault)
        if isinstance(text, str) and "\n" in text.rstrip("\n"):
            lines = text.rstrip("\n").split("\n")
            self.line(f"{indent}{name}:{by}")
            for each in lines[:_MAX_TEXT_LINES]:
                self.line(indent + self._style("| ", "dim") + visible(each))
            if len(lines) > _MAX_TEXT_LINES:
                more = len(lines) - _MAX_TEXT_LINES
                self.line(indent + self._style(f"| … {more} more lines", "dim"))
            return
        words = text if isinstance(text, str) else _compact(text)
        self.wrapped(f"{name}: {words}{by}", indent, hang="  ")

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
    does, because = item.verdict.does, reason(item)
    if item.skipped or item.verdict.kind == "check" or because.startswith(f"{does or None} "):
        return because
    kind = {"no_change": "no change: ", "will_change": "will change: "}
    return (
        f"{does} what " if does else kind.get(item.verdict.kind, "unknown until run: ")
    ) + because


def reason(item: Reviewed) -> str:
    """Why a task would do this, and what it would change."""
    verdict = item.verdict
    if not (verdict.before or verdict.after):
        return verdict.because
    return f"{verdict.because} ({verdict.before or 'nothing'} → {verdict.after or 'nothing'})"


def _keywords(task: Task) -> Iterator[str]:
    values = keyword_values(task)
    for name, value in values.items():
        if is_unset(value) or name in ("when", "environment", "delay", "retry_on"):
            continue
        if name == "retries":
            if value:
                yield f"{value} retries from {values['delay']}"
        elif name == "failure_policy":
            if value == "ignore":
                yield "failures are ignored"
        elif name == "run_on":
            whose = value.removeprefix("first_of_")
            yield f"the first instance of the {whose} runs it for the others"
        elif name == "exit_codes":
            yield from (f"{kind} exits with {code}" for kind, code in value.items())
        else:
            yield f"{name} {value}"


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
    text.line(summary(tasks))


def summary(tasks: Iterable[Reviewed]) -> str:
    """One sentence about tasks."""
    counts = Counter(task.kind for task in tasks)
    counts["skipped"] += counts.pop("disabled", 0)
    words = {
        "writes": "writes" if counts["writes"] == 1 else "write",
        "runs": f"run{'s' * (counts['runs'] == 1)} a command",
        "unknown": "unknown until run",
        "check": f"check{'s' * (counts['check'] != 1)}",
        "no_change": "without change",
        "skipped": "skipped",
    }
    parts = ", ".join(f"{counts[kind]} {word}" for kind, word in words.items() if counts[kind])
    total = counts.total()
    return f"{total} task{'s' * (total != 1)}: {parts}"
