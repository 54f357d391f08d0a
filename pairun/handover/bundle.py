"""Finds what init hands over to an image that has nothing: the program and certificates."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping

from pairun.errors import PairunError, Problem
from pairun.net.authorities import PLACES

VARIABLE = "PAIRUN_BUNDLE"
"""Overrides the bundle's path; for tests, and for images that keep it elsewhere."""

IN_THE_IMAGE = "/opt/pairun/runtime"

PROVIDED = "PAIRUN_PROGRAM"
"""The program's path in the user's container if the platform mounts it: then init copies none."""


def find_bundle(env: Mapping[str, str]) -> str | None:
    """The bundle of this pairun: the image's, or else what ``make bundle`` built in this checkout.

    Args:
        env: `VARIABLE` overrides the path; an empty value disables the bundle.

    Returns:
        Its path, or None if there is no bundle: then the user's image must bring its own pairun.

    Raises:
        PairunError: the variable names no executable file.
    """
    if VARIABLE in env:
        path = env[VARIABLE]
        if path and not _is_program(path):
            raise PairunError(
                Problem(
                    "PR701",
                    f"{VARIABLE}={path}: no such program",
                    hint="unset it to use the image's own bundle",
                )
            )
        return path or None
    checkout = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    places = (IN_THE_IMAGE, os.path.join(checkout, "build", "bundle", "runtime"))
    return next((path for path in places if _is_program(path)), None)


def find_own_authorities(env: Mapping[str, str]) -> str | None:
    """The file of certificate authorities that init itself trusts.

    Args:
        env: ``SSL_CERT_FILE`` names the file.

    Returns:
        Its path, or None if there is none.
    """
    named = env.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
    places = (named, *PLACES) if named else PLACES
    return next((path for path in places if os.access(path, os.R_OK)), None)


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
