"""The output of `pairun --version`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

import pairun
from pairun.playbook.content import open_content
from pairun.volume.bundle import IN_THE_IMAGE


def version(roots: Sequence[str] = ()) -> str:
    """The version, the digest of every content root, and the parts of the image's bundle.

    Args:
        roots: content roots in addition to the built-in one.
    """
    lines = [f"pairun {pairun.__version__}"]
    opened = open_content(list(roots), os.environ).roots
    lines += [f"{root.layer} playbooks {root.digest()} ({root.path})" for root in opened]
    return "\n".join([*lines, *_versions_in(IN_THE_IMAGE)])


def _versions_in(bundle: str) -> list[str]:
    """The lines that describe a bundle, if there is one: the start of its digest, and its content."""
    if shutil.which(bundle) is None:
        return []
    import hashlib
    import subprocess

    with open(bundle, "rb") as f:
        digest = hashlib.file_digest(f, "sha256").hexdigest()
    asked = subprocess.run(
        [bundle, "--version"], capture_output=True, text=True, check=False, timeout=10
    )
    inside = ", ".join(asked.stdout.splitlines()[2:])
    return [f"bundle {digest[:12]} ({bundle})", f"  {inside}"]
