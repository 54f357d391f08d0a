"""The view where there is no terminal."""

from __future__ import annotations

import os

from pairun.report.live.view import Activity, Standing, View, open_view
from pairun.secrets.vault import Vault


def standing(elapsed_s: float) -> Standing:
    task = Activity(label="w-0", phase="init", doing="git", elapsed_s=elapsed_s, limit_s=1200.0)
    return Standing(running=[task], total=1)


def test_plain_lines_say_what_takes_long() -> None:
    """After 10 s, then at doubled times; codes of terminals are removed from output."""
    reader, writer = os.pipe()
    with open(reader, "rb") as out, open(writer, "w") as stream:
        view = open_view(stream, ["w-0", "ps-0"], Vault())
        assert isinstance(view, View)
        assert not view.moves
        view.output("ps-0", b"\033[31mred\033[0m")
        for seconds in (9, 10, 11, 19, 20, 39, 40, 41):
            view.refresh(standing(seconds))
        view.note("over")
        view.close()
        stream.close()
        assert out.read().decode().splitlines() == [
            "ps-0 | red",
            "w-0  | running  init  git  10 s of 20 m",
            "w-0  | running  init  git  20 s of 20 m",
            "w-0  | running  init  git  40 s of 20 m",
            "over",
        ]


def test_a_reader_that_is_gone_is_noticed_before_the_next_line() -> None:
    """The run can stop also while its instances print nothing."""
    reader, writer = os.pipe()
    with open(writer, "w") as stream:
        view = View(stream, ["w-0"], Vault())
        view.refresh(standing(1))
        assert view.lost is None
        os.close(reader)
        view.refresh(standing(1))
        assert isinstance(view.lost, BrokenPipeError)
