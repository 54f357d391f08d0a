"""Finds journals: a file, a Pod's log directory, all Pods' logs, a run on this machine."""

from __future__ import annotations

import os
import re
import stat

import attrs

from pairun.base.paths import JOURNAL as NAME
from pairun.base.runfolders import MARKER, PREVIOUS, RUNS
from pairun.errors import PairunError, Problem
from pairun.report.journal.records import describe


@attrs.frozen(kw_only=True)
class JournalFile:
    """A journal.

    Attributes:
        label: of the instance or Pod.
        journal: the file; None when the instance has none, ``-`` for standard input.
        logs: the files that hold what was printed.
    """

    label: str
    journal: str | None
    logs: tuple[str, ...] = ()


def find(path: str | None) -> list[JournalFile]:
    """The journals that a path stands for.

    Args:
        path: the path, ``-`` for standard input, or None for the last run on this machine.

    Raises:
        PairunError: there is none.
    """
    if path == "-":
        return [JournalFile(label="standard input", journal="-")]
    try:
        if path is None:
            return _below(_last_run(RUNS))
        if not os.path.isdir(path):
            # a pipe too: what a person names is read, as cat does
            os.stat(path)
            return [_found(path)]
        return _below(path)
    except OSError as e:
        raise _unreadable(e.filename or path or RUNS, e.strerror or str(e)) from e


def _unreadable(path: str, why: str, hint: str | None = None) -> PairunError:
    return PairunError(Problem("PR810", f"{describe(path)}: {why}", hint=hint))


def _below(path: str) -> list[JournalFile]:
    """The journals of a directory, whatever kind of directory of ours it is."""
    if _is_file(os.path.join(path, NAME)):
        return [_found(os.path.join(path, NAME))]
    for inner in ("pai", "logs"):
        # an instance of a run holds a shared volume, a shared volume holds logs
        if os.path.isdir(os.path.join(path, inner)):
            return _below(os.path.join(path, inner))
    names = sorted(_folders(path), key=_natural)
    if instances := [n for n in names if os.path.isdir(os.path.join(path, n, "pai"))]:
        return [f for n in instances for f in _instance(os.path.join(path, n))]
    pods = [os.path.join(path, n, NAME) for n in names]
    if journals := [_found(p) for p in pods if _is_file(p)]:
        return journals
    if any(_is_run(os.path.join(path, n)) for n in names):
        return _below(_last_run(path))
    what = "no instance has begun yet" if _is_run(path) else "there is no journal in it"
    raise _unreadable(
        path, what, f"name a {NAME}, a Pod's log directory, or a folder of pairun run"
    )


def _instance(folder: str) -> list[JournalFile]:
    logs = os.path.join(folder, "pai", "logs")
    pods = [os.path.join(logs, n, NAME) for n in _folders(logs)] if os.path.isdir(logs) else []
    journals = [_found(p) for p in pods if _is_file(p)]
    return journals or [
        JournalFile(label=os.path.basename(folder), journal=None, logs=_output_of(folder))
    ]


def _found(journal: str) -> JournalFile:
    """A journal, called as people call what it is of."""
    pod, name = os.path.split(os.path.abspath(journal))
    volume, logs = os.path.split(os.path.dirname(pod))
    folder, pai = os.path.split(volume)
    if name == NAME and (pai, logs) == ("pai", "logs") and (output := _output_of(folder)):
        shown = os.path.relpath(output[0]) if not os.path.isabs(journal) else output[0]
        return JournalFile(label=os.path.basename(folder), journal=journal, logs=(shown,))
    label = os.path.basename(pod) if name == NAME else name
    return JournalFile(label=label or name, journal=journal)


def _output_of(folder: str) -> tuple[str, ...]:
    path = os.path.join(folder, "output.log")
    return (path,) if _is_file(path) else ()


def _last_run(folder: str) -> str:
    """The work directory below a folder in which the last run began."""
    runs = [os.path.join(folder, n) for n in _folders(folder)] if os.path.isdir(folder) else []
    began = {r: os.stat(os.path.join(r, MARKER)).st_mtime for r in runs if _is_run(r)}
    if not began:
        raise _unreadable(
            folder, "there is no run in it", f"name the {NAME}, or its folder: pairun report PATH"
        )
    return max(began, key=began.__getitem__)


def _folders(path: str) -> list[str]:
    """The folders in a folder; what is not of the last run itself is left out."""
    with os.scandir(path) as entries:
        return [e.name for e in entries if e.is_dir() and e.name[0] != "." and e.name != PREVIOUS]


def _is_run(path: str) -> bool:
    return _is_file(os.path.join(path, MARKER))


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _natural(name: str) -> list[tuple[int, str]]:
    """Orders worker-2 before worker-10."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(p), "") if n % 2 else (0, p) for n, p in enumerate(parts)]
