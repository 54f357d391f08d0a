"""The help of a command: its description and two examples, then its arguments."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence


class CommandParser(argparse.ArgumentParser):
    """A parser whose help begins with examples; its sub-commands' parsers, too."""

    def format_help(self) -> str:
        """The description, the examples, and argparse's own help."""
        description, self.description = self.description, None
        try:
            return "\n".join([*_head(self.prog, description or ""), super().format_help()])
        finally:
            self.description = description


def parse(
    parser: argparse.ArgumentParser, argv: Sequence[str], namespace: argparse.Namespace
) -> argparse.Namespace:
    """Parse a command line with options between its other arguments.

    Args:
        parser: of the command.
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
        from pairun.cli.suggesting import unknown_arguments

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
