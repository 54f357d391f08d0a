"""Certificate authorities: those that a task names, else those of any image.

An ordinary Python knows where its distribution keeps them. The bundle runs in every distribution,
with OpenSSL's defaults: ``/etc/ssl/cert.pem`` and the hashed files in ``/etc/ssl/certs``.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping

from pairun.base.paths import pai_dir, runtime_file
from pairun.base.system import BUNDLED
from pairun.module import Permanent

PLACES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Alpine, Arch, distroless
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # Fedora, RHEL and its kin
    "/etc/pki/tls/certs/ca-bundle.crt",  # older ones of these
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # older Alpine
)

HANDED_OVER = "ca-certificates.crt"
"""The file in ``runtime.d`` with the authorities of init's image, for images without any."""


def find_authorities() -> str | None:
    """The file of authorities: the image's own, else the one that init put on the volume.

    Returns:
        Its path; None if neither exists: then OpenSSL's defaults apply.
    """
    places = (*PLACES, runtime_file(pai_dir(), HANDED_OVER))
    return next((path for path in places if os.access(path, os.R_OK)), None)


def tls_context(env: Mapping[str, str]) -> ssl.SSLContext:
    """The TLS context for the servers that a task uses.

    Args:
        env: the task's environment; ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` replace the authorities.

    Raises:
        Permanent: the authorities cannot be read.
    """
    file, directory = env.get("SSL_CERT_FILE") or None, env.get("SSL_CERT_DIR") or None
    if BUNDLED and not (file or directory):
        file = find_authorities()
    try:
        return ssl.create_default_context(cafile=file, capath=directory)
    except OSError as e:
        raise Permanent(
            f"the certificate authorities in {file or directory} cannot be read: "
            f"{e.strerror or type(e).__name__}",
            fault="platform",
            hint="check the variables SSL_CERT_FILE and SSL_CERT_DIR",
        ) from e


def cluster_context(authority: str | None) -> ssl.SSLContext:
    """The TLS context for the cluster's API server.

    Args:
        authority: the path of the CA that signed its certificate; None for the image's.

    Raises:
        OSError: the file cannot be read.
    """
    context = ssl.create_default_context(
        cafile=authority or (find_authorities() if BUNDLED else None)
    )
    # Since 3.13 Python requires the key usage extension. Go, which the rest of the cluster uses,
    # does not, and some clusters have authorities without it.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
