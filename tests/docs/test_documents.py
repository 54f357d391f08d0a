"""Every command in the documents is run, and does what the page shows."""

from __future__ import annotations

import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

from pairun import module
from pairun.contract.linting import FACES
from pairun.module import cluster
from pairun.testing import FakeWorld, load, make, run

# Whole jobs, phase by phase: `make test` leaves them to `make test-slow`.
pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(p for p in sorted((ROOT / "docs").rglob("*.md")) if p.parent.name != "reference"),
]


def _sessions(page: pathlib.Path) -> list[tuple[str, int, list[str]]]:
    """Command, expected exit code and shown output of every ``console`` block."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            head, *shown = part.splitlines()
            command, _, comment = head.partition("  # exits with ")
            found.append((command, int(comment or 0), shown))
    return found


CASES = [
    pytest.param(command, code, shown, id=f"{page.relative_to(ROOT)}: {command}")
    for page in PAGES
    for command, code, shown in _sessions(page)
]


def _pattern(line: str) -> str:
    """A shown line as a pattern: digests, durations and numbers of a run may differ."""
    line = re.escape(line.rstrip())
    line = re.sub(r"\b[0-9a-f]{12}\b", "[0-9a-f]{12}", line)
    return re.sub(r"\\\.\\\.\\\.$", ".*", line)


def _matches(shown: list[str], output: str) -> bool:
    parts = [
        r"(?:.*\n)*?" if line.strip() == "..." else _pattern(line) + r"\s*\n" for line in shown
    ]
    return re.fullmatch("".join(parts) + r"\s*", output + "\n") is not None


@pytest.mark.parametrize(("command", "code", "shown"), CASES)
def test_a_documented_command_does_what_the_page_shows(
    command: str, code: int, shown: list[str], tmp_path: pathlib.Path
) -> None:
    """A command typed as documented exits and prints as documented."""
    for name in ("examples", "playbooks", "plugin_specs", "deploy"):
        shutil.copytree(ROOT / name, tmp_path / name)
    env = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
    for name in ("PAIRUN_PATH", "PAI_CONFIG_DIR"):
        env.pop(name, None)
    command = re.sub(r"/tmp/pairun-\w+", str(tmp_path / "work"), command)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode == code, output
    assert _matches(shown, output), output


def test_the_documents_show_commands() -> None:
    """The pages have sessions at all, so that the test above cannot pass for want of them."""
    assert len(CASES) >= 12


def test_links_between_the_documents_lead_somewhere() -> None:
    """A relative link in a page names a file that exists."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_page_on_architecture_names_files_that_exist() -> None:
    """A file moved or renamed is moved or renamed on the page, too."""
    page = (ROOT / "docs/architecture.md").read_text()
    files = re.findall(r"`((?:tests/)?[a-z0-9_/]+\.py)`", page)
    assert len(files) > 60
    assert not [
        f
        for f in files
        if not (ROOT / ("" if f.startswith(("tests/", "benchmarks/")) else "pairun") / f).exists()
    ]


def test_the_module_and_its_test_in_the_documents_work_as_printed(tmp_path: pathlib.Path) -> None:
    """The module that docs/modules.md shows passes the tests that the page shows, and has tests."""
    page = (ROOT / "docs/modules.md").read_text()
    source, tests = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "make_dir.py").write_text(source)
    (tmp_path / "test_make_dir.py").write_text(tests)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "."],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{tests.count('def test_')} passed" in done.stdout


def test_the_check_module_in_the_documents_works_as_printed(tmp_path: pathlib.Path) -> None:
    """The check module that docs/modules.md shows passes and fails as its code says."""
    page = (ROOT / "docs/modules.md").read_text()
    block = re.search(r"^  ```py\n(.*?)^  ```", page, re.MULTILINE | re.DOTALL)
    assert block is not None
    source = tmp_path / "has_space.py"
    source.write_text(
        "from pairun.module import CheckModule, Context, Permanent, Result, arg, define\n"
        + textwrap.dedent(block[1])
    )
    module_class = load(source)
    full = run(make(module_class, {"path": "/"}), FakeWorld(answers={"free_bytes": 2**30}))
    assert full.failure is not None
    assert full.failure.message == "/ has 1 GiB free, not 10"
    roomy = run(make(module_class, {"path": "/"}), FakeWorld(answers={"free_bytes": 2**40}))
    assert roomy.result is not None
    assert roomy.result.values == {"free_bytes": 2**40}


def test_the_example_of_a_fake_world_works_as_printed(tmp_path: pathlib.Path) -> None:
    """The module with a server and a command passes lint and the page's tests."""
    page = (ROOT / "docs/modules.md").read_text()
    source, tests = re.findall(r"^```py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "save_model.py").write_text(source)
    (tmp_path / "test_save_model.py").write_text(tests)
    for argv in (
        ["-m", "pairun", "lint", "modules/save_model.py"],
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "test_save_model.py"],
    ):
        done = subprocess.run(
            [sys.executable, *argv],
            cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    assert f"{tests.count('def test_')} passed" in done.stdout


def test_the_tests_in_the_documents_need_no_framework(tmp_path: pathlib.Path) -> None:
    """They are plain functions, and pairun.testing imports no test framework."""
    page = (ROOT / "docs/modules.md").read_text()
    source, tests = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "make_dir.py").write_text(source)
    names = re.findall(r"def (test_\w+)", tests)
    calls = "\n".join(f"{name}()" for name in names)
    code = f"{tests}\n{calls}\nimport sys\nassert 'pytest' not in sys.modules\n"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_name_that_a_module_may_import_is_documented() -> None:
    """The page lists what both faces offer, and the built-in modules import nothing else."""
    page = (ROOT / "docs/modules.md").read_text()
    section = page.partition("## What a module imports")[2].partition("A failure takes")[0]
    table, _, face = section.partition("`pairun.module.cluster` has")
    assert set(re.findall(r"`(\w+)[`(]", table)) == {
        *module.__all__, "plan", "apply", "check", "ctx", "values", "environment", "message", "init",
        "runtime", "before", "after",
    }  # fmt: skip
    assert set(re.findall(r"`(\w+)`", face)) == {*cluster.__all__, "barrier"}
    imported = {
        alias.name
        for path in (ROOT / "modules").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module in FACES
        for alias in node.names
    }
    assert imported <= {*module.__all__, *cluster.__all__}
