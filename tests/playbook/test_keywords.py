"""Keywords: every one that is wrong, missing or foreign is said with its id, place and remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pairun.errors import PairunError, render
from pairun.playbook.content import Content, Root, built_in_root
from pairun.playbook.keywords import FOREIGN, KEYWORDS, keywords_of

if TYPE_CHECKING:
    from tests.desk import Desk

TASK = "cmd: {argv: [ls]}"
HANDLER = "name: Bye, event: always, cmd: {argv: [ls]}"

# What is written in a task, the error's id, what the caret points at, a part of message and help.
WRONG: list[tuple[str, str, str, str]] = [
    ("id: 5", "PR204", "5", "text, not 5"),
    ("id: 'a b'", "PR204", "'a b'", "not 'a b'"),
    ("name: ''", "PR204", "''", "at least 1 character"),
    ("name: [a]", "PR204", "[a]", "text, not a list"),
    ("when: 5", "PR204", "5", "text or true or false, not 5"),
    ("when: nope > 1", "PR301", "nope > 1", "'nope' is not defined"),
    ("when: job.role.nme", "PR301", "job.role.nme", "did you mean 'name'?"),
    ("when: job.role ==", "PR302", "job.role ==", "not a valid expression"),
    ('when: "{{ true }}"', "PR302", '"{{ true }}"', "leave out the {{ }}"),
    ("vars: [a]", "PR204", "[a]", "a mapping, not a list"),
    ("vars: {job: 1}", "PR213", "job: 1", "has a meaning in expressions"),
    ("environment: PATH", "PR204", "PATH", "a mapping, not 'PATH'"),
    ("environment: {A: [b]}", "PR204", "[b]", "not a list"),
    ("retries: -1", "PR204", "-1", "at least 0"),
    ("retries: 1001", "PR204", "1001", "at most 1000"),
    ("retries: many", "PR204", "many", "a whole number, not 'many'"),
    ("retries: 1.5", "PR204", "1.5", "not 1.5"),
    ("retries: true", "PR204", "true", "not true"),
    ("delay: 5", "PR210", "5", "did you mean '5s'?"),
    ("delay: soon", "PR210", "soon", "500ms, 10s, 5m, 1h30m"),
    ("delay: \"{{ 'soon' }}\"\nretries: 1", "PR210", "\"{{ 'soon' }}\"", "duration"),
    ("timeout: 600", "PR210", "600", "did you mean '600s'?"),
    ("timeout: 2.5", "PR210", "2.5", "did you mean '2.5s'?"),
    ("timeout: 10 s", "PR210", "10 s", "not '10 s'"),
    ("deadline: 1 hour", "PR210", "1 hour", "duration"),
    ("deadline: []", "PR210", "[]", "not a list"),
    ("retry_on: timeout", "PR204", "timeout", "a list, not 'timeout'"),
    ("retry_on: [timeouts]", "PR204", "timeouts", "did you mean 'timeout'?"),
    ("retry_on: []", "PR204", "[]", "must not be empty"),
    ("failure_policy: warn", "PR204", "warn", "one of fail, ignore, not 'warn'"),
    ("failure_policy: ignored", "PR204", "ignored", "did you mean 'ignore'?"),
    (f"on_exit: {{{HANDLER}}}", "PR204", "{name", "a list, not a mapping"),
    ("on_exit: []", "PR204", "[]", "must not be empty"),
    ("on_exit: [bye]", "PR204", "bye", "a mapping, not 'bye'"),
    ("on_exit: [{name: Bye, cmd: {argv: [ls]}}]", "PR205", "{name: Bye", "'event' is missing"),
    (
        "on_exit: [{name: Bye, event: sometimes, cmd: {argv: [ls]}}]",
        "PR204",
        "sometimes",
        "one of success, failure, signal, always or",
    ),
    ("on_exit: [{name: Bye, event: [], cmd: {argv: [ls]}}]", "PR204", "[]", "not a list"),
    (f"on_exit: [{{{HANDLER}, on_exit: [{{{HANDLER}}}]}}]", "PR201", "on_exit", "no keyword"),
    ("exit_codes: [3]", "PR204", "[3]", "a mapping"),
    ("exit_codes: {timeouts: 3}", "PR204", "timeouts", "did you mean 'timeout'?"),
    ("exit_codes: {timeout: 0}", "PR204", "0", "at least 1"),
    ("exit_codes: {timeout: 256}", "PR204", "256", "at most 255"),
    ("locked: 'yes'", "PR204", "'yes'", "true or false, not 'yes'"),
    ("event: always", "PR201", "event", "no keyword 'event' here"),
    ("grace: 3s", "PR201", "grace", "no keyword 'grace' here"),
    ("phase: init", "PR201", "phase", "no keyword 'phase' here"),
    ("tasks: []", "PR201", "tasks", "no keyword 'tasks' here"),
    ("patch: other", "PR201", "patch", "no keyword 'patch' here"),
    ("patches: []", "PR201", "patches", "no keyword 'patches' here"),
    ("run_on: first", "PR204", "first", "one of all, first_of_role, first_of_job"),
    ("run_once: true", "PR209", "run_once", "run_on: first_of_job"),
    ("disable: other", "PR201", "disable", "no keyword 'disable' here"),
    ("before: other", "PR201", "before", "no keyword 'before' here"),
    ("after: other", "PR201", "after", "no keyword 'after' here"),
    ("append:", "PR201", "append", "no keyword 'append' here"),
    ("args: {}", "PR209", "args", "the module's own key"),
    ("retrys: 3", "PR201", "retrys", "did you mean 'retries'?"),
    ("timeOut: 3s", "PR201", "timeOut", "did you mean 'timeout'?"),
    ("file_: {}", "PR201", "file_", "did you mean 'file'?"),
]


@pytest.mark.parametrize(("text", "id_", "caret", "says"), WRONG, ids=[w[0] for w in WRONG])
def test_a_wrong_keyword_is_said_where_it_stands(
    desk: Desk, text: str, id_: str, caret: str, says: str
) -> None:
    """A value that does not fit has an error with the right id, at its place, with a remedy."""
    name = "" if text.startswith("name") else "name: One\n"
    body = f"{name}{TASK}\n{text}\n"
    task = "- " + body.replace("\n", "\n  ").rstrip() + "\n"
    found = desk.playbook_problems(task)
    matching = [p for p in found if p.id == id_ and says in render(p)]
    assert matching, [render(p) for p in found]
    assert desk.at(matching[0].place).startswith(caret)
    assert "^" in render(matching[0]).split("\n")[3]


def test_every_keyword_has_a_row_in_the_table() -> None:
    """No keyword's check goes untested."""
    tested = {row[0].partition(":")[0] for row in WRONG}
    assert KEYWORDS.keys() - tested <= {"parallel"}


