"""The plans of a Pod, made from its inputs, and made again when the peers are known.

Also how its instance finds the peers: the leader's server and address.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pairun.base.paths import DEFAULT_PAI_DIR, pai_dir
from pairun.errors import PairunError, Problems
from pairun.init.podinput import PodInput, read_cluster, read_pod_input
from pairun.job.hiding import hide_lines
from pairun.job.jsyaml import dialect_named
from pairun.job.model import Job, Role
from pairun.job.planning import (
    CLUSTER_UNKNOWN,
    RUNTIME_ENV_UNKNOWN,
    RolePlan,
    plan_role,
    secrets_of,
)
from pairun.kube.cluster import JobCluster
from pairun.module import Secret
from pairun.net.apicredentials import NoApiServer, access_of_pod, read_token
from pairun.openpai.enginelayers import barrier_layer, merged
from pairun.openpai.environment import cluster_facts
from pairun.openpai.podconfig import with_config_dir
from pairun.playbook.content import open_content
from pairun.playbook.document.reading import read_file
from pairun.playbook.effective import Layers
from pairun.report.problems import print_problems
from pairun.secrets.shapes import script_secrets
from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.reader import hide_job_key

if TYPE_CHECKING:
    from pairun.rendezvous.otherpods import OtherPods
    from pairun.rendezvous.peers import JobPeers
    from pairun.rendezvous.server import ServerProcess

_POD_WARNINGS = ("PR718", "PR719")
"""Warnings about the Pod itself; printed first, even if an error follows."""


class PodPlans:
    """Plans both phases of one Pod.

    Args:
        roots: additional content roots.
        placed: whether the Framework is a saved one with all addresses.

    Attributes:
        env: the environment, with the variables of `Meeting` for tasks.
        vault: the vault, with all secrets read so far.
        meeting: how this instance finds its peers; None if their addresses are known.

    Raises:
        PairunError: the inputs are invalid.
    """

    def __init__(
        self, roots: list[str], env: dict[str, str], vault: Vault, *, placed: bool = False
    ) -> None:
        self.env = env
        self.vault = vault
        self.pai_dir = pai_dir()
        self.layers = Layers(open_content(roots, with_config_dir(env)))
        dialect = dialect_named(self.layers.policy.job_yaml)
        self.pod: PodInput = read_pod_input(self.pai_dir, env, placed=placed, dialect=dialect)
        self.env |= self.pod.variables
        self.secrets = [*secrets_of(self.pod.job), *self.pod.job_keys]
        self.vault.add(self.secrets)
        hide_job_key(Door(self.pai_dir), self.vault)
        self.vault.add(_own_token(env))
        self._fill_vault()
        self._cluster: JobCluster | None = self.pod.cluster
        self.meeting: Meeting | None = None
        if self._cluster is None:
            self.meeting = Meeting(self.pod.job, self.pod.role, self.pod.index, env, self.pai_dir)
            self.env |= self.meeting.variables()
        self._written: dict[str, str | Secret] | None = None
        self._warned = False
        warnings = [p for p in self.pod.problems if p.id in _POD_WARNINGS]
        print_problems(warnings, self.vault)

    def make(self) -> RolePlan:
        """Check and plan both phases with what is known so far.

        Raises:
            PairunError: all problems.
        """
        problems = Problems(p for p in self.pod.problems if p.id not in _POD_WARNINGS)
        layer = self.env.get("PAIRUN_ENGINE_LAYER")
        engine = merged(barrier_layer(self.env), read_file(layer, "engine") if layer else None)
        moved = self.pai_dir != DEFAULT_PAI_DIR
        plan = plan_role(
            self.layers,
            self.pod.job,
            self.pod.role,
            env={"init": self.env, "runtime": RUNTIME_ENV_UNKNOWN},
            cluster=cluster_facts(self._cluster) if self._cluster else CLUSTER_UNKNOWN,
            init_plugins=self.pod.init_plugins,
            engine=merged(engine, self.pod.engine),
            user_extension=self.pod.user_extension,
            written=self._written,
            command=self.pod.command,
            rewrite=(DEFAULT_PAI_DIR, self.pai_dir) if moved else None,
            vault=self.vault,
            problems=problems,
        )
        if problems:
            hide_lines(self.pod.job.node, self.vault)
        if problems.errors:
            raise PairunError(*problems)
        # The second plans have the same warnings.
        if not self._warned:
            print_problems(problems, self.vault)
            self._warned = True
        self._fill_vault()
        return plan

    def take_scripts(self, scripts: Mapping[str, str]) -> None:
        """Use the scripts from plugin folders' programs in later plans.

        A program may have read passwords that pairun does not know. So its scripts are secrets, and
        texts that look like passwords in them are masked.
        """
        self.secrets += [found for text in scripts.values() for found in script_secrets(text)]
        self.vault.add(self.secrets)
        self._written = {name: Secret(text) for name, text in scripts.items()}

    def as_secret(self, value: str) -> str | Secret:
        """Make a secret of a value that contains a secret of the job."""
        return value if self.vault.text(value) == value else Secret(value)

    def cluster(self) -> JobCluster:
        """Peers and ports from the barrier's file on the volume.

        Raises:
            PairunError: they are missing or incomplete.
        """
        if self._cluster is None:
            self._cluster = read_cluster(self.pai_dir, self.env, self.pod.job)
        return self._cluster

    def _fill_vault(self) -> None:
        """Add the secrets from all inputs read so far to the vault."""
        listed = self.pod.init_plugins
        settings = listed.place.source.concealed if listed else ()
        self.vault.add([*settings, *self.layers.content.concealed()])


def _own_token(env: Mapping[str, str]) -> list[str]:
    """The token of this Pod's service account, if any: an init task may print it."""
    try:
        return [read_token(access_of_pod(env).token)]
    except NoApiServer:
        return []


ROLES = "PAIRUN_ROLES"
"""The variable with the job's roles, each with count and ports, for init tasks."""


class Meeting:
    """The instances of a job, as one of them sees them in the init phase."""

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
        self._server: ServerProcess | None = None
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
        from pairun.rendezvous.server import Server, ServerProcess

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
            self._server = ServerProcess(server)
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

    def note(self, cluster: JobCluster) -> None:
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
        from pairun.rendezvous.peers import MemberPlace, job_key, write_place
        from pairun.rendezvous.roster import Gang

        gang = Gang.of(self._roles)
        port = rendezvous_port(leader.pod_uid)
        address = (leader.host_ip, port)
        write_place(
            self._pai_dir, MemberPlace(address, job_key(self._env), gang.rank(*self._own), gang)
        )
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
