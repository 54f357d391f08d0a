"""Imports point one way, in the order that docs/architecture.md explains."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pairun
from pairun.cli.main import COMMANDS
from pairun.contract.linting import foreign_imports
from pairun.contract.sources import built_in_modules, read_source

PACKAGE = Path(pairun.__file__).parent
FILES = sorted(p for p in PACKAGE.rglob("*.py") if "builtin" not in p.parts)
ORDER = (
    "base", "secrets", "errors", "catalogue", "kube", "module", "contract", "net", "plan", "volume",
    "rendezvous", "diagnose", "host", "testing", "runtime", "executor", "playbook", "job",
    "openpai", "inject", "review", "report", "init", "engines", "cli",
)  # fmt: skip
STANDARD = sys.stdlib_module_names
PID_1 = {"runtime", "base", "secrets", "errors", "diagnose", "volume"}
"""What PID 1's own process stands on."""
LIBRARIES = {
    "base": {"_pairun"},  # linked into the bundle
    "secrets": {"_pairun_scan"},  # linked into the bundle
    "kube": {"attrs", "yaml"},  # yaml for termination messages, in a function
    "module": {"attrs"},
    "contract": {"attrs"},
    "net": {"requests", "urllib3"},
    "plan": {"attrs"},
    "rendezvous": set(),
    "diagnose": {"_pairun_scan", "yaml"},  # yaml for objects of Kubernetes, in a function
    "host": {"attrs"},
    "testing": {"attrs"},
    "volume": {"attrs"},
    "runtime": set(),
    "executor": {"attrs"},
    "playbook": {"attrs", "yaml", "jinja2", "jsonschema", "referencing"},
    "job": {"attrs", "jsonschema", "yaml"},
    "openpai": {"attrs", "yaml"},
    "inject": {"attrs", "yaml"},
    "review": {"attrs"},
    "report": {"attrs", "jinja2", "rich"},
    "init": {"attrs"},
    "engines": {"attrs", "yaml", "requests", "urllib3", "kubernetes"},
    "cli": {"attrs", "yaml", "jsonschema", "requests", "shtab"},
}  # fmt: skip
HEAVY = ("jinja2", "jsonschema", "yaml", "requests", "kubernetes", "referencing", "rich", "shtab")


@functools.cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module that a file imports, in functions too; not what only type checkers read."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in _runtime_nodes(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from names if node.module == "pairun" else [node.module]


def _runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """The statements, without expressions, which import nothing."""
    waiting = [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.expr):
                continue
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                continue
            yield node
            waiting.append(node)


def part_of(path: Path) -> str:
    """The part of the house that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=[str(p.relative_to(PACKAGE)) for p in FILES])
def test_a_file_imports_only_what_is_below_it(path: Path) -> None:
    """No file imports from a room to the right of its own, nor a library that its room lacks."""
    part = part_of(path)
    if part not in ORDER:
        return
    below = set(ORDER[: ORDER.index(part) + 1])
    if part == "runtime":
        below = PID_1
    for name in imports(path):
        top, _, rest = name.partition(".")
        if top == "pairun":
            first = rest.partition(".")[0]
            if first not in ("", "__version__"):
                assert first in below, f"{part} imports {name}"
        elif top not in STANDARD:
            assert top in LIBRARIES.get(part, set()), f"{part} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=[str(p.relative_to(PACKAGE)) for p in FILES])
def test_a_file_imports_no_private_name_of_another(path: Path) -> None:
    """A name with an underscore stays in its file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pairun"):
            assert not [a.name for a in node.names if a.name.startswith("_") and a.name[1] != "_"]


def test_no_command_imports_another() -> None:
    """What two commands share has a file or a room of its own."""
    for path in (PACKAGE / "cli").glob("*.py"):
        commands = {f"pairun.cli.{c}" for c in (*COMMANDS, "dry_run")}
        assert path.stem == "main" or not set(imports(path)) & commands, path


def test_the_order_knows_every_room() -> None:
    """A new room of the package gets a place in the order."""
    rooms = {part_of(p) for p in FILES}
    assert rooms - {"__init__", "__main__"} == set(ORDER)


def test_the_page_on_architecture_shows_every_room_in_this_order() -> None:
    """docs/architecture.md lists the rooms as they may import each other."""
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text()
    table = page.partition("| room | owns |")[2].partition("\n\n")[0]
    rooms = re.findall(r"^\| `([a-z]+)(?:/|\.py)`", table, re.MULTILINE)
    assert tuple(rooms) == ORDER


