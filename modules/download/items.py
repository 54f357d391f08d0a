"""One item to download: the checks of its entry, and the current state of its path."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pairun.module import Context, FileStat, Permanent, Secret, parse_record, reveal

MARKER = ".pairun-unpacked"
"""The file next to an archive's members that identifies the archive."""

_MARKER_BYTES = 64 * 1024
_KEYS = ("url", "dest", "unpack", "sha256", "mode")


class Item(NamedTuple):
    """One item to download.

    Attributes:
        url: its address.
        path: of the file, or of the directory for the unpacked archive.
        unpack: whether it is an archive.
        sha256: of the download, or None.
        mode: of the file.
    """

    url: str | Secret
    path: str
    unpack: bool
    sha256: str | None
    mode: int

    @property
    def host(self) -> str:
        """The host in the address."""
        try:
            return urlsplit(reveal(self.url)).hostname or "?"
        except ValueError:
            return "?"

    def marker(self) -> dict[str, Any]:
        """The content of the file that identifies an unpacked archive."""
        address = hashlib.sha256(reveal(self.url).encode("utf-8", "surrogateescape"))
        return {"schema": 1, "url_sha256": address.hexdigest(), "sha256": self.sha256}


def entry_problems(entry: Mapping[str, str | Secret]) -> Iterator[str]:
    """The mistakes in one entry, as sentences."""
    for key in sorted(entry.keys() - set(_KEYS)):
        yield f"unknown key '{key}': an entry has {', '.join(_KEYS)}"
    if not entry.get("url"):
        yield "'url' is missing"
    elif problem := _address_problem(reveal(entry["url"])):
        yield problem
    if bool(entry.get("dest")) == bool(entry.get("unpack")):
        yield "give either 'dest' or 'unpack'"
    for key in ("dest", "unpack"):
        path = reveal(entry.get(key) or "/x")
        if not os.path.isabs(path) or "\0" in path:
            yield f"'{key}' must be absolute, not {path!r}"
        elif os.path.normpath(path) in ("/", "//") or (key == "dest" and path.endswith("/")):
            yield f"'{key}' must name the {'file' if key == 'dest' else 'directory'}, not {path!r}"
    if not re.fullmatch("[0-9a-fA-F]{64}", reveal(entry.get("sha256") or "0" * 64)):
        yield "'sha256' must be 64 hexadecimal digits"
    if not re.fullmatch("0?[0-7]{3,4}", reveal(entry.get("mode") or "0644")):
        yield "'mode' must be octal text, for example '0644'"
    if "unpack" in entry and "mode" in entry:
        yield "'mode' applies to a file; members of an archive have their own"


def _address_problem(url: str) -> str | None:
    """The mistake in an address; the sentence shows only its scheme."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if it is not a number or too large
    except ValueError:
        return "'url' has an invalid host or port"
    if parts.scheme not in ("http", "https"):
        is_scheme = re.fullmatch("[a-z][a-z0-9+.-]{0,15}", parts.scheme) and "://" in url
        return "'url' must be an http or https address" + (
            f", not {parts.scheme}" if is_scheme else ""
        )
    if "@" in parts.netloc:
        return (
            "'url' must not contain a user or password: put them into 'headers', as Authorization"
        )
    return None if parts.hostname else "'url' names no server"


class Target(NamedTuple):
    """The current state of an item's path.

    Attributes:
        item: the item.
        stat: of the path; None if it does not exist.
        sha256: of the file, if it is compared.
        marker: of the archive unpacked there, or None.
        empty: whether it is an empty directory.
    """

    item: Item
    stat: FileStat | None
    sha256: str | None = None
    marker: dict[str, Any] | None = None
    empty: bool = False

    @property
    def difference(self) -> str:
        """What the task would do; empty if nothing."""
        item, stat, marker = self.item, self.stat, self.item.marker()
        source = f"{item.path} from {item.host}"
        if item.unpack:
            key = "sha256" if item.sha256 else "url_sha256"
            if self.marker is not None and self.marker.get(key) == marker[key]:
                return ""
            return f"{'unpack' if stat is None else 'replace'} {source}"
        if stat is None:
            return f"download {source}"
        if stat.kind != "file" or self.sha256 != item.sha256:
            return f"replace {source}"
        return f"set the mode of {item.path}" if stat.mode != item.mode else ""

    @property
    def before(self) -> str:
        """The current state, for people."""
        if self.stat is None:
            return "nothing"
        if self.marker is not None:
            return f"an archive with the sha256 {self.marker.get('sha256')}"
        content = f"sha256 {self.sha256}" if self.sha256 is not None else self.stat.kind
        return f"{content}, mode {self.stat.mode:04o}"

    @property
    def after(self) -> str:
        """The state after the task, for people."""
        content = f"sha256 {self.item.sha256}" if self.item.sha256 else "whatever is there"
        return content if self.item.unpack else f"{content}, mode {self.item.mode:04o}"

    def require_ours(self) -> None:
        """Refuse to replace a directory or device that this task did not make.

        Raises:
            Permanent: there is one.
        """
        path, stat = self.item.path, self.stat
        if stat is None:
            return
        if not self.item.unpack and stat.kind in ("directory", "other"):
            word = "directory" if stat.kind == "directory" else "special file"
            message = f"{path} is a {word}; a file does not replace it"
            hint = "name the file itself, or remove the existing file in an earlier task"
            raise Permanent(message, fault="user", hint=hint)
        if self.item.unpack and stat.kind != "directory":
            raise Permanent(f"{path} exists and is not a directory", fault="user")
        if self.item.unpack and self.marker is None and not self.empty:
            message = f"{path} exists, and its content is not from a download"
            hint = "name a separate directory: pairun replaces it as a whole"
            raise Permanent(message, fault="user", hint=hint)


def look(ctx: Context, item: Item) -> Target:
    """The current state of an item's path."""
    stat = ctx.stat(item.path)
    kind = stat.kind if stat is not None else None
    if item.unpack and kind == "directory":
        return Target(item, stat, marker=_marker(ctx, item), empty=not ctx.list_dir(item.path))
    comparable = item.sha256 is not None and not item.unpack and kind == "file"
    return Target(item, stat, ctx.digest(item.path) if comparable else None)


def _marker(ctx: Context, item: Item) -> dict[str, Any] | None:
    path = os.path.join(item.path, MARKER)
    stat = ctx.stat(path)
    if stat is None or stat.kind != "file" or stat.size > _MARKER_BYTES:
        return None
    marker = parse_record(ctx.read_file(path, _MARKER_BYTES) or b"")
    return marker if marker is not None and marker.get("schema") == 1 else None
