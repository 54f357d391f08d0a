"""Asks a person on a terminal for a cluster's class, fault and advice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pairun.diagnose.classes import CLASSES, FAULTS, NONE, UNKNOWN
from pairun.errors import did_you_mean
from pairun.learning.drafts import Answers

_CLASSES = [name for name in CLASSES if name != NONE]


def ask(prompt: Callable[[str], str], tell: Callable[[str], None]) -> Answers:
    """Ask for one cluster; an empty answer keeps the default.

    Args:
        prompt: shows a question and returns the answer, as ``input`` does.
        tell: prints a line.
    """
    klass = _choice(prompt, tell, "  class (empty: decide later): ", _CLASSES)
    if klass in ("", UNKNOWN):
        return Answers()
    kind = CLASSES[klass]
    fault = _choice(prompt, tell, f"  fault (empty: {kind.fault}): ", FAULTS)
    advice = prompt(f"  advice (empty: {kind.advice}): ").strip()
    printable = "".join(c for c in advice if c.isprintable())
    return Answers(klass, fault, printable)


def _choice(
    prompt: Callable[[str], str],
    tell: Callable[[str], None],
    question: str,
    choices: Sequence[str],
) -> str:
    while (answer := prompt(question).strip()) and answer not in choices:
        hint = did_you_mean(answer, choices) or "`pairun doc failures` lists the classes"
        tell(f"  unknown: {answer}; {hint}")
    return answer
