"""Problems as a person reads them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO

from pairun.errors import Problem, render
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
    found = list(problems)
    for each in found:
        hint = visible(each.hint) if each.hint else None
        p = each._replace(message=visible(each.message), hint=hint)
        print(mask(render(p, color=color)), file=out)
    errors = sum(p.severity == "error" for p in found)
    if errors:
        print(f"{errors} error{'s' if errors > 1 else ''}", file=out)
