"""Gathers in a thread, configured from a Pod's environment."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from pairun.errors import PairunError
from pairun.module import Failure, Gathering, Peer
from pairun.net.apiserver import ApiServer
from pairun.net.boundedcall import lookup
from pairun.rendezvous.gathering import gather
from pairun.rendezvous.locating import LeaderEnded, LeaderPod, NotAllowed
from pairun.rendezvous.loop import close_quietly
from pairun.rendezvous.otherpods import OtherPods, pod_query
from pairun.rendezvous.peers import job_key, read_key
from pairun.rendezvous.roster import Address, Gang, JobKey

_DAY_S = 86400.0
_LEAVE_S = 1.0
_LOOKUP_S = 10.0
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
    except (Failure, OSError, ValueError, KeyError):
        return None
    return _Background(own, roles, job_key(env), read_key(pai_dir), leader, log)


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
    """A gathering in a thread; see `pairun.module.Gathering`."""

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
        self.over = ""
        self._leader = leader
        self._leave_fd, self._leave = os.pipe()
        self._condition = threading.Condition()
        self._changed = False
        self._arguments = (own, roles, job, key, log)
        self._thread = threading.Thread(target=self._run, name="gathering", daemon=True)
        self._thread.start()

    @property
    def leader_runs(self) -> bool:
        """Whether the leader's init containers had succeeded when it was found."""
        return self._leader.runs

    @property
    def ports(self) -> tuple[int, int] | None:
        """The range of the job's ports; None if the leader's Pod has none."""
        return self._leader.range

    def wait(self, seconds: float) -> None:
        """Wait until the attributes change."""
        end = time.monotonic() + seconds
        with self._condition:
            while not self._changed and (left := end - time.monotonic()) > 0:
                self._condition.wait(left)
            self._changed = False

    def close(self) -> None:
        """Leave; the leader continues to count this member."""
        close_quietly(self._leave)
        self._thread.join(_LEAVE_S)

    def _run(self) -> None:
        own, roles, job, key, log = self._arguments
        try:
            roster = gather(
                own, roles, job, key=key, locate=self._locate,
                deadline_s=time.monotonic() + _DAY_S, log=log, on_turn=self._set_connected,
                leave_fd=self._leave_fd,
            )  # fmt: skip
            self._set(peers=roster.members if roster else None, complete=True)
        except (NotAllowed, LeaderEnded) as e:
            self._set(over=str(e))
        except (PairunError, Failure) as e:
            self._set(over=e.message if isinstance(e, Failure) else e.problems[0].message)
        except Exception as e:  # noqa: BLE001 - the barrier continues without a gathering
            self._set(over=f"{type(e).__name__}: {e}")

    def _locate(self, timeout_s: float) -> Address | None:
        address = self._leader(timeout_s)
        if self._leader.runs:
            self._set()
        return address

    def _set_connected(self, connected: bool) -> None:
        if connected != self.connected:
            self._set(connected=connected)

    def _set(self, **attributes: object) -> None:
        with self._condition:
            for name, value in attributes.items():
                setattr(self, name, value)
            self._changed = True
            self._condition.notify_all()
