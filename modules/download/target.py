"""The current state of a download's path."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from pairun.module import Context, FileStat, Permanent, parse_record

from .items import Item, host_of

MARKER = ".pairun-unpacked"
"""The file next to an archive's members that identifies the archive."""

_MARKER_BYTES = 64 * 1024


class Target(NamedTuple):
    """The current state of a download's path.

    Attributes:
        stat: of the path; None if it does not exist.
        sha256: of the file, if it is compared.
        marker: of the archive unpacked there, or None.
        empty: whether it is an empty directory.
    """

    stat: FileStat | None
    sha256: str | None
    marker: dict[str, Any] | None
    empty: bool


def look(ctx: Context, item: Item) -> Target:
    """The current state of an item's path."""
    stat = ctx.stat(item.path)
    if item.unpack:
        marker, empty = None, False
        if stat is not None and stat.kind == "directory":
            marker = _marker(ctx, item)
            empty = not ctx.list_dir(item.path)
        return Target(stat, None, marker, empty)
    comparable = item.sha256 is not None and stat is not None and stat.kind == "file"
    return Target(stat, ctx.digest(item.path) if comparable else None, None, empty=False)


def _marker(ctx: Context, item: Item) -> dict[str, Any] | None:
    path = os.path.join(item.path, MARKER)
    stat = ctx.stat(path)
    if stat is None or stat.kind != "file" or stat.size > _MARKER_BYTES:
        return None
    marker = parse_record(ctx.read_file(path, _MARKER_BYTES) or b"")
    return marker if marker is not None and marker.get("schema") == 1 else None


def difference(item: Item, target: Target) -> str | None:
    """What the task would do; None if nothing."""
    if item.unpack:
        marker, existing = item.marker(), target.marker
        key = "sha256" if item.sha256 else "url_sha256"
        if existing is not None and existing.get(key) == marker[key]:
            return None
        return f"{'unpack' if target.stat is None else 'replace'} {item.path} from {host_of(item)}"
    if target.stat is None:
        return f"download {item.path} from {host_of(item)}"
    if target.stat.kind != "file" or target.sha256 != item.sha256:
        return f"replace {item.path} from {host_of(item)}"
    return f"set the mode of {item.path}" if target.stat.mode != item.mode else None


def text_before(target: Target) -> str:
    """The current state, for people."""
    if target.stat is None:
        return "nothing"
    if target.marker is not None:
        return f"an archive with the sha256 {target.marker.get('sha256')}"
    if target.sha256 is not None:
        return f"sha256 {target.sha256}, mode {target.stat.mode:04o}"
    return f"{target.stat.kind}, mode {target.stat.mode:04o}"


def text_after(item: Item) -> str:
    """The state after the task, for people."""
    content = f"sha256 {item.sha256}" if item.sha256 else "whatever is there"
    return content if item.unpack else f"{content}, mode {item.mode:04o}"


def require_ours(item: Item, target: Target) -> None:
    """Refuse to replace a directory or device that this task did not make.

    Raises:
        Permanent: there is one.
    """
    if target.stat is None:
        return
    if not item.unpack and target.stat.kind in ("directory", "other"):
        word = "directory" if target.stat.kind == "directory" else "special file"
        message = f"{item.path} is a {word}; a file does not replace it"
        hint = "name the file itself, or remove the existing file in an earlier task"
        raise Permanent(message, fault="user", hint=hint)
    if item.unpack and target.stat.kind != "directory":
        raise Permanent(f"{item.path} exists and is not a directory", fault="user")
    if item.unpack and target.marker is None and not target.empty:
        message = f"{item.path} exists, and its content is not from a download"
        hint = "name a separate directory: pairun replaces it as a whole"
        raise Permanent(message, fault="user", hint=hint)
