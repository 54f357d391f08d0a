"""Sums up all journals that a path names, as OpenMetrics text."""

from __future__ import annotations

from pairun.errors import PairunError, Problem
from pairun.handover.metrics import Totals
from pairun.report.journal.finding import find
from pairun.report.journal.records import describe, read_entries


def read_metrics(path: str | None) -> tuple[str, list[Problem]]:
    """Sum up journals; skips a journal that cannot be read and reports it.

    Args:
        path: the path, as for `find`.

    Returns:
        The text and the problems; the text is empty if there is no journal.
    """
    totals, problems = Totals(), list[Problem]()
    try:
        files = find(path)
    except PairunError as e:
        return "", list(e.problems)
    for file in files:
        if file.journal is None:
            continue
        name = describe(file.journal)
        try:
            with file.open() as stream:
                totals.add(entry.data for entry in read_entries(stream, name).entries)
        except PairunError as e:
            problems += e.problems
        except OSError as e:
            problems.append(Problem("PR810", f"{name}: {e.strerror or e}"))
    return totals.text(), problems
