"""``pairun completion``: the script that completes pairun's commands in bash, zsh or fish."""

from __future__ import annotations

import argparse
import os

from pairun.cli.commandhelp import CommandParser

SHELLS = ("bash", "zsh", "fish")
_FILES = ("JOB", "FILE", "LOG|DIR", "PATH|NAME")
_FOLDERS = ("DIR", "OLD_ROOT", "NEW_ROOT")
"""The placeholders of arguments that are files or folders."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("shell", choices=SHELLS)


def run(args: argparse.Namespace) -> int:
    """Print the script of a shell."""
    import shtab

    script = shtab.complete(_all_commands(args.shell), args.shell)
    # Without own words, bash completes file names, and quotes blanks in them.
    print(script.replace("complete -o bashdefault ", "complete -o default "))
    return 0


def _all_commands(shell: str) -> argparse.ArgumentParser:
    """The parser of `pairun` with the parsers of all commands that people type."""
    from pairun.cli.main import add_command, add_top_options, shown_commands

    parser = CommandParser(prog="pairun")
    add_top_options(parser)
    commands = parser.add_subparsers()
    for name, text in shown_commands().items():
        command = commands.add_parser(name, help=text)
        add_command(command, name)
        for action in command._actions:
            _describe_values(action, name, shell)
    return parser


def _describe_values(action: argparse.Action, command: str, shell: str) -> None:
    """Mark an argument whose values are files, folders or names of pairun."""
    import shtab

    if command == "doc" and action.dest == "name":
        from pairun.playbook.content import open_content
        from pairun.report.pages import names

        action.choices = list(names(open_content([], os.environ)))
    elif action.metavar in _FOLDERS:
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    elif action.metavar in _FILES and shell != "bash":
        action.complete = shtab.FILE  # type: ignore[attr-defined]
