"""One item to download, and the checks of its entry."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pairun.module import Secret, reveal

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


def host_of(item: Item) -> str:
    """The host in the address."""
    try:
        return urlsplit(reveal(item.url)).hostname or "?"
    except ValueError:
        return "?"
