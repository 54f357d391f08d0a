"""What a command costs: the CPU time of the whole process.

A person waits for hardly more: a command reads a few files, and asks nobody. On a busy machine the
time that passes says more about the others.
"""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import tempfile
from collections.abc import Iterator

from benchmarks.measure import ROOT, TIMES, NotMeasured, Row, cpu_ms, in_turns, python

HEAVY = ("jinja2", "jsonschema", "requests", "kubernetes")
"""Libraries that no command imports without using them."""

TIMES_PYTHON = 14.0
"""How many starts of Python the review of one job may cost."""

SHARE_OF_PYTHON = 0.3
"""What each of many jobs in a call may cost, as a share of a start of Python."""

MANY = 1000

_REVIEW = ("-m", "pairun", "--dry-run")
_ONE = str(ROOT / "examples" / "two-roles.yaml")
_IMPORTS = f"""
import json, sys
from pairun.cli.main import main
main(["--version"])
print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))
"""


def rows() -> Iterator[Row]:
    """The commands that people wait for, and those that a gate of many jobs waits for."""
    imported = json.loads(python("-c", _IMPORTS).splitlines()[-1])
    empty, version, review = in_turns(
        15,
        lambda: cpu_ms(lambda: python("-c", "pass")),
        lambda: cpu_ms(lambda: python("-m", "pairun", "--version")),
        lambda: cpu_ms(lambda: python(*_REVIEW, _ONE)),
    )
    peer = "python -c pass"
    note = f"imports {', '.join(imported)}" if imported else f"imports none of {', '.join(HEAVY)}"
    yield Row(
        "CPU of pairun --version", "ms", version, 150.0, peer, empty, note, broken=bool(imported)
    )
    goal = TIMES_PYTHON * empty.least
    yield Row("CPU of --dry-run, one job", "ms", review, goal, peer, empty)
    with tempfile.TemporaryDirectory() as folder:
        yield _many(_copies(pathlib.Path(folder)))


def _many(jobs: list[str]) -> Row:
    """Many jobs in one call. Some are wrong on purpose: then the call ends with 1."""
    empty, together = in_turns(
        TIMES,
        lambda: cpu_ms(lambda: python("-c", "pass")),
        lambda: cpu_ms(lambda: python(*_REVIEW, *jobs, codes=(0, 1))) / len(jobs),
    )
    return Row(
        f"CPU of --dry-run, one of {len(jobs)}", "ms", together, SHARE_OF_PYTHON * empty.least,
        "python -c pass", empty,
    )  # fmt: skip


def _copies(folder: pathlib.Path) -> list[str]:
    """As many files as are reviewed at once; the texts are third parties', not this project's.

    Raises:
        NotMeasured: they are missing.
    """
    shared = pathlib.Path(os.environ.get("PAIRUN_SHARED", ROOT.parent / "shared"))
    jobs = sorted((shared / "openpai" / "jobs").rglob("*.yaml"))
    if not jobs:
        raise NotMeasured("the review of many jobs: there are no third-party jobs (PAIRUN_SHARED)")
    paths = []
    for n, job in zip(range(MANY), itertools.cycle(jobs), strict=False):
        path = folder / f"{n}.yaml"
        path.write_bytes(job.read_bytes())
        paths.append(str(path))
    return paths
