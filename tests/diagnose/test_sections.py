"""Several logs in one file, each under a header."""

from __future__ import annotations

from pathlib import Path

import pytest

from pairun.diagnose.decoding import decoded
from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from tests.diagnose.jobs import KEY_ERROR, incident_of, write

LOST = (
    "2026-03-01 12:04:16,871 INFO step 120 loss 0.70\n"
    "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:41\n"
)


@pytest.mark.parametrize(
    "header",
    ["==> logs/worker-{}.log <==\n", "----------------\ngpu-{}\n----------------\n"],
    ids=["tail", "dshbak"],
)
def test_the_first_rank_is_that_of_its_section(tmp_path: Path, table: Table, header: str) -> None:
    """The evidence has the line number of the file."""
    texts = [header.format(n) + (KEY_ERROR if n == 1 else LOST) for n in range(3)]
    incident = incident_of(write(tmp_path, {"all.txt": "".join(texts)}), table)
    assert incident.first is not None
    assert incident.first.rank == 1
    expected = "".join(texts)[: "".join(texts).index("KeyError")].count("\n") + 1
    assert incident.diagnosis.evidence[0].line == expected


def test_a_ruled_line_alone_is_no_header() -> None:
    """Programs underline their headings."""
    log = Log(b"----------\nsummary\n----------\nloss 0.7\n", "log")
    assert decoded(log) is log
