"""Runs code in a child process, which is killed after a time limit; so it looks up names.

Nothing else ends a name lookup, or a system call that waits for a dead file server.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import select
import signal
import socket
import time
from collections.abc import Callable, Collection
from typing import Any

from pairun.base.signals import fork_program
from pairun.module import Failure, NoSuchHost, TimedOut, Transient, format_duration

_REAP_TRIES, _REAP_S = 500, 0.002
"""How often and how long to wait for a killed child: a dead file server can hold it."""

_NO_SUCH_NAME = {getattr(socket, n, None) for n in ("EAI_NONAME", "EAI_NODATA")}
"""The name does not exist or has no address; ``EAI_AGAIN`` means that no server answered
(getaddrinfo(3))."""


class ProcessChannel:
    """One end of a connection between two processes of this program, which exchange items."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._in, self._out = end.makefile("rb"), end.makefile("wb")

    def fileno(self) -> int:
        """Its descriptor."""
        return self._socket.fileno()

    def send(self, item: object) -> None:
        """Send an item."""
        pickle.dump(item, self._out)
        self._out.flush()

    def has_item(self, limit_s: float) -> bool:
        """Whether an item, or the end of the other process, arrives within ``limit_s``."""
        self._socket.setblocking(False)
        is_read = bool(self._in.peek(1))
        self._socket.setblocking(True)
        if is_read:
            return True
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(limit_s * 1000))

    def receive(self, limit_s: float | None = None) -> Any:
        """Wait for the next item.

        Raises:
            TimeoutError: none arrived within ``limit_s``; nothing more can be received.
            EOFError: the other process has ended.
        """
        self._socket.settimeout(None if limit_s is None else max(limit_s, 0.001))
        try:
            return pickle.load(self._in)  # noqa: S301 - the sender is a fork of this program
        except pickle.UnpicklingError as e:
            raise EOFError from e

    def close(self) -> None:
        """Close it."""
        for each in (self._in, self._out, self._socket):
            with contextlib.suppress(OSError):
                each.close()


class ForkedProcess:
    """A forked process; the program can exchange items with it.

    A program that forks such processes has no threads: one of them may hold a lock at the fork, of
    OpenSSL for example, and nothing in the child would release it.

    Args:
        work: runs in the process, with its end of the channel.
        keeps: the program's descriptors that stay open in it: others wait for the end of its pipes
            and locks. None for all of them.

    Raises:
        OSError: no process can be forked.
    """

    def __init__(
        self, work: Callable[[ProcessChannel], None], keeps: Collection[int] | None = None
    ) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._pid = fork_program()
            except OSError:
                ours.close()
                raise
            if self._pid == 0:
                try:
                    ours.close()
                    # Readers of the program's output do not wait for this process.
                    null = os.open(os.devnull, os.O_RDWR)
                    for fd in range(3):
                        os.dup2(null, fd)
                    if keeps is not None:
                        _close_others({0, 1, 2, theirs.fileno(), *keeps})
                    work(ProcessChannel(theirs))
                finally:
                    os._exit(0)
        self.channel = ProcessChannel(ours)

    def end(self) -> None:
        """Kill the process; waits for its end, but not for a kernel that holds it."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._pid, signal.SIGKILL)
            for _ in range(_REAP_TRIES):
                if os.waitpid(self._pid, os.WNOHANG)[0]:
                    break
                time.sleep(_REAP_S)
        self.channel.close()


def _close_others(kept: Collection[int]) -> None:
    # No object of the program may close a descriptor that this process opens.
    gc.freeze()
    for number in map(int, os.listdir("/proc/self/fd")):
        if number not in kept:
            with contextlib.suppress(OSError):
                os.close(number)


def answering(act: Callable[[], Any]) -> Callable[[ProcessChannel], None]:
    """The work of a child that calls a function: sends its result, or None, and its error, or None."""

    def work(channel: ProcessChannel) -> None:
        try:
            channel.send((act(), None))
        except Exception as e:  # noqa: BLE001 - for the program
            channel.send((None, e))

    return work


def in_child(act: Callable[[], Any], what: str, limit_s: float) -> Any:
    """Call a function in a child process.

    Args:
        act: the function.
        what: the action, for messages.
        limit_s: seconds until the child is killed.

    Returns:
        The function's result.

    Raises:
        Exception: as the function raised it.
        TimedOut: the child was killed after ``limit_s``.
        Transient: the child was killed by something else.
    """
    child = ForkedProcess(answering(act))
    try:
        result, error = child.channel.receive(limit_s)
    except TimeoutError:
        raise TimedOut(f"{what}: no answer within {format_duration(limit_s)}") from None
    except EOFError:
        raise Transient(f"{what}: the process that waited for it was killed") from None
    finally:
        child.end()
    if error is not None:
        raise error
    return result


def accepts(host: str, port: int, timeout_s: float) -> bool:
    """Whether a host accepts a TCP connection on a port within the timeout."""

    def connect() -> None:
        socket.create_connection((host, port), timeout_s).close()

    try:
        in_child(connect, f"connecting to {host}", timeout_s)
    except (Failure, OSError):
        return False
    return True


def lookup(host: str, limit_s: float) -> str:
    """The first address of a host, IPv4 before IPv6.

    Raises:
        NoSuchHost: the name does not exist.
        Transient: the name service failed.
        TimedOut: the name service did not answer in time.
    """

    def ask() -> str:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return str(min(addresses, key=lambda a: a[0] != socket.AF_INET)[4][0])

    try:
        return str(in_child(ask, f"looking up {host}", limit_s))
    except socket.gaierror as e:
        raise name_failure(e, host) from None


def name_failure(error: socket.gaierror, where: str) -> Failure:
    """The failure of a name lookup."""
    why = error.strerror or "the name service failed"
    if error.errno in _NO_SUCH_NAME:
        return NoSuchHost.named(where, why)
    return Transient(f"the name of {where} cannot be resolved: {why}", fault="platform")
