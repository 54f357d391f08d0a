"""`pairun new`: what it writes is valid as it is, and it replaces nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pairun.module
from pairun.cli.new import NEW_KINDS, write_start
from pairun.errors import PairunError
from pairun.playbook.content import Content, built_in_root
from pairun.review.lint import lint
from pairun.secrets.vault import Vault

if TYPE_CHECKING:
    from tests.cli.conftest import Shell


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(kind: str, name: str | None = None, root: str = "") -> list[str]:
    """Write a start, with the built-in names taken; returns its files."""
    return write_start(kind, name, root, Content([built_in_root()]))[0]


@pytest.mark.parametrize("kind", NEW_KINDS)
@pytest.mark.parametrize("named", [False, True])
def test_what_is_written_has_no_problem(kind: str, named: bool) -> None:
    """Neither an error nor a warning, alone and as part of its content root."""
    name, root = ("own_name", "the/root") if named and kind in ("plugin", "module") else (None, "")
    if named and kind in ("job", "root"):
        name = "own-name"
    files = written(kind, name, root)
    assert all(os.path.isfile(f) for f in files)
    above = [root or "."] if kind in ("plugin", "module") else []
    read = [f for f in files if f.endswith((".yaml", ".py")) and "tests" not in f]
    assert lint(read, above, Vault()).problems == []
    assert "@" not in "".join(re.findall(r"@[A-Z]+@", "".join(Path(f).read_text() for f in files)))
    whole = name or "cluster" if kind == "root" else root or "."
    assert lint([whole], [], Vault()).problems == []


@pytest.mark.parametrize("name", ["my_module", "context"])
def test_a_module_passes_its_own_test(folder: Path, name: str) -> None:
    """As written, and where the name is one that a module imports, in another case."""
    _, test = written("module", name, "root")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", test],
        cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{Path(test).read_text().count('def test_')} passed" in done.stdout


def test_a_module_is_formatted_and_linted() -> None:
    """Ruff accepts it, with pairun's own settings for examples."""
    files = written("module")
    settings = Path(pairun.__file__).parents[1] / "pyproject.toml"
    tool = Path(sys.executable).parent / "ruff"
    for command in (["check", "--ignore", "S101,D100,D102"], ["format", "--check"]):
        argv = [str(tool), *command, "--config", str(settings), *files]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "job", "line"),
    [
        ("job", "job.yaml", "step 3"),
        ("plugin", "examples/my_plugin.yaml", "hello"),
        ("root", "job.yaml", "show_disk"),
    ],
)
def test_a_start_runs_as_it_is(folder: Path, kind: str, job: str, line: str) -> None:
    """The job runs, the plugin's example prints its greeting, the root's task is run."""
    written(kind)
    if kind == "root":
        written("job")
    roots = {"plugin": ["--root", "."], "root": ["--root", "cluster"]}.get(kind, [])
    done = subprocess.run(
        [sys.executable, "-m", "pairun", "run", *roots, job],
        cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert line in done.stdout


@pytest.mark.parametrize("kind", NEW_KINDS)
def test_no_file_is_replaced(folder: Path, kind: str) -> None:
    """One file that exists, even a dangling link, and nothing is written."""
    files = written(kind)
    for file in files:
        os.remove(file)
    os.symlink("/nowhere", files[-1])
    with pytest.raises(PairunError, match="exists; nothing was written") as e:
        written(kind)
    assert [p.id for p in e.value.problems] == ["PR812"]
    assert not any(os.path.exists(f) for f in files)


def test_a_folder_that_cannot_be_written_is_named(folder: Path) -> None:
    """A file in the place of a folder."""
    (folder / "modules").write_text("")
    with pytest.raises(PairunError, match=r"modules/my_module\.py cannot be written: File exists"):
        written("module")


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("job", "two words", "letters, digits, - and _"),
        ("job", "../x", "letters, digits, - and _"),
        ("plugin", "Big", "a-z, 0-9 and _, a letter first"),
        ("module", "a.b", "a-z, 0-9 and _, a letter first"),
        ("module", "when", "'when' is a keyword of playbooks"),
        ("module", "git_clone", "the module 'git_clone' exists already"),
        ("plugin", "ssh", "the plugin 'ssh' exists already"),
        ("root", "/", "needs a name"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(
    folder: Path, kind: str, name: str, message: str
) -> None:
    """With an example of a name that can be used."""
    with pytest.raises(PairunError, match=message) as e:
        written(kind, name)
    assert [p.id for p in e.value.problems] == ["PR801"]
    assert e.value.problems[0].hint
    assert list(folder.iterdir()) == []


def test_it_names_what_it_wrote_and_what_to_type_next(shell: Shell) -> None:
    """Paths as a person can use them from here."""
    said = shell("new", "module", "check_disk", "--root", "cluster")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        "wrote cluster/modules/check_disk.py",
        "wrote cluster/tests/test_check_disk.py",
        "next: pairun lint cluster/modules/check_disk.py",
        "next: python3 -m pytest cluster/tests/test_check_disk.py",
        "next: add check_disk to job_may.insert in cluster/playbooks/policy.yaml, so that jobs may use it",
    ]
    assert (
        "class CheckDisk(StateModule)" in (shell.tmp / "cluster/modules/check_disk.py").read_text()
    )


def test_a_file_that_exists_ends_with_1_and_a_wrong_name_with_2(shell: Shell) -> None:
    """The exit codes of input and of usage."""
    shell("new", "job")
    again = shell("new", "job")
    assert (again.code, again.ids) == (1, ["PR812"])
    assert shell("new", "job", "a b").code == 2
    assert shell("new", "playbook").code == 2


def test_the_next_commands_name_the_files_where_they_are(shell: Shell) -> None:
    """With --root, a content root and a job lie below it, too."""
    assert "next: pairun lint y/clus\n" in shell("new", "root", "clus", "--root", "y").out
    assert shell("lint", "y/clus").code == 0
    assert "next: pairun --dry-run y/job.yaml\n" in shell("new", "job", "--root", "y").out


def test_options_may_stand_between_the_arguments(shell: Shell) -> None:
    """The name follows an option; a missing kind is named as in the usage."""
    said = shell("new", "module", "--root", "cluster", "check_disk")
    assert "wrote cluster/modules/check_disk.py\n" in said.out
    assert shell("new").err.endswith("required: job|plugin|module|root\n")
