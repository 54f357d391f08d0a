"""Finds and reads journals: a file, a Pod's log directory, all Pods' logs, a run on this machine."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable
from typing import IO, Any, TypeVar

import attrs

from pairun.base.folder import FOLDER, Folder
from pairun.base.paths import JOURNAL as NAME
from pairun.base.paths import pai_dir
from pairun.base.runfolders import MARKER, PREVIOUS, RUNS
from pairun.errors import PairunError, Problem
from pairun.report.journal.history import InstancePast
from pairun.report.journal.historybuilding import phases_of
from pairun.report.journal.records import JournalReading, describe, notes, read_entries
from pairun.secrets.shapes import script_secrets
from pairun.secrets.vault import Vault
from pairun.volume.door import Door

_T = TypeVar("_T")


class NamedFolder(Folder):
    """A folder that a person names, possibly by a link; follows no link in it."""

    def _open_root(self, flags: int = FOLDER) -> int:
        return os.open(self.root, flags & ~os.O_NOFOLLOW)


@attrs.frozen(kw_only=True)
class JournalFile:
    """A journal.

    Attributes:
        label: the name of the instance or Pod.
        journal: the journal's path; None for an instance without one, ``-`` for standard input.
        logs: the paths of the files with its output.
        folder: the folder it was found in; None if a person names the file itself.
    """

    label: str
    journal: str | None
    logs: tuple[str, ...] = ()
    folder: Folder | None = None

    def open(self) -> IO[bytes]:
        """Open the journal for reading.

        Raises:
            OSError: it cannot be opened.
        """
        if self.journal == "-":
            return sys.stdin.buffer
        assert self.journal is not None
        return open(self.journal, "rb") if self.folder is None else self.folder.open(self.journal)


def find(path: str | None) -> list[JournalFile]:
    """Find the journals at a path.

    Args:
        path: the path, ``-`` for standard input, or None for the last run on this machine.

    Raises:
        PairunError: there are no journals.
    """
    if path == "-":
        return [JournalFile(label="standard input", journal="-")]
    try:
        if path is None:
            runs = NamedFolder(RUNS)
            return _below(_last_run(RUNS, runs), runs)
        if path in Door(pai_dir()):
            # In a Pod even the path to the volume is under the job's control.
            volume = NamedFolder(pai_dir())
            return [_journal_file(path, volume)] if volume.is_file(path) else _below(path, volume)
        if not os.path.isdir(path):
            # a pipe is fine, too: pairun reads what a person names, as cat does
            os.stat(path)
            return [_journal_file(path, None)]
        return _below(path, NamedFolder(path))
    except OSError as e:
        hint = _hint_for(path) if isinstance(e, FileNotFoundError) and path else None
        raise _unreadable(e.filename or path or RUNS, e.strerror or str(e), hint) from e


def _hint_for(missing: str) -> str:
    """A hint at what to type instead of a path that does not exist."""
    run = os.path.join(RUNS, missing)
    if os.path.isdir(run):
        return f"did you mean {describe(run)}?"
    return f"`pairun report` shows the last run in {RUNS}/; for a job in a cluster, check --context"


def _unreadable(path: str, why: str, hint: str | None = None) -> PairunError:
    return PairunError(Problem("PR810", f"{describe(path)}: {why}", hint=hint))


def _below(path: str, folder: Folder) -> list[JournalFile]:
    """The journals in a directory of any known kind."""
    if folder.is_file(os.path.join(path, NAME)):
        return [_journal_file(os.path.join(path, NAME), folder)]
    for inner in ("pai", "logs"):
        # a run contains instances, an instance a shared volume, a shared volume logs
        if folder.is_folder(os.path.join(path, inner)):
            return _below(os.path.join(path, inner), folder)
    names = sorted(_folders(path, folder), key=natural)
    if instances := [n for n in names if folder.is_folder(os.path.join(path, n, "pai"))]:
        return [f for n in instances for f in _instance(os.path.join(path, n), folder)]
    pods = [os.path.join(path, n, NAME) for n in names]
    if journals := [_journal_file(p, folder) for p in pods if folder.is_file(p)]:
        return journals
    if any(_is_run(os.path.join(path, n), folder) for n in names):
        return _below(_last_run(path, folder), folder)
    what = "no instance has begun yet" if _is_run(path, folder) else "it contains no journal"
    raise _unreadable(
        path, what, f"name a {NAME}, a Pod's log directory, or a folder of pairun run"
    )


def _instance(path: str, folder: Folder) -> list[JournalFile]:
    logs = os.path.join(path, "pai", "logs")
    names = _folders(logs, folder) if folder.is_folder(logs) else []
    journals = [
        _journal_file(p, folder) for n in names if folder.is_file(p := os.path.join(logs, n, NAME))
    ]
    return journals or [
        JournalFile(label=os.path.basename(path), journal=None, logs=_output_of(path))
    ]


def _journal_file(journal: str, folder: Folder | None) -> JournalFile:
    """A journal, labelled with the name that people use."""
    pod, name = os.path.split(os.path.abspath(journal))
    volume, logs = os.path.split(os.path.dirname(pod))
    instance, pai = os.path.split(volume)
    if name == NAME and (pai, logs) == ("pai", "logs") and (output := _output_of(instance)):
        shown = os.path.relpath(output[0]) if not os.path.isabs(journal) else output[0]
        label = os.path.basename(instance)
        return JournalFile(label=label, journal=journal, logs=(shown,), folder=folder)
    label = os.path.basename(pod) if name == NAME else name
    return JournalFile(label=label or name, journal=journal, folder=folder)


def _output_of(instance: str) -> tuple[str, ...]:
    """The output files of an instance; they are next to its volume, where the job cannot write."""
    path = os.path.join(instance, "output.log")
    return (path,) if os.path.isfile(path) else ()


def _last_run(path: str, folder: Folder) -> str:
    """The most recent work directory below a folder."""
    try:
        names = _folders(path, folder)
    except (FileNotFoundError, NotADirectoryError):
        names = []
    runs = [os.path.join(path, n) for n in names]
    markers = {r: folder.stat(os.path.join(r, MARKER)) for r in runs if _is_run(r, folder)}
    began = {run: marker.st_mtime for run, marker in markers.items() if marker}
    if not began:
        raise _unreadable(
            path, "there is no run in it", f"name the {NAME}, or its folder: pairun report PATH"
        )
    return max(began, key=began.__getitem__)


def _folders(path: str, folder: Folder) -> list[str]:
    """The folders in a folder, without those of earlier runs."""
    names = [n for n in folder.names(path) if n[0] != "." and n != PREVIOUS]
    return [n for n in names if folder.is_folder(os.path.join(path, n))]


def _is_run(path: str, folder: Folder) -> bool:
    return folder.is_file(os.path.join(path, MARKER))


def natural(name: str) -> list[tuple[int, str]]:
    """A sort key that puts worker-2 before worker-10."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(p), "") if n % 2 else (0, p) for n, p in enumerate(parts)]


