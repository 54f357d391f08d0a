"""Modules are loaded by path, checked, and never trusted to be what they were."""

from __future__ import annotations

import hashlib
import pathlib
import sys
from typing import Any

import pytest

from pairun.contract.arguments import arguments, build
from pairun.contract.loading import ModuleFile, load_module, plan_loader
from pairun.errors import PairunError
from pairun.plan import Plan

GOOD = '''
from __future__ import annotations
import os
from pairun.module import CheckModule, Context, define, arg

class Helper:
    """Not a module."""

@define
class Probe(CheckModule):
    """Look."""
    number: int = arg("A number.", default=1)
    def check(self, ctx: Context) -> None:
        """Look."""
'''
UNUSABLE = [
    ("1/0", "PR602", "ZeroDivisionError: division by zero"),
    ("\n\nraise SystemExit(3)", "PR602", "line 3"),
    ("def (", "PR602", "SyntaxError"),
    ("x = 1\x00", "PR602", "fails on import"),
    ("import no_such_library", "PR602", "ModuleNotFoundError"),
    ("", "PR602", "must hold one module class, it holds 0"),
    (GOOD + "\n@define\nclass Second(Probe):\n    pass\n", "PR602", "it holds 2"),
    (GOOD.replace("@define\n", ""), "PR603", "made with @define"),
    (
        GOOD.replace("    number", "    phases = ('runtme',)\n    number"),
        "PR603",
        "names a phase that does not exist: 'runtme'",
    ),
    (GOOD.replace("CheckModule", "Module"), "PR603", "StateModule or a CheckModule"),
]


def write(folder: pathlib.Path, text: str) -> str:
    """Write a module's file; returns its path."""
    path = folder / "probe.py"
    path.write_text(text)
    return str(path)


def test_a_module(tmp_path: pathlib.Path) -> None:
    """The one module class of a file is found, its imports and helpers are not taken for one."""
    assert load_module("probe", write(tmp_path, GOOD)).__name__ == "Probe"


@pytest.mark.parametrize(("text", "id_", "says"), UNUSABLE)
def test_what_cannot_be_used(tmp_path: pathlib.Path, text: str, id_: str, says: str) -> None:
    """Every way to be no module is one error with the file's name."""
    path = write(tmp_path, text)
    with pytest.raises(PairunError) as caught:
        load_module("probe", path)
    (problem,) = caught.value.problems
    assert problem.id == id_
    assert says in problem.message
    assert path in problem.message


def test_a_missing_file(tmp_path: pathlib.Path) -> None:
    """A file that is not there is an error that names it."""
    with pytest.raises(PairunError, match="No such file"):
        load_module("probe", str(tmp_path / "none.py"))


def plan_of(path: str, sha256: str) -> Plan:
    """A plan that names the module."""
    file = ModuleFile(path=path, sha256=sha256, built_in=False)
    return Plan(phase="runtime", steps=(), modules={"probe": file})


def test_the_digest_is_checked(tmp_path: pathlib.Path) -> None:
    """A file that changed since it was planned is not run."""
    path = write(tmp_path, "open(__file__ + '.ran', 'w')\n" + GOOD)
    load = plan_loader(plan_of(path, hashlib.sha256(GOOD.encode()).hexdigest()).modules)
    with pytest.raises(PairunError) as caught:
        load("probe")
    assert caught.value.problems[0].id == "PR703"
    assert not (tmp_path / "probe.py.ran").exists()


def test_each_is_read_once(tmp_path: pathlib.Path) -> None:
    """A second task with the same module gets the class that the first one got."""
    path = write(tmp_path, GOOD)
    load = plan_loader(plan_of(path, hashlib.sha256(GOOD.encode()).hexdigest()).modules)
    first = load("probe")
    pathlib.Path(path).unlink()
    assert load("probe") is first


