"""Clusters of endings: counts, what nodes and jobs point at, bounded memory."""

from __future__ import annotations

import pytest

from pairun.learning import clusters
from pairun.learning.clusters import Cluster, Clusters
from pairun.learning.endings import Ending


def _cluster(pairs: list[tuple[str, str]]) -> Cluster:
    cluster = Cluster("t")
    for number, (node, job) in enumerate(pairs):
        cluster.add(Ending(f"line {number}", "f", number, node, job))
    return cluster


def test_one_signature_on_many_nodes_points_at_the_job() -> None:
    """Not at a node; of several jobs at what they share."""
    one = _cluster([(f"node-{n}", "job") for n in range(6)])
    assert one.points_at == "6 nodes: points at the job, not at a node"
    several = _cluster([(f"node-{n}", f"job-{n}") for n in range(6)])
    assert several.points_at == "6 nodes: points at the jobs or what they share, not at a node"
    assert several.extent == "6 logs, 6 nodes, 6 jobs"


def test_many_jobs_on_one_node_point_at_the_node() -> None:
    """A few logs of other nodes change nothing."""
    cluster = _cluster([*(("node-7", f"job-{n}") for n in range(9)), ("node-2", "job-99")])
    assert cluster.points_at == "9 jobs on node-7: points at the node"


@pytest.mark.parametrize("pairs", [[("", "a"), ("", "b")], [("n", "a"), ("n", "a")], [("a", "x")]])
def test_too_little_points_at_nothing(pairs: list[tuple[str, str]]) -> None:
    """Unknown nodes, one job, one log."""
    assert _cluster(pairs).points_at == ""


def test_examples_are_few_and_differ() -> None:
    """The same text is no second example."""
    cluster = Cluster("t")
    for number in range(50):
        cluster.add(Ending(f"line {number // 10}", "f", number))
    assert [each.text for each in cluster.examples] == ["line 0", "line 1", "line 2", "line 3"]
    assert cluster.count == 50


def test_rare_templates_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many templates there are, memory is bounded, and frequent ones stay counted."""
    monkeypatch.setattr(clusters, "MAX_CLUSTERS", 10)
    counted = Clusters()
    for number in range(200):
        counted.add(Ending("the frequent one", "f", number))
        counted.add(Ending(f"rare {'x' * number}", "f", number))
    assert counted.largest(1)[0].count == 200
    assert len(counted.largest(100)) <= 10
    assert counted.forgotten + sum(c.count for c in counted.largest(100)) == 400
