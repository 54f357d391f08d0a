"""Jobs that launchers start: torchrun, DeepSpeed, torch's spawn, Lightning, MPI, JAX, Ray."""

from __future__ import annotations

from tests.incidents.cases.jax_processes import processes
from tests.incidents.incident import Incident, Label, alone

_ALONE = "torchrun --standalone --nproc-per-node"
_PEER = ["peer_lost", "child_failed", "unknown"]
_SPEED = "DS_ACCELERATOR=cpu deepspeed --num_gpus 4"


INCIDENTS: dict[str, Incident] = {
    "spawn-killed": Incident(
        Label(
            "process 1 that torch.multiprocessing starts is killed by SIGKILL",
            "host_oom", "retry", 1, _PEER,
        ),
        alone("python spawned.py killed"),
    ),
    "zero-killed": Incident(
        Label(
            "rank 3 of four is killed by SIGKILL under DeepSpeed's launcher",
            "host_oom", "retry", 3, _PEER,
        ),
        alone(f"{_SPEED} zero.py killed 3", "deepspeed"),
        limit_s=200,
    ),
    "halo-message": Incident(
        Label(
            "rank 2 of four prints an error and calls MPI_Abort with code 11",
            "user_code_error", "after_fix", 2, ["child_failed", "config_error"],
        ),
        alone("mpirun -np 4 --tag-output python mpi_halo.py message 2", "mpirun"),
    ),
    "rows-column": Incident(
        Label(
            "process 1 of three raises KeyError; its clock is 300 s ahead; CRI's form",
            "user_code_error", "after_fix", 1, ["input_data_error"],
        ),
        [
            p._replace(skew_s=300.0 if p.name == "host-1" else 0)
            for p in processes("python jax_rows.py column 1", 3)
        ],
        form="cri",
        limit_s=200,
    ),
    "ray-ranks-killed": Incident(
        Label(
            "Ray's actor of rank 3 of four is killed by SIGKILL",
            "peer_lost", "retry", 3, ["host_oom", "child_failed"], untold=True,
        ),
        alone("python ray_trainers.py killed 3", "driver"),
        limit_s=150,
    ),
}  # fmt: skip
