"""Addresses of the link: where clouds serve a machine's credentials, and no redirect may lead."""

from __future__ import annotations

import contextlib
import ipaddress
import socket


def is_link_local(host: str) -> bool:
    """Whether a host is written as a link-local address (RFC 3927, RFC 4291 section 2.5.6).

    The forms of inet_aton(3), such as ``0xa9fea9fe`` and ``2852039166``, count, and so does an IPv4
    address within IPv6. Names are not looked up.

    Args:
        host: of an address, without port; IPv6 with or without brackets.
    """
    text = host.strip("[]").partition("%")[0]
    with contextlib.suppress(OSError, UnicodeEncodeError, ValueError):
        return ipaddress.IPv4Address(socket.inet_aton(text)).is_link_local
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    inner = address.ipv4_mapped or address.sixtofour or address
    return inner.is_link_local or address == _METADATA


_METADATA = ipaddress.IPv6Address("fd00:ec2::254")
"""Where one cloud serves credentials over IPv6: a unique local address, not of the link."""
