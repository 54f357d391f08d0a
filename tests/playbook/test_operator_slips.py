"""An operator's faulty module, misnamed file or playbook is theirs to correct, and is said so."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from pairun.contract.loading import load_module
from pairun.errors import PairunError, Problem, render
from pairun.host.worlds import ReviewContext
from pairun.plan import Task
from pairun.playbook.content import open_content
from pairun.review.verdict import judge

if TYPE_CHECKING:
    from pathlib import Path

    from tests.desk import Desk

STATE = '''\
from __future__ import annotations
from typing import TYPE_CHECKING, Any
from pairun.module import Context, StateModule, Verdict, arg, define, no_change
if TYPE_CHECKING:
    from decimal import Decimal

@define
class Bad(StateModule):
    """Go wrong."""

    example = "bad: {number: 1}"

    number: int = arg("A number.", default=1)

    def probe(self, ctx: Context) -> int:
        return 1 // (self.number - 1)

    def plan(self, state: int) -> Verdict:
        return no_change("fine")

    def apply(self, ctx: Context) -> None:
        pass
'''


def bad_root(desk: Desk, module: str, task: str = "bad: {number: 1}") -> Path:
    """A content root with this module, and an init playbook that uses it."""
    playbook = f"phase: init\ntasks: [{{name: B, {task}}}]\n"
    return desk.root({"modules/bad.py": module, "playbooks/init.yaml": playbook})


def warnings(desk: Desk, text: str, *roots: Path) -> list[Problem]:
    """The warnings of a job that must be valid."""
    return [p for p in desk.valid(text, *roots).problems if p.severity == "warning"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("def probe", "def prob", "lacks the method 'probe'"),
        ("def plan", "def plann", "lacks the method 'plan'"),
        ("def apply", "def aply", "lacks the method 'apply'"),
        ("number: int", "number: Decimal", "'number' a type that is not known: NameError"),
        ("number: int", "number: set[int]", "'number' a type that YAML has not: set[int]"),
        ("number: int", "number: list", "'number' a type that YAML has not: list"),
        ("number: int", "number: dict[int, str]", "'number' a type that YAML has not"),
        ("number: int =", "number =", "'number' no type"),
        ("default=1", "factory=lambda: 1 // 0", "arguments that cannot be read: ZeroDivisionError"),
    ],
)
def test_a_module_that_lacks_what_it_must_have(desk: Desk, old: str, new: str, says: str) -> None:
    """A missing method or an argument of an unusable type is named, with the file."""
    found = desk.problems(desk.job_text, bad_root(desk, STATE.replace(old, new, 1)))
    assert [p.id for p in found] == ["PR603"], [render(p) for p in found]
    assert says in found[0].message
    assert "modules/bad.py" in found[0].message


def test_a_check_module_checks(tmp_path: Path) -> None:
    """A check module without its one method is no module."""
    path = tmp_path / "bad.py"
    path.write_text(
        "from pairun.module import CheckModule, define\n\n\n@define\nclass Bad(CheckModule):\n    pass\n"
    )
    with pytest.raises(PairunError, match="lacks the method 'check'"):
        load_module("bad", str(path))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("", "", "ZeroDivisionError"),
        ("return no_change", "return print", "plan returned NoneType, no verdict"),
        ("return 1 // (self.number - 1)", "raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_a_module_that_fails_while_it_looks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, says: str
) -> None:
    """A review says that the module failed; what the module prints is no part of a document."""
    path = tmp_path / "bad.py"
    path.write_text(
        STATE.replace(old, new).replace("        return", "        print(1)\n        return")
    )
    number = 1 if not old else 5
    task = Task(id="a", name="A", module="bad", args={"number": number}, where="")
    verdict = judge(task, load_module("bad", str(path)), ReviewContext(env={}, pai_dir="/x"))
    assert verdict.kind == "unknown"
    assert verdict.because.startswith("the module's probe failed: ")
    assert says in verdict.because
    assert capsys.readouterr().out == ""


def test_a_module_that_fails_on_its_arguments(desk: Desk) -> None:
    """An exception in a module's own check of its arguments is the module's."""
    text = STATE + "\n    def require(self):\n        return [1 // 0]\n"
    (problem,) = desk.problems(desk.job_text, bad_root(desk, text))
    assert problem.id == "PR603"
    assert problem.message == (
        "bad: the module fails on its arguments: ZeroDivisionError: "
        "integer division or modulo by zero"
    )


def test_what_a_module_prints_at_import_is_no_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard output may be a JSON document: a module's words go to standard error."""
    path = tmp_path / "bad.py"
    path.write_text(STATE + "\nprint('hello')\n")
    load_module("bad", str(path))
    assert capsys.readouterr() == ("", "hello\n")