def test_late_values_need_nothing_but_the_floor_and_jinja() -> None:
    """The user's container resolves expressions without YAML, schemas or the job protocol."""
    expressions = (f"expressions/{name}" for name in ("template", "views", "jinjacode", "sandbox"))
    files = (*expressions, "document/textplaces")
    found = {
        n
        for file in files
        for n in imports(PACKAGE / f"playbook/{file}.py")
        if n.partition(".")[0] not in STANDARD
        and not n.startswith(tuple(f"pairun.playbook.{f.replace('/', '.')}" for f in files))
    }
    ours = {n.split(".")[1] for n in found if n.startswith("pairun.")}
    assert ours <= set(ORDER[: ORDER.index("playbook")])
    assert {n.partition(".")[0] for n in found} == {"pairun", "jinja2"}


def test_nobody_but_the_loader_imports_a_modules_file() -> None:
    """Modules are loaded by path from a content root, never imported by name."""
    for path in FILES:
        assert not [n for n in imports(path) if n.startswith("modules")], path


MODULES = built_in_modules()


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_the_standard_library_its_contract_and_its_own_files(name: str) -> None:
    """A module stands on pairun.module alone, and on its folder's files relatively."""
    assert not list(foreign_imports(read_source(name, MODULES[name])))


EXAMPLE = PACKAGE.parent / "examples" / "hello.yaml"


def test_only_the_client_of_clusters_knows_the_kubernetes_client() -> None:
    """Two files name it, and import it when a command asks a cluster."""
    files = {
        p.relative_to(PACKAGE).as_posix()
        for p in FILES
        if 'import_module("kubernetes' in p.read_text()
    }
    named = {
        p.relative_to(PACKAGE).as_posix()
        for p in FILES
        for n in imports(p)
        if n.startswith("kubernetes")
    }
    assert files == {"engines/kubernetes/cluster.py", "engines/kubernetes/kubeconfig.py"}
    assert not named


def loaded_by(*argv: str) -> set[str]:
    """The heavy libraries that are in memory when a command ends."""
    code = (
        "import sys\nfrom pairun.cli.main import main\n"
        f"sys.argv = ['pairun', *{list(argv)!r}]\n"
        "try:\n    code = main()\nexcept SystemExit as e:\n    code = e.code\n"
        "names = {n.partition('.')[0] for n in sys.modules}\n"
        f"print('LOADED', *sorted(names & set({HEAVY!r})), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    line = next(x for x in done.stderr.splitlines() if x.startswith("LOADED"))
    return set(line.split()[1:])


@pytest.mark.parametrize(
    ("argv", "allowed"),
    [
        (["--version"], set()),
        (["init", "--help"], {"yaml", "jinja2"}),
        (["--dry-run", str(EXAMPLE)], {"yaml", "jinja2"}),
        (["runtime", "--help"], set()),
        (["tasks", "--help"], set()),
        (["run", "--help"], {"yaml", "jinja2"}),
        (["schema", "policy"], {"yaml"}),
        (["status", "--help"], {"yaml"}),
        (["logs", "--help"], {"yaml"}),
        (["delete", "--help"], {"yaml"}),
        (["submit", "--help"], {"yaml", "jinja2"}),
        (
            ["manifest", str(EXAMPLE), "--engine", "jobset", "--image", "registry.example/pairun"],
            {"yaml", "jinja2"},
        ),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_a_command_loads_no_library_that_it_does_not_use(
    argv: list[str], allowed: set[str]
) -> None:
    """Heavy libraries are imported by the commands that use them, and by no other."""
    assert loaded_by(*argv) <= allowed


def test_pid_1_needs_the_standard_library_only() -> None:
    """The runtime package is importable where nothing was installed, attrs included."""
    code = (
        "import sys, importlib, pkgutil\n"
        "import pairun.runtime\n"
        "for m in pkgutil.iter_modules(pairun.runtime.__path__):\n"
        "    importlib.import_module('pairun.runtime.' + m.name)\n"
        "assert 'attr' not in sys.modules and 'attrs' not in sys.modules\n"
        "own = {n.split('.')[1] for n in sys.modules if n.startswith('pairun.')}\n"
        f"assert own <= {PID_1}, own\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
