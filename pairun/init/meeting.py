"""How an instance finds its peers in init: the leader's server and address."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pairun.job.model import Job, Role
from pairun.kube.cluster import Cluster
from pairun.volume.door import Door

if TYPE_CHECKING:
    from pairun.rendezvous.otherpods import OtherPods
    from pairun.rendezvous.peers import JobPeers
    from pairun.rendezvous.server import Child

ROLES = "PAIRUN_ROLES"
"""The variable with the job's roles, each with count and ports, for init tasks."""


class Meeting:
    """The instances of a job, as one of them sees them in the init phase.

    Args:
        job: the job.
        role: this instance's role.
        index: its number in the role.
        env: the environment of the init container.
        pai_dir: the shared volume.
    """

    def __init__(
        self, job: Job, role: Role, index: int, env: Mapping[str, str], pai_dir: str
    ) -> None:
        self._roles = {r.fc_name: r.instances for r in job.roles}
        described = {
            r.fc_name: {"count": r.instances, "ports": dict(r.resources.ports)} for r in job.roles
        }
        self._described = json.dumps(described)
        self._leads = role.fc_name == job.roles[0].fc_name and index == 0
        self._own = (role.fc_name, index)
        self._env = env
        self._pai_dir = pai_dir
        self._server: Child | None = None
        self._noted = False

    @property
    def is_alone(self) -> bool:
        """Whether the job has only one instance."""
        return sum(self._roles.values()) < 2

    def variables(self) -> dict[str, str]:
        """The variables for tasks."""
        return {} if self.is_alone else {ROLES: self._described}

    def begin(self, say: Callable[[str], None]) -> None:
        """If this instance leads the job, start to serve the others.

        Logs a failure only: the others can find addresses without the server.
        """
        uid = self._env.get("FC_POD_UID")
        if self.is_alone or not self._leads or not uid:
            return
        # imported here: no other instance needs sockets, digests and compression
        from pairun.errors import PairunError
        from pairun.kube.ports import rendezvous_port
        from pairun.rendezvous.peers import job_key, read_key
        from pairun.rendezvous.server import Child, Server

        try:
            server = Server(
                self._roles,
                job_key(self._env),
                key=read_key(self._pai_dir),
                host=self._env.get("PAIRUN_HOST_IP") or "0.0.0.0",
                port=rendezvous_port(uid),
                log=say,
                volume=Door(self._pai_dir),
            )
            self._server = Child(server)
        except (PairunError, OSError) as e:
            say(f"the server for the job's other instances could not be started: {e}")

    def end(self, *, stay: bool) -> None:
        """Stop the server; it saves its state for PID 1's server.

        Args:
            stay: first serve instances that wait for a verdict, for up to 10 s: PID 1's server
                starts later.
        """
        if self._server is not None:
            self._server.stop(stay=stay)
            self._server = None

    def note(self, cluster: Cluster) -> None:
        """Write the leader's address to the volume.

        Raises:
            OSError: it cannot be written.
        """
        first = next(iter(cluster.roles), None)
        leader = next((i for i in first.instances if i.index == 0), None) if first else None
        if (
            self._noted
            or self.is_alone
            or leader is None
            or not (leader.pod_uid and leader.host_ip)
        ):
            return
        from pairun.kube.ports import rendezvous_port
        from pairun.rendezvous.peers import job_key
        from pairun.rendezvous.place import Place, write_place
        from pairun.rendezvous.roster import Gang

        gang = Gang.of(self._roles)
        port = rendezvous_port(leader.pod_uid)
        address = (leader.host_ip, port)
        write_place(self._pai_dir, Place(address, job_key(self._env), gang.rank(*self._own), gang))
        self._noted = True

    def peers(self) -> JobPeers | None:
        """The other instances; None before the leader's address is known."""
        if not self._noted:
            return None
        from pairun.rendezvous.peers import peers_of

        return peers_of(self._pai_dir, "init", self._pods())

    def _pods(self) -> OtherPods | None:
        """The other Pods at the API server; None outside of a cluster."""
        from pairun.rendezvous.otherpods import OtherPods

        names = ("FC_FRAMEWORK_NAMESPACE", "FC_FRAMEWORK_NAME")
        return OtherPods(self._env) if all(self._env.get(name) for name in names) else None
