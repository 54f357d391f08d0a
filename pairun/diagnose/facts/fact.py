"""One fact, and what a reader of facts is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pairun.diagnose.lines import Line, Log

DECISIVE = 97
"""The weight of a fact that outranks every text."""

STRONG = 91
"""The weight of a fact that outranks exceptions of the job's own code, and most stops."""

LIKELY = 62
"""The weight of a fact that leaves other explanations."""

HINT = 42
"""The weight of a fact that counts if the log explains it no better, such as exit code 1."""


class Fact(NamedTuple):
    """What a system reports.

    Attributes:
        klass: the class of failure that it shows.
        weight: 0 to 98.
        words: the fact in words, for people.
        source: who reports it: ``Kubernetes``, ``Slurm``, ``kernel``, …
        at: offset of its line in the log, in bytes; -1 if it is no line of a log.
        fault: whose fault, if that differs from the class's; may be empty.
        retry: the advice on retries, if that differs from the class's; may be empty.
        advice: what to do, if that differs from the class's; may be empty.
    """

    klass: str
    weight: int
    words: str
    source: str
    at: int = -1
    fault: str = ""
    retry: str = ""
    advice: str = ""


class Reader(NamedTuple):
    """Reads the lines of one system.

    Attributes:
        words: words in lower case, of at least four letters; each line that it reads holds one.
        read: returns the facts of a line; None if the line is no data of this system. An empty
            sequence says that it is, and that it reports no failure: rules then ignore the line.
    """

    words: Sequence[str]
    read: Callable[[Line, Log], Sequence[Fact] | None]
