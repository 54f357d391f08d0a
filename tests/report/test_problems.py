"""Problems on a screen and in JSON: masked, whatever they point into."""

from __future__ import annotations

import io
import json

import pytest

from pairun.errors import Place, Problem, Source
from pairun.report.problems import print_problems, print_unforeseen, problem_data
from pairun.secrets.vault import Vault

WORD = "hidden-word"


def concealing() -> Problem:
    """A problem whose message and hint quote what its text conceals."""
    source = Source("f", "job", f"a: 1\nb: {WORD}\nc: 3")
    source.conceal([WORD])
    return Problem("PR605", f"not '{WORD}'", Place(source, 2, 4), f"try {WORD}")


def test_a_concealed_text_is_in_no_problem() -> None:
    out = io.StringIO()
    print_problems([concealing()], Vault(), out)
    assert WORD not in out.getvalue()
    assert "not '******'" in out.getvalue()


def test_a_concealed_text_is_in_no_json() -> None:
    """The same holds for programs, and the vault keeps what it has learned."""
    vault = Vault()
    assert WORD not in json.dumps(problem_data(concealing(), vault))
    assert vault.text(WORD) == "******"


def test_a_place_beside_the_first_conceals_too() -> None:
    first = concealing()
    assert first.place is not None
    moved = first._replace(place=None, also=(("first", first.place),))
    out = io.StringIO()
    print_problems([moved], Vault(), out)
    assert WORD not in out.getvalue()


def test_the_trace_of_an_unforeseen_error_is_masked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks for the trace gets it, and no secret with it."""
    monkeypatch.setenv("PAIRUN_DEBUG", "1")
    try:
        int(WORD)
    except ValueError as e:
        print_unforeseen(e, Vault([WORD]))
    text = capsys.readouterr().err
    assert "Traceback" in text
    assert "test_problems.py" in text
    assert WORD not in text


def test_an_unforeseen_error_is_masked(capsys: pytest.CaptureFixture[str]) -> None:
    """An exception may quote whatever pairun has read."""
    print_unforeseen(ValueError(f"x{WORD}x"), Vault([WORD]))
    text = capsys.readouterr().err
    assert "error: pairun itself failed: ValueError: x******x" in text
    assert "PAIRUN_DEBUG=1" in text
