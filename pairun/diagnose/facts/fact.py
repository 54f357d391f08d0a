"""A fact and the reader of facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pairun.diagnose.lines import Line, Log

DECISIVE = 97
"""The weight of a fact that outranks every text."""

STRONG = 91
"""The weight of a fact that outranks exceptions of the job's code, and most stops."""

LIKELY = 62
"""The weight of a fact that allows other explanations."""

HINT = 42
"""The weight of a fact that the log may explain better, such as exit code 1."""


KUBERNETES = "Kubernetes"
"""The source of facts from a cluster's objects."""

PREVIOUS_LOG = "see why the container ended: `kubectl logs --previous POD`"
"""Advice for a container that started again; `with_pod` names the Pod."""


class Fact(NamedTuple):
    """A system's report.

    Attributes:
        klass: the failure class.
        weight: 0 to 98.
        words: the fact in words, for people.
        source: the reporting system: ``Kubernetes``, ``Slurm``, ``kernel``, …
        at: offset of its line in the log, in bytes; -1 if it is not from a log.
        fault: overrides the class's fault; may be empty.
        retry: overrides the class's advice on retries; may be empty.
        advice: overrides the class's advice; may be empty.
        is_past: whether the system has recovered from it; rules then ignore the line.
    """

    klass: str
    weight: int
    words: str
    source: str
    at: int = -1
    fault: str = ""
    retry: str = ""
    advice: str = ""
    is_past: bool = False


def with_pod(fact: Fact, pod: str, namespace: str = "") -> Fact:
    """A fact whose words and advice name the Pod.

    Args:
        fact: the fact.
        pod: the name.
        namespace: the Pod's; empty if the text does not name it.
    """
    return fact._replace(words=f"{pod}: {fact.words}", advice=advice_for(fact, pod, namespace))


def advice_for(fact: Fact, pod: str, namespace: str = "") -> str:
    """A fact's advice with the Pod's name in its command; see `with_pod`."""
    return fact.advice.replace("POD`", f"{pod} -n {namespace}`" if namespace else f"{pod}`")


class Reader(NamedTuple):
    """Reads the lines of one system.

    Attributes:
        words: lower-case words of at least four letters; each line that it reads contains one.
        read: returns the facts of a line; None if the line is not from this system. An empty
            sequence means that the line reports no failure: rules then ignore it.
    """

    words: Sequence[str]
    read: Callable[[Line, Log], Sequence[Fact] | None]
