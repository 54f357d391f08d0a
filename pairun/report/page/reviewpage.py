"""The page on a review: first what would change, then a column per role with its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pairun.errors import Place, Problem, concealed_in
from pairun.job.planning import RolePlan
from pairun.module import Phase
from pairun.plan import USER_COMMAND
from pairun.playbook.content import Content
from pairun.playbook.document.reading import Node, elements
from pairun.playbook.drafts import Origins, TaskDraft
from pairun.report.page.document import assets, document
from pairun.report.problems import problem_text
from pairun.report.review_data import RoleView, role_views
from pairun.report.review_text import roots_line
from pairun.report.shown import is_late, shown_data, shown_setter
from pairun.report.task_view import KIND_MARKS, TaskView, summary
from pairun.review.jobreview import JobReview
from pairun.secrets.shapes import with_secrets
from pairun.secrets.vault import Vault

_CHANGES = ("writes", "runs", "unknown")
"""The kinds of tasks that change something, or may."""

_Line = tuple[str, int]
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
        jobs=[_Job(review, number) for number, review in enumerate(reviews)],
        names=names,
        roots=roots_line(content),
        marks={kind: mark for kind, (mark, _) in KIND_MARKS.items()},
    )


class _Job:
    """What a page shows of one job."""

    def __init__(self, review: JobReview, number: int) -> None:
        self.review = review
        self.job = review.job
        self.summary = summary(review.all_tasks())
        self.roles = role_views(review)
        self._vault = review.vault
        self._prefix = f"job{number}"
        self._problems = list(review.problems)
        self._lines = _by_line(self._problems)
        self._vault.add(concealed_in(self._problems))
        # problem to its tasks, as anchor and text
        self._about: dict[int, dict[str, str]] = {}
        self.columns = [
            (role, {phase: list(self._cards(n, role, phase)) for phase in role.phases})
            for n, role in enumerate(self.roles)
        ]
        self.problems = [self._problem(n, problem) for n, problem in enumerate(self._problems)]
        self.errors = sum(p.severity == "error" for p in self._problems)

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

    def changes(self) -> list[tuple[tuple[str, str, str, str], list[tuple[str, str]]]]:
        """The tasks that would or may change something; tasks of several roles are listed once."""
        roles: dict[tuple[str, str, str, str], list[tuple[str, str]]] = {}
        for role, phases in self.columns:
            for phase, cards in phases.items():
                for view, anchor in ((card["view"], card["anchor"]) for card in cards):
                    if (kind := view.task.kind) in _CHANGES:
                        key = (kind, phase, view.task.id, view.reason)
                        roles.setdefault(key, []).append((anchor, role.plan.role.name))
        return sorted(roles.items(), key=lambda entry: _CHANGES.index(entry[0][0]))

    def _cards(self, number: int, role: RoleView, phase: Phase) -> Iterator[dict[str, Any]]:
        """Tasks; open is what would change something, has a problem, or a job or cluster changed."""
        drafts = role.plan.effective.drafts[phase].by_id()
        for at, view in enumerate(role.phases[phase]):
            task, draft = view.task, drafts.get(view.task.id)
            # Numbers, because a task's id may contain any character.
            anchor = f"{self._prefix}-role{number}-{phase}{at}"
            lines = _lines_of(role.plan, draft) if draft else set()
            about = sorted({n for line in lines for n in self._lines.get(line, ())})
            for each in about:
                self._about.setdefault(each, {})[anchor] = f"{task.id} of {role.plan.role.name}"
            decided = task.overrides or task.disabled or about or task.layer == "job"
            may_change = task.verdict.kind == "will_change" or task.module == USER_COMMAND
            node = draft.node if draft else None
            yield {
                "view": view,
                "anchor": anchor,
                "open": bool(decided or may_change) and not view.same_as,
                "problems": [self._problem(n, self._problems[n]) for n in about],
                "settings": list(_settings(view.data, task.origins, node, self._vault)),
                "handlers": list(_handlers(view, self._vault)),
            }


def _handlers(view: TaskView, vault: Vault) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    origins = view.task.origins
    nodes = elements(origins.task.node, "on_exit") if origins and origins.task else []
    for (_, data), node in zip(view.handlers, nodes, strict=False):
        title = f"exit handler {data['id']}, on {', '.join(data['event'])}: {data['name']}"
        yield title, list(_settings(data, origins, node, vault))


def _settings(
    data: Mapping[str, Any], origins: Origins | None, node: Node | None, vault: Vault
) -> Iterator[dict[str, Any]]:
    """The settings of a task or an exit handler that a layer set.

    Args:
        data: the task, as in `TaskView`.
        origins: where its values come from; None if it is not planned.
        node: the tree that the layers made for it.
        vault: masks what the layers wrote.
    """
    if origins is None:
        return
    args = node.get(data["module"]) if node else None
    for key, value in data["args"].items():
        yield from _leaves(f"args.{key}", value, args.get(key) if args else None, origins, vault)
    for key, of_key in node.items() if node else ():
        if key in data and key not in ("id", "name", "on_exit"):
            yield from _leaves(key, data[key], of_key, origins, vault)


def _leaves(
    path: str, value: Any, node: Node | None, origins: Origins, vault: Vault
) -> Iterator[dict[str, Any]]:
    """A setting; each entry of a mapping is a separate setting, because layers merge by key."""
    late = is_late(value)
    if isinstance(value, Mapping) and value and not late and node is not None:
        entries = dict(node.items())
        if entries.keys() & value.keys():
            for key, each in value.items():
                yield from _leaves(f"{path}.{key}", each, entries.get(key), origins, vault)
            return
    masked = with_secrets(value, path.rpartition(".")[2])
    setters = origins.setters(node, bare=path == "when") if node else ()
    yield {
        "path": path,
        "value": value["template"] if late else shown_data(masked, vault),
        "unknown": value["unknown"] if late else "",
        # the effective one first; none for a default
        "setters": [s._replace(value=shown_setter(s, path, vault)) for s in setters],
    }


# --- the lines from which a task was made --------------------------------------------------------


def _by_line(problems: Iterable[Problem]) -> dict[_Line, list[int]]:
    at: dict[_Line, list[int]] = {}
    for number, problem in enumerate(problems):
        if problem.place is not None:
            at.setdefault(_line(problem.place), []).append(number)
    return at


def _lines_of(plan: RolePlan, task: TaskDraft) -> set[_Line]:
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


def _lines(node: Node) -> set[_Line]:
    lines = {_line(place) for place in (node.place, node.key) if place is not None}
    return lines.union(*map(_lines, (*(n for _, n in node.items()), *node.elements())))


def _line(place: Place) -> _Line:
    return place.source.file, place.line
