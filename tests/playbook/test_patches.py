"""Operations of a cluster's layer: they need no policy, and stop at what is locked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pairun.errors import PairunError, render
from pairun.playbook.document.reading import node_of
from pairun.playbook.drafts import merged

if TYPE_CHECKING:
    from tests.desk import Desk


LOW = """\
phase: init
vars: {gang: true}
tasks:
  - id: barrier
    name: Every task has an address
    barrier: {backend: framework, interval: 10s}
    when: gang
    exit_codes: {timeout: 251, permanent: 252}
  - {id: sealed, name: Sealed, cmd: {argv: [ls]}, locked: true}
  - {id: port_check, name: The ports are free, port_check: {ports: {}}}
"""


def patched(desk: Desk, operations: str, head: str = "") -> Any:
    """The review of a plain job under a cluster's patches of the playbook above."""
    low = desk.root({"playbooks/init.yaml": LOW}, "low")
    text = f"phase: init\n{head}patches:\n{operations}"
    return desk.review(desk.job_text, low, desk.root({"playbooks/init.yaml": text}))


@pytest.mark.parametrize("word", ["append", "before", "after"])
def test_a_task_that_stands_below_its_operation(desk: Desk, word: str) -> None:
    """One error says where it belongs, in a job as in a cluster's playbook."""
    entry = f"- {word}:\n        cmd: {{script: ls}}\n"
    job = f"{desk.job_text}extras:\n  pairun:\n    runtime:\n    {entry}"
    root = desk.root({"playbooks/runtime.yaml": f"phase: runtime\npatches:\n  {entry}"})
    with pytest.raises(PairunError) as refused:
        desk.review(desk.job_text, root)
    for problems in (desk.review(job).problems.errors, refused.value.problems):
        (problem,) = problems
        assert problem.id == "PR204"
        assert (
            problem.hint == f"write the module beside '{word}:', in the same column, not below it"
        )


def test_a_cluster_patches_what_the_image_brings(desk: Desk) -> None:
    """A playbook with patches changes the built-in tasks, any keyword and argument."""
    review = patched(
        desk,
        """\
  - patch: barrier
    args: {interval: 3s, timeout: 1h}
    exit_codes: {timeout: 77}
    environment: {A: b}
    on_exit: [{name: Bye, event: always, cmd: {argv: [ls]}}]
  - disable: port_check
  - before: barrier
    id: hello
    name: Say hello
    cmd: {argv: [echo]}
""",
    )
    assert not review.problems.errors
    barrier = desk.task(review, "barrier")
    assert barrier.args == {"backend": "framework", "interval": "3s", "timeout": "1h"}
    assert barrier.exit_codes == {"timeout": 77, "permanent": 252}
    assert [h.id for h in barrier.on_exit] == ["barrier.on_exit"]
    assert desk.order(review, "init") == ["hello", "barrier", "sealed"]


def test_patches_come_before_the_order(desk: Desk) -> None:
    """An insertion that stands above a patch does not change what the patch means."""
    review = patched(
        desk,
        """\
  - {after: barrier, id: one, name: One, cmd: {argv: [a]}}
  - {disable: port_check}
  - {after: port_check, id: two, name: Two, cmd: {argv: [b]}}
  - {patch: barrier, retries: 2}
  - {after: barrier, id: three, name: Three, cmd: {argv: [c]}}
""",
    )
    assert desk.task(review, "barrier").retries == 2
    assert desk.order(review, "init") == ["barrier", "one", "three", "sealed", "two"]


def test_what_is_locked_below_stays_so_for_a_cluster(desk: Desk) -> None:
    """No layer above touches a locked task, and the lock's own line is shown."""
    review = patched(desk, "  - {patch: sealed, retries: 1}\n")
    (problem,) = review.problems.errors
    assert problem.id == "PR403"
    assert desk.at(problem.also[0][1]).startswith("true")
    assert "low/playbooks/init.yaml" in render(problem)


