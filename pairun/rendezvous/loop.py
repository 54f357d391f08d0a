"""A selector loop that connects a protocol state machine to sockets."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import time
from collections.abc import Callable

from pairun.errors import Problem
from pairun.rendezvous.machine import StateMachine
from pairun.rendezvous.refusals import PortTaken
from pairun.rendezvous.roster import Address
from pairun.rendezvous.wire import BadPeer, Channel, Packed

CONNECT_RETRY_S = 0.5
"""Seconds until a connection attempt is repeated: the kernel repeats a lost packet only after one second."""

GREET_S = 10.0
"""Seconds in which a peer must send its first valid message."""

_STALL_S = 20.0
"""Seconds after which a peer that accepts no data is disconnected."""

LOCAL_PEERS = 512
_READ_BYTES = 256 * 1024
_ACCEPTS = 64
_BACKLOG = 4096
_NO_FILES_S = 0.2


class _Peer:
    """A connection and its unsent data."""

    def __init__(self, sock: socket.socket, channel: Channel, where: str, limit_at: float) -> None:
        self.sock = sock
        self.channel = channel
        self.where = where
        self.out = bytearray(channel.greeting)
        self.queue: list[Packed] = []
        self.limit_at: float | None = limit_at
        self.connecting = False
        self.closing = False
        self.serves = False
        self.is_shut = False
        self.events = 0


class PeerLoop:
    """The connections of one process; see `pairun.rendezvous.machine.Net`.

    Rejects and counts peers that send garbage or too much, are slow or have another key; logs only
    the first one.

    Args:
        key: the job's key, or None.
        log: takes lines for people.
        max_peers: maximum number of connections; above it, unauthenticated ones are closed.

    Attributes:
        machine: the state machine; set before `turn`.
    """

    def __init__(
        self, key: bytes | None, log: Callable[[str], None], *, max_peers: int = LOCAL_PEERS
    ) -> None:
        self.machine: StateMachine
        self._rejected = 0
        self._key = key
        self._log = log
        self._max_peers = max_peers
        self._selector = selectors.DefaultSelector()
        self._peers: dict[int, _Peer] = {}
        self._limited: dict[int, _Peer] = {}
        self._lost: list[int] = []
        self._next = 0
        self._listener: socket.socket | None = None
        self._accept_at: float | None = None

    def listen(self, hosts: tuple[str, ...], port: int) -> Address:
        """Accept peers on the first of these addresses that this machine has.

        Returns:
            The address; a port of 0 is replaced by a free one.

        Raises:
            PortTaken: the port is not available on any address.
        """
        failed: OSError | None = None
        for host in hosts:
            listener = socket.socket(_family(host), socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            try:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                _keep_alive(listener)  # an accepted connection inherits the options
                listener.bind((host, port))
                listener.listen(_BACKLOG)
            except OSError as e:
                listener.close()
                failed = e
                if e.errno == errno.EADDRINUSE:
                    break
                continue
            self._listener = listener
            self._selector.register(listener, selectors.EVENT_READ, self._accept)
            return host, listener.getsockname()[1]
        reason = failed.strerror if failed else "no address"
        message = f"the rendezvous cannot listen on port {port}: {reason}"
        raise PortTaken(Problem("PR777", message)) from failed

    def watch(self, fd: int, action: Callable[[], None]) -> None:
        """Call the action when a descriptor is readable or at its end."""
        self._selector.register(fd, selectors.EVENT_READ, action)

    def unwatch(self, fd: int) -> None:
        """Stop watching a descriptor."""
        self._selector.unregister(fd)

    @property
    def has_peers(self) -> bool:
        """Whether a connection is open."""
        return bool(self._peers)

    def connect(self, address: Address) -> int:
        """Start a connection; see `Net`."""
        sock = socket.socket(_family(address[0]), socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        _keep_alive(sock)
        peer = self._add(sock, address[0], serves=False, limit_s=CONNECT_RETRY_S)
        peer.connecting = True
        code = sock.connect_ex(address)
        if code not in (0, errno.EINPROGRESS):
            self._lost.append(self._next)
        else:
            self._expect(self._next, peer)
        return self._next

    def _add(self, sock: socket.socket, where: str, *, serves: bool, limit_s: float) -> _Peer:
        self._next += 1
        peer = _Peer(sock, Channel(self._key, serves=serves), where, time.monotonic() + limit_s)
        peer.serves = serves
        self._peers[self._next] = self._limited[self._next] = peer
        return peer

    def _accept(self) -> None:
        assert self._listener is not None
        for _ in range(_ACCEPTS):
            try:
                sock, where = self._listener.accept()
            except BlockingIOError:
                return
            except OSError:
                # Out of file descriptors: further peers wait in the kernel's queue.
                self._selector.unregister(self._listener)
                self._accept_at = time.monotonic() + _NO_FILES_S
                return
            if len(self._peers) >= self._max_peers and not self._make_room():
                sock.close()
                continue
            sock.setblocking(False)
            peer = self._add(sock, where[0], serves=True, limit_s=GREET_S)
            self._flush(self._next, peer)

    def _make_room(self) -> bool:
        for number, peer in self._limited.items():
            if peer.serves and not peer.channel.is_proven:
                self._reject(number, peer, "too many connections, and it has not authenticated")
                return True
        return False

    def send(self, number: int, packed: Packed) -> None:
        """Send as soon as the peer accepts data; see `Net`."""
        peer = self._peers.get(number)
        if peer is None or peer.closing:
            return
        if not peer.channel.is_ready:
            peer.queue.append(packed)
            return
        peer.out += peer.channel.frame(packed)
        self._flush(number, peer)

    def close(self, number: int) -> None:
        """Close after all data are sent; see `Net`."""
        if peer := self._peers.get(number):
            peer.closing = True
            if not peer.out and not peer.queue:
                self._finish(number, peer)

    def _finish(self, number: int, peer: _Peer) -> None:
        if not peer.serves or peer.is_shut:
            return self._remove(number, peer)
        # Closing with unread data resets the connection, and the peer may lose our last message
        # (RFC 1122, 4.2.2.13); so the peer closes first.
        peer.is_shut = True
        peer.limit_at = time.monotonic() + _STALL_S
        self._limited[number] = peer
        self._expect(number, peer)
        with contextlib.suppress(OSError):
            peer.sock.shutdown(socket.SHUT_WR)
        return None

    def _flush(self, number: int, peer: _Peer) -> None:
        """Send what the kernel accepts; `turn` reports losses: machines are not re-entrant."""
        if peer.connecting:
            return
        unsent = len(peer.out)
        try:
            while peer.out:
                del peer.out[: peer.sock.send(memoryview(peer.out)[:_READ_BYTES])]
        except BlockingIOError:
            pass
        except OSError:
            peer.out.clear()
            peer.queue.clear()
            self._lost.append(number)
            return
        if peer.closing and not peer.out and not peer.queue:
            self._finish(number, peer)
            return
        if peer.channel.is_proven or not peer.serves:
            if not peer.out and peer.channel.is_ready:
                peer.limit_at = None
                self._limited.pop(number, None)
            elif len(peer.out) < unsent or peer.limit_at is None:
                peer.limit_at = time.monotonic() + _STALL_S
                self._limited[number] = peer
        self._expect(number, peer)

    def _expect(self, number: int, peer: _Peer) -> None:
        writes = peer.connecting or peer.out
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if writes else 0)
        if events != peer.events:
            change = self._selector.modify if peer.events else self._selector.register
            change(peer.sock, events, number)
            peer.events = events

    def _remove(self, number: int, peer: _Peer) -> None:
        if self._peers.pop(number, None):
            self._limited.pop(number, None)
            if peer.events:
                self._selector.unregister(peer.sock)
            peer.sock.close()

    def turn(self, wait_s: float) -> None:
        """Wait for events for at most so long, and handle them."""
        now = time.monotonic()
        limits = [p.limit_at for p in self._limited.values() if p.limit_at is not None]
        if self._accept_at is not None:
            assert self._listener is not None
            if now >= self._accept_at:
                self._accept_at = None
                self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
            else:
                limits.append(self._accept_at)
        if (due := self.machine.tick(now)) is not None:
            limits.append(due)
        ends = min(limits, default=now + wait_s)
        wait_s = 0.0 if self._lost else max(0.0, min(wait_s, ends - now))
        for key, events in self._selector.select(wait_s):
            if callable(key.data):
                key.data()
            elif peer := self._peers.get(key.data):
                self._serve(key.data, peer, events)
        now = time.monotonic()
        for number, peer in list(self._limited.items()):
            if peer.limit_at is not None and now >= peer.limit_at:
                if peer.connecting or peer.is_shut:
                    self._lose(number, peer)
                else:
                    self._reject(number, peer, "it was too slow")
        lost, self._lost = self._lost, []
        for number in lost:
            if lost_peer := self._peers.get(number):
                self._lose(number, lost_peer)

    def _serve(self, number: int, peer: _Peer, events: int) -> None:
        if peer.connecting:
            if peer.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                return self._lose(number, peer)
            peer.connecting = False
            peer.limit_at = time.monotonic() + GREET_S
        if events & selectors.EVENT_WRITE:
            self._flush(number, peer)
        if events & selectors.EVENT_READ and number in self._peers:
            self._read(number, peer)
        return None

    def _read(self, number: int, peer: _Peer) -> None:
        try:
            data = peer.sock.recv(_READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if not data:
            return self._lose(number, peer)
        if peer.is_shut:
            return None
        try:
            for packed in peer.channel.feed(data):
                if number not in self._peers or peer.closing:
                    return None
                self.machine.received(number, packed, time.monotonic())
        except BadPeer as e:
            return self._reject(number, peer, str(e))
        if number in self._peers and peer.channel.is_ready:
            for packed in peer.queue:
                peer.out += peer.channel.frame(packed)
            peer.queue.clear()
            self._flush(number, peer)
        return None

    def _reject(self, number: int, peer: _Peer, reason: str) -> None:
        self._rejected += 1
        if self._rejected == 1:
            self._log(f"rejected a peer at {peer.where}: {reason}; further ones are only counted")
        self._lose(number, peer)

    def _lose(self, number: int, peer: _Peer) -> None:
        is_reported = not peer.closing
        self._remove(number, peer)
        if is_reported:
            self.machine.closed(number, time.monotonic())

    def close_all(self) -> None:
        """Close all sockets."""
        self._selector.close()
        for peer in self._peers.values():
            peer.sock.close()
        self._peers.clear()
        if self._listener:
            self._listener.close()


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _keep_alive(sock: socket.socket) -> None:
    """Send without delay, and notice a peer that is gone within 35 s."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_NODELAY, 1),
        (socket.TCP_KEEPIDLE, 20),
        (socket.TCP_KEEPINTVL, 5),
        (socket.TCP_KEEPCNT, 3),
    ):
        sock.setsockopt(socket.IPPROTO_TCP, option, value)


def close_quietly(fd: int) -> None:
    """Close a descriptor that may be closed already."""
    with contextlib.suppress(OSError):
        os.close(fd)
