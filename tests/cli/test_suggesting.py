"""A word that pairun does not know is answered with the nearest one that it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Shell


@pytest.mark.parametrize(
    ("typed", "ending"),
    [
        ("--dryrun job.yaml", "unrecognized arguments: --dryrun; did you mean '--dry-run'?"),
        ("version", "did you mean '--version'?"),
        ("help run", "did you mean '--help'?"),
        ("submitt job.yaml", "did you mean 'submit'?"),
        ("run --dry-run job.yaml", "`pairun plan JOB` shows what a job would do, and runs nothing"),
        ("submit job.yaml", "give --engine, one of framework, job, jobset, pod"),
        (
            "kill train",
            "there is no command and no file 'kill'; `pairun --help` lists the commands",
        ),
        (
            "export exit-spec --root cluster",
            "the command 'export' is gone; write `pairun manifest --retry-rules --engine ENGINE`",
        ),
    ],
)
def test_the_nearest_word_is_suggested(shell: Shell, typed: str, ending: str) -> None:
    """One line, exit code 2."""
    said = shell(*typed.split())
    assert said.code == 2
    assert said.err.endswith(f"{ending}\n")


def test_a_file_alone_is_to_be_reviewed(shell: Shell) -> None:
    """One that exists, one that does not, and one that is called like a command of another tool."""
    assert shell("job.yaml").err.endswith(
        "no command given; did you mean `pairun plan job.yaml`? There is no file 'job.yaml'\n"
    )
    job, check = shell.job(), shell.file("check", "")
    assert shell(job).err.endswith(f"did you mean `pairun plan {job}`?\n")
    assert shell(check.name).err.endswith("did you mean `pairun plan check`?\n")


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


def test_a_wrong_command_line_is_one_sentence(shell: Shell) -> None:
    """The usage is in the help, where nobody has to search it for the error."""
    for typed in ("run --dry-run job.yaml", "submit job.yaml", "report --htlm=x"):
        assert shell(*typed.split()).err.count("\n") == 1


def test_a_missing_job_is_reported_before_a_missing_kubeconfig(shell: Shell) -> None:
    said = shell("submit", "nowhere.yaml", "--engine", "job", "--kubeconfig", "nowhere.config")
    assert (said.code, said.ids) == (1, ["PR108"])
    assert "nowhere.yaml" in said.err
