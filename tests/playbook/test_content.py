"""Content roots: stacked, a later one adds to or replaces by name."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pairun.errors import PairunError
from pairun.playbook.content import Content, Root, built_in_root, open_content

if TYPE_CHECKING:
    from tests.desk import Desk
from typing import TYPE_CHECKING

from pairun.contract.loading import load_module
from pairun.errors import render
from pairun.host.worlds import ReviewContext
from pairun.plan import Task
from pairun.review.taskreview import judge

if TYPE_CHECKING:
    from tests.desk import Desk

MODULE = '''\
from pairun.module import CheckModule, Context, arg, define


@define
class Greet(CheckModule):
    """Greet somebody."""

    example = "greet: {who: anna}"

    who: str = arg("Whom.")

    def check(self, ctx: Context) -> None:
        ctx.log(self.who)
'''


def test_a_cluster_adds_a_module_a_spec_and_a_playbook(desk: Desk) -> None:
    """A folder with three kinds of files changes what a job runs, without a line of code here."""
    root = desk.root(
        {
            "modules/greet.py": MODULE,
            "plugin_specs/hello.yaml": "summary: S\nruntime: [{name: N, greet: {who: '{{ parameters.who }}'}}]\n",
            "playbooks/init.yaml": "phase: init\ntasks: [{id: first, name: F, greet: {who: all}}]\n",
        }
    )
    text = desk.job(plugins="- {plugin: hello, parameters: {who: anna}}\n")
    review = desk.valid(text, root)
    assert desk.order(review, "init") == ["first"]
    assert desk.task(review, "hello").args == {"who": "anna"}
    files = review.plans[0].plans["init"].modules
    assert files["greet"].path == str(root / "modules/greet.py")
    assert not files["greet"].built_in


def test_a_later_root_replaces_a_module_by_name(desk: Desk) -> None:
    """The highest root with a name has it."""
    low, high = (
        desk.root({"modules/cmd.py": MODULE}, "a"),
        desk.root({"modules/cmd.py": MODULE}, "b"),
    )
    content = desk.content(low, high)
    assert content.modules["cmd"][0] == str(high / "modules/cmd.py")
    assert content.module("cmd").__name__ == "Greet"


def test_roots_come_from_the_path_the_option_and_the_folder_of_files(desk: Desk) -> None:
    """PAIRUN_PATH, then --root, then the files of PAI_CONFIG_DIR."""
    one, two, three = (desk.root({"playbooks/init.yaml": ""}, n) for n in ("one", "two", "three"))
    (desk.tmp / "flat").mkdir()
    (desk.tmp / "flat/policy.yaml").write_text("job_may: {}\n")
    env = {"PAIRUN_PATH": f"{one}:{two}:", "PAI_CONFIG_DIR": str(desk.tmp / "flat")}
    roots = open_content([str(three)], env).roots
    assert [r.path for r in roots[1:]] == [str(p) for p in (one, two, three, desk.tmp / "flat")]
    assert [r.layer for r in roots] == ["built-in", *["cluster"] * 4]


def test_the_folder_of_files_holds_playbooks_and_nothing_else(desk: Desk) -> None:
    """In a mounted ConfigMap only init, runtime and policy count; without them it is no root."""
    flat = desk.tmp / "flat"
    flat.mkdir()
    (flat / "other.yaml").write_text("x: 1\n")
    (flat / "cmd.py").write_text(MODULE)
    env = {"PAI_CONFIG_DIR": str(flat)}
    assert len(open_content([], env).roots) == 1
    (flat / "runtime.yaml").write_text(f"phase: runtime\ntasks:\n{desk.command}")
    content = open_content([], env)
    assert len(content.playbooks("runtime")) == 2
    assert content.modules["cmd"][1].layer == "built-in"


def test_a_folder_that_is_no_root_is_refused(desk: Desk) -> None:
    """A slip in a path is said, not passed over."""
    for path in (str(desk.tmp), str(desk.tmp / "absent")):
        with pytest.raises(PairunError) as e:
            open_content([path], {})
        assert e.value.problems[0].id == "PR601"
        assert path in e.value.problems[0].message


def test_a_digest_is_of_names_and_contents(desk: Desk) -> None:
    """Two folders with the same files have one digest; any change changes it."""
    root = desk.root({"modules/greet.py": MODULE, "playbooks/init.yaml": "phase: init\n"})
    first = Root(path=str(root), layer="cluster").digest()
    copy = desk.tmp / "copy"
    shutil.copytree(root, copy)
    assert Root(path=str(copy), layer="cluster").digest() == first
    (copy / "modules/_helper.py").write_text("x")  # not loaded, so not part of it
    assert Root(path=str(copy), layer="cluster").digest() == first
    (copy / "modules/greet.py").rename(copy / "modules/greets.py")
    assert Root(path=str(copy), layer="cluster").digest() != first
    (root / "playbooks/init.yaml").write_text("phase: init\n\n")
    assert Root(path=str(root), layer="cluster").digest() != first
    assert len(first) == 12


def test_a_module_may_be_a_folder(desk: Desk) -> None:
    """It is planned with its folder and the digest over its files, which the root's digest has too."""
    entry = "from .greeting import Greet\n"
    uses = "phase: init\ntasks: [{id: first, name: F, greet: {who: all}}]\n"
    files = {"modules/greet/__init__.py": entry, "modules/greet/greeting.py": MODULE}
    root = desk.root({**files, "playbooks/init.yaml": uses})
    file = desk.valid(desk.job_text, root).plans[0].plans["init"].modules["greet"]
    assert file.path == str(root / "modules/greet")
    before = Root(path=str(root), layer="cluster").digest()
    (root / "modules/greet/greeting.py").write_text(MODULE + "\n")
    assert Root(path=str(root), layer="cluster").digest() != before
    # A process reads a module once, so another one sees the change.
    changed = Content([Root(path=str(root), layer="cluster")]).module_file("greet")
    assert changed.sha256 != file.sha256


