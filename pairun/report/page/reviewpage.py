"""The page on a review: first what would change, then a column per role with its tasks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from pairun.errors import Place, Problem, concealed_in
from pairun.job.planning import RolePlan
from pairun.module import Phase
from pairun.plan import USER_COMMAND
from pairun.playbook.content import Content
from pairun.playbook.document.reading import Node, elements
from pairun.playbook.drafts import Origins, Setter, TaskDraft, setter_of
from pairun.report.page.document import assets, document
from pairun.report.problems import problem_text
from pairun.report.review_data import as_data, first_roles
from pairun.report.review_text import MARKS, reason, roots_line, summary, verdict_words
from pairun.report.shown import count_of, shown_data, shown_setter
from pairun.review.jobreview import JobReview
from pairun.secrets.shapes import with_secrets
from pairun.secrets.vault import Vault

_CHANGES = ("writes", "runs", "unknown")
"""The kinds of tasks that change something, or may."""

Line = tuple[str, int]
"""A line: its file, and its number from 1."""


def review_page(reviews: Sequence[JobReview], content: Content) -> str:
    """Build the HTML file.

    Args:
        reviews: one per job.
        content: the content roots, for the heading.
    """
    names = [r.vault.text(r.job.name if r.job else r.path) for r in reviews]
    return document(
        "review.html.j2",
        f"Review of {', '.join(names)}",
        style=assets("look.css", "review.css"),
        script=assets("shared.js", "review.js"),
        jobs=[_Job(review, number).shown() for number, review in enumerate(reviews)],
        roots=roots_line(content),
        marks={kind: mark for kind, (mark, _) in MARKS.items()},
    )


@attrs.frozen
class SettingShown:
    """A setting of a task.

    Attributes:
        path: ``retries``, ``args.depth``.
        value: the plan's value, masked; several lines for a script.
        unknown: why it is unknown before a run; empty if it is known.
        setters: who set it, the effective one first; empty for a default.
    """

    path: str
    value: str
    unknown: str
    setters: tuple[Setter, ...]


class _Job:
    """What a page shows of one job, as data for its template."""

    def __init__(self, review: JobReview, number: int) -> None:
        self._review = review
        self._vault = review.vault
        self._prefix = f"job{number}"
        self._problems = list(review.problems)
        self._lines = _by_line(self._problems)
        self._first_roles = first_roles(review)
        # problem to its tasks, as anchor and text
        self._about: dict[int, dict[str, str]] = {}

    def shown(self) -> dict[str, Any]:
        self._vault.add(concealed_in(self._problems))
        job = self._review.job
        errors = sum(p.severity == "error" for p in self._problems)
        shown = {
            "errors": count_of(errors, "error") if errors else "",
            "name": self._vault.text(job.name) if job else self._review.path,
            "sentence": "",
            "columns": [self._column(n, plan) for n, plan in enumerate(self._review.plans)],
            "changes": self._changes(),
            "problems": [self._problem(n, problem) for n, problem in enumerate(self._problems)],
        }
        if job is None:
            return shown
        listed = self._review.settings.init_plugins
        facts = [
            ("file", self._review.path), ("user", job.user),
            ("kind", "a plain Pod, no job of OpenPAI" if self._review.settings.plain else ""),
            ("roles", str(len(job.roles))),
            ("instances", str(sum(r.instances for r in job.roles))),
            ("init plugins", listed.place.source.file if listed else ""),
        ]  # fmt: skip
        return {**shown, "sentence": summary(self._review.all_tasks()), "facts": facts}

    def _problem(self, number: int, problem: Problem) -> dict[str, Any]:
        head, *lines = problem_text(problem, self._vault).split("\n")
        return {
            "severity": problem.severity,
            "id": problem.id,
            "head": head,
            "lines": "\n".join(lines),
            "sentence": self._vault.text("; ".join(filter(None, (problem.message, problem.hint)))),
            "anchor": f"{self._prefix}-problem{number}",
            "about": self._about.get(number),
        }

    def _changes(self) -> list[tuple[tuple[str, str, str, str], list[tuple[str, str]]]]:
        """The tasks that would or may change something; tasks of several roles are listed once."""
        roles: dict[tuple[str, str, str, str], list[tuple[str, str]]] = {}
        for n, plan in enumerate(self._review.plans):
            for phase, tasks in self._review.tasks[plan.role.name].items():
                for at, task in enumerate(tasks):
                    if (kind := task.kind) in _CHANGES:
                        key = (kind, phase, task.id, self._vault.text(reason(task)))
                        anchor = self._anchor(n, phase, at)
                        roles.setdefault(key, []).append((anchor, plan.role.name))
        return sorted(roles.items(), key=lambda entry: _CHANGES.index(entry[0][0]))

    def _column(self, number: int, plan: RolePlan) -> dict[str, Any]:
        role, asked = plan.role, plan.role.resources
        image = role.image.node.get("uri")
        ports = ", ".join(f"{label} {count}" for label, count in asked.ports.items())
        pod = self._review.pods[role.name]
        refused = pod.refused(self._problems)
        return {
            "name": role.name,
            "instances": count_of(role.instances, "instance"),
            "facts": [
                ("image", self._vault.text(str(image.value)) if image else ""),
                ("cpu", str(asked.cpu)), ("memory", f"{asked.memory_mb} MB"),
                ("gpu", str(asked.gpu)), ("ports", ports),
            ],
            "pod": [
                {"path": f"pod.{key}", "refused": key in refused,
                 **_shown(setter_of(node), key, self._vault)._asdict()}
                for key, node in pod.above("built-in").items()
            ],
            "phases": [
                (phase, [
                    (self._vault.text(group or ""), list(same))
                    for group, same in itertools.groupby(
                        self._cards(number, plan, phase), lambda card: card["group"]
                    )
                ])
                for phase in self._review.tasks[role.name]
            ],
        }  # fmt: skip

    def _cards(self, number: int, plan: RolePlan, phase: Phase) -> Iterator[dict[str, Any]]:
        """Tasks; open is what would change something, has a problem, or a job or cluster changed."""
        drafts, role = plan.effective.drafts[phase].by_id(), plan.role.name
        for at, task in enumerate(self._review.tasks[role][phase]):
            draft = drafts.get(task.id)
            anchor, kind = self._anchor(number, phase, at), task.kind
            lines = _lines_of(plan, draft) if draft else set()
            about = sorted({n for line in lines for n in self._lines.get(line, ())})
            for each in about:
                self._about.setdefault(each, {})[anchor] = f"{task.id} of {role}"
            first = self._first_roles[role, phase, at]
            data = as_data(task, self._vault)
            decided = task.overrides or task.disabled or about or task.layer == "job"
            stands_out = (
                task.verdict.kind == "will_change" or decided or task.module == USER_COMMAND
            )
            words = f"disabled by {task.disabled}" if task.disabled else verdict_words(task)
            yield {
                "id": task.id, "name": data["name"], "module": task.module, "group": task.group,
                "anchor": anchor, "kind": kind, "verdict": self._vault.text(words),
                "same_as": None if first == role else first,
                "open": bool(stands_out and first == role),
                "problems": [self._problem(n, self._problems[n]) for n in about],
                "settings": settings_shown(data, task.origins, draft.node, self._vault)
                if draft and task.origins
                else [],
                "handlers": list(_handlers(data, task.origins, self._vault)),
                "origin": f"{task.layer} {task.where}".strip(),
            }  # fmt: skip

    def _anchor(self, role: int, phase: Phase, task: int) -> str:
        # Numbers, because a task's id may contain any character.
        return f"{self._prefix}-role{role}-{phase}{task}"


def _handlers(
    data: Mapping[str, Any], origins: Origins | None, vault: Vault
) -> Iterator[tuple[str, list[SettingShown]]]:
    nodes = elements(origins.task.node, "on_exit") if origins and origins.task else []
    for handler, own in itertools.zip_longest(data.get("on_exit", ()), nodes):
        if handler is not None and origins is not None:
            events = ", ".join(handler["event"])
            title = f"exit handler {handler['id']}, on {events}: {handler['name']}"
            yield title, settings_shown(handler, origins, own, vault)


def settings_shown(
    data: Mapping[str, Any], origins: Origins, node: Node | None, vault: Vault
) -> list[SettingShown]:
    """The settings of a task or an exit handler that a layer set.

    Args:
        data: the task, as `review_data.as_data` returns it.
        origins: where its values come from.
        node: the tree that the layers made for it.
        vault: masks what the layers wrote.
    """
    shown: list[SettingShown] = []
    args = node.get(data["module"]) if node else None
    for key, value in data["args"].items():
        shown += _leaves(f"args.{key}", value, args.get(key) if args else None, origins, vault)
    for key, of_key in node.items() if node else ():
        if key in data and key not in ("id", "name", "on_exit"):
            shown += _leaves(key, data[key], of_key, origins, vault)
    return shown


def _leaves(
    path: str, value: Any, node: Node | None, origins: Origins, vault: Vault
) -> Iterator[SettingShown]:
    """A setting; each entry of a mapping is a separate setting, because layers merge by key."""
    is_late = isinstance(value, Mapping) and set(value) == {"unknown", "template"}
    if isinstance(value, Mapping) and value and not is_late and node is not None:
        entries = dict(node.items())
        if entries.keys() & value.keys():
            for key, each in value.items():
                yield from _leaves(f"{path}.{key}", each, entries.get(key), origins, vault)
            return
    unknown = str(value["unknown"]) if is_late else ""
    text = (
        value["template"]
        if is_late
        else shown_data(with_secrets(value, path.rpartition(".")[2]), vault)
    )
    setters = origins.setters(node, bare=path == "when") if node else ()
    shown = tuple(_shown(each, path, vault) for each in setters)
    yield SettingShown(path, _as_text(text), unknown, shown)


def _shown(setter: Setter, path: str, vault: Vault) -> Setter:
    return setter._replace(value=_as_text(shown_setter(setter, path, vault)))


def _as_text(shown: Any) -> str:
    """A text stays as it is, other data becomes JSON."""
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


# --- the lines from which a task was made --------------------------------------------------------


def _by_line(problems: Iterable[Problem]) -> dict[Line, list[int]]:
    at: dict[Line, list[int]] = {}
    for number, problem in enumerate(problems):
        if problem.place is not None:
            at.setdefault(_line(problem.place), []).append(number)
    return at


def _lines_of(plan: RolePlan, task: TaskDraft) -> set[Line]:
    lines = {_line(task.used_at)} if task.used_at is not None else set()
    if task.origin != "plugin":
        lines |= _lines(task.node)
    elif task.given is not None:
        lines |= _lines(task.given)
    overrides = plan.job.plugin_overrides
    for phase in ("init", "runtime"):
        listed = overrides.get(phase) if overrides else None
        for operation in listed.elements() if listed else ():
            target = operation.get("patch") or operation.get("disable")
            if target is not None and str(target.value) == task.id:
                lines |= _lines(operation)
    return lines


def _lines(node: Node) -> set[Line]:
    lines = {_line(place) for place in (node.place, node.key) if place is not None}
    return lines.union(*map(_lines, (*(n for _, n in node.items()), *node.elements())))


def _line(place: Place) -> Line:
    return place.source.file, place.line
