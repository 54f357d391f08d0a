"""Journals of a gigabyte: the report reads both ends, and says what it left out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attack.fuzz.targets import PROJECT
from tests.effort import rows

HEAD = (PROJECT / "tests/skew/volume-0.1/journal.jsonl").read_bytes()
TAIL = b'{"schema": 1, "time": 1795333999.0, "type": "phase_end", "phase": "runtime", "outcome": "success", "exit_code": 0, "message": "", "seconds": 1.0}\n'
LIMITED = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (300 << 20,) * 2); resource.setrlimit(resource.RLIMIT_CPU, (20, 20)); from pairun.cli.main import main; sys.exit(main(sys.argv[1:]))"


def report(file: Path, *options: str) -> subprocess.CompletedProcess[bytes]:
    """Report with 300 MB of memory and 20 s of CPU time."""
    return subprocess.run(
        [sys.executable, "-c", LIMITED, "report", *options, str(file)],
        cwd=PROJECT, capture_output=True, check=False,
    )  # fmt: skip


def test_a_sparse_journal_of_a_gigabyte(tmp_path: Path) -> None:
    """A hole in a journal, as a broken disk leaves it, costs neither memory nor the end."""
    file = tmp_path / "journal.jsonl"
    with file.open("wb") as stream:
        stream.write(HEAD)
        stream.seek(1 << 30)
        stream.write(b"\n" + TAIL)
    assert file.stat().st_blocks * 512 < 1 << 20
    done = report(file, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schema"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("options", rows([(), ("--html", "-")], 1), ids=str)
def test_a_journal_that_a_task_has_filled(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Of a long journal the first and the last records are read, and the report says so."""
    file = tmp_path / "journal.jsonl"
    begin, rest = HEAD.split(b"\n", 1)
    block = rest * (1 + (16 << 20) // len(rest))
    with file.open("wb") as stream:
        stream.write(begin + b"\n" + block)
        stream.seek(1 << 30)
        stream.write(b"\n" + block + TAIL)
    done = report(file, *options)
    assert done.returncode == 0, done.stderr[-2000:]
    assert b"in its middle were not read" in done.stdout
