"""A task of a review as HTML: what it would do, each value, and who set the value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from pairun.plan import USER_COMMAND
from pairun.playbook.document.reading import Node
from pairun.playbook.drafts import TaskDraft
from pairun.report.page.html import NOTHING, Html, element
from pairun.report.page.reviewmodel import Setter, SettingShown, settings_shown
from pairun.report.review_data import as_data
from pairun.report.review_text import MARKS, verdict_words
from pairun.review.taskreview import Reviewed
from pairun.secrets.vault import Vault

WORDS = {
    "will_change": "will change", "unknown": "unknown", "check": "check", "no_change": "no change",
    "skipped": "skipped", "disabled": "disabled",
}  # fmt: skip
"""The badge of each kind of verdict."""


@attrs.frozen
class ProblemInPlace:
    """A problem as its task shows it: the masked message, and where the page shows its lines."""

    severity: str
    id: str
    sentence: str
    anchor: str


def kind_of(task: Reviewed) -> str:
    """The kind of a task's verdict; skipped or disabled if the task will not run."""
    if task.disabled:
        return "disabled"
    return "skipped" if task.skipped else task.verdict.kind


def badge(kind: str) -> Html:
    """A verdict as a symbol and a word."""
    mark = MARKS[kind][0] if kind in MARKS else "-"
    return element("span", f"{mark} {WORDS[kind]}", class_=f"badge {kind}")


def task_card(
    task: Reviewed,
    draft: TaskDraft | None,
    vault: Vault,
    *,
    anchor: str,
    problems: Sequence[ProblemInPlace],
    same_as: str | None,
) -> Html:
    """A task; open if it would change something, has a problem, or was changed by job or cluster.

    Args:
        task: as reviewed.
        draft: the task with the history of its values.
        vault: masks its texts.
        anchor: its id on the page.
        problems: the problems that belong to it.
        same_as: the first role with the same task, if that is another role.
    """
    kind = kind_of(task)
    data = as_data(task, vault)
    origin = f"{task.layer} {task.where}".strip()
    decided = task.overrides or task.disabled or problems or task.layer == "job"
    stands_out = kind == "will_change" or decided or task.module == USER_COMMAND
    return element(
        "details",
        element(
            "summary",
            badge(kind),
            element("b", task.id),
            element("span", vault.text(task.name), class_="sentence-of"),
            element("span", f"as in {same_as}", class_="quiet") if same_as else NOTHING,
            *(
                element("span", f"{p.severity} {p.id}", class_=f"badge {p.severity}")
                for p in problems
            ),
        ),
        *map(_problem, problems),
        element("p", vault.text(_words(task)), class_=f"verdict {kind}"),
        _settings(settings_shown(data, draft.node if draft else None, task.module, vault))
        if task.task is not None
        else NOTHING,
        *_handlers(data, draft, vault),
        element("p", f"module {task.module} · brought by {origin}", class_="quiet"),
        class_="task",
        id=anchor,
        data_kind=kind,
        open=bool(stands_out and same_as is None),
    )


def _problem(problem: ProblemInPlace) -> Html:
    return element(
        "p",
        element("b", f"{problem.severity} {problem.id}: "),
        f"{problem.sentence} ",
        element("a", "lines", href=f"#{problem.anchor}", aria_label=f"lines of {problem.id}"),
        class_=f"in-place {problem.severity}",
    )


def _words(task: Reviewed) -> str:
    return f"disabled by {task.disabled}" if task.disabled else verdict_words(task)


def _handlers(data: Mapping[str, Any], draft: TaskDraft | None, vault: Vault) -> list[Html]:
    written = draft.node.get("on_exit") if draft else None
    nodes: list[Node | None] = list(written.elements()) if written else []
    shown = []
    for n, handler in enumerate(data.get("on_exit", ())):
        node = nodes[n] if n < len(nodes) else None
        settings = settings_shown(handler, node, handler["module"], vault)
        title = f"exit handler {handler['id']}, on {', '.join(handler['event'])}: {handler['name']}"
        shown.append(element("div", element("p", title), _settings(settings), class_="handler"))
    return shown


def _settings(settings: Sequence[SettingShown]) -> Html:
    if not settings:
        return NOTHING
    return element("dl", *map(_setting, settings), class_="settings")


def _setting(setting: SettingShown) -> Html:
    if setting.unknown:
        value = element(
            "span", f"unknown until run: {setting.unknown} ", _value(setting.value), class_="late"
        )
    else:
        value = _value(setting.value)
    return element(
        "div", element("dt", setting.path), element("dd", value, _set_by(setting.setters))
    )


def _value(text: str) -> Html:
    if "\n" in text.strip("\n"):
        return element("pre", text.rstrip("\n"), tabindex="0")
    return element("code", text or '""')


def _set_by(setters: Sequence[Setter]) -> Html:
    """Who set a value; the values that it replaced open on a click."""
    if not setters:
        return element("span", "default", class_="by quiet")
    first, *replaced = setters
    by = element("span", f"{first.layer} {first.where}", class_=f"by layer-{first.layer}")
    if not replaced:
        return by
    chain = (
        element(
            "li", _value(each.value), element("span", f"{each.layer} {each.where}", class_="by")
        )
        for each in replaced
    )
    return element(
        "details",
        element("summary", by, element("span", _was(replaced[0]), class_="quiet")),
        element("ol", *chain, class_="chain"),
        class_="chain-of",
    )


def _was(before: Setter) -> str:
    value = before.value if "\n" not in before.value and len(before.value) <= 40 else "another text"
    return f" was {'the default' if value == 'null' else value}"
