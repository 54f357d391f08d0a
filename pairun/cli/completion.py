"""``pairun completion``: the script that completes pairun's commands in a shell."""

from __future__ import annotations

import argparse
import os

from pairun.cli.completion_scripts import WRITERS, Command, Kind, Option

FILES = ("JOB", "FILE", "LOG")
"""The placeholders of arguments that are files."""
ROOTS = ("OLD_ROOT", "NEW_ROOT")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("shell", choices=tuple(WRITERS))


def run(args: argparse.Namespace) -> int:
    """Print the script of a shell."""
    print("\n".join(WRITERS[args.shell](described())))
    return 0


def described() -> list[Command]:
    """Describe every command that people type, from its parser; first the one without a name."""
    from pairun.cli.main import COMMANDS, parser_of

    shown = {n: text for n, text in COMMANDS.items() if text is not argparse.SUPPRESS}
    return [_command(n, text, parser_of(n)) for n, text in {"": "", **shown}.items()]


def _command(name: str, text: str, parser: argparse.ArgumentParser) -> Command:
    options, arguments, repeats = [], [], False
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            continue
        kind = _kind(name, action)
        if action.option_strings:
            value = None if action.nargs == 0 else kind
            flags = tuple(action.option_strings)
            options.append(Option(flags, (action.help or "").replace("%%", "%"), value))
        else:
            arguments.append(kind)
            repeats = action.nargs in ("*", "+")
    return Command(name, text, tuple(options), tuple(arguments), repeats)


def _kind(command: str, action: argparse.Action) -> Kind:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices is not None:
        return Kind(words=tuple(map(str, action.choices)))
    if command == "doc" and not action.option_strings:
        from pairun.playbook.content import open_content
        from pairun.report.listing import names

        return Kind(words=tuple(names(open_content([], os.environ))))
    if metavar in ROOTS:
        return Kind("d", ("built-in",))
    if metavar == "DIR":
        return Kind("d")
    # An argument without choices is probably a file; an option's value is not.
    return Kind("f") if metavar in FILES or not action.option_strings else Kind()
