"""Problems, for people and for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any

from pairun.errors import Problem, masked, render
from pairun.report.terminal import Style, visible
from pairun.secrets.vault import Vault


def print_problems(
    problems: Iterable[Problem],
    stream: IO[str] | None = None,
    vault: Vault | None = None,
) -> None:
    """Print problems for people, on standard error.

    Args:
        problems: errors and warnings.
        stream: where to instead.
        vault: what must not be shown.
    """
    mask = vault.text if vault else str
    out = sys.stderr if stream is None else stream
    color = Style(out).on
    listed = list(problems)
    for each in listed:
        hint = visible(each.hint) if each.hint else None
        p = each._replace(message=visible(each.message), hint=hint)
        print(mask(render(p, color=color)), file=out)
    errors = sum(p.severity == "error" for p in listed)
    if errors:
        print(f"{errors} error{'s' if errors > 1 else ''}", file=out)


def problem_data(p: Problem, vault: Vault | None = None) -> dict[str, Any]:
    """A problem as plain data for JSON."""
    mask = vault.text if vault else str
    p = masked(p)
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
