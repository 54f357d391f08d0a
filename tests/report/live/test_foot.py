"""The foot of the screen."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.cells import cell_len

from pairun.report.live.terminalview import foot
from pairun.report.live.view import Activity, Standing
from pairun.report.paper import paper
from pairun.secrets.vault import Vault


def activity(label: str, doing: str = "command", **more: Any) -> Activity:
    return Activity(
        **{"label": label, "phase": "runtime", "doing": doing, "elapsed_s": 3.0, **more}
    )


def render(*running: Activity, columns: int = 80, lines: int = 24) -> list[str]:
    stream = io.StringIO()
    console = paper(stream)
    console.size = console.size._replace(width=columns, height=lines)
    standing = Standing(running=running, succeeded=2, failed=1, seconds=65, total=len(running) + 3)
    styles = {a.label: "cyan" for a in running}
    console.print(foot(standing, styles, console, Vault(["open-sesame"])), end="")
    return stream.getvalue().splitlines()


GIT = activity(
    "worker-1", "git", phase="init", detail="attempt 2 of 10", elapsed_s=12.4, limit_s=1200.0
)


def test_one_line_for_each_instance_and_the_count() -> None:
    """Columns stand below each other; the last line counts."""
    assert render(GIT, activity("ps-0")) == [
        "worker-1  init     git      attempt 2 of 10  12 s of 20 m",
        "ps-0      runtime  command                   3 s",
        "2 of 5 running, 2 succeeded, 1 failed  1m 5s",
    ]


def test_progress_is_a_bar() -> None:
    """A transfer shows a bar, and how much of how much."""
    half = activity("w-0", "data", done=1 << 20, total=1 << 21)
    assert render(half)[0] == "w-0  runtime  data     ━━━━━━━━          1 MiB of 2 MiB, 3 s"
    unknown = activity("w-0", "data", done=1 << 20)
    assert render(unknown)[0].endswith("  1 MiB, 3 s")


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_a_narrow_terminal_cuts_details_and_neither_name_nor_time(columns: int) -> None:
    long = activity(
        "worker-12", "a_task_with_a_long_name" * 3, detail="attempt 11 of 51", limit_s=60.0
    )
    lines = render(long, columns=columns)
    assert max(map(cell_len, lines)) <= columns
    assert lines[0].startswith("worker-12")
    assert lines[0].endswith("3 s of 1 m")


def test_of_many_instances_the_quiet_ones_are_counted() -> None:
    """Trouble comes first, then transfers and tasks; the order is the job's."""
    many = [activity(f"w-{n}") for n in range(50)]
    many[40] = activity("w-40", "git", troubled=True)
    many[30] = activity("w-30", "data", done=1)
    many[20] = activity("w-20", "barrier")
    lines = render(*many)
    assert len(lines) == 9
    assert [line.split()[0] for line in lines[:-2]] == ["w-0", "w-1", "w-2", "w-3", "w-20", "w-30", "w-40"]  # fmt: skip
    assert lines[-2] == "and 43 more: 43 runtime command"


def test_foreign_texts_are_masked_and_no_markup() -> None:
    text = "\n".join(render(activity("w-0", "[bold]open-sesame")))
    assert "[bold]******" in text