def read_all(path: str | None, read: Callable[[JournalFile], _T]) -> tuple[list[_T], list[Problem]]:
    """Read the journals that a path names; returns the results, and problems with reading.

    Args:
        path: the path, as for `find`.
        read: reads one journal; its errors cost only this journal.
    """
    results: list[_T] = []
    problems: list[Problem] = []
    try:
        files = find(path)
    except PairunError as e:
        return results, list(e.problems)
    for file in files:
        try:
            results.append(read(file))
        except PairunError as e:
            problems += e.problems
    return results, problems


def read_records(file: JournalFile) -> JournalReading:
    """Read the records of a journal.

    Raises:
        PairunError: the journal cannot be read.
    """
    name = "standard input" if file.journal == "-" else describe(file.journal)
    try:
        with file.open() as stream:
            return read_entries(stream, name)
    except OSError as e:
        raise PairunError(Problem("PR810", f"{name}: {e.strerror or e}")) from e


def read_instance(file: JournalFile) -> InstancePast:
    """Read an instance from its journal.

    Raises:
        PairunError: the journal cannot be read.
    """
    if file.journal is None:
        return InstancePast(label=file.label, journal=None, logs=file.logs)
    reading = read_records(file)
    if file.journal == "-" and not reading.lines:
        raise PairunError(Problem("PR810", "standard input: it is empty"))
    output = functools.partial(_end_of_output, file)
    return instance_of(reading, file.label, file.journal, logs=file.logs, read_output=output)


def instance_of(reading: JournalReading, label: str, journal: str, **more: Any) -> InstancePast:
    """The instance that the records of a journal describe; the others are fields of it."""
    return InstancePast(
        label=label, journal=journal, phases=phases_of(reading.entries), notes=notes(reading),
        ignored=reading.ignored, **more,
    )  # fmt: skip


_OUTPUT_BYTES = 256 * 1024


def _end_of_output(file: JournalFile) -> str:
    """The end of the command's output beside a journal."""
    if file.folder is None or file.journal is None:
        return ""
    path = os.path.join(os.path.dirname(file.journal), "user-all", "current")
    try:
        text = file.folder.read_end(path, _OUTPUT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    # PID 1 masked the secrets that it knew; these only look like secrets.
    return Vault(script_secrets(text)).text(text)
