"""One file of several ranks is split by the prefixes of its lines."""

from __future__ import annotations

import pytest

from pairun.incident.numbered import NumberedLog
from pairun.incident.prefixes import split


@pytest.mark.parametrize(
    "prefix",
    ["[rank{}]: ", "[default{}]:", "{}: ", "{:>2}: ", "[1,{}]<stderr>:", "[pod/job-{}/main] "],
)
def test_lines_of_several_ranks_are_split(prefix: str) -> None:
    """Each rank's part keeps the numbers of the file's lines."""
    lines = [f"{prefix.format(n % 3)}step {n} loss 0.5\n" for n in range(30)]
    parts = split(NumberedLog("".join(lines).encode(), "all.log", []))
    assert [writer.rank for writer, _ in parts if writer.rank is not None] == [0, 1, 2]
    assert not {writer.host for writer, _ in parts} - {"", *(f"job-{n}" for n in range(3))}
    second = next(log for writer, log in parts if writer.rank == 1)
    assert second.number(second.data.index(b"step 4 ")) == 5


def test_one_ranks_log_is_not_split() -> None:
    """A few lines that begin with numbers make no ranks."""
    text = "epoch 1\n" * 20 + "3: a note\n4: another\n" + "epoch 2\n" * 20
    assert split(NumberedLog(text.encode(), "a.log", [])) == []
