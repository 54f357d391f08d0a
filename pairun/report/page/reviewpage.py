"""The page on a review: first what would change, then a column per role with its tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pairun.errors import Problem, concealed_in
from pairun.job.planning import RolePlan
from pairun.module import Phase
from pairun.playbook.content import Content
from pairun.report.page.document import assets, document
from pairun.report.page.html import NOTHING, Html, element, facts, joined
from pairun.report.page.reviewmodel import ProblemPlaces, as_text
from pairun.report.page.reviewtask import ProblemInPlace, badge, kind_of, task_card
from pairun.report.problems import problem_text
from pairun.report.review_data import as_data
from pairun.report.review_text import reason, roots_line, summary
from pairun.review.jobreview import JobReview
from pairun.review.taskreview import Reviewed


def review_page(reviews: Sequence[JobReview], content: Content) -> str:
    """Build the HTML file.

    Args:
        reviews: one per job.
        content: the content roots, for the heading.
    """
    names = [r.vault.text(r.job.name if r.job else r.path) for r in reviews]
    return document(
        f"Review of {', '.join(names)}",
        joined(
            *(_Job(review, number).html() for number, review in enumerate(reviews)),
            element("footer", element("p", roots_line(content)), class_="quiet"),
        ),
        {},
        style=assets("look.css", "review.css"),
        script=assets("shared.js", "review.js"),
    )


class _Job:
    """The part of a page on one job."""

    def __init__(self, review: JobReview, number: int) -> None:
        self._review = review
        self._vault = review.vault
        self._prefix = f"job{number}"
        self._problems = list(review.problems)
        self._places = ProblemPlaces(self._problems)
        # problem to its tasks, as anchor and text
        self._about: dict[int, dict[str, str]] = {}
        # (phase, task as data) to the first role with this task
        self._first_roles: dict[tuple[str, str], str] = {}

    def html(self) -> Html:
        self._vault.add(concealed_in(self._problems))
        columns = [self._column(n, plan) for n, plan in enumerate(self._review.plans)]
        return element(
            "section",
            self._header(),
            self._listed_problems(),
            self._changes() if columns else NOTHING,
            element("h2", "Roles and their tasks") if columns else NOTHING,
            element(
                "div", *columns, class_="columns", role="region", aria_label="Roles", tabindex="0"
            )
            if columns
            else NOTHING,
            class_="job",
        )

    def _header(self) -> Html:
        errors = sum(p.severity == "error" for p in self._problems)
        outcome = element(
            "span",
            _counted(errors, "error") if errors else "valid",
            class_=f"outcome {'failed' if errors else 'ok'}",
        )
        job = self._review.job
        if job is None:
            return element("header", element("h1", outcome, f" {self._review.path}"))
        tasks = {
            f"{n}/{p}": t for n, phases in self._review.tasks.items() for p, t in phases.items()
        }
        kind = [("kind", "a plain Pod, no job of OpenPAI")] if self._review.settings.plain else []
        listed = self._review.settings.init_plugins
        return element(
            "header",
            element("h1", outcome, f" {self._vault.text(job.name)}"),
            element("p", summary(tasks), class_="sentence"),
            facts(
                [
                    ("file", self._review.path), ("user", job.user), *kind,
                    ("roles", str(len(job.roles))),
                    ("instances", str(sum(r.instances for r in job.roles))),
                    ("init plugins", listed.place.source.file if listed else ""),
                ]
            ),
        )  # fmt: skip

    # --- problems ---

    def _listed_problems(self) -> Html:
        if not self._problems:
            return NOTHING
        return joined(
            element("h2", "Problems"),
            *(self._problem(n, problem) for n, problem in enumerate(self._problems)),
        )

    def _problem(self, number: int, problem: Problem) -> Html:
        head, *lines = problem_text(problem, self._vault).split("\n")
        tasks = self._about.get(number, {})
        links = (element("a", words, href=f"#{anchor}") for anchor, words in tasks.items())
        return element(
            "article",
            element("p", element("b", head)),
            element("pre", "\n".join(lines), tabindex="0") if lines else NOTHING,
            element("p", "about ", *_separated(list(links))) if tasks else NOTHING,
            class_=f"problem {problem.severity}",
            id=self._problem_anchor(number),
        )

    def _problem_anchor(self, number: int) -> str:
        return f"{self._prefix}-problem{number}"

    # --- what would change ---

    def _changes(self) -> Html:
        """The tasks that would or may change something; tasks of several roles are listed once."""
        roles: dict[tuple[str, str, str, str], list[Html]] = {}
        for n, plan in enumerate(self._review.plans):
            for phase, tasks in self._review.tasks[plan.role.name].items():
                for task in tasks:
                    if (kind := kind_of(task)) in ("will_change", "unknown"):
                        key = (kind, phase, task.id, self._vault.text(reason(task)))
                        link = element("a", plan.role.name, href=f"#{self._anchor(n, phase, task)}")
                        roles.setdefault(key, []).append(link)
        if not roles:
            return element("p", "No task would change anything.")
        entries = sorted(roles.items(), key=lambda entry: entry[0][0] != "will_change")
        return joined(
            element("h2", "What would change"),
            element(
                "ul",
                *(
                    element(
                        "li", badge(kind), " ", element("b", id_), f" in {phase} of ",
                        *_separated(links), element("span", f" {words}", class_="quiet"),
                    )
                    for (kind, phase, id_, words), links in entries
                ),
                class_="changes",
            ),
        )  # fmt: skip

    # --- a role ---

    def _column(self, number: int, plan: RolePlan) -> Html:
        role = plan.role
        image = role.image.node.get("uri")
        asked = role.resources
        ports = ", ".join(f"{label} {count}" for label, count in asked.ports.items())
        return element(
            "section",
            element("h3", f"{role.name}: {_counted(role.instances, 'instance')}"),
            facts(
                [
                    ("image", self._vault.text(str(image.value)) if image else ""),
                    ("cpu", str(asked.cpu)), ("memory", f"{asked.memory_mb} MB"),
                    ("gpu", str(asked.gpu)), ("ports", ports),
                ]
            ),
            self._pod_settings(role.name),
            *(
                self._phase(number, plan, phase, tasks)
                for phase, tasks in self._review.tasks[role.name].items()
            ),
            class_="role-column",
            data_role=role.name,
        )  # fmt: skip

    def _pod_settings(self, role: str) -> Html:
        """The Pod settings that the cluster or the job sets."""
        pod = self._review.pods[role]
        refused = pod.refused(self._problems)
        rows = []
        for key, node in pod.above("built-in").items():
            place = f"{node.place.source.layer} {node.place}"
            by = element("span", place, class_=f"by layer-{node.place.source.layer}")
            mark = element("span", "refused", class_="badge refused") if key in refused else NOTHING
            value = element("code", as_text(node.plain(), key, self._vault))
            rows.append(element("div", element("dt", f"pod.{key}"), element("dd", value, mark, by)))
        return element("dl", *rows, class_="settings") if rows else NOTHING

    def _phase(self, number: int, plan: RolePlan, phase: Phase, tasks: Sequence[Reviewed]) -> Html:
        return joined(element("h4", f"{phase} phase"), *self._cards(number, plan, phase, tasks))

    def _cards(
        self, number: int, plan: RolePlan, phase: Phase, tasks: Sequence[Reviewed]
    ) -> Iterator[Html]:
        drafts = plan.effective.drafts[phase].by_id()
        group = None
        for task in tasks:
            if task.group and task.group != group:
                yield element("p", f"at once: {self._vault.text(task.group)}", class_="group")
            elif group and not task.group:
                yield element("p", "then", class_="group")
            group = task.group
            task_draft = drafts.get(task.id)
            anchor = self._anchor(number, phase, task)
            problems = self._places.of_task(plan, task_draft) if task_draft else []
            for each in problems:
                self._about.setdefault(each, {})[anchor] = f"{task.id} of {plan.role.name}"
            data = json.dumps({**as_data(task, self._vault), "where": ""}, sort_keys=True)
            first = self._first_roles.setdefault((phase, data), plan.role.name)
            yield task_card(
                task,
                task_draft,
                self._vault,
                anchor=anchor,
                problems=[self._problem_in_place(each) for each in problems],
                same_as=None if first == plan.role.name else first,
            )

    def _problem_in_place(self, number: int) -> ProblemInPlace:
        problem = self._problems[number]
        hint = f"; {self._vault.text(problem.hint)}" if problem.hint else ""
        return ProblemInPlace(
            problem.severity,
            problem.id,
            self._vault.text(problem.message) + hint,
            self._problem_anchor(number),
        )

    def _anchor(self, role: int, phase: Phase, task: Reviewed) -> str:
        # Numbers, because a task's id may contain any character.
        tasks = self._review.tasks[self._review.plans[role].role.name][phase]
        return f"{self._prefix}-role{role}-{phase}{tasks.index(task)}"


def _separated(items: Sequence[Html]) -> list[str]:
    return [part for n, item in enumerate(items) for part in ((", ", item) if n else (item,))]


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
