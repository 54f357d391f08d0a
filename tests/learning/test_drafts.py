"""Drafts of rules: valid rules files, with samples from the logs."""

from __future__ import annotations

import re

import pytest
import yaml

from pairun.diagnose.table import FLAGS
from pairun.errors import Problems, Source
from pairun.learning.clusters import Cluster
from pairun.learning.drafts import Answers, Draft, draft_of, file_of
from pairun.learning.endings import Ending
from pairun.playbook.document.reading import read_text
from pairun.playbook.rules import check_rules

OTHERS = ["reactor 7 is on", "step 1/9 loss: 0.1", "no reactor was asked", "the flux is low"]


def _draft(*texts: str) -> Draft | None:
    cluster = Cluster("t")
    for text in texts:
        cluster.add(Ending(text, "f", 1))
    return draft_of(cluster, OTHERS, ["reactor-scrammed"])


@pytest.mark.parametrize(
    "texts",
    [
        ("reactor 7 scrammed", "reactor 12 scrammed"),
        ("reactor 7 scrammed",),
        ("FATAL: it's 'quoted': # {a: b} [c] \\d % & * ! | > @ `",),
        ("the flux: capacitor\u2028is low, ünïcode 3",),
        ("failed " * 60,),
        ("null",),
        ("true 17",),
    ],
)
def test_a_draft_is_a_valid_rules_file(texts: tuple[str, ...]) -> None:
    """With one sample or several, with any characters, with a class or without."""
    draft = _draft(*texts)
    assert draft is not None
    for said in (Answers(), Answers("host_oom", "platform", "it's: full")):
        text = file_of([draft], [said], "/logs: of 'us'")
        problems = Problems()
        check_rules(read_text(Source("rules.yaml", "test", text)), problems)
        assert list(problems) == []
        (rule,) = yaml.safe_load(text)["rules"]
        assert rule["class"] == said.klass
        assert rule.get("tell", "") == said.advice


def test_negative_samples_are_the_nearest_lines() -> None:
    """Lines that share words are what a pattern that is too wide would match."""
    draft = _draft("reactor 7 scrammed")
    assert draft is not None
    assert draft.id == "reactor-scrammed-2"
    assert draft.negative[:2] == ("no reactor was asked", "reactor 7 is on")
    assert not any(re.search(draft.pattern, line, FLAGS) for line in draft.negative)


@pytest.mark.parametrize("text", ["17 42", "a b c 3", "-- / --"])
def test_a_line_with_too_few_words_gets_no_rule(text: str) -> None:
    """A pattern needs a word of four letters."""
    assert _draft(text) is None
