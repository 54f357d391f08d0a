"""The diagnosis rules as PID 1 reads them, compiled once for an image.

Finding the words that five hundred expressions need takes a fifth of the init phase, so an image
brings the result.
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
"""Names the file with the rules that are ready; for tests, and for images that keep it elsewhere."""

IN_THE_IMAGE = "/opt/pairun/rules.json"
_MAX_BYTES = 16 * 1024 * 1024


def ready_rules(content: Content, env: Mapping[str, str], problems: Problems) -> bytes:
    """What init leaves for PID 1: made ready before, where that was of the same rules.

    Args:
        content: the content roots.
        env: `VARIABLE` names another file than the image's.
        problems: takes what is wrong with the rules, as `pairun.playbook.rules.read_rules` does.
    """
    head = _head(content)
    path = env.get(VARIABLE) or IN_THE_IMAGE
    if os.path.isfile(path):
        ready = load_bytes(path, _MAX_BYTES)
        if ready.startswith(head):
            return ready
    return made_rules(content, problems)


def made_rules(content: Content, problems: Problems) -> bytes:
    """The same, made now."""
    # Its expressions are compiled when it is imported, and an image has the result.
    from pairun.playbook.rules import compiled

    return _head(content) + compiled(content, problems).removeprefix(b"{")


def _head(content: Content) -> bytes:
    """What the rules begin with: by what they were made, and of what."""
    sha = hashlib.sha256(pairun.__version__.encode())
    for root in content.roots:
        for name, path in root.files(RULES_FOLDER).items():
            sha.update(f"\0{name}\0".encode() + load_bytes(path))
    return f'{{"made_of":"{sha.hexdigest()}",'.encode()