@pytest.mark.parametrize(
    ("head", "id_", "says"),
    [
        ("phase: setup\n", "PR204", "one of init, runtime, not 'setup'"),
        ("phase: runtime\ngrace: 30\n", "PR210", "did you mean '30s'?"),
        ("phase: runtime\nvars: 5\n", "PR204", "a mapping, not 5"),
        ("phase: runtime\nvars: {env: 5}\n", "PR213", "'env' has a meaning"),
        ("phase: runtime\nhosts: all\n", "PR209", "a playbook runs in its own Pod"),
        ("phase: runtime\ntask: []\n", "PR201", "did you mean 'tasks'?"),
        ("", "PR205", "'phase' is missing"),
    ],
)
def test_a_wrong_head_of_a_playbook(desk: Desk, head: str, id_: str, says: str) -> None:
    """What stands beside a playbook's tasks is checked like a task's keywords."""
    found = desk.playbook_problems("", head)
    assert any(p.id == id_ and says in render(p) for p in found), [render(p) for p in found]


@pytest.mark.parametrize(
    ("group", "id_", "says"),
    [
        ("- {parallel: 5, tasks: []}\n", "PR204", "text, not 5"),
        ("- {parallel: At once}\n", "PR205", "'tasks' is missing"),
        ("- {parallel: At once, tasks: {}}\n", "PR204", "a list, not a mapping"),
        ("- {parallel: At once, tasks: [], retries: 3}\n", "PR201", "no keyword 'retries' here"),
        ("- {parallel: A, tasks: [{parallel: B, tasks: []}]}\n", "PR201", "no keyword 'parallel'"),
    ],
)
def test_a_wrong_group(desk: Desk, group: str, id_: str, says: str) -> None:
    """A group has a sentence and tasks, and nothing else."""
    found = desk.playbook_problems(group)
    assert any(p.id == id_ and says in render(p) for p in found), [render(p) for p in found]


