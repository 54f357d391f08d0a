"""Words of other tools are answered with pairun's own command, with the person's file in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pairun.cli.main import shown_commands
from pairun.cli.suggesting import MEANT, suggested

if TYPE_CHECKING:
    from tests.cli.conftest import Shell


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("plan", "--dry-run JOB"),
        ("plan job.yaml", "--dry-run job.yaml"),
        ("validate --root cluster job.yaml", "--dry-run job.yaml"),
        ("--dryrun job.yaml", "--dry-run job.yaml"),
        ("help", "--help"),
        ("help run", "run --help"),
        ("help git_clone", "doc git_clone"),
        ("version", "--version"),
        ("-V", "--version"),
        ("apply job.yaml", "submit job.yaml"),
        ("kill train", "delete train"),
        ("ps", "status NAME"),
        ("explain PR402", "doc PR402"),
    ],
)
def test_the_right_command_is_suggested(shell: Shell, typed: str, meant: str) -> None:
    """One line, exit code 2."""
    said = shell(*typed.split())
    assert said.code == 2
    assert said.err.endswith(f"did you mean `pairun {meant}`?\n")


def test_a_file_alone_is_to_be_reviewed(shell: Shell) -> None:
    """One that exists, one that does not, and one that is called like a command of another tool."""
    assert shell("job.yaml").err.endswith(
        "no command given; did you mean `pairun --dry-run job.yaml`? There is no file 'job.yaml'\n"
    )
    job, plan = shell.job(), shell.file("plan", "")
    assert shell(job).err.endswith(f"did you mean `pairun --dry-run {job}`?\n")
    assert shell(plan.name).err.endswith("did you mean `pairun --dry-run plan`?\n")


def test_a_command_that_exists_is_never_corrected() -> None:
    """No word of another tool hides a command, and every suggestion names a real one."""
    commands = shown_commands()
    assert not MEANT.keys() & commands
    for meant in MEANT.values():
        assert meant.startswith("--") or meant.split()[0] in commands
    assert suggested(["run"], commands) is None


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("lint --formt json job.yaml", "--format"),
        ("report --htlm=page.html", "--html"),
        ("barrier wait --timeut 3s name", "--timeout"),
        ("--dry-run --exitcode job.yaml", "--exit-code"),
    ],
)
def test_the_nearest_option_is_suggested(shell: Shell, typed: str, meant: str) -> None:
    """Of every command and of the commands within it."""
    said = shell(*typed.split())
    assert said.code == 2
    assert said.err.endswith(f"; did you mean '{meant}'?\n")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("--root", ".", "lint", "."), "lint --root . ."),
        (("--root=cluster", "doc", "git_clone"), "doc --root=cluster git_clone"),
        (("--exit-code", "137", "diagnose", "my log"), "diagnose --exit-code 137 'my log'"),
        (("--each", "diagnose", "logs"), "diagnose --each logs"),
    ],
)
def test_an_option_before_its_command_is_moved_behind_it(
    shell: Shell, typed: tuple[str, ...], meant: str
) -> None:
    """The command line is right but for its order; a folder with the command's name changes nothing."""
    for _ in range(2):
        said = shell(*typed)
        assert said.code == 2
        ending = f"options come after the command; did you mean `pairun {meant}`?\n"
        assert said.err.endswith(ending)
        for command in ("lint", "doc", "diagnose"):
            (shell.tmp / command).mkdir(exist_ok=True)


def test_a_file_with_a_command_s_name_can_be_reviewed(shell: Shell) -> None:
    """With --dry-run, or where the file exists, the word is no command."""
    shell.file("report", "x")
    assert "options come after" not in shell("--root", "cluster", "report").err
    assert "options come after" not in shell("--root", "lint", "--dry-run", "lint").err
    assert shell("--help", "lint").code == 0
