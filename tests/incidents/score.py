"""``python -m tests.incidents.score [NAME ...]``: how well incidents are diagnosed, in numbers."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NamedTuple

from pairun.diagnose.gathering import gather
from pairun.diagnose.incident import Incident, join
from pairun.diagnose.logfiles import files_in
from pairun.diagnose.table import Table
from pairun.errors import Problems
from pairun.playbook.content import Content, built_in_root
from pairun.playbook.rules import read_rules

RECORDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorded")


class Score(NamedTuple):
    """What is right in the diagnosis of one incident.

    Attributes:
        strict: the class is the one that was injected.
        acceptable: it is that one or an acceptable one.
        first: the first rank is right; None where there is none, or where no log shows it and the
            diagnosis names none.
        named: the diagnosis names a rank.
        retry: the advice is the label's.
        forbidden: the advice forbids a retry that may help.
        said: class, rank and advice of the diagnosis.
    """

    strict: bool
    acceptable: bool
    first: bool | None
    named: bool
    retry: bool
    forbidden: bool
    said: str


def built_in_rules() -> Table:
    """Return the built-in rules."""
    return read_rules(Content([built_in_root()]), Problems()).table()


def expected_of(folder: str) -> dict[str, Any]:
    """Read what is known about an incident."""
    with open(os.path.join(folder, "expected.json")) as f:
        expected: dict[str, Any] = json.load(f)
    return expected


def joined(folder: str, rules: Table) -> Incident:
    """Join an incident's files, as ``pairun diagnose DIR`` does."""
    files = [f for f in files_in([folder]) if f.within != "expected.json"]
    return join(gather(files, rules, 60), rules)


def score(folder: str, rules: Table) -> Score:
    """Compare the diagnosis of an incident with its label."""
    expected = expected_of(folder)
    incident = joined(folder, rules)
    found, rank = incident.diagnosis, incident.first.rank if incident.first else None
    ranks = {expected["first_rank"], *expected.get("also_first", [])}
    is_open = expected["first_rank"] is None or (expected.get("untold", False) and rank is None)
    may_retry = expected["retry"] in {"retry", "retry_elsewhere"}
    return Score(
        found.klass == expected["class"],
        found.klass in {expected["class"], *expected["also"]},
        None if is_open else rank in ranks,
        rank is not None,
        found.retry == expected["retry"],
        may_retry and found.retry in {"after_fix", "never"},
        f"{found.klass}, rank {rank}, {found.retry}",
    )


def main() -> None:
    """Print a line for each incident, and the shares."""
    rules = built_in_rules()
    names = sys.argv[1:] or sorted(os.listdir(RECORDED))
    scores = {name: score(os.path.join(RECORDED, name), rules) for name in names}
    for name, one in scores.items():
        expected = expected_of(os.path.join(RECORDED, name))
        label = f"{expected['class']}, rank {expected['first_rank']}, {expected['retry']}"
        verdict = "ok" if one.strict and one.first is not False else "ACCEPTABLE"
        if not one.acceptable or one.first is False:
            verdict = "WRONG"
        print(f"{verdict:11}{name:32}{label:42}{'' if verdict == 'ok' else one.said}")
    print(f"{len(scores)} incidents")
    print("class strict         ", _share([one.strict for one in scores.values()]))
    print("class acceptable     ", _share([one.acceptable for one in scores.values()]))
    known = [s for s in scores.values() if s.first is not None]
    print("first rank           ", _share([s.first is True for s in known]))
    print("  another is named   ", sum(s.named and not s.first for s in known))
    print("  none is named      ", sum(not s.named for s in known))
    print("advice               ", _share([one.retry for one in scores.values()]))
    print("wrong do-not-retry   ", sum(one.forbidden for one in scores.values()))
    print(
        "false alarms         ",
        _share(
            [not s.strict for n, s in scores.items() if expected_of(f"{RECORDED}/{n}")["healthy"]]
        ),
    )


def _share(right: list[bool]) -> str:
    return f"{sum(right)} of {len(right)} ({sum(right) / max(len(right), 1):.0%})"


if __name__ == "__main__":
    main()