@pytest.mark.parametrize("word", sorted(FOREIGN))
def test_words_of_other_tools_get_the_pairun_word(desk: Desk, word: str) -> None:
    """Ansible's and camelCase words are refused with the word that pairun has for it."""
    found = desk.playbook_problems(f"- name: One\n  {TASK}\n  {word}: x\n")
    if word in desk.content().modules:
        # The module counts, and a task has one.
        assert {p.id for p in found} == {"PR203"}, [render(p) for p in found]
        return
    assert [p.id for p in found] == ["PR209"]
    assert found[0].hint == f"in pairun: {FOREIGN[word]}"
    assert desk.at(found[0].place).startswith(word)


@pytest.mark.parametrize(
    ("pairun", "id_"),
    [
        ("pod: {env: {A: b}}", "PR209"),
        ("pod: {environment: {A: b}}", "PR209"),
        ("pod: {roles: {worker: {env: {A: b}}}}", "PR209"),
        ("runtime: [{patch: user_command, environment: {A: b}}]", "PR402"),
    ],
)
def test_a_variable_for_the_command_is_an_export(desk: Desk, pairun: str, id_: str) -> None:
    """No hint leads to a place that the next error refuses."""
    (problem,) = desk.problems(desk.job(pairun))
    assert problem.id == id_
    assert "export NAME=value in the role's commands" in str(problem.hint)


def test_the_words_that_every_newcomer_brings_are_known() -> None:
    """The words people bring from Ansible and from job files are in the table."""
    words = "ignore_errors register block notify become with_items failurePolicy exitCodes"
    assert set(words.split()) <= FOREIGN.keys()


@pytest.mark.parametrize(
    ("tasks", "id_", "says"),
    [
        ("- name: One\n", "PR203", "has no module"),
        ("- name: One\n  cmd: {argv: [a]}\n  file: {path: /a}\n", "PR203", "2 modules: cmd, file"),
        ("- cmd: {argv: [ls]}\n", "PR205", "'name' is missing"),
        ("- name: One\n  cmdd: {argv: [ls]}\n", "PR201", "did you mean 'cmd'?"),
        ("- name: One\n  cmd: ls\n", "PR204", "a mapping"),
        ("- name: One\n  cmd: {argv: [ls], workdri: /a}\n", "PR604", "did you mean 'workdir'?"),
        ("- name: One\n  cmd: {argv: ls}\n", "PR605", "list of text, not 'ls'"),
        ("- name: One\n  cmd: {}\n", "PR605", "exactly one of 'argv' and 'script'"),
        ("- name: One\n  file: {content: x}\n", "PR606", "'path' is missing"),
        ("- name: One\n  file: {path: /a, content: x, mode: 0644}\n", "PR211", "quote it"),
        ("- name: One\n  barrier: {timeout: 600}\n", "PR210", "did you mean '600s'?"),
        ("- {name: One, id: b, image_check: {image: a}}\n", "PR212", "it runs in init"),
        ("- name: One\n  user_command: {script: a}\n", "PR208", "must be the last task"),
        ("- just text\n", "PR204", "a mapping, not 'just text'"),
    ],
)
def test_a_wrong_task(desk: Desk, tasks: str, id_: str, says: str) -> None:
    """One module, known, with the arguments it has, in a phase it runs in."""
    found = desk.playbook_problems(tasks)
    assert any(p.id == id_ and says in render(p) for p in found), [render(p) for p in found]


