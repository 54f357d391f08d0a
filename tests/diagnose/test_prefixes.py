"""One file of several ranks is split by the prefixes of its lines."""

from __future__ import annotations

import pytest

from pairun.diagnose.layouts import split
from pairun.diagnose.lines import Log


@pytest.mark.parametrize(
    "prefix",
    ["[rank{}]: ", "[default{}]:", "{}: ", "{:>2}: ", "[1,{}]<stderr>:", "[pod/job-{}/main] "],
)
def test_lines_of_several_ranks_are_split(prefix: str) -> None:
    """Each rank's part keeps the numbers of the file's lines."""
    lines = [f"{prefix.format(n % 3)}step {n} loss 0.5\n" for n in range(30)]
    parts = split(Log("".join(lines).encode(), "all.log"))
    assert [writer.rank for writer, _ in parts if writer.rank is not None] == [0, 1, 2]
    assert not {writer.host for writer, _ in parts} - {"", *(f"job-{n}" for n in range(3))}
    second = next(log for writer, log in parts if writer.rank == 1)
    assert second.number(second.data.index(b"step 4 ")) == 5


def test_one_ranks_log_is_not_split() -> None:
    """A few lines that begin with numbers make no ranks."""
    text = "epoch 1\n" * 20 + "3: a note\n4: another\n" + "epoch 2\n" * 20
    assert split(Log(text.encode(), "a.log")) == []


@pytest.mark.parametrize(
    ("outer", "pod"), [("vllm-1      | ", "vllm-1"), ("[pod/serve-0/main] ", "serve-0")]
)
@pytest.mark.parametrize("inner", ["(VllmWorker rank={} pid=30{}) ", "[rank{}]: "])
@pytest.mark.parametrize("beside", ["", "nginx-1     | GET /health\n"])
def test_within_one_container_the_inner_writers_are_the_ranks(
    outer: str, pod: str, inner: str, beside: str
) -> None:
    """The container's other lines are a launcher's; its number is no rank."""
    lines = [f"{outer}{inner.format(n % 3, n % 3)}INFO step {n}\n" for n in range(12)]
    text = "".join(lines) + beside + f"{outer}ERROR the engine ended\n"
    parts = split(Log(text.encode(), "all.log"))
    ranked = {w.rank: w.label for w, _ in parts if "nginx" not in w.label and not w.launcher}
    assert ranked == {0: "rank 0", 1: "rank 1", 2: "rank 2"}
    assert pod in [w.label for w, _ in parts if w.launcher]


def test_numbers_that_come_back_in_another_pod_are_no_ranks() -> None:
    """Two replicas have a worker 0 each."""
    lines = [f"[pod/serve-{n % 2}/main] (W rank={n % 4 // 2} pid=7) step {n}\n" for n in range(16)]
    parts = split(Log("".join(lines).encode(), "all.log"))
    assert [writer.label for writer, _ in parts if writer.label != "lines without a rank"] == [
        "serve-0",
        "serve-1",
    ]
