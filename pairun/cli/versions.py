"""The output of `pairun --version`: for people, and as a bill of materials for scanners."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pairun
from pairun.handover.bundle import IN_THE_IMAGE, components_of, versions_in
from pairun.handover.imagepackages import packages_of_image
from pairun.handover.sbom import (
    Component,
    content_root,
    document,
    python_package,
    required_packages,
)
from pairun.playbook.content import Root, open_content


def version(roots: Sequence[str] = ()) -> str:
    """The version, the digest of every content root, and the components of the image's bundle.

    Args:
        roots: content roots in addition to the built-in one.
    """
    lines = [f"pairun {pairun.__version__}"]
    lines += [f"{r.layer} playbooks {r.digest()} ({r.path})" for r in _roots(roots)]
    lines += versions_in(IN_THE_IMAGE)
    return "\n".join(lines)


def bill_of_materials(roots: Sequence[str] = ()) -> str:
    """The same in CycloneDX format, with the Python and Debian packages that pairun contains.

    Args:
        roots: content roots in addition to the built-in one.
    """
    return document("pairun", components(roots))


def components(roots: Sequence[str] = (), image: str = "/") -> list[Component]:
    """The components of this installation; in pairun's image, of the whole image.

    Args:
        roots: content roots in addition to the built-in one.
        image: the root folder of the image's file system.
    """
    return [
        *(content_root(r.layer, r.digest()) for r in _roots(roots)),
        *(python_package(*each) for each in required_packages("pairun")),
        *packages_of_image(image),
        *components_of(IN_THE_IMAGE),
    ]


def _roots(roots: Sequence[str]) -> Sequence[Root]:
    return open_content(list(roots), os.environ).roots
