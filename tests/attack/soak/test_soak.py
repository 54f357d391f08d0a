"""A long job: many lines, many orphans, many signals, at the same memory and descriptors.

Half a minute in the gate; ``make soak`` takes an hour, with ten million lines and 100,000 children.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from typing import Any, NamedTuple

import pytest

from tests.surroundings import GIVEN

HERE = pathlib.Path(__file__).parent
MINUTES = float(GIVEN.get("PAIRUN_SOAK_MINUTES") or 0.5)
LINES_PER_MINUTE = 10_000_000 / 60
CHILDREN_PER_MINUTE = 100_000 / 60
SAMPLE_S = 1.0
WARM_UP = 0.2
"""The part of the time in which caches and buffers may still grow."""

MAX_GROWTH_KB = 2048
MAX_ZOMBIES = 200
SECRET = "hunter2-is-secret"


class Sample(NamedTuple):
    """What PID 1 uses at a moment."""

    rss_kb: int
    descriptors: int
    children: int


def _sample(pid: int) -> Sample:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    rss = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return Sample(int(rss.split()[1]), len(os.listdir(f"/proc/{pid}/fd")), len(children.split()))


class Reader:
    """Reads the container's standard output, and checks each line."""

    def __init__(self, stream: Any) -> None:
        self.lines = self.masked = 0
        self.problems: list[bytes] = []
        self.last = b""
        self._stream = stream
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for the end of the stream."""
        self._thread.join(60)

    def _run(self) -> None:
        for line in self._stream:
            self.last = line
            if not line.startswith(b"line "):
                continue
            number, text = line.split()[1:3]
            is_masked = text == b"******"
            if int(number) != self.lines or is_masked != (self.lines % 100 == 0):
                self.problems.append(line)
            self.lines += 1
            self.masked += is_masked


def _runtime(root: pathlib.Path) -> list[str]:
    """The bundle that `PAIRUN_SOAK_BUNDLE` names, or this Python."""
    if bundle := GIVEN.get("PAIRUN_SOAK_BUNDLE"):
        return [bundle]
    return [sys.executable, "-P", "-m", "pairun", "runtime"]


@pytest.mark.slow
def test_soak(volume: Any) -> None:
    """Memory and descriptors of PID 1 stay the same; no line is lost; each secret is masked."""
    folder = volume.root / "logs" / "local"
    folder.mkdir(parents=True)
    redact = {"schema": 2, "redact": [SECRET], "values": {}}
    (volume.files / "secrets.json").write_text(json.dumps(redact))
    lines, children = int(LINES_PER_MINUTE * MINUTES), int(CHILDREN_PER_MINUTE * MINUTES)
    volume.args(
        argv=[
            sys.executable,
            str(HERE / "load.py"),
            str(MINUTES),
            str(lines),
            str(children),
            SECRET,
        ]
    )
    env = {
        **os.environ, "PAIRUN_PAI_DIR": str(volume.root), "PAIRUN_PLAIN_FILES": "1",
        "PAIRUN_LOG_BYTES": "1Mi",
    }  # fmt: skip
    phase = subprocess.Popen(
        _runtime(volume.root), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    reader = Reader(phase.stdout)
    samples: list[Sample] = []
    began = time.monotonic()
    while phase.poll() is None and (part := (time.monotonic() - began) / (MINUTES * 60)) < 0.98:
        if part > WARM_UP:
            samples.append(_sample(phase.pid))
        if reader.lines:
            phase.send_signal(signal.SIGUSR1)
        time.sleep(SAMPLE_S)
    assert phase.wait(300) == 5, reader.last
    reader.join()
    assert phase.stdout is not None
    phase.stdout.close()

    assert reader.lines == lines
    assert not reader.problems[:3]
    first, last = samples[0], samples[-1]
    report = f"{len(samples)} samples, from {first} to {last}"
    assert max(s.rss_kb for s in samples) - first.rss_kb < MAX_GROWTH_KB, report
    # a log that is rotated has a few descriptors more for a moment
    assert min(s.descriptors for s in samples[-20:]) == min(s.descriptors for s in samples[:20]), (
        report
    )
    assert max(s.children for s in samples) < MAX_ZOMBIES, report
    for name in ("user-stdout", "user-all"):
        assert sum(p.stat().st_size for p in (folder / name).iterdir()) <= 2.1 * (1 << 20)
        assert not any(SECRET.encode() in p.read_bytes() for p in (folder / name).iterdir())
    assert sum(p.stat().st_size for p in folder.iterdir() if p.is_file()) < 100_000
    print(report)
