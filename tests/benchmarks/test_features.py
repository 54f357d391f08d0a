"""Hashed features: those of a log's ending, whatever values it holds."""

from __future__ import annotations

from benchmarks.diagnosis.features import BITS, decisive_lines, features_of
from pairun.diagnose.lines import Log


def test_features_are_those_of_the_ending() -> None:
    """The last lines, and those with words of failure."""
    head = "".join(f"step {n}\n" for n in range(100))
    lines = decisive_lines([Log(f"{head}fatal: flux\n{head}bye\n".encode())])
    assert "fatal: flux" in lines
    assert lines[-1] == "bye"
    assert len(lines) < 20
    assert max(features_of(lines)) < 1 << BITS


def test_values_do_not_matter() -> None:
    """Numbers, cases and folders are no features."""
    assert features_of(["Cannot read /a/b.bin: 17"]) == features_of(["cannot read /c/b.bin: 4"])
    assert features_of([]) == ()