def test_who_plans_a_module_runs_it(tmp_path: pathlib.Path) -> None:
    """A file is executed once for the plan and the run; one that changed meanwhile, again."""
    telling = GOOD + "\nwith open(__file__ + '.ran', 'a') as f:\n    f.write('x')\n"
    planned = load_module("probe", write(tmp_path, telling))
    assert load_module("probe", write(tmp_path, telling)) is planned
    assert (tmp_path / "probe.py.ran").read_text() == "x"
    assert load_module("probe", write(tmp_path, GOOD)) is not planned
    load_module("probe", write(tmp_path, telling))
    assert (tmp_path / "probe.py.ran").read_text() == "xx"


def test_one_that_cannot_be_used_takes_no_place(tmp_path: pathlib.Path) -> None:
    """After a file that fails, the one before it is executed anew: its names are looked up so."""
    good = load_module("probe", write(tmp_path, GOOD))
    with pytest.raises(PairunError):
        load_module("probe", write(tmp_path, "1/0"))
    again = load_module("probe", write(tmp_path, GOOD))
    assert again is not good
    assert sys.modules[again.__module__].__dict__["Probe"] is again


def test_a_module_the_plan_does_not_have(tmp_path: pathlib.Path) -> None:
    """A name that the plan has no file for is an error, not a crash."""
    with pytest.raises(PairunError, match="does not say where module other is"):
        plan_loader(plan_of("x", "y").modules)("other")


WRITTEN_FOR_0_3 = '''
"""Keep a file in a state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import ClassVar, Literal

from pairun.module import (
    Context, Duration, Secret, StateModule, Verdict, arg, define, no_change, will_change,
)


@define
class Keep(StateModule):
    """Keep a file."""

    harmless = frozenset({"timeout"})
    phases = ("runtime",)
    privileges: ClassVar[str] = "writes a file"
    example = "keep: {path: /tmp/x}"

    path: str = arg("The file.")
    size: int = arg("Its size.", default=1)
    mode: Literal["a", "b"] = arg("How.", default="a")
    tags: list[str] = arg("Its tags.", factory=list)
    key: Secret | str | None = arg("A key.", default=None)
    attempts: int = arg("How often.", default=1, replaced_by="retries")
    wait: Duration = arg("How long.", default=Duration(1.0), bound="hold_max")
    plain: int = 3

    def require(self) -> Iterator[str]:
        if self.size < 0:
            yield "`size` is at least 0"

    def text(self) -> str:
        return f"{self.size} {self.mode}"

    def probe(self, ctx: Context) -> bool:
        return os.path.exists(self.path)

    def plan(self, state: bool) -> Verdict:
        return no_change() if state else will_change(self.text())

    def apply(self, ctx: Context) -> None:
        open(self.path, "w").close()
'''


def test_a_module_written_for_0_3(tmp_path: pathlib.Path) -> None:
    """`define` and `arg` do for it what they did."""
    cls: Any = load_module("keep", write(tmp_path, WRITTEN_FOR_0_3))
    known = {a.name: (a.required, a.default, a.replaced_by, a.bound) for a in arguments(cls)}
    assert known == {
        "path": (True, None, None, None),
        "size": (False, 1, None, None),
        "mode": (False, "a", None, None),
        "tags": (False, [], None, None),
        "key": (False, None, None, None),
        "attempts": (False, 1, "retries", None),
        "wait": (False, 1.0, None, "hold_max"),
        "plain": (False, 3, None, None),
    }
    made: Any
    made, problems = build(cls, {"path": "/x", "tags": ["a"], "wait": "2s"})
    assert not problems
    assert (made.path, made.tags, made.wait, made.text()) == ("/x", ["a"], 2.0, "1 a")
    assert cls(path="/x").tags is not cls(path="/x").tags
    assert cls(path="/x") == cls(path="/x")
    with pytest.raises(AttributeError):
        made.path = "/y"
    _, (problem,) = build(cls, {"path": "/x", "size": -1})
    assert problem.message == "`size` is at least 0"
