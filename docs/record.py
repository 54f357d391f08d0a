"""Records `make run` in a terminal, and writes its screen as docs/pictures/run.svg.

What it shows is what ran: run it again when the output of `pairun run` changes.
"""

from __future__ import annotations

import io
import os
import pathlib
import pty
import re
import subprocess
import sys

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

COLUMNS, LINES = 100, 26
PICTURE = pathlib.Path(__file__).parent / "pictures/run.svg"
COMMAND = ("pairun", "run", "examples/two-roles.yaml")


def recorded(argv: tuple[str, ...]) -> str:
    """What a command prints to a terminal, with its colours."""
    ours, theirs = pty.openpty()
    os.environ.update(COLUMNS=str(COLUMNS), LINES=str(LINES), TERM="xterm-256color")
    # Lines as they scroll away, without the foot that is drawn over.
    with subprocess.Popen(
        [*argv, "--color", "always"], stdout=subprocess.PIPE, stderr=theirs, stdin=theirs
    ) as command:
        assert command.stdout is not None
        text = command.stdout.read().decode()
    os.close(ours)
    os.close(theirs)
    if command.returncode:
        sys.exit(f"{' '.join(argv)} ended with {command.returncode}")
    return text


def main() -> None:
    """Write the picture."""
    shown = recorded(COMMAND).splitlines()[-LINES:]
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi("\n".join(["$ make run", "…", *shown])))
    svg = console.export_svg(title="make run", theme=MONOKAI, unique_id="run")
    # The reader's own monospaced font: a picture loads nothing.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace")
    PICTURE.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")


if __name__ == "__main__":
    main()
