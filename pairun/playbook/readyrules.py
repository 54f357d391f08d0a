"""The diagnosis rules in the form that PID 1 reads, compiled once for an image.

Finding the words that a thousand expressions need takes a fifth of the init phase, so an image
contains the result. It is compressed (RFC 1950), because every Pod's volume gets a copy.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Mapping

import pairun
from pairun.errors import Problems
from pairun.playbook.content import Content
from pairun.playbook.document.reading import load_bytes
from pairun.playbook.rootfiles import RULES_FOLDER

RULES_VARIABLE = "PAIRUN_RULES"
"""Overrides the path of the compiled rules; for tests, and for images that keep them elsewhere."""

_IN_THE_IMAGE = "/opt/pairun/rules.json.z"
_MAX_BYTES = 16 * 1024 * 1024


def ready_rules(content: Content, env: Mapping[str, str], problems: Problems) -> bytes:
    """What PID 1 reads, compressed; uses the image's file if it was made from the same rules.

    Args:
        env: `RULES_VARIABLE` overrides the image's file.
    """
    head = _head(content)
    path = env.get(RULES_VARIABLE) or _IN_THE_IMAGE
    if os.path.isfile(path):
        ready = load_bytes(path, _MAX_BYTES)
        with contextlib.suppress(zlib.error):
            if zlib.decompressobj().decompress(ready, len(head)) == head:
                return ready
    return packed(made_rules(content, problems), level=1)


def packed(rules: bytes, *, level: int = 9) -> bytes:
    """Compiled rules, compressed; the fastest level is 1, the smallest result has 9."""
    return zlib.compress(rules, level)


def made_rules(content: Content, problems: Problems) -> bytes:
    """The compiled rules as JSON, made now."""
    # Importing it compiles its expressions, which is not needed if an image has the result.
    from pairun.playbook.rules import read_rules

    rules = json.dumps(read_rules(content, problems).data(), separators=(",", ":")).encode()
    return _head(content) + rules.removeprefix(b"{")


def _head(content: Content) -> bytes:
    """The header of the compiled rules: a digest of pairun's version and of the rule files."""
    sha = hashlib.sha256(pairun.__version__.encode())
    for root in content.roots:
        for name, path in root.files(RULES_FOLDER).items():
            sha.update(f"\0{name}\0".encode() + load_bytes(path))
    return f'{{"made_of":"{sha.hexdigest()}",'.encode()
