"""Clusters of log endings: one for each template, with its number of logs, nodes and jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pairun.learning.endings import Ending
from pairun.learning.templates import template_of

MAX_CLUSTERS = 4000
"""The maximum number of templates; above that, those seen once are dropped."""

_MAX_NAMES = 1000
_MAX_EXAMPLES = 4
_MANY = 3


class Cluster:
    """The endings with one template.

    Args:
        template: the template.

    Attributes:
        count: number of logs with this ending.
        examples: a few endings with different texts.
    """

    def __init__(self, template: str) -> None:
        self.template = template
        self.count = 0
        self.examples: list[Ending] = []
        self._nodes: Counter[str] = Counter()
        self._jobs: set[str] = set()
        self._jobs_of: dict[str, set[str]] = {}

    def add(self, ending: Ending) -> None:
        """Count one more ending."""
        self.count += 1
        if len(self.examples) < _MAX_EXAMPLES and all(
            ending.text != each.text for each in self.examples
        ):
            self.examples.append(ending)
        if ending.node and (ending.node in self._nodes or len(self._nodes) < _MAX_NAMES):
            self._nodes[ending.node] += 1
            jobs = self._jobs_of.setdefault(ending.node, set())
            if ending.job and len(jobs) < _MAX_NAMES:
                jobs.add(ending.job)
        if ending.job and len(self._jobs) < _MAX_NAMES:
            self._jobs.add(ending.job)

    @property
    def extent(self) -> str:
        """The number of logs, nodes and jobs: ``12 logs, 3 nodes, 4 jobs``."""
        counts = [(self.count, "log"), (len(self._nodes), "node"), (len(self._jobs), "job")]
        return ", ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in counts if n)

    @property
    def points_at(self) -> str:
        """The likely cause by the logs' nodes and jobs; empty if they show none."""
        if not self._nodes:
            return ""
        node, logs = self._nodes.most_common(1)[0]
        jobs = len(self._jobs_of[node])
        if jobs >= _MANY and logs >= 0.8 * self._nodes.total():
            return f"{jobs} jobs on {node}: points at the node"
        if len(self._nodes) >= _MANY and logs <= 0.5 * self._nodes.total():
            whose = "the job" if len(self._jobs) <= 1 else "the jobs or what they share"
            return f"{len(self._nodes)} nodes: points at {whose}, not at a node"
        return ""


class Clusters:
    """All clusters of the logs read so far, in bounded memory.

    Attributes:
        forgotten: number of endings dropped because there were too many templates.
    """

    def __init__(self) -> None:
        self._by_template: dict[str, Cluster] = {}
        self.forgotten = 0

    def add(self, ending: Ending) -> None:
        """Add an ending to the cluster of its template."""
        template = template_of(ending.text)
        cluster = self._by_template.get(template)
        if cluster is None:
            if len(self._by_template) >= MAX_CLUSTERS:
                self._forget()
            cluster = self._by_template[template] = Cluster(template)
        cluster.add(ending)

    def largest(self, count: int) -> list[Cluster]:
        """The clusters with the most logs."""
        ranked = sorted(self._by_template.values(), key=lambda c: (-c.count, c.template))
        return ranked[:count]

    def lines(self) -> Iterable[str]:
        """One line for each cluster."""
        return (cluster.examples[0].text for cluster in self._by_template.values())

    def _forget(self) -> None:
        """Drop the rarest half, as lossy counting does (Manku and Motwani, VLDB'02)."""
        ranked = self.largest(len(self._by_template))
        kept = ranked[: MAX_CLUSTERS // 2]
        self.forgotten += sum(cluster.count for cluster in ranked[len(kept) :])
        self._by_template = {cluster.template: cluster for cluster in kept}
