"""The name service errors that mean that a name does not exist (getaddrinfo(3))."""

from __future__ import annotations

import socket

NO_SUCH_NAME = frozenset(
    getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name)
)
"""The name does not exist or has no address. ``EAI_AGAIN`` only means that no server answered."""
