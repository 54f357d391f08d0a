"""The help of a command, and suggestions for words that pairun does not know."""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NoReturn

from pairun.base.escapes import visible
from pairun.errors import nearest


class CommandParser(argparse.ArgumentParser):
    """A parser whose help begins with examples; its sub-commands' parsers, too."""

    def format_help(self) -> str:
        """The description, the examples, and argparse's own help."""
        description, self.description = self.description, None
        try:
            return "\n".join([*_head(self.prog, description or ""), super().format_help()])
        finally:
            self.description = description

    def error(self, message: str) -> NoReturn:
        """Exit with 2 after one sentence, without the usage, which the help shows."""
        for action in self._actions:
            option = "".join(action.option_strings[:1])
            if option and message.endswith(f" required: {option}"):
                message = f"give {option}, one of {', '.join(action.choices or ())}"
        self.exit(2, f"{self.prog}: error: {message}\n")


def parse(
    parser: argparse.ArgumentParser, argv: Sequence[str], namespace: argparse.Namespace
) -> argparse.Namespace:
    """Parse a command line with options between its other arguments.

    Args:
        argv: the arguments.
        namespace: receives the values.

    Raises:
        SystemExit: the usage is wrong; argparse has printed the reason.
    """
    rest = (argparse.PARSER, argparse.REMAINDER)
    # Arguments after "--" are not options; argparse's intermixed parsing ignores this.
    if "--" in argv or any(action.nargs in rest for action in parser._actions):
        parsed, unknown = parser.parse_known_args(argv, namespace)
    else:
        parsed, unknown = parser.parse_known_intermixed_args(argv, namespace)
    if unknown:
        parser.error(unknown_arguments(unknown, _options(parser)))
    return parsed


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The options of a parser and of its sub-commands."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for within in action.choices.values():
                yield from _options(within)


def _head(prog: str, description: str) -> Iterator[str]:
    import shutil
    import textwrap

    from pairun.cli.examples import examples_of

    sentence = f"{description[:1].upper()}{description[1:].rstrip('.')}."
    yield textwrap.fill(sentence, shutil.get_terminal_size().columns - 2)
    yield ""
    if examples := examples_of(prog):
        yield "examples:"
        for example in examples:
            yield f"  # {example.purpose}"
            yield f"  {example.command}"
        yield ""


# --- suggestions ---------------------------------------------------------------------------------

_RENAMED = {"export": "manifest --retry-rules --engine ENGINE"}
"""Commands of earlier releases, and their new form."""

_TOP_OPTIONS = ("--", "--dry-run", "--help", "-h", "--version")
"""Options without which `pairun` alone does nothing; its other options are also those of commands."""


def misplaced(argv: Sequence[str], commands: Collection[str]) -> str | None:
    """The error about a renamed command, or options before a command; None if there is none.

    Args:
        argv: the arguments, without the program's name; at least one.
        commands: the existing commands.
    """
    word = argv[0]
    if word in _RENAMED and not os.path.exists(word):
        return f"the command '{word}' is gone; write `pairun {_RENAMED[word]}`"
    # A job file may have any name, even a command's.
    commands = [a for a in argv if a in commands and not os.path.isfile(a)]
    if not (word.startswith("-") and commands) or not set(_TOP_OPTIONS).isdisjoint(argv):
        return None
    import shlex

    at = argv.index(commands[0])
    typed = shlex.join([commands[0], *argv[:at], *argv[at + 1 :]])
    return f"options come after the command; did you mean `pairun {visible(typed)}`?"


def no_command(words: Sequence[str], commands: Collection[str]) -> str:
    """The error if neither a command nor --dry-run is given.

    Args:
        words: the arguments that are not options.
        commands: the existing commands.
    """
    if not words:
        return "no command given; `pairun --help` lists the commands"
    word = visible(words[0])
    if words[0] == "-" or os.path.exists(words[0]):
        return f"no command given; did you mean `pairun plan {word}`?"
    if words[0].endswith((".yaml", ".yml", ".json")):
        return f"no command given; did you mean `pairun plan {word}`? There is no file '{word}'"
    near = nearest(words[0], [*commands, *_TOP_OPTIONS])
    hint = f"did you mean '{near}'?" if near else "`pairun --help` lists the commands"
    return f"there is no command and no file '{word}'; {hint}"


def unknown_arguments(words: Sequence[str], options: Iterable[str]) -> str:
    """The error about unknown arguments of a command.

    Args:
        words: those arguments.
        options: the command's options.
    """
    if "--dry-run" in words:
        return "`pairun plan JOB` shows what a job would do, and runs nothing"
    message = f"unrecognized arguments: {visible(' '.join(words))}"
    option = next((word.partition("=")[0] for word in words if word.startswith("--")), "")
    near = nearest(option, options) if option else None
    return f"{message}; did you mean '{near}'?" if near else message
