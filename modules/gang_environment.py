"""The variables by which torchrun, MPI and JAX find the instances of a job."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from pairun.module import (
    Context,
    Permanent,
    Result,
    StateModule,
    Verdict,
    arg,
    cluster_path,
    define,
    job_instances,
    no_change,
    own_rank,
    unknown,
    will_change,
)

_HOSTFILE = "hostfile"


@define
class GangEnvironment(StateModule):
    """Export the variables of a distributed start, except those that the user sets.

    The rank of an instance is its place among all, in the order of roles; rank 0 is the leader.
    torchrun's are those of its options (``PET_...``) and of a program without it (``RANK``,
    ``WORLD_SIZE``, one process per instance), MPI's name a hostfile in ``run/``, and JAX's are those
    of ``jax.distributed.initialize``.
    """

    phases = ("runtime",)
    privileges = "may write to the shared volume"
    example = "gang_environment: {styles: [torchrun]}"
    verify = False

    styles: list[Literal["torchrun", "mpi", "jax"]] = arg("The launchers to set variables for.")
    torchrun_port: int = arg("The leader's port for torchrun.", default=29500)
    jax_port: int = arg("The leader's port for JAX.", default=1234)
    slots: int = arg("The number of MPI processes of an instance.", default=1)

    def require(self) -> Iterator[str]:
        """There is something to export, and the ports exist."""
        if not self.styles:
            yield "'styles' names at least one of torchrun, mpi and jax"
        for name in ("torchrun_port", "jax_port"):
            if not 0 < getattr(self, name) < 65536:
                yield f"'{name}' is from 1 to 65535"
        if self.slots < 1:
            yield "'slots' is at least 1"

    def probe(self, ctx: Context) -> Mapping[str, str] | None:
        """The variables that the container lacks; None before init knows the gang."""
        if ctx.stat(cluster_path(ctx)) is None:
            return None
        return {n: v for n, v in self._variables(ctx).items() if n not in ctx.env}

    def plan(self, state: Mapping[str, str] | None) -> Verdict:
        """Export the variables."""
        if state is None:
            return unknown("the addresses of the gang are known at run time")
        if not state:
            return no_change("the container has every variable")
        return will_change(f"export {', '.join(state)}")

    def apply(self, ctx: Context) -> Result:
        """Export the variables, and write MPI's hostfile."""
        variables = {n: v for n, v in self._variables(ctx).items() if n not in ctx.env}
        if "mpi" in self.styles:
            lines = [f"{host} slots={self.slots}\n" for host in _hosts(ctx)[0]]
            ctx.write_file(_hostfile(ctx), "".join(lines).encode(), 0o644)
        return Result(environment=variables, message=f"{len(variables)} variables")

    def _variables(self, ctx: Context) -> dict[str, str]:
        hosts, rank = _hosts(ctx)
        count, leader = str(len(hosts)), hosts[0]
        out: dict[str, str] = {}
        if "torchrun" in self.styles:
            port = str(self.torchrun_port)
            out |= {
                "MASTER_ADDR": leader, "MASTER_PORT": port, "WORLD_SIZE": count, "RANK": str(rank),
                "PET_MASTER_ADDR": leader, "PET_MASTER_PORT": port, "PET_NNODES": count,
                "PET_NODE_RANK": str(rank),
            }  # fmt: skip
        if "mpi" in self.styles:
            path = _hostfile(ctx)
            out |= {
                "OMPI_MCA_orte_default_hostfile": path, "PRTE_MCA_prte_default_hostfile": path,
                "HYDRA_HOST_FILE": path, "I_MPI_HYDRA_HOST_FILE": path,
            }  # fmt: skip
        if "jax" in self.styles:
            out |= {
                "JAX_COORDINATOR_ADDRESS": f"{leader}:{self.jax_port}", "JAX_NUM_PROCESSES": count,
                "JAX_PROCESS_ID": str(rank),
            }  # fmt: skip
        return out


def _hostfile(ctx: Context) -> str:
    return os.path.join(ctx.pai_dir, "run", _HOSTFILE)


def _hosts(ctx: Context) -> tuple[list[str], int]:
    """The addresses of all instances in the order of their ranks, and this instance's rank.

    Raises:
        Permanent: an address is missing, or ``cluster.json`` cannot be used.
    """
    instances = job_instances(ctx)
    rank = own_rank(instances)
    hosts = [instance.host_ip for instance in instances]
    if not all(re.fullmatch(r"[\w.:%-]+", host) for host in hosts):
        hint = "wait for them: add --barrier, or set gang: true in the task barrier"
        raise Permanent("not every instance has an address", fault="platform", hint=hint)
    return hosts, rank