def test_a_task_after_the_users_command_is_refused_where_it_stands(desk: Desk) -> None:
    """What stands after user_command is named, with the keyword that does what was meant."""
    late = f"{desk.command}  - {{name: Late, id: late, cmd: {{argv: [ls]}}}}\n"
    root = desk.root({"playbooks/runtime.yaml": f"phase: runtime\ntasks:\n{late}"})
    (problem,) = desk.problems(desk.job_text, root)
    assert problem.id == "PR208"
    assert desk.at(problem.place).startswith("{name: Late")
    assert "on_exit" in str(problem.hint)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("delay: 3s", "'delay' has no effect without retries"),
        ("delay: 3s\nretries: 0", "'delay' has no effect without retries"),
        ("retry_on: [timeout]", "'retry_on' has no effect without retries"),
        ("failure_policy: ignore\nexit_codes: {timeout: 3}", "'exit_codes' has no effect"),
        ("timeout: 2m\ndeadline: 90s", "'timeout' has no effect"),
    ],
)
def test_a_combination_without_effect_is_an_error(desk: Desk, text: str, says: str) -> None:
    """Keywords that cancel each other are refused, because their author expects something."""
    body = f"name: One\n{TASK}\n{text}\n"
    (problem,) = desk.playbook_problems("- " + body.replace("\n", "\n  ").rstrip() + "\n")
    assert problem.id == "PR207"
    assert says in problem.message


def test_all_problems_are_shown_at_once_in_reading_order(desk: Desk) -> None:
    """Ten mistakes in one file are ten errors, from top to bottom."""
    found = desk.playbook_problems(
        """\
        - cmd: {argv: [a]}
          retries: -1
          timeout: 600
          ignore_errors: true
        - name: Two
          failure_policy: perhaps
          cmd: {argv: [b]}
          whenn: true
        - name: Three
        """
    )
    assert {p.id for p in found} == {"PR204", "PR205", "PR209", "PR210", "PR201"}
    assert len(found) == 6
    lines = [p.place.line for p in found if p.place]
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    "second",
    [
        "- {id: one, name: Again, cmd: {argv: [b]}}\n",
        "- {name: Again, cmd: {argv: [b]}, on_exit: [{id: one, name: B, event: always, cmd: {argv: [b]}}]}\n",
    ],
    ids=["a task", "an exit handler"],
)
def test_an_id_used_twice_shows_both_places(desk: Desk, second: str) -> None:
    """Ids are unique, exit handlers included; the first place is shown beside the second."""
    (problem,) = desk.playbook_problems(f"- {{id: one, name: One, cmd: {{argv: [a]}}}}\n{second}")
    assert problem.id == "PR206"
    assert "first used here" in render(problem)


def test_ids_are_unique_over_both_phases(desk: Desk) -> None:
    """A runtime task may not bear the id of an init task."""
    (problem,) = desk.playbook_problems("- {id: barrier, name: One, cmd: {argv: [a]}}\n")
    assert problem.id == "PR206"
    assert "playbooks/init.yaml" in render(problem)


@pytest.mark.parametrize("folder", ["modules/retries.py", "plugin_specs/when.yaml"])
def test_a_module_or_plugin_with_a_keywords_name_is_refused(desk: Desk, folder: str) -> None:
    """A name that is a keyword cannot be a module or a plugin as well."""
    root = desk.root({folder: ""})
    content = Content([built_in_root(), Root(path=str(root), layer="cluster")])
    with pytest.raises(PairunError) as e:
        _ = content.modules if folder.startswith("m") else content.specs
    assert e.value.problems[0].id == "PR213"


def test_every_keyword_tells_what_it_means() -> None:
    """Each keyword has a sentence, and one that is optional in a task has a default in words."""
    for keyword in KEYWORDS.values():
        assert keyword.meaning.endswith(".")
    for keyword in keywords_of("task").values():
        assert keyword.default
        assert keyword.example.startswith(keyword.name)
