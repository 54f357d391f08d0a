"""Runs text as Python."""

from __future__ import annotations

from pairun.module import Context


def run(code: str, ctx: Context) -> str:
    """Run a text that sees the context; returns what it leaves as ``result``."""
    names: dict[str, object] = {"ctx": ctx, "result": ""}
    exec(code, names)
    return str(names["result"])
