"""Whether a port of this machine is free, and if not, which process uses it.

Binds the port for TCP and UDP on all IPv4 and IPv6 addresses, and connects to it: a port that the
node's firewall rules forward has no socket here but still answers.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import time
from collections.abc import Iterator
from typing import NamedTuple

CONNECT_TIMEOUT_S = 0.25
_OWNER_SEARCH_S = 0.25

# States of /proc/net/tcp, as in the kernel's include/net/tcp_states.h.
_TIME_WAIT = 6
_LISTEN = 10


class _Row(NamedTuple):
    """A socket of this network namespace."""

    state: int
    inode: str


def port_taken(port: int) -> str | None:
    """The user of a port, as text; None if the port is free."""
    return _bound("tcp", port) or _bound("udp", port) or _answers(port)


def _bound(protocol: str, port: int) -> str | None:
    refused = [
        family for family in (socket.AF_INET, socket.AF_INET6) if _in_use(protocol, family, port)
    ]
    if not refused:
        return None
    rows = [row for suffix in ("", "6") for row in _rows(f"/proc/net/{protocol}{suffix}", port)]
    if protocol == "tcp" and rows and all(row.state == _TIME_WAIT for row in rows):
        # A closed connection in TIME_WAIT, which ends within a minute and does not block the port.
        # SO_REUSEADDR ignores it only if its own socket has the option, too.
        return None
    rows.sort(key=lambda row: row.state != _LISTEN)
    what = f"in use ({protocol.upper()})"
    if rows and protocol == "udp":
        what = "a UDP socket is bound to it"
    elif rows:
        listens = rows[0].state == _LISTEN
        what = "a TCP socket listens on it" if listens else "a TCP connection uses it"
    owner = _owner({row.inode for row in rows} - {"0"})
    return f"{what} ({owner})" if owner else what


def _in_use(protocol: str, family: int, port: int) -> bool:
    kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
    try:
        with socket.socket(family, kind) as probe:
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            if protocol == "tcp":
                # socket(7): on Linux a listener still conflicts, a finished connection does not.
                # UDP has no finished connections; there the option would hide sockets.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", port))
    except OSError as e:
        # Other errors (no IPv6, a port below 1024 without permission) do not mean that it is in
        # use.
        return e.errno == errno.EADDRINUSE
    return False


def _answers(port: int) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_TIMEOUT_S)
        try:
            probe.connect(("127.0.0.1", port))
            # The kernel may choose this port as the source: a socket connected to itself.
            if probe.getsockname() == probe.getpeername():
                return None
        except OSError:
            return None
    return "in use (TCP): something answers at 127.0.0.1"


def _rows(table: str, port: int) -> Iterator[_Row]:
    """The sockets with a local port in a table of proc(5)."""
    with (
        contextlib.suppress(OSError, IndexError, ValueError),
        open(table, encoding="ascii") as lines,
    ):
        next(lines, None)
        for line in lines:
            fields = line.split()
            if int(fields[1].rpartition(":")[2], 16) == port:
                yield _Row(int(fields[3], 16), fields[9])


def _owner(inodes: set[str]) -> str | None:
    """The process that holds one of the sockets; None if the search takes too long."""
    links = {f"socket:[{inode}]" for inode in inodes}
    stop = time.monotonic() + _OWNER_SEARCH_S
    for pid in filter(str.isdigit, os.listdir("/proc")) if links else ():
        if time.monotonic() > stop:
            return None
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                if os.readlink(f"/proc/{pid}/fd/{fd}") in links:
                    with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as comm:
                        return f"pid {pid}, {comm.read().strip()}"
    return None
