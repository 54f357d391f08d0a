"""``pairun completion``: real shells are asked what they would complete."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Shell

ZSH = pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
FISH = pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")


def script(shell: Shell, name: str) -> Path:
    """The script of a shell, as a file."""
    said = shell("completion", name)
    assert (said.code, said.err) == (0, "")
    return shell.file(f"pairun.{name}", said.out)


def test_a_clusters_names_are_in_the_script(shell: Shell) -> None:
    """A script made where PAIRUN_PATH names a root knows its plugins."""
    root = shell.root({"plugin_specs/hello.yaml": "summary: Says hello\n"})
    said = shell.process("completion", "bash", env={"PAIRUN_PATH": str(root)})
    assert "hello" in said.out.split("doc_pos_0_choices=")[1].splitlines()[0]


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_internal_commands_and_removed_options_are_hidden(shell: Shell, name: str) -> None:
    text = script(shell, name).read_text()
    assert "diagnose" in text
    assert "state-out" not in text
    assert "priority-class" not in text


# --- as typed ------------------------------------------------------------------------------------


class Terminal:
    """A shell on a terminal of its own, where keys are typed.

    Args:
        argv: the shell.
        cwd: where it stands.
    """

    def __init__(self, argv: list[str], cwd: Path) -> None:
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.chdir(cwd)
            env = {
                "PATH": os.environ["PATH"],
                "HOME": str(cwd),
                "TERM": "dumb",
                "LC_ALL": "C.UTF-8",
            }
            os.execvpe(argv[0], argv, env)
        self._seen = ""

    def type(self, keys: str, until: str) -> str:
        """Type, and read until a text shows; what was shown since the last time."""
        os.write(self._fd, keys.encode())
        end = time.monotonic() + 30
        while until not in self._seen:
            assert time.monotonic() < end, f"{until!r} did not show: {self._seen!r}"
            if select.select([self._fd], [], [], 1)[0]:
                self._seen += os.read(self._fd, 65536).decode(errors="replace")
        shown, _, self._seen = self._seen.partition(until)
        return shown

    def close(self) -> None:
        """End the shell."""
        os.close(self._fd)
        os.waitpid(self._pid, 0)


SAY = "pairun() { printf '<%s>' \"$@\"; echo .; }"


@pytest.mark.parametrize(
    ("argv", "load"),
    [
        pytest.param(["bash", "--norc", "--noprofile", "-i"], "source ./pairun.bash", id="bash"),
        pytest.param(
            ["zsh", "-f", "-i"],
            'autoload -U compinit; compinit -u -D; eval "$(cat pairun.zsh)"',
            id="zsh", marks=ZSH,
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("typed", "got"),
    [
        ("lint my\\ j\t", "<lint><my job.yaml>"),
        ("plan 'my j\t", "<plan><my job.yaml>"),
        ("diff built-in my\\ r\t my\\ j\t", "<diff><built-in><my root/><my job.yaml>"),
        ("lint --root my\\ r\t my\\ j\t", "<lint><--root><my root/><my job.yaml>"),
        ("doc git_c\t", "<doc><git_clone>"),
        ("sche\tplug\t", "<schema><plugin-spec>"),
        ("schema --ro\tx j\t", "<schema><--root><x><job>"),
        ("completion f\t", "<completion><fish>"),
    ],
)
def test_keys_on_a_terminal(shell: Shell, argv: list[str], load: str, typed: str, got: str) -> None:
    """Tab completes commands, names, files and folders; those with spaces arrive whole."""
    script(shell, argv[0])
    shell.file("my job.yaml", "")
    shell.file("my root/playbooks/init.yaml", "")
    terminal = Terminal(argv, shell.tmp)
    try:
        # in two pieces, so that the echo of the line is not taken for its output
        terminal.type(f"{load}; {SAY}; echo rea''dy\n", "ready")
        # zsh takes the slash away again where a word ends
        shown = got.replace("/>", ">") if argv[0] == "zsh" else got
        terminal.type(f"pairun {typed}\n", f"{shown}.")
    finally:
        terminal.close()


@FISH
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("pairun sche", {"schema"}),
        ("pairun schema p", {"playbook", "plugin-spec", "policy"}),
        ("pairun doc git_", {"git_clone"}),
        ("pairun lint --j", {"--json"}),
        ("pairun lint my", {"my job.yaml", "my root/"}),
        ("pairun lint --root my", {"my root/"}),
        ("pairun plan my", {"my job.yaml", "my root/"}),
        ("pairun completion ", {"bash", "zsh", "fish"}),
        ("pairun run --grace ", set()),
    ],
)
def test_fish_completes(shell: Shell, line: str, offered: set[str]) -> None:
    """Fish offers commands, names, options and files."""
    script(shell, "fish")
    shell.file("my job.yaml", "")
    shell.file("my root/playbooks/init.yaml", "")
    text = f"source ./pairun.fish; complete -C {shlex.quote(line)}"
    env = {"PATH": os.environ["PATH"], "HOME": str(shell.tmp)}
    done = subprocess.run(
        ["fish", "--no-config", "-c", text],
        capture_output=True, text=True, cwd=shell.tmp, timeout=60, env=env,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert {x.split("\t")[0].replace("\\ ", " ") for x in done.stdout.splitlines()} == offered


@ZSH
def test_zsh_takes_the_script_as_a_file_of_its_path(shell: Shell) -> None:
    """A file named _pairun in a folder of $fpath is found by the shell itself."""
    text = script(shell, "zsh").read_text()
    assert text.startswith("#compdef pairun\n")
    shell.file("functions/_pairun", text)
    code = (
        "fpath=($PWD/functions $fpath); autoload -U compinit; compinit -u -D; echo $_comps[pairun]"
    )
    done = subprocess.run(
        ["zsh", "-f", "-c", code], capture_output=True, text=True, cwd=shell.tmp, timeout=60
    )
    assert done.stdout == "_pairun\n"


def test_a_shell_that_is_not_known(shell: Shell) -> None:
    """Another shell is wrong usage, and the known ones are named."""
    said = shell.process("completion", "tcsh")
    assert said.code == 2
    assert "bash" in said.err
