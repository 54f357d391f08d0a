"""The width of the terminal."""

from __future__ import annotations

import os
import shutil

import pytest

from pairun.base.terminal import columns


@pytest.mark.parametrize("given", ["40", "0", "-3", "wide", "", None])
def test_the_width_is_that_of_the_standard_library(
    given: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`COLUMNS` counts if it is a width."""
    monkeypatch.delenv("COLUMNS", raising=False)
    if given is not None:
        monkeypatch.setenv("COLUMNS", given)
    assert columns(77) == shutil.get_terminal_size((77, 24)).columns


def test_the_kernel_knows_the_width_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `COLUMNS`; a terminal without a size has the default."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((123, 40)))
    assert columns(80) == 123
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((0, 0)))
    assert columns(80) == 80
