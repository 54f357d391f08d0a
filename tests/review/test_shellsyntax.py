"""bash reads the scripts of a job before anything runs them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pairun.errors import Place, Problem, Source
from pairun.job.scripts import ShellText, node_lines
from pairun.playbook.document.reading import Node, read_text
from pairun.review.shellsyntax import Checked, ShellSyntax, scripts_of_file, scripts_of_plan

if TYPE_CHECKING:
    from tests.desk import Desk

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
pytestmark = needs_bash


def _script(text: str, *, secret: bool = False) -> Checked:
    node = Node(text, Place(Source("f", "job", text), 1, 1))
    return Checked(ShellText("the script", text, tuple(node_lines(node)), secret))


def _problems(text: str) -> list[Problem]:
    return list(ShellSyntax().check([_script(text)]))


WRONG = [
    ("if true; then\n  a\n", 2, "unexpected end of file"),
    ('a\necho "b\n', 2, "looking for matching `\"'"),
    ("a\nfi\n", 2, "unexpected token `fi'"),
    ("a\nb)\n", 2, "unexpected token `)'"),
    ("x=(\n1\n", 1, "looking for matching `)'"),
    ("echo !(a)\n", 1, "unexpected token `('"),
]
RIGHT = [
    "",
    "exit 1",
    "shopt -s extglob\necho !(a)\n",
    "for i in $(seq 3); do echo $i; done; rm -rf --no-preserve-root /nowhere",
    "echo ü “quoted” \0",
    "[[ a =~ (b) ]] && x=(1 2) && cat <(echo) <<E\n$x\nE\n",
]


@pytest.mark.parametrize(("text", "line", "says"), WRONG)
def test_a_script_that_bash_cannot_read(text: str, line: int, says: str) -> None:
    """An error with bash's words and the line."""
    (problem,) = _problems(text)
    assert (problem.id, problem.severity) == ("PR516", "error")
    assert says in problem.message
    assert problem.place is not None
    assert problem.place.line == line


@pytest.mark.parametrize("text", RIGHT)
def test_a_script_that_bash_reads(text: str) -> None:
    """Nothing is run, and nothing is said."""
    assert _problems(text) == []


def test_nothing_is_run(tmp_path: Path) -> None:
    """No command, no substitution, no file that the environment names."""
    mark = tmp_path / "mark"
    touch = f"touch {mark}"
    assert (
        _problems(f'{touch}\nx=$({touch})\n: ${{y:=$({touch})}}\n`{touch}`\n: "${{a[$({touch})]}}"')
        == []
    )
    assert not mark.exists()


def test_a_here_document_without_its_end() -> None:
    """Bash accepts it, and the rest of the script is lost: a warning."""
    (problem,) = _problems("cat <<EOF\nb\n EOF\nrun\n")
    assert (problem.id, problem.severity) == ("PR516", "warning")


def test_no_message_quotes_a_secret() -> None:
    """Bash quotes the token at which it stopped."""
    (problem,) = ShellSyntax().check([_script("x=( a; hunter2)hunter2", secret=True)])
    assert "hunter2" not in problem.message


def test_a_machine_without_bash(tmp_path: Path) -> None:
    """A note in place of an error; also where it does not answer."""
    absent = ShellSyntax(str(tmp_path / "bash"), str(tmp_path / "shellcheck"))
    assert list(absent.check([_script("if"), _script("if"), _script("fi")])) == []
    (note,) = absent.unread()
    assert (note.id, note.severity) == ("PR926", "warning")
    assert note.message.startswith("the syntax of 2 scripts was not checked")
    assert list(ShellSyntax().unread()) == []


def test_shellcheck_reports_errors_and_no_style() -> None:
    script = "for i in `seq 3`; do\n\tif [ $i=1 ]; then cd $i; fi\ndone"
    (problem,) = _problems(script)
    assert (problem.id, problem.severity) == ("PR935", "warning")
    assert "(SC2077)" in problem.message
    assert problem.place is not None
    assert script.split("\n")[problem.place.line - 1][problem.place.column - 1 :].startswith("=1")


def test_shellcheck_reads_no_script_with_a_secret() -> None:
    assert list(ShellSyntax().check([_script("if [ $i=hunter2 ]; then a; fi", secret=True)])) == []


def test_without_shellcheck_bash_alone_checks(tmp_path: Path) -> None:
    bash_alone = ShellSyntax(shellcheck=str(tmp_path / "shellcheck"))
    assert list(bash_alone.check([_script("if [ $i=1 ]; then a; fi")])) == []
    assert list(bash_alone.unread()) == []


def test_the_scripts_of_a_job(desk: Desk) -> None:
    """The command with its tags, callbacks, and what the job inserts; pairun's own scripts are no matter."""
    plugins = """\
- plugin: git
  parameters: {repo_uri: "https://a/b", clone_dir: $HOME/x}
- plugin: cmd
  parameters:
    callbacks:
      - event: taskStarts
        commands:
          - echo one
          - if two
      - event: taskSucceeds
        commands: [fi]
"""
    root = desk.root({"playbooks/policy.yaml": desk.all_open})
    text = desk.job(
        "runtime: [{append: true, id: own, name: N, cmd: {script: 'a)'}}]", plugins=plugins
    )
    command = ["if <% $secrets.a %>", "then b", "fi <% $parameters.p %>"]
    text = text.replace("[train]", json.dumps(command))
    text += "secrets: {a: long enough}\nparameters: {p: '; )'}\n"
    review = desk.review(text, root)
    assert not review.problems.errors
    problems = list(ShellSyntax().check(scripts_of_plan(review.plans[0])))
    texts = text.split("\n")
    assert [texts[p.place.line - 1].strip() for p in problems if p.place] == [
        f"commands: {json.dumps(command)}",
        "- if two",
        "commands: [fi]",
        "runtime: [{append: true, id: own, name: N, cmd: {script: 'a)'}}]",
    ]  # fmt: skip


FILE = """\
summary: S
init:
  - name: one
    cmd: {script: "if {{ parameters.a }}; then b"}
  - name: two
    cmd:
      script: |
        {% if a %} if {% endif %}
  - name: three
    cmd: {argv: [a], unless: "{{ parameters.all }}"}
  - name: four
    cmd:
      argv: [a]
      unless: |
        test -e x &&
        )
"""


def test_the_scripts_of_a_file() -> None:
    """Expressions are words; statements are left to the review of a job."""
    document = read_text(Source("s.yaml", "cluster", FILE))
    problems = list(ShellSyntax().check(scripts_of_file(document)))
    assert [(p.place.line, p.message.split(":")[0]) for p in problems if p.place] == [
        (4, "bash cannot read the script"),
        (16, "bash cannot read the unless"),
    ]
