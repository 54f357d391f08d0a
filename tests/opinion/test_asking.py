"""The second opinion: only where rules know no cause, and never a reason to stop."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.diagnosis.training import Example, trained
from pairun.cli import main as cli
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import CLASSES
from pairun.diagnose.diagnosis import Diagnosis
from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import ADVISED, diagnose
from pairun.opinion import asking
from pairun.opinion.asking import LEAST, MOST, WEIGHTS, opinion_on, with_opinion
from pairun.opinion.classifier import Classifier, Guess
from pairun.opinion.features import features_of

UNKNOWN = "loading\nFATAL: the reactor scrammed at dawn\nbye\n"
EMPTY = Table({"schema": 1, "exit_codes": {}, "rules": []})


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A classifier that knows four endings."""
    examples = [
        Example(features_of([f"{text} {n}"]), klass, f"{klass}/{n}")
        for klass, text in (
            ("disk_full", "FATAL: the reactor scrammed"),
            ("peer_lost", "the flux capacitor is discharged"),
            ("hang", "still waiting for all workers"),
            ("gpu_lost", "Xid after a bus reset"),
        )
        for n in range(3)
    ]
    path = tmp_path / "weights.bin"
    path.write_bytes(trained(examples))
    monkeypatch.setattr(asking, "WEIGHTS", str(path))
    return path


def _asked(text: str, code: int | None = 1) -> tuple[Diagnosis, Diagnosis]:
    log = Log(text.encode(), "a.log")
    rules = diagnose([log], EMPTY, Circumstances(exit_code=code))
    return rules, with_opinion(rules, opinion_on([log]))


def test_an_unknown_cause_gets_the_class_of_similar_logs(weights: Path) -> None:
    """With little confidence, the line that shows most, and no advice against a retry."""
    rules, opinion = _asked(UNKNOWN)
    assert rules.klass == "unknown"
    assert opinion.klass == "disk_full"
    assert LEAST <= opinion.confidence <= MOST < ADVISED / 100
    assert opinion.headline == f"no rule matches; similar logs: {CLASSES['disk_full'].meaning}"
    assert opinion.evidence[0].text == "FATAL: the reactor scrammed at dawn"
    assert CLASSES["disk_full"].retry == "after_fix"
    assert opinion.retry is None
    assert opinion.details["opinion"] == "similar logs"
    assert _asked("FATAL: flux capacitor is discharged\n")[1].retry == CLASSES["peer_lost"].retry


def test_it_abstains(weights: Path) -> None:
    """Where rules have an answer, where nothing is wrong, where no class is near, without its data."""
    for text, code in (("the reactor scrammed\n", 0), ("xyzzy\n", 1), ("", 1)):
        rules, opinion = _asked(text, code)
        assert opinion == rules
    rules, _ = _asked(UNKNOWN)
    known = rules._replace(klass="host_oom", confidence=0.4)
    assert with_opinion(known, Guess("disk_full", 1.0)) == known
    weights.write_bytes(weights.read_bytes()[:-1])
    assert _asked(UNKNOWN)[1].klass == "unknown"
    weights.unlink()
    assert _asked(UNKNOWN)[1].klass == "unknown"


def test_the_command_asks_for_a_single_log(
    weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of several logs of a job the rules alone decide, since one rank's opinion is no evidence."""
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text(UNKNOWN)
    assert cli.main(["diagnose", str(tmp_path / "a.log")]) == 0
    assert f"similar logs: {CLASSES['disk_full'].meaning} (disk_full, " in capsys.readouterr().out
    assert cli.main(["diagnose", str(tmp_path / "a.log"), str(tmp_path / "b.log")]) == 0
    assert "similar logs" not in capsys.readouterr().out


def test_the_weights_that_pairun_brings_are_small_and_of_known_classes() -> None:
    """Below a megabyte; every class is one of pairun's."""
    data = Path(WEIGHTS).read_bytes()
    assert len(data) < 1_000_000
    assert set(Classifier(data).cosines([])) <= CLASSES.keys()
