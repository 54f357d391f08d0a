"""Debian's packages in pairun's image, which has no package manager to query."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pairun.handover.sbom import Component, debian_package

STATUS = "var/lib/dpkg/status.d"
"""Where an image without dpkg describes its packages, one file each; scanners read it."""

LINKED = "/opt/pairun/licences/rclone.packages"
"""The libraries in rclone: a line "NAME VERSION" for each package."""


def packages_of_image(root: str) -> list[Component]:
    """The packages whose files are in the image, and those that its tools link.

    Empty outside pairun's image and its build.

    Args:
        root: the root folder of the image's file system.
    """
    return [*_described(os.path.join(root, STATUS)), *_linked(LINKED)]


def _described(folder: str) -> Iterator[Component]:
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            fields = dict(line.split(": ", 1) for line in f.read().splitlines() if ": " in line)
        yield debian_package(fields["Package"], fields["Version"], fields["Architecture"])


def _linked(path: str) -> Iterator[Component]:
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as f:
        for line in f:
            name, version = line.split()
            yield debian_package(name, version, "all")
