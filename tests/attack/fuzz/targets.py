"""What is fuzzed: for each format, good inputs and what pairun does with them.

A new format is one entry of `TARGETS`.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import shutil
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pairun
from pairun.cli.main import main
from pairun.errors import PairunError, Problems
from pairun.openpai.exitspec import read_exit_spec
from pairun.playbook.document.reading import decode
from pairun.report.problems import print_problems
from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.planfile import read_plan
from pairun.volume.reader import read_command
from tests.attack.fuzz.mutation import by_bytes, by_lines, by_structure

PROJECT = Path(__file__).parents[3]
SEEDS = Path(__file__).parent / "seeds"
VOLUME = SEEDS / "volume"
MANY_EXTRAS = (SEEDS / "job.yaml").read_bytes()
EXIT_SPEC = (SEEDS / "exit-spec.yaml").read_bytes()

Mutation = Callable[..., bytes]


class Target(NamedTuple):
    """One format.

    Attributes:
        seeds: good inputs.
        run: what pairun does with an input, in an empty folder; returns the exit code.
        codes: the documented exit codes.
        mutations: what may be done to a good input.
    """

    seeds: Sequence[bytes]
    run: Callable[[bytes, Path], int]
    codes: frozenset[int] = frozenset({0, 1})
    mutations: Sequence[Mutation] = (by_bytes, by_structure, by_structure)


def _command(name: str, *ways: Sequence[str]) -> Callable[[bytes, Path], int]:
    """Runs commands on a file of that name, one for each case."""

    def run(data: bytes, folder: Path) -> int:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        way = ways[zlib.crc32(data) % len(ways)]
        return main([word.replace("FILE", name) for word in way])

    return run


def _root(name: str) -> Callable[[bytes, Path], int]:
    """Reviews a job with a content root that holds the file, or lints the file."""

    def run(data: bytes, folder: Path) -> int:
        file = folder / "root" / name
        file.parent.mkdir(parents=True)
        file.write_bytes(data)
        (folder / "job.yaml").write_bytes(MANY_EXTRAS)
        ways = (
            ["--dry-run", "--root", "root", "job.yaml"],
            ["lint", f"root/{name}"],
            ["lint", "root"],
        )
        return main(ways[zlib.crc32(data) % len(ways)])

    return run


def _plan(data: bytes, folder: Path) -> int:
    """Reads a runtime plan, as PID 1 and as the process of its tasks do."""
    shutil.copytree(VOLUME, folder / "pai")
    (folder / "pai" / "runtime.d" / "plan.json").write_bytes(data)
    code = 0
    root = str(folder / "pai")
    for read in (lambda: read_command(Door(root), Vault()), lambda: read_plan(root, Vault())):
        try:
            read()
        except PairunError as e:
            print_problems(e.problems, Vault())
            code = 1
    return code


def _exit_spec(data: bytes, folder: Path) -> int:
    """Reads a cluster's exit spec, as init does."""
    problems = Problems()
    try:
        read_exit_spec(decode(data, "runtime-exit-spec.yaml", "cluster"), problems)
    except PairunError as e:
        problems.extend(e.problems)
    print_problems(problems, Vault())
    return 1 if problems.errors else 0


def _read(*paths: str) -> list[bytes]:
    return [(PROJECT / path).read_bytes() for path in paths]


_EXAMPLES = [
    "checkpoint", "forbidden", "hello", "override", "pod", "two-roles",
]  # fmt: skip
_JOBS = [*_read(*(f"examples/{name}.yaml" for name in _EXAMPLES)), MANY_EXTRAS]

TARGETS: Mapping[str, Target] = {
    "jobs": Target(
        _JOBS,
        _command(
            "job.yaml",
            ["--dry-run", "FILE"],
            ["--dry-run", "--json", "FILE"],
            ["lint", "FILE"],
            ["manifest", "FILE", "--engine", "job", "--image", "example.com/pairun"],
        ),
        frozenset({0, 1, 2}),
    ),
    "yarn jobs": Target(
        _read("examples/yarn.json"),
        _command("job.json", ["convert", "FILE"], ["--dry-run", "FILE"]),
    ),
    "frameworks": Target(
        _read("examples/framework.json"),
        _command("framework.json", ["--dry-run", "FILE"], ["convert", "FILE"], ["lint", "FILE"]),
    ),
    "plain Pods": Target(
        _read("tests/attack/fuzz/seeds/pod.yaml"), _command("pod.yaml", ["lint", "FILE"])
    ),
    "playbooks": Target(
        _read("playbooks/init.yaml", "playbooks/runtime.yaml"), _root("playbooks/init.yaml")
    ),
    "policies": Target(_read("playbooks/policy.yaml"), _root("playbooks/policy.yaml")),
    "plugin specs": Target(
        _read("plugin_specs/git.yaml", "plugin_specs/ssh.yaml", "plugin_specs/tensorboard.yaml"),
        _root("plugin_specs/git.yaml"),
    ),
    "plugin folders": Target(
        _read("examples/plugin_folder/plugins/greeter/desc.yaml"),
        _root("plugins/greeter/desc.yaml"),
    ),
    "rules": Target(
        _read("diagnosis/memory.yaml", "diagnosis/programs.yaml"), _root("diagnosis/site.yaml")
    ),
    "exit specs": Target([EXIT_SPEC], _exit_spec),
    "plans": Target(
        [(VOLUME / "runtime.d" / "plan.json").read_bytes()],
        _plan,
        mutations=(by_bytes, by_structure),
    ),
    "journals": Target(
        [(PROJECT / "tests/skew/volume-0.1/journal.jsonl").read_bytes()],
        _command(
            "journal.jsonl",
            ["report", "FILE"],
            ["report", "--json", "FILE"],
            ["report", "--blame", "FILE"],
            ["report", "--html", "-", "FILE"],
        ),
        mutations=(by_bytes, by_lines, by_lines),
    ),
    "manifests": Target(
        _read("examples/inject-job.yaml", "tests/attack/fuzz/seeds/manifests.yaml"),
        _command(
            "manifest.yaml",
            ["inject", "--image", "example.com/pairun", "--container", "main", "FILE"],
            ["inject", "--image", "example.com/pairun", "--container", "main", "--barrier", "FILE"],
            ["inject", "--image", "example.com/pairun", "FILE"],
            ["inject", "--remove", "FILE"],
        ),
        frozenset({0, 1, 2}),
    ),
    "logs": Target(
        _read("diagnosis/python.yaml", "diagnosis/gpu.yaml"),
        _command("log", ["diagnose", "FILE"], ["diagnose", "--json", "FILE"]),
        mutations=(by_bytes,),
    ),
}
"""By the name of the format."""


def warm_up() -> None:
    """Import once, before the cases are forked, what they use."""
    for module in pkgutil.walk_packages(pairun.__path__, "pairun."):
        if not module.name.endswith("__main__") and ".kubernetes" not in module.name:
            importlib.import_module(module.name)
    for heavy in ("jinja2", "jsonschema", "yaml"):
        importlib.import_module(heavy)
    os.environ.pop("PAIRUN_PATH", None)
