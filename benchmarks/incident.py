"""What the diagnosis of a job's logs costs on the command line: its start, a large file, many ranks."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.measure import Row, wall

_LARGE = 200 << 20
_RANKS, _RANK = 64, 10 << 20
_PEAK_MB = 100
_END = 'Traceback (most recent call last):\n  File "t.py", line 1, in f\nKeyError: 1\n'
_LINE = "[2024-01-01 00:00:{:02}] [INFO] step={} loss: 0.{:05} shard: part-{:05}\n"


def _write(path: pathlib.Path, size: int) -> None:
    """Write the log of a job that trains, and then raises."""
    lines = "".join(_LINE.format(n % 60, n, n * 7919 % 100_000, n % 997) for n in range(20_000))
    with open(path, "w", encoding="utf-8") as f:
        written = 0
        while written < size:
            written += f.write(lines)
        f.write(_END)


def _diagnose(*paths: pathlib.Path) -> float:
    """Diagnose, and return the peak of memory of the largest process, in MB."""
    argv = [sys.executable, "-m", "pairun", "diagnose", *map(str, paths)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert process.stdout is not None
    output = process.stdout.read()
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert b"KeyError" in output, output
    return usage.ru_maxrss / 1024


def rows() -> Iterator[Row]:
    """The start, 200 MiB in one file, and 64 ranks of 10 MiB."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        small, large, job = folder / "small.log", folder / "large.log", folder / "job"
        small.write_text(_END)
        bare = wall(lambda: subprocess.run([sys.executable, "-c", ""], check=True))
        yield Row(
            "start of `diagnose`", "ms", wall(lambda: _diagnose(small)), 500.0, "bare Python", bare
        )
        _write(large, _LARGE)
        count = wall(lambda: subprocess.run(["wc", "-l", large], check=True, stdout=-3))
        peaks: list[float] = []
        spent = wall(lambda: peaks.append(_diagnose(large)))
        note = f"{max(peaks):.0f} MB of memory; {_PEAK_MB} MB at most"
        over = max(peaks) > _PEAK_MB
        yield Row("diagnosis of 200 MiB", "ms", spent, 2000.0, "wc -l", count, note, over)
        large.unlink()
        job.mkdir()
        for rank in range(_RANKS):
            _write(job / f"rank{rank}.log", _RANK)
        read = wall(
            lambda: subprocess.run(f"cat {job}/* | wc -l", shell=True, check=True, stdout=-3)
        )
        yield Row(
            "64 ranks of 10 MiB", "ms", wall(lambda: _diagnose(job)), 5000.0, "cat | wc -l", read
        )
