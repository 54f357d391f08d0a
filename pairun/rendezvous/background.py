"""Gathers in a process of its own, configured from a Pod's environment."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence

from pairun.errors import PairunError
from pairun.module import Failure, Gathering, Peer
from pairun.net.apiserver import ApiServer
from pairun.net.boundedcall import ForkedProcess, ProcessChannel, lookup
from pairun.rendezvous.gathering import gather
from pairun.rendezvous.locating import Leader, LeaderEnded, LeaderPod, NotAllowed
from pairun.rendezvous.loop import close_quietly
from pairun.rendezvous.otherpods import OtherPods, pod_query
from pairun.rendezvous.peers import job_key, read_key
from pairun.rendezvous.roster import Gang, JobKey

_DAY_S = 86400.0
_LEAVE_S = 1.0
_LOOKUP_S = 10.0
_ITEM_S = 30.0
_REQUIRED_VARIABLES = (
    "FC_FRAMEWORK_NAMESPACE",
    "FC_FRAMEWORK_NAME",
    "FC_TASKROLE_NAME",
    "FC_TASK_INDEX",
    "FC_POD_UID",
)


def begin(
    roles: Mapping[str, int], env: Mapping[str, str], pai_dir: str, log: Callable[[str], None]
) -> Gathering | None:
    """Start to gather the instances of this Pod's job.

    Args:
        roles: the number of instances of each role, in the job's order.
        env: the environment of the init container.
        pai_dir: path of the shared volume.
        log: takes lines for people.

    Returns:
        The gathering; None if there are no other instances, or if it cannot reach them.
    """
    gang = Gang.of(roles)
    if gang.total < 2 or any(not env.get(name) for name in _REQUIRED_VARIABLES):
        return None
    try:
        api = ApiServer.in_pod(env)
        own = Peer(
            role=env["FC_TASKROLE_NAME"],
            index=int(env["FC_TASK_INDEX"]),
            pod_uid=env["FC_POD_UID"],
            pod_ip=(ip := env.get("PAIRUN_HOST_IP") or _own_address(api.host)),
            host_ip=ip,
            pod_name=env.get("FC_POD_NAME", ""),
        )
        gang.rank(own.role, own.index)
        leader = _leader(api, env, gang)
        return _Background(own, roles, job_key(env), read_key(pai_dir), leader, log)
    except (Failure, OSError, ValueError, KeyError):
        return None


def _leader(api: ApiServer, env: Mapping[str, str], gang: Gang) -> LeaderPod:
    """The leader's Pod, by name if it follows from the job's name, else by labels."""
    role, index = gang.place(0)
    query = pod_query(env, role, index)
    pods = OtherPods(env, api)
    return LeaderPod(
        api,
        query.namespace,
        name=query.name,
        labels=query.labels,
        has_ended=lambda: pods.has_ended(role, index),
    )


def _own_address(host: str) -> str:
    """This Pod's address on the route to the API server; sends no packet.

    Raises:
        OSError: there is no route.
        pairun.module.Failure: the API server's name cannot be resolved in time.
    """
    address = lookup(host, _LOOKUP_S)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.connect((address, 1))
        return str(sock.getsockname()[0])


class _Background:
    """A gathering in a process of its own; see `pairun.module.Gathering`."""

    def __init__(
        self,
        own: Peer,
        roles: Mapping[str, int],
        job: JobKey,
        key: bytes | None,
        leader: LeaderPod,
        log: Callable[[str], None],
    ) -> None:
        self.peers: Sequence[Peer] | None = None
        self.complete = False
        self.connected = False
        self.leads = Gang.of(roles).rank(own.role, own.index) == 0
        self.leader_runs = False
        self.ports: tuple[int, int] | None = None
        self.over = ""
        self._log = log
        leave_fd, self._leave = os.pipe()
        self._child = ForkedProcess(
            lambda channel: _gather(channel, own, roles, job, key, leader, leave_fd), [leave_fd]
        )
        os.close(leave_fd)

    def wait(self, seconds: float) -> None:
        """Wait until the attributes change."""
        end, changed = time.monotonic() + seconds, False
        while self._child.channel.has_item(0 if changed else max(0.0, end - time.monotonic())):
            changed |= self._take()
            if self._has_ended():
                return self._end()
        return None

    def close(self) -> None:
        """Leave; the leader continues to count this member."""
        if self._has_ended():
            return
        end = time.monotonic() + _LEAVE_S
        with contextlib.suppress(BrokenPipeError):  # the process has ended
            os.write(self._leave, b".")
        while self._child.channel.has_item(max(0.0, end - time.monotonic())):
            self._take()
            if self._has_ended():
                break
        self._end()

    def _has_ended(self) -> bool:
        return self.complete or bool(self.over)

    def _end(self) -> None:
        self._child.end()
        close_quietly(self._leave)

    def _take(self) -> bool:
        """Take an item of the process; returns whether an attribute has changed."""
        try:
            item = self._child.channel.receive(_ITEM_S)
        except (EOFError, OSError):
            item = {"over": "the process that gathers them was killed"}
        if isinstance(item, str):
            self._log(item)
            return False
        for name, value in item.items():
            setattr(self, name, value)
        return True


def _gather(
    channel: ProcessChannel,
    own: Peer,
    roles: Mapping[str, int],
    job: JobKey,
    key: bytes | None,
    leader: LeaderPod,
    leave_fd: int,
) -> None:
    """Gather, and send lines for people, and the attributes of the gathering that change."""
    connected = False

    def on_turn(is_connected: bool) -> None:
        nonlocal connected
        if is_connected != connected:
            connected = is_connected
            channel.send({"connected": connected})

    def on_leader(found: Leader) -> None:
        channel.send({"leader_runs": found.runs, "ports": found.ports})

    try:
        roster = gather(
            own, roles, job, key=key, locate=leader, deadline_s=time.monotonic() + _DAY_S,
            log=channel.send, on_turn=on_turn, on_leader=on_leader, leave_fd=leave_fd,
        )  # fmt: skip
        channel.send({"peers": roster.members if roster else None, "complete": True})
    except (NotAllowed, LeaderEnded) as e:
        channel.send({"over": str(e)})
    except (PairunError, Failure) as e:
        channel.send({"over": e.message if isinstance(e, Failure) else e.problems[0].message})
    except Exception as e:  # noqa: BLE001 - the barrier continues without a gathering
        channel.send({"over": f"{type(e).__name__}: {e}"})
