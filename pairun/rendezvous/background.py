"""A gathering beside other work: in a thread, with all that a Pod's own variables tell."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from pairun.errors import PairunError
from pairun.module import Failure, Gathering, Peer
from pairun.net.apiserver import ApiServer
from pairun.rendezvous.gathering import gather
from pairun.rendezvous.locating import LeaderPod, NotAllowed
from pairun.rendezvous.loop import close_quietly
from pairun.rendezvous.peers import job_key, read_key
from pairun.rendezvous.roster import Address, Gang, JobKey, Member

_DAY_S = 86400.0
_LEAVE_S = 1.0
_NEEDED = (
    "FC_FRAMEWORK_NAMESPACE",
    "FC_FRAMEWORK_NAME",
    "FC_TASKROLE_NAME",
    "FC_TASK_INDEX",
    "FC_POD_UID",
)


def begin(
    roles: Mapping[str, int], env: Mapping[str, str], pai_dir: str, log: Callable[[str], None]
) -> Gathering | None:
    """Begin to meet the other instances of this Pod's job.

    Args:
        roles: how many instances each role has, in the job's order.
        env: the environment of the init container.
        pai_dir: the shared volume.
        log: takes lines for people.

    Returns:
        None where there is nobody to meet, or no way to it.
    """
    gang = Gang.of(roles)
    if gang.total < 2 or any(not env.get(name) for name in _NEEDED):
        return None
    try:
        api = ApiServer.in_pod(env)
        own = Member(
            role=env["FC_TASKROLE_NAME"],
            index=int(env["FC_TASK_INDEX"]),
            pod_uid=env["FC_POD_UID"],
            pod_ip=(ip := env.get("PAIRUN_HOST_IP") or _own_address(api.host)),
            host_ip=ip,
            pod_name=env.get("FC_POD_NAME", ""),
        )
        gang.rank(own.role, own.index)
    except (Failure, OSError, ValueError, KeyError):
        return None
    leader = _leader(api, env, gang)
    return _Background(own, roles, job_key(env), read_key(pai_dir), leader, log)


def _leader(api: ApiServer, env: Mapping[str, str], gang: Gang) -> LeaderPod:
    """Where the leader's Pod is: by its name where that follows from the job's, else by labels."""
    namespace, name = env["FC_FRAMEWORK_NAMESPACE"], env["FC_FRAMEWORK_NAME"]
    role, _ = gang.place(0)
    if env.get("PAIRUN_BARRIER") != "pods":
        return LeaderPod(api, namespace, name=f"{name}-{role}-0")
    # Kubernetes gives the index to the containers and, since 1.28, as a label to the Pods of a Job.
    indexed = "JOB_COMPLETION_INDEX" in env
    index = "batch.kubernetes.io/job-completion-index" if indexed else "pairun/index"
    labels = f"pairun/job={name},pairun/role={role},{index}=0"
    return LeaderPod(api, namespace, labels=labels)


def _own_address(host: str) -> str:
    """The address by which this Pod goes to the API server; nothing is sent for it.

    Raises:
        OSError: there is no way there.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, 1, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as sock:
        sock.connect(address)
        return str(sock.getsockname()[0])


class _Background:
    """A gathering in a thread; see `pairun.module.Gathering`."""

    def __init__(
        self,
        own: Member,
        roles: Mapping[str, int],
        job: JobKey,
        key: bytes | None,
        leader: LeaderPod,
        log: Callable[[str], None],
    ) -> None:
        self.peers: Sequence[Peer] | None = None
        self.complete = False
        self.connected = False
        self.over = ""
        self._leader = leader
        self._leave_fd, self._leave = os.pipe()
        self._changed = threading.Condition()
        self._news = False
        self._arguments = (own, roles, job, key, log)
        self._thread = threading.Thread(target=self._run, name="gathering", daemon=True)
        self._thread.start()

    @property
    def ports(self) -> tuple[int, int] | None:
        """The range of the job's ports, where the leader's Pod has it."""
        return self._leader.range

    def wait(self, seconds: float) -> None:
        """Wait for a change."""
        end = time.monotonic() + seconds
        with self._changed:
            while not self._news and (left := end - time.monotonic()) > 0:
                self._changed.wait(left)
            self._news = False

    def close(self) -> None:
        """Leave, and be counted by the others."""
        close_quietly(self._leave)
        self._thread.join(_LEAVE_S)

    def _run(self) -> None:
        own, roles, job, key, log = self._arguments
        try:
            roster = gather(
                own, roles, job, key=key, locate=self._locate,
                deadline_s=time.monotonic() + _DAY_S, log=log, told=self._tell_connected,
                leave_fd=self._leave_fd,
            )  # fmt: skip
            peers = [
                Peer(m.role, m.index, m.pod_uid, m.pod_ip, m.host_ip, m.pod_name)
                for m in (roster.members if roster else ())
            ]
            self._tell(peers=peers or None, complete=True)
        except NotAllowed as e:
            self._tell(over=str(e))
        except (PairunError, Failure) as e:
            self._tell(over=e.message if isinstance(e, Failure) else e.problems[0].message)
        except Exception as e:  # noqa: BLE001 - the barrier goes on without
            self._tell(over=f"{type(e).__name__}: {e}")

    def _locate(self, timeout_s: float) -> Address | None:
        return self._leader(timeout_s)

    def _tell_connected(self, connected: bool) -> None:
        if connected != self.connected:
            self._tell(connected=connected)

    def _tell(self, **changes: object) -> None:
        with self._changed:
            for name, value in changes.items():
                setattr(self, name, value)
            self._news = True
            self._changed.notify_all()
