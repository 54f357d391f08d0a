"""Drafts of rules: a rules file with one rule for each cluster; a person fills in the class."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from pairun.diagnose.classes import UNKNOWN
from pairun.diagnose.table import FLAGS, START
from pairun.learning.clusters import Cluster
from pairun.learning.templates import pattern_of, with_other_numbers, words_of
from pairun.playbook.rules import MIN_SAMPLES, sample_of
from pairun.playbook.ruletrial import RuleTrial

_MAX_POSITIVE, _MAX_NEGATIVE = 4, 3
_HEALTHY = (
    "step 100/500 loss: 0.123 lr: 0.001 12.1 it/s",
    "training is done after 3 epochs",
    "all checks passed, starting 8 workers",
)
"""Lines of healthy jobs, used if the folder contains no better ones."""


class Answers(NamedTuple):
    """A person's answers on a cluster; empty texts keep the class's defaults.

    Attributes:
        klass: the class; `UNKNOWN` until a person names one.
        fault: whose fault it is.
        advice: what to do.
    """

    klass: str = UNKNOWN
    fault: str = ""
    advice: str = ""


class Draft(NamedTuple):
    """A rule for a cluster.

    Attributes:
        cluster: the cluster.
        id: the rule's name.
        pattern: its expression.
        positive: lines that it matches.
        negative: lines that it does not match.
    """

    cluster: Cluster
    id: str
    pattern: str
    positive: tuple[str, ...]
    negative: tuple[str, ...]


def draft_of(cluster: Cluster, others: Iterable[str], taken: Collection[str]) -> Draft | None:
    """The draft of a rule for a cluster.

    Args:
        cluster: the cluster.
        others: lines of other clusters and of healthy logs.
        taken: names of other rules.

    Returns:
        The draft; None if the line has too few words for a pattern.
    """
    text = cluster.examples[0].text
    pattern = pattern_of(text)
    if not any(len(word) >= START for word in words_of(text)):
        return None
    compiled = re.compile(pattern, FLAGS)
    positive = [each.text for each in cluster.examples if compiled.search(each.text)]
    if len(positive) < MIN_SAMPLES:
        positive.append(with_other_numbers(text))
    negative = _nearest(text, (line for line in others if not compiled.search(line)))
    draft = Draft(cluster, _name(text, taken), pattern, tuple(positive[:_MAX_POSITIVE]), negative)
    return None if _is_unusable(draft) else draft


def _is_unusable(draft: Draft) -> bool:
    """Whether pairun would ignore the rule: its pattern is slow, or misses its own sample."""
    rule = {
        "id": draft.id,
        "class": UNKNOWN,
        "patterns": [draft.pattern],
        "positive": draft.positive,
        "negative": draft.negative,
    }
    return bool(RuleTrial().mistake(sample_of(rule, "").data, draft.positive, draft.negative))


def file_of(drafts: Sequence[Draft], answers: Sequence[Answers], source: str) -> str:
    """The text of a rules file.

    Args:
        drafts: the rules.
        answers: a person's answers on each.
        source: the folder of the logs.
    """
    lines = [
        "# Rules that pairun drafted from logs whose cause no rule explains.",
        "# Fill in `class` (see `pairun doc failures`); a rule of class unknown decides nothing.",
        "# Then run `pairun diagnose --learn` with the same folder and this file again: it checks the rules.",
        "family: learned",
        f"source: {_quoted(source)}",
        "rules:" if drafts else "rules: []",
    ]
    for draft, said in zip(drafts, answers, strict=True):
        lines += ["", *_rule_lines(draft, said)]
    return "\n".join(lines) + "\n"


def _rule_lines(draft: Draft, said: Answers) -> Iterable[str]:
    cluster = draft.cluster
    yield f"  # {cluster.extent}{f'; {cluster.points_at}' if cluster.points_at else ''}"
    yield f"  - id: {draft.id}"
    yield f"    class: {said.klass}"
    yield f"    fault: {said.fault}" if said.fault else "    # fault: user, platform, hardware, ..."
    yield f"    tell: {_quoted(said.advice)}" if said.advice else "    # tell: what to do about it"
    for key, texts in (
        ("patterns", (draft.pattern,)),
        ("positive", draft.positive),
        ("negative", draft.negative),
    ):
        yield f"    {key}:"
        yield from (f"      - {_quoted(text)}" for text in texts)


def _nearest(text: str, lines: Iterable[str]) -> tuple[str, ...]:
    """The lines that share most words with a text, which too wide a pattern would also match."""
    words = set(words_of(text))
    shared = {line: len(words & set(words_of(line))) for line in lines if line.strip()}
    ranked = sorted(shared, key=lambda line: (-shared[line], line))[:_MAX_NEGATIVE]
    missing = max(0, MIN_SAMPLES - len(ranked))
    return (*ranked, *_HEALTHY[:missing])


def _name(text: str, taken: Collection[str]) -> str:
    words = [re.sub("[^a-z0-9]", "", word) for word in words_of(text)[:5]]
    # a single word may be YAML's `null` or `true`
    name = "-".join(words) if len(words) > 1 else f"learned-{words[0]}"
    names = (f"{name}{f'-{n}' if n > 1 else ''}" for n in range(1, 10_000))
    return next(each for each in names if each not in taken)


def _quoted(text: str) -> str:
    """A text of one printable line as a YAML scalar (1.2, section 7.3.2)."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"
