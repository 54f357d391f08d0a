"""Questions about a cluster on a terminal."""

from __future__ import annotations

from pairun.learning.asking import ask
from pairun.learning.drafts import Answers


def _asked(*answers: str) -> tuple[Answers, list[str]]:
    waiting = list(answers)
    told: list[str] = []
    said = ask(lambda _question: waiting.pop(0), told.append)
    assert waiting == []
    return said, told


def test_answers_are_taken_over() -> None:
    """Class, fault, advice."""
    said, _ = _asked("host_oom", "platform", " buy\tmore ")
    assert said == Answers("host_oom", "platform", "buymore")


def test_empty_answers_keep_the_defaults() -> None:
    """Without a class nothing else is asked."""
    assert _asked("")[0] == Answers()
    assert _asked("host_oom", "", "")[0] == Answers("host_oom")


def test_an_unknown_class_is_asked_again() -> None:
    """With the nearest one as a hint; `none` is no failure."""
    said, told = _asked("host_omm", "none", "host_oom", "nobody", "user", "")
    assert said == Answers("host_oom", "user")
    assert "did you mean 'host_oom'?" in told[0]
    assert len(told) == 3
