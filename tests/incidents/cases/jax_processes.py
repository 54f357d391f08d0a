"""JAX with a process for each of four hosts, on CPUs."""

from __future__ import annotations

from tests.incidents.incident import Incident, Label, Process


def processes(command: str, n: int = 4, *, skip: int | None = None) -> list[Process]:
    """Return the processes of JAX but one, each on its host."""
    return [
        Process(
            f"host-{rank}",
            command,
            {
                "JAX_PROCESS_ID": str(rank),
                "JAX_NUM_PROCESSES": str(n),
                "COORDINATOR": "host-0:8476",
                "JAX_PLATFORMS": "cpu",
            },
            f"host-{rank}",
        )
        for rank in range(n)
        if rank != skip
    ]


INCIDENTS: dict[str, Incident] = {
    "jax-lost": Incident(
        Label(
            "process 3 is killed by SIGKILL at step 12; the coordination service notices",
            "peer_lost", "retry", 3, ["unknown", "host_oom"],
        ),
        processes("python jax_sum.py lost"),
        limit_s=200,
    ),
}  # fmt: skip
