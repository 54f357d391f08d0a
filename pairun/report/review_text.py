"""A review as text for people, no wider than the terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

import pairun
from pairun.base.escapes import visible
from pairun.playbook.content import Content
from pairun.report.shown import IN_CONTAINER, fit, is_late
from pairun.report.task_view import KIND_MARKS, TaskView, summary, view_of
from pairun.report.tint import Printer
from pairun.review.taskreview import Reviewed
from pairun.secrets.vault import Vault

_MAX_TEXT_LINES = 12


class ReviewText(Printer):
    """Prints reviews."""

    def phase(self, title: str, tasks: Sequence[TaskView]) -> None:
        """Print the tasks of a phase, then its exit handlers in the order in which they run."""
        self.line("  " + self.style(title, "bold"))
        group = None
        for view in tasks:
            if view.task.group and view.task.group != group:
                self.wrapped(f"at once: {view.task.group}", "    ", "dim")
            group = view.task.group
            self._task(view, "      " if group else "    ")
        if handlers := handlers_of(tasks):
            self.line("  " + self.style("exit handlers, in this order", "bold"))
        for events, data in handlers:
            self.head("    ", (">", "blue"), data["id"], data["name"])
            self.line("        " + self.style(f"on {events}", "dim"))
            self._values(data, "        ")

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
        room = self.style.width - len(indent) - 3 - max(18, len(id_))
        name, brought = visible(self._mask(name)), visible(brought)
        name = fit(name, max(room, 10)) if cut else name
        has_room = cut or len(name) <= room
        beside = brought if has_room and len(name) + len(brought) + 3 <= room else ""
        if has_room:
            head = f"{indent}{self.style(*mark)} {self.style(id_.ljust(18), 'bold')}"
            origin = self.style(f"({beside})", "dim") if beside else ""
            self.line(" ".join(filter(None, (head, name, origin))))
        else:
            self.line(f"{indent}{self.style(*mark)} {self.style(id_, 'bold')}")
            self.wrapped(name, indent + "    ")
        if brought and not beside:
            self.wrapped(brought, indent + "    ", "dim")

    def _task(self, view: TaskView, indent: str) -> None:
        task, inner = view.task, indent + "    "
        self.head(indent, KIND_MARKS[task.kind], task.id, task.name, view.brought)
        if not task.skipped:
            self._values(view.data, inner)
        self.verdict(view, inner)
        self.overrides(view, inner)

    def verdict(self, view: TaskView, indent: str) -> None:
        """Print what a task would do, and why."""
        color = "yellow" if view.task.disabled else KIND_MARKS[view.task.kind][1]
        self.wrapped(view.words, indent, color)

    def overrides(self, view: TaskView, indent: str) -> None:
        """Print each override: the value, who set it, and what it replaced."""
        for each in view.data.get("overrides", ()):
            was, who = each["was"], f"{each['layer']} {each['where']}"
            before = f"{_compact(was['value'])} ({was['layer']} {was['where']})"
            before = "the default" if was["value"] is None else before
            line = f"{each['path']} = {_compact(each['value'])}  ← {who}, was {before}"
            self.wrapped(line, indent, "green", "  ")

    def _values(self, data: Mapping[str, Any], indent: str) -> None:
        """Print non-default arguments and keywords, one per line; long texts below."""
        by: dict[str, str] = {}
        for each in data.get("sources", ()):
            by.setdefault(each["path"], f"  ← {each['layer']} {each['where']}, {each['source']}")
        for name, value in data["args"].items():
            self._value(name, value, indent, by.get(f"args.{name}", ""))
        for name, value in data.get("environment", {}).items():
            path = f"environment.{name}"
            self._value(path, value, indent, by.get(path, ""))
        if keywords := list(_keywords(data)):
            self.wrapped(" · ".join(keywords), indent, "dim")

    def _value(self, name: str, value: Any, indent: str, by: str = "") -> None:
        if value is None or (isinstance(value, str | list | dict) and not value):
            return
        if is_late(value):
            words, because = f"(depends on {value['unknown']})", value["unknown"]
            if because.startswith(IN_CONTAINER):
                words = f"{because.removeprefix(IN_CONTAINER)} (known in the container)"
            self.wrapped(f"{name}: {words}{by}", indent, "cyan", "  ")
            return
        if isinstance(value, str) and "\n" in value.rstrip("\n"):
            lines = value.rstrip("\n").split("\n")
            self.line(f"{indent}{name}:{by}")
            for each in lines[:_MAX_TEXT_LINES]:
                self.line(indent + self.style("| ", "dim") + visible(each))
            if len(lines) > _MAX_TEXT_LINES:
                more = len(lines) - _MAX_TEXT_LINES
                self.line(indent + self.style(f"| … {more} more lines", "dim"))
            return
        words = value if isinstance(value, str) else _compact(value)
        self.wrapped(f"{name}: {words}{by}", indent, hang="  ")


def handlers_of(tasks: Iterable[TaskView]) -> list[tuple[str, Mapping[str, Any]]]:
    """The exit handlers of tasks in the order in which they run, each after its events."""
    return [handler for view in tasks for handler in view.handlers][::-1]


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


def _keywords(data: Mapping[str, Any]) -> Iterator[str]:
    if data.get("retries"):
        yield f"{data['retries']} retries from {data['delay']}"
    yield from (f"{name} {data[name]}" for name in ("timeout", "deadline") if name in data)
    if data.get("failure_policy") == "ignore":
        yield "failures are ignored"
    if "run_on" in data:
        whose = data["run_on"].removeprefix("first_of_")
        yield f"the first instance of the {whose} runs it for the others"
    yield from (f"{kind} exits with {code}" for kind, code in data.get("exit_codes", {}).items())


def _compact(value: Any) -> str:
    if isinstance(value, str):
        return fit(value.replace("\n", "⏎"), 200)
    return fit(json.dumps(value, ensure_ascii=False), 200)


def print_phase(phase: str, tasks: Sequence[Reviewed], vault: Vault, stream: IO[str]) -> None:
    """Print the review of one phase.

    Args:
        phase: the phase's name.
        tasks: its reviewed tasks.
        vault: masks secrets.
        stream: the stream to print to.
    """
    text = ReviewText(stream, vault)
    text.phase(phase, [view_of(task, vault) for task in tasks])
    text.line(summary(tasks))
