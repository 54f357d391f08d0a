"""A column names the writer of a line; a text that mentions a rank or a worker does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pairun.diagnose.layouts import with_names
from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from tests.diagnose.jobs import incident_of, write

TRACE = 'Traceback (most recent call last):\n  File "t.py", line 1, in f\nKeyError: 1\n'


def _log(line: str, end: str = "") -> str:
    """Lines of four ranks, in turn."""
    return "".join(f"2026-03-01 12:04:{k:02} {line.format(n=k % 4)}\n" for k in range(40)) + end


@pytest.mark.parametrize(
    "line",
    [
        "WARNING worker 3{n}: retrying connection to host-12, failed attempt 4: not found",
        "INFO rank {n} joined",
        "INFO finished the shard of [rank {n}]",
        "INFO worker-{n} lost its connection",
        "INFO task {n}: done",
        "WARNING worker-{n}: retrying connection to host-12: ConnectionError: refused",
    ],
)
@pytest.mark.parametrize("end", [TRACE, "KeyError: 1\n"])
def test_a_text_that_mentions_workers_names_no_writers(
    tmp_path: Path, table: Table, line: str, end: str
) -> None:
    """The answer is that for the log of one program."""
    incident = incident_of(write(tmp_path, {"main.log": _log(line, end)}), table)
    assert incident.first is None or incident.first.rank is None
    assert incident.diagnosis.klass == "user_code_error"
    assert "KeyError: 1" in incident.diagnosis.headline


@pytest.mark.parametrize(
    "line",
    [
        "INFO [rank {n}] step 3",
        "[INFO ] [Rank {n}] step 3",
        "[worker={n}] [INFO] step 3",
        "rank {n} INFO step 3",
        "INFO train.py:33 (rank {n}) step 3",
        "INFO|rank {n}|step 3",
    ],
)
def test_a_column_names_the_writers(line: str) -> None:
    """It is in brackets or before the level."""
    log = Log(_log(line).encode(), "log")
    shown = with_names(log).data.splitlines()
    assert [each[:9] for each in shown[:4]] == [
        b"[rank0]: ",
        b"[rank1]: ",
        b"[rank2]: ",
        b"[rank3]: ",
    ]


def test_a_traceback_after_a_line_that_is_no_error_has_no_rank(
    tmp_path: Path, table: Table
) -> None:
    """Ranks that share a log print in turn, so that the line before it may be of any of them."""
    text = _log("[INFO] [Rank {n}] step=3 error_rate: 0.05", TRACE)
    incident = incident_of(write(tmp_path, {"main.log": text}), table)
    assert incident.first is None or incident.first.rank is None
    assert incident.diagnosis.evidence[0][1:] == (43, "KeyError: 1")


def test_a_traceback_that_a_logger_prints_with_an_error_has_the_rank_of_the_line(
    tmp_path: Path, table: Table
) -> None:
    """The lines after it may be of other ranks."""
    text = _log("[INFO] [Rank {n}] step=3", f"2026-03-01 12:05:00 [ERROR] [Rank 2] failed\n{TRACE}")
    text += "2026-03-01 12:05:01 [INFO] [Rank 1] step=4\n"
    incident = incident_of(write(tmp_path, {"main.log": text}), table)
    assert incident.first is not None
    assert incident.first.rank == 2


def test_lines_keep_their_number_and_text() -> None:
    """Only names are added, to the lines of loggers and of the tracebacks that they print."""
    text = _log("[INFO] [Rank {n}] step=3", f"2026-03-01 12:05:00 [ERROR] [Rank 2] failed\n{TRACE}")
    text += "2026-03-01 12:05:01 [INFO] [Rank 1] step=4\nKilled"
    shown = with_names(Log(text.encode(), "log")).data.decode()
    added = [(new, old) for new, old in zip(shown.split("\n"), text.split("\n"), strict=True)]
    assert all(new.removesuffix(old).startswith("[rank") for new, old in added[:-1])
    assert [new[:9] for new, _ in added[40:]] == [*["[rank2]: "] * 4, "[rank1]: ", "Killed"]
