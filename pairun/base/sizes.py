"""Formats sizes for people."""

from __future__ import annotations


def format_size(count: int) -> str:
    """A number of bytes for people: ``512 bytes``, ``1.5 MiB``."""
    if count < 1024:
        return f"{count} byte" + ("s" if count != 1 else "")
    size, units = count / 1024, ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while size >= 999.5 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.3g} {units[0]}"
