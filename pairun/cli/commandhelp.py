"""The help of a command: its sentence and two examples, then its arguments."""

from __future__ import annotations

import argparse
from collections.abc import Iterator


class CommandParser(argparse.ArgumentParser):
    """A parser whose help begins with examples; those of its sub-commands do, too."""

    def format_help(self) -> str:
        """The sentence, the examples, and argparse's own help below them."""
        description, self.description = self.description, None
        try:
            return "\n".join([*_head(self.prog, description or ""), super().format_help()])
        finally:
            self.description = description


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
