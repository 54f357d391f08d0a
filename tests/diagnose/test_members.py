"""The reason for a choice states what is true of the other ranks' logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pairun.diagnose.incident import incident_lines
from pairun.diagnose.table import Table
from tests.diagnose.jobs import KEY_ERROR, incident_of, write

RUNNING = "step 120 loss 0.70\n"
LOST = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:41\n"
NETWORK = (
    "Traceback (most recent call last):\n"
    '  File "/job/train.py", line 41, in <module>\n'
    "    dist.all_reduce(t)\n"
    "torch.distributed.DistBackendError: NCCL error: Connection reset by peer\n"
)
CODE = "exited with code 1\n"
CUT = 'Traceback (most recent call last):\n  File "/job/train.py", line 41, in <module>\n'


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ((RUNNING, RUNNING), "no other log shows a failure"),
        ((LOST, LOST), "the other ranks only report timeouts or closed connections"),
        ((NETWORK, NETWORK), "the other ranks only report network errors"),
        ((LOST, NETWORK), "the other ranks only report timeouts, closed connections or network errors"),
        ((RUNNING, LOST), "rank 2 only reports timeouts or closed connections"),
        ((LOST,), "the other rank only reports timeouts or closed connections"),
        ((CODE, CODE), "the other ranks only report exit codes"),
        ((RUNNING, CODE, LOST), "ranks 2-3 only report exit codes, timeouts or closed connections"),
        ((CUT, LOST), "no other log shows a cause"),
    ],
)  # fmt: skip
def test_the_reason_is_true_of_the_other_logs(
    others: tuple[str, ...], reason: str, tmp_path: Path, table: Table
) -> None:
    """Rank 0 raises an exception; the reason names what the others report, and which of them."""
    logs = {f"rank{n}.log": RUNNING + text for n, text in enumerate(others, 1)}
    incident = incident_of(write(tmp_path, {"rank0.log": KEY_ERROR, **logs}), table)
    assert incident.first is not None
    assert incident.first.rank == 0
    assert incident.decided_by == reason
    assert ("stopped waiting" in incident_lines(incident)[0]) == (LOST in others)


def test_a_launchers_report_is_a_failure_in_another_log(tmp_path: Path, table: Table) -> None:
    """It is no rank's."""
    logs = {"rank0.log": KEY_ERROR, "rank1.log": RUNNING, "launcher.log": CODE}
    incident = incident_of(write(tmp_path, logs), table)
    assert incident.decided_by == "no other rank's log shows a failure"


def test_a_log_that_ends_in_a_traceback_does_not_end_without_an_error(
    tmp_path: Path, table: Table
) -> None:
    """It ends without a reason."""
    logs = {"rank0.log": CUT, "rank1.log": LOST, "rank2.log": LOST}
    incident = incident_of(write(tmp_path, logs), table)
    assert incident.decided_by == (
        "the log of rank 0 ends without a reason while others report timeouts or closed connections"
    )
