"""The static programs of pairun's image that modules need in the user's container."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from pairun.handover.door import Door

VARIABLE = "PAIRUN_TOOLS"
"""Overrides the tool folder; for tests, and for images that keep it elsewhere."""

IN_THE_IMAGE = "/opt/pairun/tools"


def find_tools(env: Mapping[str, str]) -> str:
    """The tool folder: the image's, or else what ``make bundle`` built in this checkout.

    Args:
        env: `VARIABLE` overrides it.
    """
    checkout = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    built = os.path.join(checkout, "build", "bundle", "tools")
    return env.get(VARIABLE) or (IN_THE_IMAGE if os.path.isdir(IN_THE_IMAGE) else built)


def copy_tools(names: Iterable[str], folder: str, target: str, door: Door) -> None:
    """Copy programs; missing ones are skipped, and their modules report it when they run.

    Args:
        names: paths below the tool folder.
        folder: the tool folder.
        target: the target folder, on the shared volume.
        door: to the shared volume.

    Raises:
        OSError: a program cannot be copied.
    """
    for name in sorted(set(names)):
        source, copy = os.path.join(folder, name), os.path.join(target, name)
        if os.path.isfile(source):
            door.make_folder(os.path.dirname(copy))
            door.copy_in(source, copy, 0o755)
