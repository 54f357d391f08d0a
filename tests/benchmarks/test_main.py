"""`make bench` on any machine."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as program
from benchmarks import measure
from benchmarks.measure import Row, in_turns


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine of a person, without podman, emulators and other programs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(measure, "most_times", measure.most_times)


def test_missing_programs_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--only", "everywhere"]) == 0
    assert "not measured: the image: needs podman" in capsys.readouterr().out


def test_a_part_whose_program_is_missing_does_not_end_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_program() -> Iterator[Row]:
        subprocess.run(["no-such-program"], check=True)
        yield from ()

    def measured() -> Iterator[Row]:
        took, peer = in_turns(5, lambda: 1.0, lambda: 2.0)
        yield Row("a row", "ms", took, 1.0, "a peer", peer, f"{took.runs} run")

    parts = {"one": SimpleNamespace(rows=without_program), "two": SimpleNamespace(rows=measured)}
    monkeypatch.setattr(program, "PARTS", parts)
    assert program.main(["--smoke"]) == 0
    out = capsys.readouterr().out
    assert "not measured: one: no-such-program is missing" in out
    assert "1 run" in out
    monkeypatch.setenv("CI", "true")
    assert program.main(["--smoke"]) == 1, "where CI is set, nothing may be missing"
