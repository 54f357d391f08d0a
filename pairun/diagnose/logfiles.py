"""Finds the log files of a job below a folder."""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Sequence
from typing import NamedTuple

from pairun.base.escapes import visible
from pairun.base.paths import JOURNAL
from pairun.diagnose.podjournal import OUTPUT, PHASE_LOGS, RUN_OUTPUT, journal_folders
from pairun.volume.progressfile import NAME as PROGRESS

MAX_FILES = 4096

_NO_LOGS = (
    ".pt", ".pth", ".ckpt", ".safetensors", ".npy", ".npz", ".parquet", ".tar", ".whl", ".so", ".py",
    ".png", ".jpg", ".pdf", ".html", ".csv", ".tsv", ".toml", ".ini", ".onnx", ".bin",
)  # fmt: skip
_NO_LOG = re.compile(r"core(?:\.\d+)?|(?:.*[._-])?(?:config|params|hparams|args|metrics)\.json")
"""Names of core dumps, and of files with settings or metrics."""

_SHOWN_FILES = 3


class LogFile(NamedTuple):
    """A file to read.

    Attributes:
        path: where it is; ``-`` for standard input.
        name: the name for people.
        within: its path below the folder that the user named.
        skipped: why pairun skips it, for people; empty if it is read.
    """

    path: str
    name: str
    within: str
    skipped: str = ""


def files_in(paths: Sequence[str]) -> list[LogFile]:
    """The log files of paths: files as they are, and the logs below folders.

    Skips links below a folder, and files of models, pictures and code. Of a pairun run it reads
    only the output and the progress: plans and secrets are not logs.
    """
    named = [path for path in paths if path == "-" or not os.path.isdir(path)]
    # the folders tell ranks apart: worker-0/output.log, worker-1/output.log
    folders = {os.path.dirname(os.path.abspath(path)) for path in named if path != "-"}
    shared = os.path.commonpath(folders) if folders else ""
    files: list[LogFile] = []
    for path in paths:
        if path in named:
            files.append(
                LogFile(path, path, path if path == "-" else os.path.relpath(path, shared))
            )
            continue
        for where, subfolders, names in os.walk(path):
            subfolders[:], logs = map(sorted, _kept(where, subfolders, names))
            found = (os.path.join(where, name) for name in logs)
            judged = ((file, _why_skipped(file, path)) for file in found)
            files += [
                LogFile(file, file, os.path.relpath(file, path), why)
                for file, why in judged
                if why is not None
            ]
    return files[:MAX_FILES]


def without_logs(folder: str) -> str:
    """The sentence, for people, about a folder without logs."""
    found = (
        os.path.relpath(os.path.join(where, name), folder)
        for where, _, names in os.walk(folder)
        for name in names
    )
    first = list(itertools.islice(found, _SHOWN_FILES + 1))
    if not first:
        return f"{visible(folder)} has no files"
    shown = ", ".join(map(visible, sorted(first[:_SHOWN_FILES])))
    more = ", …" if len(first) > _SHOWN_FILES else ""
    return f"{visible(folder)} has no logs; pairun reads these files only if you name them: {shown}{more}"


def _kept(where: str, folders: Sequence[str], names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The subfolders of a folder that may contain logs, and its files that may be logs."""
    if JOURNAL in names or OUTPUT in folders:
        kept = [name for name in names if name == PROGRESS]
        if not os.path.exists(os.path.join(where, OUTPUT, "current")):
            # a task failed before the command ran; the journal is read with each of these logs
            kept += [name for name in names if name in PHASE_LOGS] or [JOURNAL]
        return [name for name in folders if name == OUTPUT], kept
    if "runtime.d" in folders or (".pairun" in names and "logs" in folders):
        return [name for name in folders if name == "logs"], []
    is_run = ".pairun-run" in names
    entered = [name for name in folders if name[0] != "." and not (is_run and name == "gang")]
    if "pai" in folders and RUN_OUTPUT in names:
        return entered, [] if journal_folders(where) else [RUN_OUTPUT]
    return entered, [
        name
        for name in names
        if not name.startswith(".") and not name.endswith(_NO_LOGS) and not _NO_LOG.fullmatch(name)
    ]


def _why_skipped(path: str, folder: str) -> str | None:
    """Why pairun skips a file below a folder, for people; empty if it reads the file.

    Returns:
        None for what is not a file, and for a link to a file that is read itself.
    """
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    if stat.S_ISREG(mode):
        return ""
    if not stat.S_ISLNK(mode):
        return "it is no regular file"
    target = os.path.realpath(path)
    if os.path.exists(target) and target.startswith(os.path.realpath(folder) + os.sep):
        return None
    return "it is a link out of the folder" if os.path.exists(target) else "it is a dangling link"
