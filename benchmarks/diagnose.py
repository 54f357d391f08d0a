"""What the failure diagnosis costs, and how often it is right on labelled logs.

``python -m benchmarks.diagnose`` scores the rules on the public logs that the tests use, or on your own with ``--labels``,
beside a baseline that looks for the last error line. A third of the repositories of the public logs is held out: rules are
written without a look at these.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import math
import os
import pathlib
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.measure import ROOT, TIMES, Row, python, repeated, samples, wall
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import CLASSES, NONE, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis
from pairun.diagnose.gathering import answer
from pairun.diagnose.lines import Log
from pairun.diagnose.logfiles import files_in
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose
from pairun.errors import Problems
from pairun.playbook.content import Content, built_in_root, open_content
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


_DEADLINE_S = 60.0
"""The limit for one log, in seconds."""

_LIMITS = (0.75, 0.85, 0.95, 1.01)
_FEW, _CONFUSIONS = 8, 15


class Labelled(NamedTuple):
    """A labelled log; the texts of the public ones are third parties', and not part of this repository.

    Attributes:
        id: its name.
        klass: what it died of.
        logs: its texts; one of each instance.
        also: other classes that are acceptable.
        retry: whether to run the job again; empty if nobody says.
        line: the line that shows why, or a part of it, or several such, between ``||``; empty if nobody says.
        exit_code: what the job ended with; None if unknown.
        groups: the tables in which it counts: its kind, framework and set.
        held_out: nobody looked at it when rules were written.
        path: its file; empty for a text.
        first_rank: the rank that failed first; None if there is none, or nobody says.
    """

    id: str
    klass: str
    logs: tuple[Log, ...]
    also: tuple[str, ...] = ()
    retry: str = ""
    line: str = ""
    exit_code: int | None = None
    groups: tuple[str, ...] = ()
    held_out: bool = False
    path: str = ""
    first_rank: int | None = None

    def accepts(self, klass: str) -> bool:
        """Whether a class is the label or acceptable."""
        return klass == self.klass or klass in self.also

    def has_line(self, shown: str) -> bool:
        """Whether a line that is shown is the labelled one, at most without its prefix."""
        parts = [part.strip() for part in self.line.split("||")]
        return any(part in shown or (shown and part.endswith(shown.strip())) for part in parts)


def labelled_logs(file: pathlib.Path) -> Iterator[Labelled]:
    """The logs of a file of labels.

    Args:
        file: either JSON lines with ``id``, ``class``, and ``text``, ``files`` (name to text) or ``file``
            (a path relative to this file), optionally ``also``, ``retry``, ``line``, ``framework``, ``kind``,
            ``exit_code``; or CSV with ``file``, ``class``, optionally ``exit_code``, ``url``, ``neighbours``,
            ``line_text``, ``first_rank``, ``retry_helps``, ``merged``, whose logs are below the folder ``logs``
            beside it.
    """
    with open(file, newline="", encoding="utf-8") as f:
        if file.suffix != ".csv":
            yield from (_of_record(json.loads(line), file) for line in f)
            return
        yield from (_of_row(row, file) for row in csv.DictReader(f))


def _of_row(row: Mapping[str, str], file: pathlib.Path) -> Labelled:
    path = file.parent / "logs" / row["file"]
    code, url, rank = row.get("exit_code") or "", row.get("url") or "", row.get("first_rank") or ""
    logs = tuple(
        Log(pathlib.Path(each.path).read_bytes(), each.within) for each in files_in([str(path)])
    )
    held_out = is_held_out(url)
    helps = {"yes": "retry", "no": "after_fix"}.get(row.get("retry_helps") or "")
    groups = [f"set {file.parent.name}", "held out" if held_out else "seen"]
    groups += ["ranks"] if row.get("merged") == "1" else []
    return Labelled(
        row["file"], row["class"], logs,
        tuple(re.split(r"[ ;|]+", row.get("neighbours") or "")), helps or CLASSES[row["class"]].retry or "",
        row.get("line_text") or "", int(code) if code else None, tuple(groups), held_out, str(path),
        int(rank) if rank.isdigit() else None,
    )  # fmt: skip


def _of_record(record: Mapping[str, Any], file: pathlib.Path) -> Labelled:
    if record.get("files"):
        logs = tuple(Log(text.encode(), name) for name, text in record["files"].items())
    elif record.get("file"):
        logs = (Log((file.parent / record["file"]).read_bytes(), record["file"]),)
    else:
        logs = (Log((record.get("text") or "").encode(), record["id"]),)
    groups = [f"set {file.stem}", f"kind {record.get('kind') or 'excerpt'}"]
    groups += [f"framework {record['framework']}"] if record.get("framework") else []
    return Labelled(
        record["id"], record["class"], logs, tuple(record.get("also") or ()), record.get("retry") or "",
        record.get("line") or "", record.get("exit_code"), tuple(groups),
    )  # fmt: skip


def is_held_out(url: str) -> bool:
    """Whether a repository belongs to the third that is held out: by the hash of owner/name."""
    found = re.match(r"https?://github\.com/([^/\s]+)/([^/\s#?]+)", url)
    name = f"{found[1]}/{found[2]}".lower() if found else url
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 3 == 0


def excerpts(shared: pathlib.Path) -> list[Labelled]:
    """The public logs."""
    return list(labelled_logs(shared / "failures" / "labels.csv"))


class Judged(NamedTuple):
    """A labelled log, what the rules say of it, and the rank that they call the first."""

    log: Labelled
    found: Diagnosis
    rank: int | None = None


def judged(logs: Sequence[Labelled], table: Table) -> list[Judged]:
    """What the rules say of each; of a file as ``pairun diagnose FILE`` does."""
    results = []
    for each in logs:
        facts = Circumstances(exit_code=each.exit_code)
        incident = None
        if each.path:
            incident = answer(files_in([each.path]), table, _DEADLINE_S, facts).incident
        if incident is None:
            results.append(Judged(each, diagnose(each.logs, table, facts, _DEADLINE_S)))
        else:
            first = incident.first
            results.append(Judged(each, incident.diagnosis, first and first.rank))
    return results


def is_wrong_stop(log: Labelled, found: Diagnosis) -> bool:
    """Whether the advice forbids a retry that may help."""
    return log.retry in ("retry", "retry_elsewhere") and found.retry in ("after_fix", "never")


_ERROR = re.compile(
    rb"(?i)error|exception|fatal|killed|fail(?:ed|ure)|abort|traceback|out of memory"
)
_BY_WORDS = (
    ("gpu_oom", r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|HIP out of memory"),
    (
        "host_oom",
        r"OOMKilled|oom-kill|MemoryError|[Cc]annot allocate memory|Killed$|std::bad_alloc",
    ),
    ("shm_too_small", r"shared memory \(shm\)|Bus error"),
    ("disk_full", r"No space left on device"),
    ("too_many_open_files", r"Too many open files"),
    ("module_not_found", r"ModuleNotFoundError|ImportError: cannot import"),
    ("shared_lib_error", r"cannot open shared object|undefined symbol"),
    ("command_not_found", r"command not found"),
    ("file_not_found", r"FileNotFoundError|No such file or directory"),
    ("permission_denied", r"[Pp]ermission denied"),
    ("nccl_timeout", r"Watchdog caught collective|collective operation timeout"),
    ("peer_lost", r"[Cc]onnection (?:reset|closed) by peer|remote process exited"),
    ("nccl_system_error", r"ncclSystemError|ncclRemoteError"),
    ("rendezvous_timeout", r"RendezvousTimeout|rendezvous"),
    ("network_unreachable", r"[Cc]onnection refused|Name or service not known|name resolution"),
    ("device_assert", r"device-side assert"),
    ("cuda_kernel_error", r"illegal memory access|CUDA error"),
    ("gpu_lost", r"fallen off the bus|Xid"),
    ("gpu_ecc_error", r"uncorrectable ECC"),
    ("port_in_use", r"[Aa]ddress already in use"),
    ("time_limit", r"DUE TO TIME LIMIT|[Tt]ime limit"),
    ("terminated_sigterm", r"SIGTERM|Terminated$"),
    ("cancelled_by_user", r"KeyboardInterrupt|CANCELLED"),
    ("segfault", r"[Ss]egmentation fault|SIGSEGV"),
    ("loss_nan", r"(?i)loss\W+nan"),
    ("syntax_error", r"SyntaxError|IndentationError"),
    ("usage_error", r"unrecognized arguments|usage:"),
    ("image_missing", r"ImagePull|manifest unknown"),
    ("shape_or_index_error", r"size mismatch|shapes? .*cannot be|IndexError|must match the size"),
    ("child_failed", r"ChildFailedError|exit(?:ed with)? (?:code|status)"),
    ("user_code_error", r"\w+Error\b"),
)


def baseline(log: Labelled) -> tuple[str, str]:
    """What a search for the last error line finds: the class by its words, and the line."""
    lines = [line for each in log.logs for line in each.data.split(b"\n") if _ERROR.search(line)]
    if not lines or log.exit_code == 0:
        return NONE, ""
    last = lines[-1].decode("utf-8", "replace")
    return next((k for k, words in _BY_WORDS if re.search(words, last)), UNKNOWN), last


def score_lines(results: Sequence[Judged]) -> Iterator[str]:
    """The tables: the right line, the class, the first rank, calibration, false alarms, wrong advice, confusions."""
    heads = ("line", "baseline's", "strict", "neighbour", "baseline's", "first rank")
    yield f"{'logs':28}{'count':>6}" + "".join(f"{head:>22}" for head in heads)
    groups: dict[str, list[Judged]] = {}
    for each in results:
        is_healthy = each.log.klass == NONE
        for name in ("all", "healthy" if is_healthy else "failed", *each.log.groups):
            groups.setdefault(name, []).append(each)
    for name, group in sorted(groups.items()):
        if not name.startswith("framework") or len(group) >= _FEW:
            yield f"{name:28}{len(group):6}" + "".join(f"{cell:>22}" for cell in _cells(group))
    yield from _calibration(results)
    healthy = [each for each in results if each.log.klass == NONE]
    alarms = sum(not each.log.accepts(each.found.klass) for each in healthy)
    nothing = sum(r.found.klass == NONE and not r.log.accepts(NONE) for r in results)
    named = [r for r in results if r.log.first_rank is not None and r.rank is not None]
    yield f"false alarms: {alarms} of {len(healthy)} healthy logs"
    yield f"failures called healthy: {nothing} of {len(results) - len(healthy)}"
    yield f"another first rank named: {sum(r.rank != r.log.first_rank for r in named)}"
    yield f"wrong 'do not retry': {sum(is_wrong_stop(r.log, r.found) for r in results)}"
    wrong = (each for each in results if not each.log.accepts(each.found.klass))
    pairs = Counter((each.log.klass, each.found.klass) for each in wrong)
    for (klass, answered), count in pairs.most_common(_CONFUSIONS):
        yield f"{klass} was taken for {answered}: {count}"


def _cells(group: Sequence[Judged]) -> Iterator[str]:
    """Shares with their 95 % intervals: evidence first, then the class, then the rank."""
    lined = [each for each in group if each.log.line]
    ranked = [each for each in group if each.log.first_rank is not None]
    yield _share(
        [any(each.log.has_line(e.text) for e in each.found.evidence[:1]) for each in lined]
    )
    yield _share([each.log.has_line(baseline(each.log)[1]) for each in lined])
    yield _share([each.log.klass == each.found.klass for each in group])
    yield _share([each.log.accepts(each.found.klass) for each in group])
    yield _share([each.log.accepts(baseline(each.log)[0]) for each in group])
    yield _share([each.rank == each.log.first_rank for each in ranked])


def _share(right: Sequence[bool]) -> str:
    if not right:
        return "-"
    low, high = _interval(sum(right), len(right))
    return f"{sum(right) / len(right):.1%} ({low:.0%}-{high:.0%})"


def _interval(right: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share, by Wilson's formula."""
    z, share = 1.96, right / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return middle - half, middle + half


def _calibration(results: Sequence[Judged]) -> Iterator[str]:
    low = 0.0
    for high in _LIMITS:
        within = [each for each in results if low <= each.found.confidence < high]
        right = sum(each.log.accepts(each.found.klass) for each in within)
        name = f"from {low:.2f}" if high > 1 else f"below {high:.2f}"
        yield f"confidence {name:17}{len(within):6}{right / max(1, len(within)):14.1%}"
        low = high


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


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnose", description=__doc__)
    parser.add_argument("--labels", action="append", default=[], type=pathlib.Path, metavar="FILE",
                        help="labelled logs with their texts: JSON lines, or CSV beside a folder of logs")  # fmt: skip
    parser.add_argument("--root", action="append", default=[], metavar="DIR",
                        help="a content root with further rules")  # fmt: skip
    args = parser.parse_args(argv)
    shared = pathlib.Path(os.environ.get("PAIRUN_SHARED", ROOT.parent / "shared"))
    logs = [each for file in args.labels for each in labelled_logs(file)] or excerpts(shared)
    table = read_rules(open_content(args.root, os.environ), Problems()).table()
    print(*score_lines(judged(logs, table)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
