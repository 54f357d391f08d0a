"""The leader as a process: serves its peers and saves its state in a file.

Init starts one. PID 1 of the user's container starts another one, which continues its state.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping

from pairun.base.foreignjson import parse_json
from pairun.base.paths import STATE_FILE, runtime_file
from pairun.base.signals import STOP_SIGNALS
from pairun.rendezvous.leading import Leader
from pairun.rendezvous.loop import PeerLoop, close_quietly
from pairun.rendezvous.roster import Address, Gang, JobKey
from pairun.rendezvous.wire import BadPeer
from pairun.volume.door import Door

_MAX_FILES = 20_000
_SPARE_FILES = 64
_SAVE_EVERY_S = 0.5
_TURN_S = 60.0
_STOP_S = 5.0
_FAREWELL_S = 0.5
"""Seconds in which a leader's last process tells its peers that it ends."""
STAY_S = 10.0
"""Seconds for which a leader serves waiting peers after its own tasks have ended."""
_MAX_STATE_BYTES = 64 * 1024 * 1024
_STAY = b"s"


class Server:
    """A leader that listens as soon as it is constructed.

    Args:
        members_by_role: the number of members of each role, in the job's order.
        job: the attempt to gather.
        key: the job's key; without one, the server only reports when all members are present.
        host: this Pod's address; all addresses if this machine does not have it.
        port: the leader's rendezvous port.
        log: takes lines for people.
        volume: the shared volume for the state; None to save no state.

    Attributes:
        address: the address where it listens.

    Raises:
        PortTaken: the port is in use (PR777).
    """

    def __init__(
        self,
        members_by_role: Mapping[str, int],
        job: JobKey,
        *,
        key: bytes | None,
        host: str,
        port: int,
        log: Callable[[str], None],
        volume: Door | None = None,
    ) -> None:
        peers = _max_peers()
        self._loop = PeerLoop(key, log, max_peers=peers)
        # a quarter of the connections is reserved for short requests
        self._leader = Leader(
            Gang.of(members_by_role),
            job,
            self._loop,
            keyed=key is not None,
            log=log,
            max_held=peers * 3 // 4,
        )
        self._loop.machine = self._leader
        self._volume = volume
        self._save_at = 0.0
        self._log = log
        self._stopped = False
        self._stay_until = 0.0
        if volume is not None:
            self.load(volume)
        try:
            anywhere = "::" if ":" in host else "0.0.0.0"
            self.address: Address = self._loop.listen((host, anywhere), port)
        except BaseException:
            self._loop.close_all()
            raise

    def serve_forever(self, stop_fd: int | None = None, *, is_last: bool = False) -> None:
        """Serve until `stop_fd` is readable or at its end, then save the state.

        Through it, `ServerProcess.stop` may ask the server to stay for `STAY_S`.

        Args:
            stop_fd: becomes readable when the server must stop.
            is_last: whether no other process continues the state: then it informs waiting peers.
        """
        if stop_fd is not None:
            self._loop.watch(stop_fd, lambda: self._stop(stop_fd))
        while not self._stopped:
            self._loop.turn(self._save_if_due())
        while self._leader.is_read and (left_s := self._stay_until - time.monotonic()) > 0:
            self._loop.turn(min(left_s, self._save_if_due()))
        self._save_if_due(at_once=True)
        if is_last and self._leader.is_read:
            self._say_farewell()
        self.close()

    def _say_farewell(self) -> None:
        self._leader.part()
        end = time.monotonic() + _FAREWELL_S
        while self._loop.has_peers and time.monotonic() < end:
            self._loop.turn(_FAREWELL_S)

    def _stop(self, stop_fd: int) -> None:
        self._loop.unwatch(stop_fd)
        self._stopped = True
        if os.read(stop_fd, 1) == _STAY:
            self._stay_until = time.monotonic() + STAY_S

    def _save_if_due(self, *, at_once: bool = False) -> float:
        """Save changes, at most every half second; returns the seconds until the next save."""
        if self._volume is None or not self._leader.changed:
            return _TURN_S
        wait_s = self._save_at - time.monotonic()
        if wait_s > 0 and not at_once:
            return wait_s
        try:
            self.save(self._volume)
        except OSError as e:
            self._log(f"the rendezvous cannot save its state, and continues: {e.strerror}")
        self._save_at = time.monotonic() + _SAVE_EVERY_S
        return _TURN_S

    def save(self, volume: Door) -> None:
        """Write the state to the volume atomically, readable by all users of the Pod.

        Raises:
            OSError: it cannot be written.
        """
        data = json.dumps(self._leader.dump(), separators=(",", ":")).encode()
        volume.write(runtime_file(volume.root, STATE_FILE), data)

    def load(self, volume: Door) -> bool:
        """Restore the state on the volume; returns False if there is none of this attempt."""
        try:
            data = volume.read(runtime_file(volume.root, STATE_FILE), _MAX_STATE_BYTES)
            return self._leader.load(parse_json(data))
        except FileNotFoundError:
            return False
        except (OSError, ValueError, KeyError, TypeError, AttributeError, BadPeer):
            self._log("the saved state of the rendezvous is invalid; starting with an empty one")
            return False

    def close(self) -> None:
        """Close all sockets and free the port."""
        self._loop.close_all()


class ServerProcess:
    """A server in a child process, which exits with this process.

    Args:
        server: the server; this process closes its own copy.
        is_last: whether no other process continues its state.

    Attributes:
        pid: the child's PID.
        address: the address where it listens.
    """

    def __init__(self, server: Server, *, is_last: bool = False) -> None:
        self.address = server.address
        stop, self._stop = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                # It exits with this process, which may still need it after a stop signal.
                signal.set_wakeup_fd(-1)
                for number in STOP_SIGNALS:
                    signal.signal(number, signal.SIG_IGN)
                os.close(self._stop)
                server.serve_forever(stop, is_last=is_last)
                code = 0
            finally:
                os._exit(code)
        os.close(stop)
        server.close()

    def stop(self, *, stay: bool = False) -> None:
        """Make it save its state and exit within seconds; this frees its port.

        Args:
            stay: serve peers that wait for a fact first, for up to `STAY_S`.
        """
        if stay:
            with contextlib.suppress(OSError):
                os.write(self._stop, _STAY)
        close_quietly(self._stop)
        end = time.monotonic() + _STOP_S + (STAY_S if stay else 0.0)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
                if time.monotonic() >= end:
                    os.kill(self.pid, signal.SIGKILL)
                time.sleep(0.005)


def _max_peers() -> int:
    """The maximum number of this process's connections; raises its limit of open files for them."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < limit:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            soft = limit
    return max(_SPARE_FILES, min(limit, soft) - _SPARE_FILES)
