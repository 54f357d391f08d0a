"""Ranks of files whose names differ only in a number, such as ``train_0.log`` to ``train_7.log``.

One name proves nothing: a number may be a date, a job, an attempt or a rotated file. So the names
of all files of a job are compared. Numbers that start at 0 and have few gaps are ranks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

_NUMBER = re.compile(r"(?<![0-9])[0-9]{1,5}(?![0-9])")
_NOT_RANKS = re.compile(
    r"(?:attempt|restart|retry|try|run|epoch|step|iter|iteration|version|v|trial|fold|part|phase|stage|seed|job|id"
    r"|checkpoint|ckpt|exp|experiment|test|lr|bs|gpus|nodes|cuda|py|python)[._-]?$",
    re.IGNORECASE,
)
"""What a name has before a number that is no rank."""

_HOST = re.compile(r"(?:node|host|machine|server)[._-]?$", re.IGNORECASE)
"""What a name has before the number of a host, on which several ranks run."""

_NUMBERED_HOST = re.compile(r"(?P<before>.*?)(?P<number>\d{1,5})(?P<after>\D*)")

_ROTATED = re.compile(r"(?P<live>.+)\.[1-9]\d{0,2}(?:\.(?:gz|xz|bz2|zst))?")
_OF_SYSTEM = re.compile(r"(?:.*/)?(?:kern|syslog|messages|dmesg|journal)[^/]*")
"""Logs that are rotated by date or size, whatever runs: their older parts are of the same job."""

_MAX_GAPS = 2
"""A series may lack this share of its members: it may have twice as many numbers as files."""


def ranks_by_name(paths: Iterable[str]) -> Mapping[str, int]:
    """The rank of each file whose name shows it only in comparison with the others.

    Args:
        paths: of all files of the job, relative to one folder.

    Returns:
        Nothing for a file whose number may mean something else.
    """
    names = frozenset(paths)
    series: dict[tuple[str, str], dict[int, list[str]]] = {}
    for path in sorted(names):
        for match in _NUMBER.finditer(path):
            key = (path[: match.start()], path[match.end() :])
            series.setdefault(key, {}).setdefault(int(match[0]), []).append(path)
    ranks: dict[str, int] = {}
    unclear: set[str] = set()
    for (before, after), files in series.items():
        if len(files) < 2 or not _are_ranks(before, after, files, names):
            continue
        for number, same in files.items():
            # the same number in two forms, 1 and 01, and two numbers that vary: unclear
            unclear.update(path for path in same if path in ranks or len(same) > 1)
            ranks.update((path, number) for path in same)
    return {path: rank for path, rank in ranks.items() if path not in unclear}


def rotated(paths: Iterable[str]) -> Mapping[str, str]:
    """The older parts of logs, such as ``train.log.1`` or ``train.log.2.gz``, each with its live file.

    Args:
        paths: of all files of the job, relative to one folder.

    Returns:
        Nothing for files beside ``train.log.0``, which may be ranks', and for logs of the system.
    """
    names = frozenset(paths)
    lives = {path: match["live"] for path in names if (match := _ROTATED.fullmatch(path))}
    return {
        path: live
        for path, live in lives.items()
        if live in names and f"{live}.0" not in names and not _OF_SYSTEM.fullmatch(live)
    }


def numbers_of_hosts(labels: Iterable[str]) -> Mapping[str, int]:
    """The numbers of hosts whose names differ only in a number that counts from 0; else nothing."""
    numbers: dict[str, int] = {}
    shapes = set()
    for label in labels:
        if (match := _NUMBERED_HOST.fullmatch(label)) is None:
            return {}
        numbers[label] = int(match["number"])
        shapes.add((match["before"], match["after"]))
    is_series = len(shapes) == 1 and sorted(numbers.values()) == list(range(len(numbers)))
    return numbers if is_series and len(numbers) > 1 else {}


def _are_ranks(
    before: str, after: str, files: Mapping[int, Sequence[str]], names: frozenset[str]
) -> bool:
    """Whether the numbers between two parts of a path count ranks."""
    if _NOT_RANKS.search(before) or _HOST.search(before):
        return False
    if 0 not in files or max(files) >= _MAX_GAPS * len(files):
        return False
    # train.log beside train.log.0: the number counts rotated files
    return before.rstrip("._-") + after not in names
