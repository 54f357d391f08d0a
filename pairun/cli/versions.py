"""The output of `pairun --version`."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pairun
from pairun.handover.bundle import IN_THE_IMAGE, versions_in
from pairun.playbook.content import open_content


def version(roots: Sequence[str] = ()) -> str:
    """The version, the digest of every content root, and the parts of the image's bundle.

    Args:
        roots: content roots in addition to the built-in one.
    """
    lines = [f"pairun {pairun.__version__}"]
    opened = open_content(list(roots), os.environ).roots
    lines += [f"{root.layer} playbooks {root.digest()} ({root.path})" for root in opened]
    return "\n".join([*lines, *versions_in(IN_THE_IMAGE)])
