"""What a command costs: the whole process, as a person waits for it."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterator

from benchmarks.measure import ROOT, Row, python, smallest_ms

HEAVY = ("jinja2", "jsonschema", "requests", "kubernetes")
"""Libraries that no command imports without using them."""

_REVIEW = ("-m", "pairun", "--dry-run")
_IMPORTS = f"""
import json, sys
from pairun.cli.main import main
main(["--version"])
print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))
"""


def rows() -> Iterator[Row]:
    """The commands that people wait for."""
    empty = smallest_ms(lambda: python("-c", "pass"), 5)
    baseline = "python -c pass"
    imported = json.loads(python("-c", _IMPORTS).splitlines()[-1])
    version = smallest_ms(lambda: python("-m", "pairun", "--version"), 5)
    note = f"imports {', '.join(imported)}" if imported else f"imports none of {', '.join(HEAVY)}"
    yield Row("pairun --version", version, 150.0, baseline, empty, note, broken=bool(imported))
    one = str(ROOT / "examples" / "two-roles.yaml")
    review = smallest_ms(lambda: python(*_REVIEW, one), 5)
    yield Row("pairun --dry-run, one job", review, 400.0, baseline, empty)
    yield from _many(review)


def _many(one_ms: float) -> Iterator[Row]:
    """Many jobs in one call; the texts are third parties', and not part of this repository."""
    shared = pathlib.Path(os.environ.get("PAIRUN_SHARED", ROOT.parent / "shared"))
    jobs = sorted(str(p) for p in (shared / "openpai" / "jobs").rglob("*.yaml"))
    if not jobs:
        return
    # some of them are wrong on purpose: then the call ends with 1
    each = smallest_ms(lambda: python(*_REVIEW, *jobs, codes=(0, 1)), 3) / len(jobs)
    yield Row(f"one of {len(jobs)} jobs in one call", each, 20.0, "a call of its own", one_ms)
