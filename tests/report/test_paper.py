"""Tables for people and programs."""

from __future__ import annotations

import io

from pairun.report.paper import paper, print_table


def test_a_row_is_one_line_where_there_is_no_terminal() -> None:
    """Programs read lines, so that no width breaks a long message."""
    stream = io.StringIO()
    message = "the command ended with 3: " + "CUDA out of memory " * 20
    print_table(paper(stream), ["instance", "message"], [["worker-0", message]])
    assert stream.getvalue().splitlines() == ["instance  message", f"worker-0  {message.strip()}"]
