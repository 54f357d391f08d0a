"""Who set a value: the place that is named is the one place that decides."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairun.errors import Place, Problems, Source, render
from pairun.module import Phase
from pairun.playbook.document.reading import Node, read_text
from pairun.playbook.drafts import Draft, TaskDraft, history
from pairun.playbook.patches import Patcher
from tests.effort import cases

if TYPE_CHECKING:
    from tests.desk import Desk

MODULES = {"cmd": object()}
PATHS = ("retries", "timeout", "args.workdir", "args.argv", "environment.A", "environment.B")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "retries": st.integers(0, 9),
    "timeout": st.sampled_from(["1s", "2m", "3h"]),
    "args.workdir": st.sampled_from(["/a", "/b", "/c"]),
    "args.argv": st.lists(st.sampled_from(["x", "y"]), min_size=1, max_size=2),
    "environment.A": st.sampled_from(["one", "two"]),
    "environment.B": st.sampled_from(["three", "four"]),
}
LAYER = st.fixed_dictionaries({}, optional={p: VALUES[p] | st.none() for p in PATHS})
STACKS = st.lists(LAYER, min_size=1, max_size=5)


def text_of(layer: dict[str, Any], first: bool) -> str:
    """A layer as YAML with one value per line, so that a line is a value."""
    lines = ["- id: one", "  name: One"] if first else ["- patch: one"]
    for path, value in layer.items():
        top, _, key = path.partition(".")
        top = "cmd" if top == "args" and first else top
        if key and f"  {top}:" not in lines:
            lines.append(f"  {top}:")
        if key:
            at = lines.index(f"  {top}:") + 1
            lines.insert(at, f"    {key}: {json.dumps(value)}")
        else:
            lines.append(f"  {path}: {json.dumps(value)}")
    if first and "  cmd:" not in lines:
        lines.append("  cmd: {}")
    return "\n".join(lines) + "\n"


def stacked(texts: list[str]) -> TaskDraft:
    """The task of the first text under the patches of the others."""
    problems = Problems()
    draft = Draft(phase="runtime")
    for n, text in enumerate(texts):
        tree = read_text(Source(f"layer{n}", "cluster", text))
        if n == 0:
            node = tree.elements()[0]
            draft.steps.append(TaskDraft(id="one", module="cmd", node=node, origin="built-in"))
        else:
            Patcher(draft, MODULES, "cluster", None, problems, {}).apply(tree)
    assert not problems.errors, list(map(render, problems))
    return next(draft.tasks())


def in_force(task: TaskDraft, path: str) -> Node | None:
    """The node that decides a value."""
    return task.value_at(path)


def changed(texts: list[str], place: Place) -> list[str]:
    """The texts with the value at a place written differently."""
    n = int(place.source.file.removeprefix("layer"))
    lines = texts[n].split("\n")
    head = lines[place.line - 1][: place.column - 1]
    lines[place.line - 1] = head + '["edited"]'
    return [*texts[:n], "\n".join(lines), *texts[n + 1 :]]


@given(stack=STACKS, path=st.sampled_from(PATHS))
@settings(max_examples=cases(200))
def test_the_value_in_force_comes_from_the_reported_place(
    stack: list[dict[str, Any]], path: str
) -> None:
    """Editing the named line changes the value; editing a line below it in the chain does not."""
    texts = [text_of(layer, n == 0) for n, layer in enumerate(stack)]
    node = in_force(stacked(texts), path)
    setters = [n for n, layer in enumerate(stack) if path in layer]
    assert (node is None) == (not setters)
    if node is None:
        return
    assert node.plain() == stack[setters[-1]][path]
    chain = list(history(node))
    assert [int(link.place.source.file[5:]) for link in chain] == setters[::-1]
    for n, link in enumerate(chain):
        place = link.place
        shown = place.source.line(place.line)[place.column - 1 :]
        assert json.loads(shown) == link.plain()
        after = in_force(stacked(changed(texts, place)), path)
        assert after is not None
        assert (after.plain() == ["edited"]) == (n == 0)


@given(stack=STACKS)
@settings(max_examples=cases(100))
def test_every_value_of_a_merged_task_knows_its_layer(stack: list[dict[str, Any]]) -> None:
    """No leaf of the effective task points at a place that does not hold its value."""
    task = stacked([text_of(layer, n == 0) for n, layer in enumerate(stack)])

    def walk(node: Node) -> None:
        if isinstance(node.value, dict):
            for _, child in node.items():
                walk(child)
            return
        line = node.place.source.line(node.place.line)[node.place.column - 1 :]
        assert json.loads(line) == node.plain()

    for keyword, node in task.node.items():
        if keyword not in ("id", "name", "patch") and node.value != {}:
            walk(node)


@given(values=st.lists(st.integers(0, 9), min_size=2, max_size=4), phase=st.sampled_from(["init", "runtime"]))  # fmt: skip
@settings(max_examples=cases(10), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_chain_of_a_whole_job_goes_through_all_layers(
    desk: Desk, values: list[int], phase: Phase
) -> None:
    """Built-in or cluster, further clusters, and the job: each link names its layer and file."""
    roots = []
    for n, value in enumerate(values[:-1]):
        text = f"phase: {phase}\n" + (
            f"tasks:\n  - {{id: one, name: One, cmd: {{argv: [a]}}, retries: {value}}}\n"
            + (desk.command if phase == "runtime" else "")
            if n == 0
            else f"patches:\n  - {{patch: one, retries: {value}}}\n"
        )
        roots.append(desk.root({f"playbooks/{phase}.yaml": text}, f"{phase}{len(values)}-{n}"))
    roots.append(desk.root({"playbooks/policy.yaml": desk.all_open}, "policy"))
    desk._layers.clear()
    review = desk.valid(desk.job(f"{phase}: [{{patch: one, retries: {values[-1]}}}]"), *roots)
    node = desk.draft(review, "one").value_at("retries")
    assert node is not None
    chain = list(history(node))
    assert [n.plain() for n in chain] == values[::-1]
    assert [n.place.source.layer for n in chain] == ["job", *["cluster"] * (len(values) - 1)]
    assert desk.task(review, "one").retries == values[-1]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("retries", 5),
        ("args.argv", ["a", "b"]),
        ("args.argv.1", "b"),
        ("args", {"argv": ["a", "b"]}),
        ("environment.A", "x"),
        ("on_exit.0.name", "Bye"),
        ("argv", None),
        ("cmd.argv", None),
        ("nothing", None),
        ("environment.B", None),
        ("args.argv.7", None),
        ("args.argv.1.x", None),
    ],
)
def test_a_path_leads_to_a_value(desk: Desk, path: str, value: Any) -> None:
    """A path names a keyword or an argument, at any depth; anything else leads nowhere."""
    task = desk.node(
        """\
        name: One
        cmd: {argv: [a, b]}
        retries: 5
        environment: {A: x}
        on_exit: [{name: Bye, event: always, cmd: {argv: [bye]}}]
        """
    )
    node = TaskDraft(id="one", module="cmd", node=task, origin="file").value_at(path)
    assert (node.plain() if node else None) == value


def test_a_review_shows_what_was_overridden_and_by_whom(desk: Desk) -> None:
    """Each override stands with its new and old value, both with layer and place."""
    root = desk.root(
        {
            "playbooks/runtime.yaml": f"""\
phase: runtime
tasks:
  - id: one
    name: One
    cmd: {{argv: [a]}}
    retries: 2
{desk.command}""",
            "playbooks/policy.yaml": desk.all_open,
        }
    )
    text = desk.job("runtime: [{patch: one, retries: 3, args: {workdir: /w}}]")
    review = desk.valid(text, root)
    (item,) = [t for t in review.tasks["worker"]["runtime"] if t.id == "one"]
    found = {path: (now.value, now.layer, was[:2]) for path, now, was in item.overrides}
    assert found == {
        "retries": (3, "job", (2, "cluster")),
        "args.workdir": ("/w", "job", (None, "cluster")),
    }
    assert all(now.where.startswith("job.yaml:") for _, now, _ in item.overrides)
