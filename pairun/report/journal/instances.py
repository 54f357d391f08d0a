"""Reads the journals of instances."""

from __future__ import annotations

from pairun.errors import PairunError, Problem
from pairun.report.journal.finding import JournalFile, find
from pairun.report.journal.historybuilding import phases_of
from pairun.report.journal.pastinstances import InstancePast
from pairun.report.journal.records import describe, notes, read_entries


def read_instances(path: str | None) -> tuple[list[InstancePast], list[Problem]]:
    """Read the instances whose journals a path names; returns them, and problems with reading.

    Args:
        path: the path, as for `find`.
    """
    instances: list[InstancePast] = []
    problems: list[Problem] = []
    try:
        files = find(path)
    except PairunError as e:
        return instances, list(e.problems)
    for file in files:
        try:
            instances.append(read_instance(file))
        except PairunError as e:
            problems += e.problems
    return instances, problems


def read_instance(file: JournalFile) -> InstancePast:
    """Read an instance from its journal.

    Raises:
        PairunError: the journal cannot be read.
    """
    if file.journal is None:
        return InstancePast(label=file.label, journal=None, logs=file.logs)
    try:
        name = "standard input" if file.journal == "-" else describe(file.journal)
        with file.open() as stream:
            reading = read_entries(stream, name)
    except OSError as e:
        message = f"{describe(file.journal)}: {e.strerror or e}"
        raise PairunError(Problem("PR810", message)) from e
    if file.journal == "-" and not reading.lines:
        raise PairunError(Problem("PR810", "standard input: it is empty"))
    return InstancePast(
        label=file.label,
        journal=file.journal,
        logs=file.logs,
        phases=phases_of(reading.entries),
        notes=notes(reading),
        ignored=reading.ignored,
    )
