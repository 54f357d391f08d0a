"""``pairun new`` on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Shell


def test_it_names_what_it_wrote_and_what_to_type_next(shell: Shell) -> None:
    """Paths as a person can use them from here."""
    said = shell("new", "module", "check_disk", "--root", "cluster")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        "wrote cluster/modules/check_disk.py",
        "wrote cluster/tests/test_check_disk.py",
        "next: pairun lint cluster/modules/check_disk.py",
        "next: python3 -m pytest cluster/tests/test_check_disk.py",
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
