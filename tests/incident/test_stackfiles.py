"""Files of stacks that name a host or a process instead of a rank."""

from __future__ import annotations

from pathlib import Path

import pytest

from pairun.diagnose.table import Table
from tests.incident.jobs import incident_of, write

RUNNING = "2026-03-01 12:04:16,871 INFO step 120 loss 0.70\n"
HOSTS = ("alpha", "beta", "gamma", "delta")


def stacks(pid: int, line: int, function: str) -> str:
    """What ``py-spy dump --subprocesses`` prints of a rank and its child."""
    main = (
        '\n\nThread {0} (idle): "MainThread"\n    {1} (train.py:{2})\n    <module> (train.py:90)\n'
    )
    return "".join(
        f"Process {pid + child}: python train.py\nPython v3.11.7 (/usr/bin/python3.11)"
        + (main.format(pid, function, line) if not child else main.format(pid + 1, "work", 200))
        for child in (0, 1)
    )


@pytest.mark.parametrize(
    ("log", "dump", "text"),
    [
        ("rank{n}_{host}.log", "pyspy/{host}-{pid}.txt", RUNNING),
        ("logs/train_rank{n}.log", "pyspy/dump-{pid}.txt", "start pid={pid}\n" + RUNNING),
    ],
    ids=["host", "process"],
)
def test_stacks_are_those_of_the_rank_on_the_host(
    tmp_path: Path, table: Table, log: str, dump: str, text: str
) -> None:
    """The rank's log has the host in its name, or its process number in the text."""
    files = {}
    for n, host in enumerate(HOSTS):
        pid = 40118 + 77 * n
        place = (112, "fetch") if n == 2 else (131, "synchronize")
        files[log.format(n=n, host=host)] = text.format(pid=pid)
        files[dump.format(host=host, pid=pid)] = stacks(pid, *place)

    incident = incident_of(write(tmp_path, files), table)

    assert incident.first is not None
    assert (incident.first.rank, incident.diagnosis.klass) == (2, "hang")
    assert {m.rank for m in incident.members} == {0, 1, 2, 3}
    assert incident.decided_by == (
        "rank 2 waits at train.py:112 (fetch), the others at train.py:131 (synchronize)"
    )
