"""Problems as workflow commands, which GitHub shows next to the lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pairun.base.escapes import visible


def workflow_commands(problems: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield one line for each problem.

    The escapes are those of ``@actions/core`` (packages/core/src/command.ts).

    Args:
        problems: the masked data that `problem_data` returns.
    """
    for p in problems:
        properties = {"file": p["file"], "line": p["line"], "col": p["column"], "title": p["id"]}
        if p["file"] in (None, "-"):
            properties = {"title": p["id"]}
        listed = ",".join(f"{k}={_property(v)}" for k, v in properties.items() if v)
        lines = [p["message"], *([f"help: {p['hint']}"] if p["hint"] else [])]
        text = "\n".join(visible(line) for line in lines)
        yield f"::{p['severity']} {listed}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: object) -> str:
    return _data(str(value)).replace(":", "%3A").replace(",", "%2C")