def test_a_config_folder_that_is_none(desk: Desk) -> None:
    """A slip in PAI_CONFIG_DIR is said; an empty value is as good as none."""
    with pytest.raises(PairunError) as e:
        open_content([], {"PAI_CONFIG_DIR": str(desk.tmp / "absent")})
    assert e.value.problems[0].id == "PR601"
    assert "PAI_CONFIG_DIR" in e.value.problems[0].message
    assert len(open_content([], {"PAI_CONFIG_DIR": ""}).roots) == 1
    # the ConfigMap with OpenPAI's exit specification
    (desk.tmp / "k8s-job-exit-spec.yaml").write_text("spec: []\n")
    assert len(open_content([], {"PAI_CONFIG_DIR": str(desk.tmp)}).roots) == 1


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("playbooks/int.yaml", "did you mean 'init.yaml'?"),
        ("playbooks/init.yml", "did you mean 'init.yaml'?"),
        ("playbooks/more.yaml", "known: init.yaml, runtime.yaml, policy.yaml"),
        ("plugins/ssh.yaml", "did you mean 'plugin_specs'?"),
        ("plugin_specs/ssh.yml", "in plugin_specs names end with .yaml"),
        ("modules/ssh.yaml", "in modules names end with .py"),
        ("modules/waiting/pods.py", "the folder of a module has a file __init__.py"),
        ("policy.yaml", "it belongs in the folder playbooks"),
    ],
)
def test_a_file_that_nobody_reads(desk: Desk, path: str, hint: str) -> None:
    """What was meant for pairun and has another name is a warning of every review."""
    root = desk.root({path: "", "modules/_helper.py": "", "README.md": "", "modules/ok.py": ""})
    (problem,) = warnings(desk, desk.job_text, root)
    assert (problem.id, problem.hint) == ("PR912", hint)
    assert str(root) in problem.message


def test_a_folder_of_files_has_other_programs_files(desk: Desk) -> None:
    """In a mounted ConfigMap only what is nearly a playbook's name is a slip."""
    (desk.tmp / "exit-spec.yaml").write_text("")
    (desk.tmp / "polcy.yaml").write_text("")
    content = open_content([], {"PAI_CONFIG_DIR": str(desk.tmp)})
    from pairun.playbook.effective import Layers

    assert [p.hint for p in Layers(content).warnings] == ["did you mean 'policy.yaml'?"]


def test_a_playbook_is_of_the_phase_that_its_file_names(desk: Desk) -> None:
    """Also one that only patches."""
    root = desk.root({"playbooks/init.yaml": "phase: runtime\npatches: []\n"})
    (problem,) = desk.problems(desk.job_text, root)
    assert (problem.id, desk.at(problem.place)[:7]) == ("PR204", "runtime")


def test_tasks_beside_patches(desk: Desk) -> None:
    """A playbook replaces the one below, or changes it."""
    root = desk.root({"playbooks/init.yaml": "phase: init\ntasks: []\npatches: []\n"})
    (problem,) = desk.problems(desk.job_text, root)
    assert (problem.id, desk.at(problem.place)[:7]) == ("PR207", "patches")
    assert [desk.at(p)[:5] for _, p in problem.also] == ["tasks"]


RUNTIME = """\
phase: runtime
tasks:
  - name: C
    user_command: {script: a}
"""


@pytest.mark.parametrize(
    ("files", "caret"),
    [
        ({"playbooks/runtime.yaml": "phase: runtime\ntasks: []\n"}, "tasks"),
        ({"playbooks/runtime.yaml": f"{RUNTIME}    when: false\n"}, "false"),
        ({"playbooks/runtime.yaml": f"{RUNTIME}    when: 1 > 2\n"}, "1 > 2"),
    ],
)
def test_the_users_command_must_be_there(desk: Desk, files: dict[str, str], caret: str) -> None:
    """A runtime phase that would run nothing is an error before it is submitted."""
    (problem,) = desk.problems(desk.job_text, desk.root(files))
    assert problem.id == "PR205"
    assert problem.message.startswith("'user_command' is missing")
    assert desk.at(problem.place).startswith(caret)


def test_the_users_command_cannot_be_taken_out(desk: Desk) -> None:
    """Where a cluster's own playbook did not lock it, the place that disables it is shown."""
    low = desk.root({"playbooks/runtime.yaml": RUNTIME}, "low")
    patch = "phase: runtime\npatches: [{disable: user_command}]\n"
    high = desk.root({"playbooks/runtime.yaml": patch}, "high")
    (problem,) = desk.problems(desk.job_text, low, high)
    assert (problem.id, desk.at(problem.place)[:12]) == ("PR205", "user_command")


def test_a_key_that_yaml_took_for_a_mapping(desk: Desk) -> None:
    """An expression without quotes comes with the quotes."""
    with pytest.raises(PairunError) as e:
        desk.node("name: {{job.name}}\n")
    assert e.value.problems[0].hint == "quote it: '{{ job.name }}'"


def test_messages_name_what_a_person_wrote(desk: Desk) -> None:
    """The job's layer by its name, and of a choice only what can be chosen."""
    (problem,) = desk.problems(desk.job_text + "extras: {pairun: [a]}\n")
    assert problem.message == "'extras.pairun' must be a mapping, not a list"
    text = textwrap.dedent("""\
        runtime:
          - patch: mount_storage
            failure_policy: ignor
    """)
    root = desk.root({"playbooks/policy.yaml": desk.all_open}, "policy")
    (problem,) = desk.problems(desk.job(text), root)
    assert problem.message == "'failure_policy' must be one of fail, ignore, not 'ignor'"
    assert problem.hint == "did you mean 'ignore'?"
