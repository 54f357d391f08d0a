"""``--help`` begins with two examples, and each example works."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pairun.cli.commandhelp import parse
from pairun.cli.examples import EXAMPLES, Example
from pairun.cli.main import COMMANDS, main, parser_of, shown_commands

IN_A_CLUSTER = ("submit", "status", "logs", "delete", "doctor")
"""Their examples run against a real API server, in tests/real."""
POD = """apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
    - {name: app, image: "ubuntu:22.04", command: [python3, train.py]}
"""
IN_A_COMMAND = ("barrier", "barrier wait", "progress")


def parsers() -> Iterator[argparse.ArgumentParser]:
    """Of every command that people type, and of the commands within them."""
    for name in ("", *shown_commands()):
        parser = parser_of(name)
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from action.choices.values()


@pytest.mark.parametrize("parser", [pytest.param(p, id=p.prog) for p in parsers()])
def test_help_begins_with_a_sentence_and_examples(parser: argparse.ArgumentParser) -> None:
    """Two or three different ones, of this command, before the arguments."""
    head, _, rest = parser.format_help().partition("\nexamples:\n")
    assert re.match(r"[A-Z].*\.$", head.strip(), re.DOTALL)
    lines = rest.partition("\nusage: ")[0].strip("\n").splitlines()
    assert len(lines) in (4, 6)
    for purpose, command in zip(lines[::2], lines[1::2], strict=True):
        assert purpose.startswith("  # ")
        assert parser.prog in command
    assert len({*lines[1::2]}) == len(lines) // 2


def test_every_example_is_of_a_command() -> None:
    """No example is left of a command that is gone, and the hidden ones have none."""
    assert EXAMPLES.keys() == {p.prog.removeprefix("pairun").strip() for p in parsers()}
    assert "examples:" not in parser_of("tasks").format_help()
    assert "tasks" in COMMANDS


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the examples name, and a run."""
    folder = tmp_path_factory.mktemp("desk")
    bash(folder, "pairun new job && pairun new root && pairun run job.yaml")
    shutil.copy(Path(__file__).parents[2] / "examples/yarn.json", folder)
    shutil.copy(folder / "pairun-run/job/gang/framework.json", folder)
    (folder / "pod.yaml").write_text(POD)
    bash(folder, "pairun inject --image registry.example.com/pairun:1 pod.yaml > injected.yaml")
    (folder / "train.log").write_text("Traceback (most recent call last):\nMemoryError\n")
    (folder / "logs").mkdir()
    shutil.copy(folder / "train.log", folder / "logs")
    return folder


def bash(folder: Path, line: str) -> str:
    """Type a line; returns what it prints."""
    env = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(folder),
        # The container of a plain Pod.
        "PAIRUN_PAI_DIR": str(folder / "volume"), "PAIRUN_BUNDLE": "", "FC_POD_UID": "pod",
        "RUNTIME_CONFIG": "commands: [echo the command runs]",
    }  # fmt: skip
    (folder / "volume").mkdir(exist_ok=True)
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(example, id=example.command)
        for name, examples in EXAMPLES.items()
        if name not in (*IN_A_CLUSTER, *IN_A_COMMAND, "runtime")
        for example in examples
    ],
)
def test_an_example_works(desk: Path, example: Example) -> None:
    """Typed as it is printed, it succeeds and prints something or writes a file."""
    if "init" in example.command and "--dry-run" in example.command:
        # Its inputs come from the file, and not from the Pod.
        assert bash(desk, f"unset RUNTIME_CONFIG; {example.command}")
        return
    before = {p: p.stat().st_mtime_ns for p in desk.iterdir()}
    printed = bash(desk, example.command)
    after = {p: p.stat().st_mtime_ns for p in desk.iterdir()}
    assert printed or before != after or example.command.startswith("source ")


@pytest.mark.slow
def test_the_examples_of_the_runtime_phase_work(desk: Path) -> None:
    """After an init phase."""
    bash(desk, "pairun init")
    for example in EXAMPLES["runtime"]:
        assert "the command runs" in bash(desk, example.command)


@pytest.mark.slow
def test_the_examples_of_the_barrier_work_in_a_command(desk: Path) -> None:
    """Both instances of a job come to each barrier."""
    text = (desk / "job.yaml").read_text()
    commands = "".join(f"      - {e.command}\n" for e in EXAMPLES["barrier"])
    head, _, tail = text.partition("      - echo")
    (desk / "barrier.yaml").write_text(f"{head}{commands}      - echo{tail}")
    assert "2 of 2 instances of worker succeeded" in bash(desk, "pairun run barrier.yaml")


def test_the_examples_of_clusters_are_valid_command_lines() -> None:
    """Their arguments are known; tests/real runs them."""
    for name in IN_A_CLUSTER:
        for example in EXAMPLES[name]:
            parser_of(name).parse_args(shlex.split(example.command)[2:])


def test_help_exits_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    """It is printed on standard output."""
    with pytest.raises(SystemExit) as e:
        main(["run", "--help"])
    assert e.value.code == 0
    assert capsys.readouterr().out.startswith("Run every instance of a job on this machine.\n")


def test_what_follows_two_dashes_is_no_option() -> None:
    """The command of a container keeps its own options."""
    command = ["bash", "-c", "exit 5", "--dry-run", "--"]
    args = parse(parser_of("runtime"), ["--", *command], argparse.Namespace())
    assert (args.command, args.dry_run) == (command, False)


@pytest.mark.slow
def test_the_examples_of_progress_work_in_a_command(desk: Path) -> None:
    """The user's command leaves the file in its Pod's log directory."""
    head, _, tail = (desk / "job.yaml").read_text().partition("      - echo")
    commands = "".join(f"      - {e.command}\n" for e in EXAMPLES["progress"])
    (desk / "progress.yaml").write_text(f"{head}{commands}      - echo{tail}")
    bash(desk, "pairun run progress.yaml")
    files = list(desk.glob("pairun-run/*/*/pai/logs/*/progress.json"))
    assert files
    progress = json.loads(files[0].read_text())
    assert (progress["step"], progress["epoch"], progress["checkpoint"]) == (400, 2, "/data/ckpt-2")
