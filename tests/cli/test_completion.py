"""``pairun completion``: real shells are asked what they would complete."""

from __future__ import annotations

import argparse
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

from pairun.catalogue import CATALOGUE
from pairun.cli.completion import described
from pairun.cli.main import COMMANDS
from pairun.playbook.content import Content, built_in_root
from pairun.playbook.keywords import KEYWORDS

if TYPE_CHECKING:
    from tests.cli.conftest import Shell

SHOWN = [n for n, text in COMMANDS.items() if text is not argparse.SUPPRESS]
ZSH = pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
FISH = pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
ASK = """\
set -u
source ./pairun.bash
[[ $(complete -p pairun) == *'-F _pairun pairun' ]] || exit 9
COMP_WORDS=({words}) COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_pairun
printf '%s\\n' "${{COMPREPLY[@]-}}"
"""


def script(shell: Shell, name: str) -> Path:
    """The script of a shell, as a file."""
    said = shell("completion", name)
    assert (said.code, said.err) == (0, "")
    return shell.file(f"pairun.{name}", said.out)


def bash(shell: Shell, *words: str) -> list[str]:
    """What bash's function answers for a line; the last word is the one under the cursor."""
    script(shell, "bash")
    text = ASK.format(words=" ".join(map(shlex.quote, ("pairun", *words))))
    done = subprocess.run(
        ["bash", "--norc", "-c", text], capture_output=True, text=True, cwd=shell.tmp, timeout=30
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_bash_completes_commands(shell: Shell) -> None:
    """The first word is a command, and all that people type are offered."""
    assert bash(shell, "") == SHOWN
    assert bash(shell, "sch") == ["schema"]
    assert "tasks" not in bash(shell, "")


@pytest.mark.parametrize("command", described(), ids=lambda c: c.name or "--dry-run")
def test_bash_completes_the_options_of_every_command(shell: Shell, command: object) -> None:
    """What the parser takes is offered, no more and no less."""
    assert isinstance(command, tuple)
    name, _, options, *_ = command
    flags = [f for o in options for f in o.flags]
    assert bash(shell, *filter(None, [name]), "--") == [f for f in flags if f.startswith("--")]


def test_bash_completes_names_after_doc(shell: Shell) -> None:
    """Modules, plugins, keywords and error ids, and the words for all of them."""
    content = Content([built_in_root()])
    wanted = {*content.modules, *content.specs, *KEYWORDS, *CATALOGUE, "modules", "plugin"}
    assert wanted <= set(bash(shell, "doc", ""))
    assert bash(shell, "doc", "git_") == ["git_clone"]
    assert bash(shell, "doc", "plugin", "ssh_") == ["ssh_barrier", "ssh_setup"]
    assert bash(shell, "doc", "PR30") == [i for i in CATALOGUE if i.startswith("PR30")]


def test_bash_completes_choices_and_the_word_for_the_own_root(shell: Shell) -> None:
    """Kinds of schema, shells, and `built-in` where a root is asked for."""
    assert bash(shell, "schema", "p") == ["playbook", "plugin-spec", "policy"]
    assert bash(shell, "completion", "") == ["bash", "zsh", "fish"]
    assert bash(shell, "schema", "--root", "x", "j") == ["job"]
    assert bash(shell, "diff", "b") == ["built-in"]
    assert bash(shell, "diff", "--role", "a", "x", "b") == ["built-in"]
    assert bash(shell, "diff", "x", "y", "b") == []


def test_bash_offers_nothing_where_it_knows_nothing(shell: Shell) -> None:
    """A value that only a person knows is left to that person; the value of = too."""
    assert bash(shell, "run", "--grace", "") == []
    assert bash(shell, "run", "--grace", "=", "") == []
    assert bash(shell, "schema", "job", "p") == []


def test_a_clusters_names_are_in_the_script(shell: Shell) -> None:
    """A script made where PAIRUN_PATH names a root knows its plugins."""
    root = shell.root({"plugin_specs/hello.yaml": "summary: Says hello\n"})
    said = shell.process("completion", "bash", env={"PAIRUN_PATH": str(root)})
    assert " hello " in said.out


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
            "autoload -U compinit; compinit -u -D; source ./pairun.zsh",
            id="zsh", marks=ZSH,
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("typed", "got"),
    [
        ("lint my\\ j\t", "<lint><my job.yaml>"),
        ("--dry-run 'my j\t", "<--dry-run><my job.yaml>"),
        ("diff built-i\tmy\\ r\t my\\ j\t", "<diff><built-in><my root/><my job.yaml>"),
        ("lint --root my\\ r\t my\\ j\t", "<lint><--root><my root/><my job.yaml>"),
        ("lint --root=my\\ r\t my\\ j\t", "<lint><--root=my root/><my job.yaml>"),
        ("doc git_c\t", "<doc><git_clone>"),
        ("sche\tplug\t", "<schema><plugin-spec>"),
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
        ("pairun diff bu", {"built-in"}),
        ("pairun --dry-run my", {"my job.yaml", "my root/"}),
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
