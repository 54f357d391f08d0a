"""Certificate authorities in an image that we know nothing about.

An ordinary Python knows where its distribution keeps them. The bundle runs in every distribution,
with OpenSSL's own defaults: ``/etc/ssl/cert.pem`` and the hashed files in ``/etc/ssl/certs``.
"""

from __future__ import annotations

import os

from pairun.base.paths import pai_dir, runtime_file

PLACES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Alpine, Arch, distroless
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # Fedora, RHEL and its kin
    "/etc/pki/tls/certs/ca-bundle.crt",  # older ones of these
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # older Alpine
)

HANDED_OVER = "ca-certificates.crt"
"""The name in ``runtime.d`` of the authorities of init's image, for images without any."""


def find_authorities() -> str | None:
    """The file of authorities: the image's own, else what init left on the volume.

    Returns:
        Its path, or None where there is neither: then OpenSSL's defaults are what remains.
    """
    places = (*PLACES, runtime_file(pai_dir(), HANDED_OVER))
    return next((path for path in places if os.access(path, os.R_OK)), None)
