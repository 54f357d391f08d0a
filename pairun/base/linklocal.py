"""Link-local addresses: clouds serve credentials there, so redirects must not reach them."""

from __future__ import annotations

import contextlib


def is_link_local(host: str) -> bool:
    """Whether a host is a literal link-local address (RFC 3927, RFC 4291 section 2.5.6).

    Includes the forms of inet_aton(3), such as ``0xa9fea9fe`` and ``2852039166``, and IPv4
    addresses within IPv6. Does not resolve names.

    Args:
        host: from an address, without port; IPv6 with or without brackets.
    """
    # Only requests to servers need them; every module imports this file.
    import ipaddress
    import socket

    text = host.strip("[]").partition("%")[0]
    with contextlib.suppress(OSError, UnicodeEncodeError, ValueError):
        return ipaddress.IPv4Address(socket.inet_aton(text)).is_link_local
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    inner = address.ipv4_mapped or address.sixtofour or address
    return inner.is_link_local or address == ipaddress.IPv6Address(_METADATA)


_METADATA = "fd00:ec2::254"
"""A cloud's credential server on IPv6: a unique local address, not link-local."""
