"""Two tasks that write one path are seen before the second overwrites the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.desk import Desk

GIT = "- {{plugin: git, parameters: {{repo_uri: 'https://a/{0}.git', clone_dir: /{0}}}}}\n"
SPEC = """\
summary: A note
parameters: {type: object, properties: {target: {type: string}, text: {type: string}}}
runtime:
  - {name: Note, file: {path: "{{ parameters.target }}", content: "{{ parameters.text }}"}}
"""
NOTE = "- {{plugin: note, parameters: {{target: /note, text: {0}}}}}\n"


def test_two_repositories(desk: Desk) -> None:
    """Each plugin of a role clones to its own folder, and copies from there."""
    review = desk.valid(desk.job(plugins=GIT.format("a") + GIT.format("b")))
    assert list(review.problems) == []
    clones = [desk.task(review, id_).args["dest"] for id_ in ("git", "git_3")]
    assert clones == ["/usr/local/pai/code", "/usr/local/pai/code_2"]
    copies = [desk.task(review, id_).environment for id_ in ("git_2", "git_4")]
    assert [c["CODE"] for c in copies] == clones
    assert [c["CLONE_DIR"] for c in copies] == ["/a", "/b"]


def test_the_advice_names_the_parameter_of_a_plugin(desk: Desk) -> None:
    """Not the argument of a module, which a job with the plugin does not have."""
    root = desk.root({"plugin_specs/note.yaml": SPEC, "playbooks/policy.yaml": desk.all_open})
    review = desk.valid(desk.job(plugins=NOTE.format("a") + NOTE.format("b")), root)
    (problem,) = review.problems
    assert problem.id == "PR927"
    assert problem.message == "the tasks 'note' and 'note_2' both write /note"
    assert problem.hint == "set another path with 'target' in one of them"
    (label, first) = problem.also[0]
    assert (label, problem.place and problem.place.line - first.line) == ("the first one", 1)


TASKS = [
    ("download: {url: 'http://a/1', dest: /data/x}", "download: {url: 'http://a/2', dest: /data/x}", 1),
    ("download: {url: 'http://a/1', dest: /data/x}", "download: {url: 'http://a/2', dest: /data/y}", 0),
    ("download: {url: 'http://a/1', dest: /data/x}", "download: {url: 'http://a/1', dest: /data/x}", 0),
    ("download: {files: [{url: 'http://a/1', dest: /x}, {url: 'http://a/2', dest: /y}]}",
     "download: {url: 'http://a/3', dest: //y}", 0),
    ("download: {files: [{url: 'http://a/1', dest: /x}, {url: 'http://a/2', dest: /y}]}",
     "download: {url: 'http://a/3', dest: /z/../y}", 1),
    ("download: {url: 'http://a/1', unpack: /data}", "download: {url: 'http://a/2', unpack: /data}", 1),
    ("file: {path: /etc/a, content: x}", "file: {path: /etc/a, content: y}", 1),
    ("file: {path: /etc/a, absent: true}", "file: {path: /etc/a, content: y}", 0),
    ("file: {path: /a, content: x}\n  when: false", "file: {path: /a, content: y}", 0),
    ("file: {path: /a, content: x}", "download: {url: 'http://a/2', dest: /a}", 1),
    ("cmd: {argv: [a]}", "cmd: {argv: [a]}", 0),
]  # fmt: skip


@pytest.mark.parametrize(("one", "two", "count"), TASKS, ids=[f"{a} {b}" for a, b, _ in TASKS])
def test_tasks_of_a_playbook(desk: Desk, one: str, two: str, count: int) -> None:
    """Whatever module declares what it writes; nothing is said of equal or skipped tasks."""
    tasks = f"tasks:\n- name: A\n  id: a\n  {one}\n- name: B\n  id: b\n  {two}\n"
    root = desk.root({"playbooks/runtime.yaml": f"phase: runtime\n{tasks}"})
    problems = [p for p in desk.review(desk.job(), root).problems if p.id == "PR927"]
    assert len(problems) == count
