"""What several commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import IO

from pairun.errors import Problem, render
from pairun.report.terminal import Style, visible
from pairun.secrets.forms import Redactor


def print_problems(
    problems: Iterable[Problem],
    stream: IO[str] | None = None,
    redactor: Redactor | None = None,
) -> None:
    """Print problems for people, on standard error.

    Args:
        problems: errors and warnings.
        stream: where to instead.
        redactor: what must not be shown.
    """
    mask = redactor.text if redactor else str
    out = sys.stderr if stream is None else stream
    color = Style(out).on
    found = list(problems)
    for each in found:
        hint = visible(each.hint) if each.hint else None
        p = each._replace(message=visible(each.message), hint=hint)
        print(mask(render(p, color=color)), file=out)
    errors = sum(p.severity == "error" for p in found)
    if errors:
        print(f"{errors} error{'s' if errors > 1 else ''}", file=out)


def open_streams(*, lenient: bool) -> None:
    """Give every standard stream that is closed a file, so that no other file gets its number.

    Args:
        lenient: what is written to standard output is lost without an error; it fails otherwise,
            as with a closed file.
    """
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        flags = os.O_RDONLY if fd == 0 or (fd == 1 and not lenient) else os.O_WRONLY
        null = os.open(os.devnull, flags)
        if null != fd:
            os.dup2(null, fd)
            os.close(null)
        os.set_inheritable(fd, True)
        # for as long as this process lives
        stream = open(fd, "w" if fd else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)


def unwritable(e: OSError) -> str:
    """What to say when standard output takes nothing."""
    return f"standard output cannot be written: {e.strerror or e}"


def give_up_stdout() -> None:
    """Let all further output go nowhere; what is buffered would fail again at the exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
