"""Many whole ``pairun init`` at a real API server."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import pytest

from tests.real.gangs import Gang, Server

TASKS = 20


@pytest.mark.parametrize(
    ("way", "calls"),
    [
        ("framework, rendezvous", 3),
        ("framework, no key", 3),
        ("framework, polling", None),
        ("pods, rendezvous", 1),
        ("pods, no key", 2),
    ],
)
def test_a_gang_is_released(
    way: str, calls: int | None, api_server: Mapping[str, str], tmp_path: pathlib.Path
) -> None:
    """All hold the same roster; who is told by the others asks the server for little.

    A leader whose Pod is there is found with one read. The leader asks once more, whether the gang
    runs already, and without a key for what has changed since. Who polls asks as often as it must.
    """
    with Gang(Server(api_server), way, TASKS, tmp_path) as gang:
        gang.start_all_but_one()
        gang.start_last()
        gang.wait_until_released()
        rosters = [pod.roster() for pod in gang.pods]
        everybody = [("worker", pod.index, pod.uid, pod.address) for pod in gang.pods]
        assert rosters == [everybody] * TASKS
        assert set(gang.open_gate()) == {0}
        if calls is not None:
            for pod in gang.pods:
                assert len(pod.calls) <= calls + 2 * (pod.index == 0), pod.calls