def test_a_module_that_is_a_file_and_a_folder(desk: Desk) -> None:
    """In one root it is an error; a folder in a higher root replaces a file below it."""
    folder = {"modules/greet/__init__.py": MODULE}
    low = desk.root({"modules/greet.py": MODULE}, "low")
    high = desk.root(folder, "high")
    assert desk.content(low, high).modules["greet"][0] == str(high / "modules/greet")
    both = desk.content(desk.root({"modules/greet.py": MODULE, **folder}, "both"))
    with pytest.raises(PairunError, match=r"greet\.py and greet/"):
        assert both.modules


def test_modules_load_when_they_are_used(desk: Desk) -> None:
    """A module that nobody uses is never run: one that hangs cannot hold up a review."""
    root = desk.root({"modules/hangs.py": "while True: pass\n", "modules/raises.py": "1 / 0\n"})
    assert desk.valid(desk.job_text, root).plans


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("raise OSError('no')\n", "fails on import: OSError: no"),
        ("import nowhere_to_be_found\n", "fails on import: ModuleNotFoundError"),
        ("def (\n", "fails on import: SyntaxError"),
        ("raise SystemExit(0)\n", "fails on import: SystemExit"),
        ("x = 1\n", "must hold one module class, it holds 0"),
        (
            MODULE + "\n\n@define\nclass Two(CheckModule):\n    x: int = arg('X.', default=1)\n",
            "it holds 2",
        ),
        (MODULE.replace("@define\n", ""), "made with @define"),
        (
            "from pairun.module import Module, define\n\n@define\nclass A(Module):\n    pass\n",
            "must be a StateModule",
        ),
    ],
)
def test_a_module_that_cannot_be_loaded(desk: Desk, text: str, says: str) -> None:
    """Whatever a module's file does wrong is an error with its path, not a crash."""
    root = desk.root(
        {
            "modules/bad.py": text,
            "playbooks/init.yaml": "phase: init\ntasks: [{name: B, bad: {who: a}}]\n",
        }
    )
    (problem,) = desk.problems(desk.job_text, root)
    assert problem.id in ("PR602", "PR603")
    assert says in problem.message
    assert "modules/bad.py" in problem.message


def test_the_built_in_root_is_shown_by_its_place_in_the_project(desk: Desk) -> None:
    """People know the built-in files by their names, a cluster's by their paths."""
    root = desk.root({"playbooks/init.yaml": "phase: init\ntasks: []\n"})
    built_in, cluster = desk.content(root).playbooks("init")
    assert built_in.place.source.file == "playbooks/init.yaml"
    assert cluster.place.source.file == str(root / "playbooks/init.yaml")
    assert os.path.isdir(Path(built_in_root().path) / "modules")


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


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("def probe", "def prob", "lacks the method 'probe'"),
        ("def plan", "def plann", "lacks the method 'plan'"),
        ("def apply", "def aply", "lacks the method 'apply'"),
        ("number: int", "number: Decimal", "'number' with an unknown type: NameError"),
        (
            "number: int",
            "number: set[int]",
            "'number' with a type that YAML does not have: set[int]",
        ),
        ("number: int", "number: list", "'number' with a type that YAML does not have: list"),
        ("number: int", "number: dict[int, str]", "'number' with a type that YAML does not have"),
        ("number: int =", "number =", "'number' without a type"),
        (
            "default=1",
            "factory=lambda: 1 // 0",
            "'number' with a default that fails: ZeroDivisionError",
        ),
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
        ("return no_change", "return print", "plan returned NoneType, not a verdict"),
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