def test_a_cluster_replaces_a_playbook_by_name(desk: Desk) -> None:
    """Tasks replace the lower playbook whole: its tasks, variables and grace time are gone."""
    low = desk.root(
        {
            "playbooks/runtime.yaml": f"phase: runtime\ngrace: 60s\nvars: {{a: 1}}\ntasks:\n{desk.command}"
        },
        "low",
    )
    high = desk.root({"playbooks/runtime.yaml": f"phase: runtime\ntasks:\n{desk.command}"}, "high")
    review = desk.valid(desk.job_text, low)
    assert review.plans[0].plans["runtime"].grace_s == 60
    review = desk.valid(desk.job_text, low, high)
    assert desk.order(review, "runtime") == ["user_command"]
    assert review.plans[0].plans["runtime"].grace_s == 30
    assert review.plans[0].effective.drafts["runtime"].vars == {}


def test_a_cluster_changes_variables_and_grace_and_keeps_the_tasks(desk: Desk) -> None:
    """A playbook with patches only merges its variables over the lower ones."""
    review = patched(desk, "  []\n", head="vars: {gang: false}\n")
    assert desk.task(review, "barrier").when is False
    root = desk.root({"playbooks/runtime.yaml": "phase: runtime\ngrace: 2m\npatches: []\n"})
    assert desk.valid(desk.job_text, root).plans[0].plans["runtime"].grace_s == 120


def test_tasks_of_a_group_can_be_patched_and_used_as_places(desk: Desk) -> None:
    """A task within a group keeps its group when it is patched; what comes after it comes after the group."""
    low = desk.root(
        {
            "playbooks/runtime.yaml": f"""\
phase: runtime
tasks:
  - parallel: At once
    tasks:
      - {{id: a, name: A, cmd: {{argv: [a]}}}}
      - {{id: b, name: B, cmd: {{argv: [b]}}}}
{desk.command}"""
        },
        "low",
    )
    high = desk.root(
        {
            "playbooks/runtime.yaml": """\
phase: runtime
patches:
  - {patch: a, retries: 3}
  - {disable: b}
  - {after: a, id: c, name: C, cmd: {argv: [c]}}
"""
        },
        "high",
    )
    review = desk.valid(desk.job_text, low, high)
    assert desk.order(review, "runtime") == ["a", "c", "user_command"]
    assert desk.task(review, "a").retries == 3
    assert review.tasks["worker"]["runtime"][0].group == "At once"
    assert review.tasks["worker"]["runtime"][1].disabled


@pytest.mark.parametrize(
    ("operations", "id_", "says"),
    [
        ("  - {patch: barier, retries: 1}\n", "PR401", "did you mean 'barrier'?"),
        ("  - {patch: barrier, disable: barrier}\n", "PR404", "exactly one of"),
        ("  - {retries: 3}\n", "PR404", "must say what it does"),
        ("  - {patch: barrier, args: [1]}\n", "PR204", "a mapping, not a list"),
        ("  - {patch: [barrier]}\n", "PR204", "text, not a list"),
        ("  - {patch: barrier, failurePolicy: ignore}\n", "PR209", "failure_policy"),
        ("  - {append: , name: X}\n", "PR203", "no module"),
        ("  - {append: , id: x, name: X, cmd: {argv: [a], oops: 1}}\n", "PR604", "no argument 'oops'"),
        ("  - {patch: barrier, id: other}\n", "PR404", "cannot change 'id'"),
    ],
)  # fmt: skip
def test_a_wrong_operation(desk: Desk, operations: str, id_: str, says: str) -> None:
    """What cannot be applied is said at its place."""
    text = f"phase: init\npatches:\n{operations}"
    found = desk.problems(desk.job_text, desk.root({"playbooks/init.yaml": text}))
    assert any(p.id == id_ and says in render(p) for p in found), [render(p) for p in found]


@pytest.mark.parametrize(
    ("low", "high", "result"),
    [
        ({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}}, {"a": 1, "b": {"c": 2, "d": 3}}),
        ([1, 2], [3], [3]),
        ({"a": 1}, [3], [3]),
        ([1], {"a": 1}, {"a": 1}),
        (1, None, None),
        ({"a": {"b": 1}}, {"a": None}, {"a": None}),
        (None, {"a": 1}, {"a": 1}),
    ],
)
def test_merging(desk: Desk, low: Any, high: Any, result: Any) -> None:
    """Mappings merge by key, everything else replaces, and the lower value is remembered."""
    place = desk.node("x: 1").place
    made = merged(node_of(low, place), node_of(high, place))
    assert made.plain() == result
    assert made.overrides is not None
    assert made.overrides.plain() == low
