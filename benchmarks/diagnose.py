"""What the failure diagnosis costs, and how often it is right on logs that nobody wrote it for.

``python -m benchmarks.diagnose`` prints the tables of the labelled third-party logs. A third of
their repositories is held out: rules are written without a look at these.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import pathlib
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.measure import ROOT, TIMES, Row, python, repeated, samples, wall
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import CLASSES, NONE, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis
from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose
from pairun.errors import Problems
from pairun.playbook.content import Content, built_in_root
from pairun.playbook.rules import read_rules

_SIZE = 10 * 1024 * 1024
_BASELINE = "import sys; open(sys.argv[1], 'rb').read().lower().count(b'error')"
_PROGRAM = """
import json, resource, sys, time
from pairun.diagnose.table import Table
from pairun.diagnose.lines import Log
from pairun.diagnose.weighing import diagnose
table = Table(json.load(open(sys.argv[1])))
data = open(sys.argv[2], "rb").read()
start = time.perf_counter()
found = diagnose([Log(data)], table)
spent = (time.perf_counter() - start) * 1000
print(json.dumps([found.klass, spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


class Excerpt(NamedTuple):
    """A labelled log.

    Attributes:
        name: its path below the folder of logs.
        klass: what it died of.
        exit_code: what it ended with, where that is known.
        hard: something frightening in it is not the cause.
        held_out: nobody looked at it when rules were written.
        data: its text.
    """

    name: str
    klass: str
    exit_code: int | None
    hard: bool
    held_out: bool
    data: bytes


def is_held_out(url: str) -> bool:
    """Whether a repository belongs to the third that is held out: by the hash of owner/name."""
    found = re.match(r"https?://github\.com/([^/\s]+)/([^/\s#?]+)", url)
    name = f"{found[1]}/{found[2]}".lower() if found else url
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 3 == 0


def excerpts(shared: pathlib.Path) -> list[Excerpt]:
    """The labelled logs; the texts are third parties', and not part of this repository."""
    folder = shared / "failures"
    out = []
    with open(folder / "labels.csv", newline="", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            path = folder / row["file"]
            path = path if path.exists() else folder / "logs" / row["file"]
            code = int(row["exit_code"]) if row["exit_code"] else None
            out.append(
                Excerpt(
                    row["file"],
                    row["class"],
                    code,
                    row["hard"] == "1",
                    is_held_out(row["url"]),
                    path.read_bytes(),
                )
            )
    return out


def built_in_table() -> Table:
    """The built-in rules."""
    return read_rules(Content([built_in_root()]), Problems()).table()


def judged(logs: Sequence[Excerpt], table: Table) -> list[tuple[Excerpt, Diagnosis]]:
    """What is said of each."""
    return [
        (e, diagnose([Log(e.data, e.name)], table, Circumstances(exit_code=e.exit_code)))
        for e in logs
    ]


def is_wrong_stop(excerpt: Excerpt, found: Diagnosis) -> bool:
    """Whether somebody is told not to run a job again that should be run again."""
    again = CLASSES[excerpt.klass].retry in ("retry", "retry_elsewhere")
    return again and found.retry in ("after_fix", "never")


def tables(results: Sequence[tuple[Excerpt, Diagnosis]]) -> Iterator[str]:
    """Support, precision and recall of each class, what was taken for what, and the sums."""
    pairs = Counter((e.klass, found.klass) for e, found in results)
    said = Counter(k for _, k in pairs.elements())
    true = Counter(k for k, _ in pairs.elements())
    yield f"{'class':24}{'support':>8}{'precision':>10}{'recall':>8}"
    for klass in sorted(true):
        right = pairs[klass, klass]
        precision = f"{right / said[klass]:.2f}" if said[klass] else "-"
        yield f"{klass:24}{true[klass]:8}{precision:>10}{right / true[klass]:8.2f}"
    for (klass, other), count in sorted(pairs.items()):
        if klass != other:
            yield f"{klass} was taken for {other}: {count}"
    right = sum(n for (a, b), n in pairs.items() if a == b)
    alarms = sum(e.klass == NONE and found.klass != NONE for e, found in results)
    stops = sum(is_wrong_stop(e, found) for e, found in results)
    unknown = sum(found.klass == UNKNOWN for _, found in results)
    yield f"right: {right} of {len(results)} ({right / len(results):.1%}), unknown: {unknown}"
    yield f"false alarms: {alarms}, wrong 'do not run it again': {stops}"


def rows() -> Iterator[Row]:
    """What 10 MiB of log cost."""
    folder = ROOT / "build"
    folder.mkdir(exist_ok=True)
    rules, log = folder / "diagnosis.json", folder / "diagnosis.log"
    rules.write_text(
        json.dumps(read_rules(Content([built_in_root()]), Problems()).data()), encoding="utf-8"
    )
    line = "[2024-01-01 00:00:{:02}] [INFO] [Rank {}] step={} loss: 0.{:05} error_rate: 0.0{}\n"
    with open(log, "w", encoding="utf-8") as f:
        size = n = 0
        while size < _SIZE:
            size += f.write(line.format(n % 60, n % 8, n, n * 7919 % 100_000, n % 9))
            n += 1
        f.write('Traceback (most recent call last):\n  File "t.py", line 1, in f\nKeyError: 1\n')
    count = wall(lambda: python("-c", _BASELINE, str(log)))
    measured = repeated(TIMES, lambda: json.loads(python("-c", _PROGRAM, str(rules), str(log))))
    assert {klass for klass, _, _ in measured} == {"user_code_error"}
    memory = max(m for _, _, m in measured)
    spent = samples([ms for _, ms, _ in measured])
    note = f"{memory:.0f} MB of memory in all"
    yield Row("diagnosis of 10 MiB", "ms", spent, 500.0, "read and count a word", count, note)
    log.unlink()


def main() -> int:
    """Print the tables of both parts."""
    shared = pathlib.Path(os.environ.get("PAIRUN_SHARED", ROOT.parent / "shared"))
    logs = excerpts(shared)
    table = built_in_table()
    for held_out in (False, True):
        print("held out" if held_out else "seen")
        for told in tables(judged([e for e in logs if e.held_out == held_out], table)):
            print(f"  {told}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
