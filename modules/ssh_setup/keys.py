"""The public keys of people."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pairun.module import Context

from .ed25519 import ssh_string

_KEY_TYPES = (
    "ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com",
)  # fmt: skip


def public_keys(text: str, where: str, complaints: list[str]) -> Iterator[tuple[str, str]]:
    """The keys in a text, each as its type and content, and as its line in authorized_keys.

    Rejects options in front of a key (sshd(8), AUTHORIZED_KEYS): some run programs.

    Args:
        text: one or several lines, one key each; with any line ends.
        where: the name of the text in complaints.
        complaints: gets one sentence for each omitted line.
    """
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        words = "".join(c if c.isprintable() else " " for c in line).split()
        if not words or words[0].startswith("#"):
            continue
        starts = [i for i, w in enumerate(words[:-1]) if _is_key(w, words[i + 1])]
        if starts and starts[0] == 0:
            for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
                part = words[start:end]
                yield " ".join(part[:2]), " ".join(part)
            continue
        # Never the line itself: it may be a private key.
        if starts:
            why = "has options in front of the key, which are not allowed here"
        elif "PRIVATE" in line:
            why = "is part of a private key: keep it secret, and give the public key"
        elif words[0] in _KEY_TYPES:
            why = f"begins as a key of type {words[0]}, but the rest is not one"
        else:
            why = "is not a public key"
        complaints.append(f"{where}, line {number}: it {why}; left out")
        if "PRIVATE" in line:
            return


def _is_key(kind: str, content: str) -> bool:
    """Whether two words are a key: the content repeats the type (RFC 4253, 6.6)."""
    if kind not in _KEY_TYPES:
        return False
    try:
        data = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        return False
    name = kind.encode()
    return data.startswith(ssh_string(name)) and len(data) > 4 + len(name) + 32


def keys_of_people(ctx: Context, userssh: Any, saved_keys: Any, complaints: list[str]) -> list[str]:
    """The lines of authorized_keys; OpenPAI requests them by a type in userssh.

    Args:
        complaints: gets one sentence for each omitted line.
    """
    settings = userssh if isinstance(userssh, Mapping) else {}
    if not settings.get("type"):
        return []
    texts = [
        (f"saved key {number}", entry.get("value"))
        for number, entry in enumerate(saved_keys or (), 1)
        if isinstance(entry, Mapping)
    ]
    value = settings.get("value")
    if settings["type"] == "system" and value:
        path = os.path.join(ctx.pai_dir, "ssh-secret", os.path.basename(str(value)))
        data = ctx.read_file(path)
        if data is None:
            complaints.append(f"there is no {path}, from which userssh reads keys")
        texts.append((path, (data or b"").decode(errors="replace")))
    else:
        texts.append(("userssh.value", value))
    lines: dict[str, str] = {}
    for where, text in texts:
        for key, line in public_keys(str(text or ""), where, complaints):
            lines.setdefault(key, line)
    return list(lines.values())
