"""The diagnosis rules in the form that PID 1 reads, compiled once for an image.

Finding the words that five hundred expressions need takes a fifth of the init phase, so an image
contains the result.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

import pairun
from pairun.errors import Problems
from pairun.playbook.content import Content
from pairun.playbook.document.reading import load_bytes
from pairun.playbook.rootfiles import RULES_FOLDER

VARIABLE = "PAIRUN_RULES"
"""Overrides the path of the compiled rules; for tests, and for images that keep them elsewhere."""

IN_THE_IMAGE = "/opt/pairun/rules.json"
_MAX_BYTES = 16 * 1024 * 1024


def ready_rules(content: Content, env: Mapping[str, str], problems: Problems) -> bytes:
    """The compiled rules for PID 1; uses the image's file if it was made from the same rules.

    Args:
        content: the content roots.
        env: `VARIABLE` overrides the image's file.
        problems: takes the rules' errors, as in `pairun.playbook.rules.read_rules`.
    """
    head = _head(content)
    path = env.get(VARIABLE) or IN_THE_IMAGE
    if os.path.isfile(path):
        ready = load_bytes(path, _MAX_BYTES)
        if ready.startswith(head):
            return ready
    return made_rules(content, problems)


def made_rules(content: Content, problems: Problems) -> bytes:
    """The same, compiled now."""
    # Importing it compiles its expressions, which is not needed if an image has the result.
    from pairun.playbook.rules import compiled

    return _head(content) + compiled(content, problems).removeprefix(b"{")


def _head(content: Content) -> bytes:
    """The header of the compiled rules: a digest of pairun's version and of the rule files."""
    sha = hashlib.sha256(pairun.__version__.encode())
    for root in content.roots:
        for name, path in root.files(RULES_FOLDER).items():
            sha.update(f"\0{name}\0".encode() + load_bytes(path))
    return f'{{"made_of":"{sha.hexdigest()}",'.encode()
