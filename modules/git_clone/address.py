"""The address of the repository, and the credentials in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from pairun.module import Secret, reveal

PROTOCOLS = ("https", "http", "ssh", "git")
"""The protocols that git may use; a local path only if the repository itself is one."""


def address_problems(repo: str | Secret) -> Iterator[str]:
    """The reasons why an address is invalid, as sentences."""
    text = reveal(repo)
    scheme = match[1].lower() if (match := re.match("([A-Za-z0-9+.-]+)://", text)) else ""
    if not text or text.startswith("-"):
        yield "'repo' must be the address of a repository, not an option"
    elif re.match(r"[A-Za-z0-9][A-Za-z0-9+.-]*::", text):
        yield "'repo' must not name a transport helper (ext::, fd::, …): it could start a program"
    elif any(ord(c) < 32 for c in text):
        yield "'repo' must be one line"
    elif scheme and scheme not in (*PROTOCOLS, "file"):
        yield f"'repo' must be an https, http, ssh, git or file address, not {scheme}"
    elif scheme and not http_parts(text) and re.match("[^/]*//[^/@]*:[^/]*@", text):
        yield "a password in 'repo' works in an http address only; for ssh there are keys"
    elif isinstance(repo, Secret) and not ((p := http_parts(text)) and "@" in p.netloc):
        # Git passes the rest of the address to programs as an argument, which every user can read.
        yield "a secret in 'repo' must stand before the @ of an http address (https://user:token@…)"


def is_local(text: str) -> bool:
    """Whether an address is a directory of this machine."""
    return text.startswith(("/", "file://"))


def http_parts(text: str) -> SplitResult | None:
    """The parts of an http address, None for any other address."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return parts if parts.scheme in ("http", "https") else None


def plain_url(text: str) -> str:
    """An address without its credentials."""
    parts = http_parts(text)
    if parts is None or "@" not in parts.netloc:
        return text
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def credentials_in(text: str) -> tuple[str, str, str | None]:
    """The user and the password in an address, decoded, and the only server that may get them.

    The server is scheme, host and port; None without credentials.
    """
    parts = http_parts(text)
    if parts is None or "@" not in parts.netloc:
        return "", "", None
    server = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return unquote(parts.username or ""), unquote(parts.password or ""), server
