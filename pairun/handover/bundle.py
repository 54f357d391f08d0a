"""Where init finds what it hands over to an image that has nothing: the program, certificates."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pairun.errors import PairunError, Problem
from pairun.net.authorities import PLACES

if TYPE_CHECKING:
    from pairun.handover.sbom import Component

VARIABLE = "PAIRUN_BUNDLE"
"""Names the bundle; for tests, and for images that keep it elsewhere."""

IN_THE_IMAGE = "/opt/pairun/runtime"

PROVIDED = "PAIRUN_PROGRAM"
"""The program's path in the user's container, where the platform mounts it: then init copies none."""


def find_bundle(env: Mapping[str, str]) -> str | None:
    """The bundle of this pairun: the image's, else what ``make bundle`` built in this checkout.

    Args:
        env: `VARIABLE` names another one; empty, that there is none.

    Returns:
        Its path, or None where there is none: then the user's container needs a pairun of its own.

    Raises:
        PairunError: the variable names no file that can be executed.
    """
    if VARIABLE in env:
        path = env[VARIABLE]
        if path and not _is_program(path):
            raise PairunError(
                Problem(
                    "PR701",
                    f"{VARIABLE}={path}: there is no program",
                    hint="unset it to take the image's own bundle",
                )
            )
        return path or None
    checkout = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    places = (IN_THE_IMAGE, os.path.join(checkout, "build", "bundle", "runtime"))
    return next((path for path in places if _is_program(path)), None)


def find_own_authorities(env: Mapping[str, str]) -> str | None:
    """The file of certificate authorities that init itself trusts.

    Args:
        env: ``SSL_CERT_FILE`` names it.

    Returns:
        Its path, or None where there is none.
    """
    named = env.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
    places = (named, *PLACES) if named else PLACES
    return next((path for path in places if os.access(path, os.R_OK)), None)


def versions_in(bundle: str) -> list[str]:
    """The lines that a bundle has to say of itself: its digest's start, and what is in it.

    Args:
        bundle: its path; where there is none, there is nothing to say.
    """
    if not _is_program(bundle):
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


def components_of(bundle: str) -> list[Component]:
    """The bundle and what it is made of, as components of a bill of materials.

    The bundle's build writes what ``runtime --version --json`` prints beside it: a build for another
    architecture cannot run the program.

    Args:
        bundle: its path; where there is none, there are none.
    """
    if not _is_program(bundle):
        return []
    import hashlib
    import json

    from pairun.handover.sbom import file

    with open(bundle, "rb") as f:
        digest = hashlib.file_digest(f, "sha256").hexdigest()
    with open(f"{bundle}.cdx.json", encoding="utf-8") as f:
        inside = json.load(f)
    return [file(bundle, digest), *inside["components"]]


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
