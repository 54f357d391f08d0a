"""Frozen as ``certifi``: the real one reads a file beside itself, and the bundle has none."""

from __future__ import annotations

from pairun.net.authorities import find_authorities


def where() -> str:
    """The file of authorities; empty where there is none.

    requests asks while it is imported. pairun's own sessions bring their authorities
    (`pairun.net.authorities.tls_context`).
    """
    return find_authorities() or ""
