"""Trials of learned rules: what would change another verdict is refused, at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from pairun.errors import Problem, Problems, Source
from pairun.learning.trials import Trial, try_rules
from pairun.playbook.content import Content, built_in_root
from pairun.playbook.document.reading import read_text
from pairun.playbook.rules import Rules, read_rules
from tests.diagnose.cases import FAILED, HEALTHY, TRACE

RULE = """\
rules:
  - id: reactor-is-off
    class: {klass}
    weight: 97
    patterns: ['{pattern}']
    positive: ['FATAL: reactor 7 scrammed', 'FATAL: reactor 8 scrammed']
    negative: ['reactor 7 is on', 'no reactor was asked']
"""


@pytest.fixture(scope="module")
def known() -> Rules:
    """The built-in rules."""
    return read_rules(Content([built_in_root()]), Problems())


def _try(text: str, known: Rules, folder: Path) -> tuple[Trial, list[Problem]]:
    problems = Problems()
    document = read_text(Source("rules.yaml", "learned", text))
    return try_rules(document, known, str(folder), problems, []), list(problems)


def test_a_narrow_rule_passes(known: Rules, tmp_path: Path) -> None:
    """It explains logs that had no explanation, and changes no other verdict."""
    for n in range(3):
        (tmp_path / f"{n}.log").write_text(f"FATAL: reactor {n} scrammed\n")
    for n, text in enumerate([*(text for _, _, text in FAILED), *HEALTHY]):
        (tmp_path / f"known-{n}.log").write_text(text)
    text = RULE.format(klass="storage_io_error", pattern=r"reactor \d+ scrammed")
    trial, problems = _try(text, known, tmp_path)
    assert problems == []
    assert trial.rules == {"reactor-is-off": "storage_io_error"}
    assert trial.explained == {"reactor-is-off": 3}
    assert trial.logs > len(FAILED)
    assert trial.samples > 400


def test_a_rule_that_takes_another_rules_sample_is_refused(known: Rules, tmp_path: Path) -> None:
    """The error names the sample, both classes, and the pattern's place."""
    text = RULE.format(klass="storage_io_error", pattern="reactor|monitoredBarrier")
    _, problems = _try(
        text.replace("reactor 7 is on", "on").replace("no reactor", "nothing"), known, tmp_path
    )
    assert {p.id for p in problems} == {"PR797"}
    assert "turns nccl_timeout into storage_io_error" in problems[0].message
    place = problems[0].place
    assert place is not None
    assert (place.source.file, place.line) == ("rules.yaml", 5)


def test_a_rule_that_changes_the_verdict_of_a_log_is_refused(known: Rules, tmp_path: Path) -> None:
    """Logs of the folder that rules explain, healthy ones too, are labelled as well."""
    (tmp_path / "oom.log").write_text(
        TRACE
        + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\nreactor 7 scrammed\n"
    )
    text = RULE.format(klass="storage_io_error", pattern=r"reactor \d+ scrammed")
    _, problems = _try(text, known, tmp_path)
    assert [p.id for p in problems] == ["PR797"]
    assert "turns gpu_oom into storage_io_error for the log" in problems[0].message


def test_a_rule_may_not_replace_another(known: Rules, tmp_path: Path) -> None:
    """Its name must be its own."""
    taken = next(iter(known.samples))
    text = RULE.format(klass="storage_io_error", pattern=r"reactor \d+ scrammed")
    _, problems = _try(text.replace("reactor-is-off", taken), known, tmp_path)
    assert [p.id for p in problems] == ["PR797"]


def test_rules_without_a_class_and_wrong_files(known: Rules, tmp_path: Path) -> None:
    """The first are listed, the second are errors of the file."""
    text = RULE.format(klass="unknown", pattern=r"reactor \d+ scrammed")
    trial, problems = _try(text, known, tmp_path)
    assert problems == []
    assert trial.without_class == ("reactor-is-off",)
    assert _try(text.replace("weight", "wait"), known, tmp_path)[1][0].id == "PR790"
    assert _try(text.replace("FATAL: reactor 7", "FATAL"), known, tmp_path)[1][0].id == "PR794"
