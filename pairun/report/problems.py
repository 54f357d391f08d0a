"""Problems as text for people, and as JSON data."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import IO, Any

from pairun.base.escapes import visible
from pairun.errors import Problem, concealed_in, render
from pairun.report.tint import Tint
from pairun.secrets.vault import Vault


def print_problems(
    problems: Iterable[Problem], vault: Vault, stream: IO[str] | None = None
) -> None:
    """Print problems for people, on standard error.

    Args:
        problems: errors and warnings.
        vault: masks them; also collects the secrets in the files that they point to.
        stream: where to print; default: standard error.
    """
    out = sys.stderr if stream is None else stream
    tint = Tint(out)
    listed = list(problems)
    vault.add(concealed_in(listed))
    for each in listed:
        print(problem_text(each, vault, tint), file=out)
    errors = sum(p.severity == "error" for p in listed)
    if errors:
        warnings = len(listed) - errors
        more = f", {warnings} warning{'s' * (warnings > 1)}" if warnings else ""
        print(f"{errors} error{'s' * (errors > 1)}{more}", file=out)


def problem_text(p: Problem, vault: Vault, tint: Tint | None = None) -> str:
    """A problem with the lines that it points to, masked.

    Args:
        p: the problem.
        vault: masks it; already knows the secrets in the file that the problem points to.
        tint: colours it.
    """
    _hide_lines(p, vault)
    hint = visible(vault.text(p.hint)) if p.hint else None
    masked = p._replace(message=visible(vault.text(p.message)), hint=hint)
    return vault.text(render(masked) if tint is None else render(masked, tint))


def _hide_lines(p: Problem, vault: Vault) -> None:
    """Mask lines with secrets in excerpts, which may cut a secret in two.

    The vault knows the secrets that pairun has read; the file may write them differently.
    """
    quotes = vault.text(p.message) != p.message
    for place in (p.place, *(at for _, at in p.also)):
        if place is not None:
            line = place.source.line(place.line)
            if (quotes and place is p.place) or vault.text(line) != line:
                place.source.hide(place.line, place.line)


def print_unforeseen(error: Exception, vault: Vault) -> None:
    """Print an unexpected error on standard error; with its trace if ``PAIRUN_DEBUG`` is set.

    Args:
        error: the exception.
        vault: masks it: an exception may quote anything that pairun has read.
    """
    message = f"error: pairun itself failed: {type(error).__name__}: {error}"
    print(vault.text(message), file=sys.stderr)
    if os.environ.get("PAIRUN_DEBUG"):
        import traceback

        print(vault.text("".join(traceback.format_exception(error))), end="", file=sys.stderr)
        return
    print("  help: this is an error of pairun; PAIRUN_DEBUG=1 shows its trace", file=sys.stderr)


def problem_data(p: Problem, vault: Vault) -> dict[str, Any]:
    """A problem as JSON data; the arguments are those of `print_problems`."""
    vault.add(concealed_in([p]))
    mask = vault.text
    return {
        "id": p.id,
        "severity": p.severity,
        "message": mask(p.message),
        "file": p.place.source.file if p.place else None,
        "line": p.place.line if p.place else None,
        "column": p.place.column if p.place else None,
        "layer": p.place.source.layer if p.place else None,
        "hint": mask(p.hint) if p.hint else None,
        "also": [
            {"what": what, "file": at.source.file, "line": at.line, "column": at.column}
            for what, at in p.also
        ],
    }
