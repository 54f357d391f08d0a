"""A module that is a folder: its files import each other relatively, by path alone."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from pairun.contract.loading import ModuleFile, load_module, plan_loader
from pairun.contract.sources import read_source
from pairun.errors import PairunError, Problem

ENTRY = '''
from __future__ import annotations
from pairun.module import CheckModule, Context, Result, arg, define
from . import waiting
from .inner import table

@define
class Probe(CheckModule):
    """Look."""
    example = "probe: {}"
    number: int = arg("A number.", default=1)
    def check(self, ctx: Context) -> Result:
        """Look."""
        from .inner.late import LATE
        return Result(message=f"{waiting.WORD} {table()} {LATE}")
'''
FILES = {
    "__init__.py": ENTRY,
    "waiting.py": "WORD = 'waiting'\n",
    "inner/__init__.py": "from ..waiting import WORD\n"
    "import pkgutil\n"
    "def table(): return pkgutil.get_data(__name__, 'table.txt').decode()\n",
    "inner/late.py": "from . import table\nLATE = 'late ' + table()\n",
    "inner/table.txt": "of data",
}


def make(folder: Path, files: dict[str, str]) -> str:
    """A module's folder; returns its path."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(folder)


def message(cls: Any) -> str:
    """What the module of this file says."""
    said: str = cls().check(None).message
    return said


def problem_of(path: str) -> Problem:
    """Why a module cannot be loaded."""
    with pytest.raises(PairunError) as e:
        load_module("probe", path)
    (problem,) = e.value.problems
    assert problem.id == "PR602"
    return problem


def test_a_folder_is_a_module(tmp_path: Path) -> None:
    """Its files, those of inner folders and data are found; sys.path has nothing of it."""
    path = make(tmp_path / "probe", FILES)
    before = list(sys.path)
    assert message(load_module("probe", path)) == "waiting of data late of data"
    assert sys.path == before
    assert not list(tmp_path.rglob("__pycache__"))


def test_the_class_may_be_in_another_file(tmp_path: Path) -> None:
    """The entry holds or imports the one module class."""
    files = FILES | {"__init__.py": "from .probe import Probe\n", "probe.py": ENTRY}
    assert message(load_module("probe", make(tmp_path / "probe", files))).startswith("waiting")


def test_what_was_planned_is_executed(tmp_path: Path) -> None:
    """Files that change after the digest was checked, imports in functions included, change nothing."""
    path = make(tmp_path / "probe", FILES)
    file = ModuleFile(path=path, sha256=read_source("probe", path).sha256(), built_in=False)
    cls = plan_loader({"probe": file})("probe")
    make(tmp_path / "probe", {"inner/late.py": "LATE = 1 / 0\n", "inner/table.txt": "of lies"})
    assert message(cls) == "waiting of data late of data"


@pytest.mark.parametrize("changed", FILES)
def test_the_digest_of_every_file_is_checked(tmp_path: Path, changed: str) -> None:
    """A plan does not run a folder in which any file changed."""
    path = make(tmp_path / "probe", FILES)
    file = ModuleFile(path=path, sha256=read_source("probe", path).sha256(), built_in=False)
    make(tmp_path / "probe", {changed: FILES[changed] + "\n"})
    with pytest.raises(PairunError) as e:
        plan_loader({"probe": file})("probe")
    assert e.value.problems[0].id == "PR703"


def test_a_folder_that_changed_is_executed_anew(tmp_path: Path) -> None:
    """All its files are, not only the entry; one that is the same is not."""
    path = make(tmp_path / "probe", FILES)
    first = load_module("probe", path)
    assert load_module("probe", path) is first
    make(tmp_path / "probe", {"waiting.py": "WORD = 'changed'\n"})
    assert message(load_module("probe", path)).startswith("changed")


def test_a_file_takes_the_place_of_a_folder(tmp_path: Path) -> None:
    """What the folder had is gone: a stale file of it cannot be imported."""
    load_module("probe", make(tmp_path / "probe", FILES))
    single = tmp_path / "probe.py"
    single.write_text(ENTRY.replace("from . import waiting", ""))
    problem = problem_of(str(single))
    assert "ModuleNotFoundError" in problem.message
    assert not [n for n in sys.modules if n.startswith("pairun_modules.probe")]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A relative import that leads nowhere is one error, with the file and the line."""
    path = make(tmp_path / "probe", FILES | {"waiting.py": "\nfrom .gone import x\n"})
    assert problem_of(path).message == (
        "the module probe fails on import: ModuleNotFoundError: the module probe has no file gone.py "
        f"({path}/waiting.py, line 2)"
    )


def test_an_absolute_import_of_a_neighbour_is_an_error_that_says_so(tmp_path: Path) -> None:
    """The folder is not on sys.path, and the hint shows the line that works."""
    absolute = ENTRY.replace("from . import waiting", "import waiting")
    problem = problem_of(make(tmp_path / "probe", FILES | {"__init__.py": absolute}))
    assert "a module imports its own files relatively" in problem.message
    assert problem.hint == "write `from .waiting import …`"


def test_a_mistake_names_the_file_that_has_it(tmp_path: Path) -> None:
    """Of a folder the file and the line are told, for syntax, too."""
    path = make(tmp_path / "probe", FILES | {"waiting.py": "\n\n1 / 0\n"})
    assert f"({path}/waiting.py, line 3)" in problem_of(path).message
    make(tmp_path / "probe", {"waiting.py": "\ndef (\n"})
    assert f"({path}/waiting.py, line 2)" in problem_of(path).message


def test_modules_do_not_see_each_others_files(tmp_path: Path) -> None:
    """A name of another module's folder is not found by Python outside of it."""
    load_module("probe", make(tmp_path / "probe", FILES))
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("waiting")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("pairun_modules.other.waiting")
