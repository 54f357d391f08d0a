"""Selects the reader for a line, and returns its facts."""

from __future__ import annotations

from collections.abc import Sequence

from pairun.diagnose.facts.events import EVENTS
from pairun.diagnose.facts.fact import Fact
from pairun.diagnose.facts.gpus import GPUS
from pairun.diagnose.facts.kernel import KERNEL
from pairun.diagnose.facts.launchers import LAUNCHERS
from pairun.diagnose.facts.losses import LOSSES
from pairun.diagnose.facts.nodes import NODES
from pairun.diagnose.facts.podrows import POD_ROWS
from pairun.diagnose.facts.pods import PODS
from pairun.diagnose.facts.slurm import SLURM
from pairun.diagnose.lines import Line, Log

_READERS = (NODES, EVENTS, PODS, POD_ROWS, KERNEL, SLURM, GPUS, LAUNCHERS, LOSSES)

WORDS = tuple(sorted({word for reader in _READERS for word in reader.words}))
"""Lower-case words; a line that some reader reads contains one of them."""


def facts_of(line: Line, log: Log) -> Sequence[Fact] | None:
    """The facts in a line.

    Returns:
        None if the line is free text. An empty sequence if a reader reads it and it reports no
        failure.
    """
    lower = line.shown.lower()
    for reader in _READERS:
        if any(word in lower for word in reader.words):
            facts = reader.read(line, log)
            if facts is not None:
                return facts
    return None
