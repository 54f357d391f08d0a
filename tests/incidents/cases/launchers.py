"""Launchers: torchrun, accelerate, DeepSpeed, mpirun, Ray, and processes of JAX."""

from __future__ import annotations

import signal

from tests.incidents.incident import Incident, Label, Outside, Process, alone

_ALONE = "torchrun --standalone --nproc-per-node"
_ACCELERATE = "accelerate launch --cpu --num_processes 2 --num_machines 1 --mixed_precision no"
_PEER = ["peer_lost", "child_failed", "unknown"]
_SPEED = "DS_ACCELERATOR=cpu deepspeed --num_gpus 4"


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
    "torchrun-restarts": Incident(
        Label(
            "rank 1 fails in the same place in each of three attempts (--max-restarts 2)",
            "shape_or_index_error", "after_fix", 1, ["user_code_error"],
        ),
        alone(f"{_ALONE} 2 --max-restarts 2 elastic.py", "torchrun"),
    ),
    "torchrun-oom": Incident(
        Label(
            "rank 2 fills the container's cgroup of 1600 MiB; the kernel's messages say so",
            "host_oom", "after_fix", 2,
        ),
        alone(f"{_ALONE} 4 growing.py", memory_mib=1600),
        kernel=True,
    ),
    "torchrun-script-missing": Incident(
        Label(
            "the script's name has a typo, for all ranks",
            "file_not_found", "after_fix", None, ["usage_error", "launcher_error"],
        ),
        alone(f"{_ALONE} 4 trian.py"),
    ),
    "torchrun-port": Incident(
        Label("another program listens on the master's port", "port_in_use", "retry"),
        alone(
            "python -m http.server 29500 > /dev/null & sleep 3; "
            "torchrun --nnodes 1 --nproc-per-node 2 --master-port 29500 slow.py"
        ),
    ),
    "torchrun-node-missing": Incident(
        Label(
            "the second of two nodes never starts: the rendezvous times out",
            "rendezvous_timeout", "retry",
        ),
        alone(
            "torchrun --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d --rdzv-id train "
            "--rdzv-endpoint localhost:29400 --rdzv-conf join_timeout=15 slow.py"
        ),
    ),
    "torchrun-two-nodes": Incident(
        Label(
            "rank 3, on the second of two nodes, raises KeyError; the first node's ranks lose it",
            "user_code_error", "after_fix", 3, ["input_data_error"],
        ),
        [
            Process(
                f"node-{rank}",
                f"torchrun --nnodes 2 --node-rank {rank} --nproc-per-node 2 "
                "--master-addr node-0 --master-port 29500 labels.py",
                host=f"node-{rank}",
            )
            for rank in range(2)
        ],
        form="cri",
    ),
    "torchrun-sigterm": Incident(
        Label(
            "torchrun gets SIGTERM from outside, as at the end of a preempted Pod",
            "terminated_sigterm", "retry",
        ),
        alone(f"{_ALONE} 4 slow.py"),
        outside=Outside(signal.SIGTERM, "step 5"),
    ),
    "accelerate-no-ranks": Incident(
        Label(
            "accelerate launch with --cpu starts one process, whose environment has no RANK",
            "config_error", "after_fix", None, ["launcher_error", "user_code_error"],
        ),
        alone(f"{_ACCELERATE} elastic.py", "launcher"),
    ),
    "lightning-healthy": Incident(
        Label("two ranks that Lightning starts finish, with its warnings", "none", None),
        alone("python lightning_fit.py"),
    ),
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
    "mpi-slots": Incident(
        Label("eight processes are asked for, and the host has two slots", "launcher_error",
              "after_fix", None, ["config_error", "usage_error", "unschedulable"]),
        alone(
            "mpirun --mca rmaps_base_oversubscribe 0 --mca rmaps_base_no_oversubscribe 1 "
            "--host localhost:2 -np 8 python mpi_sum.py",
            "mpirun",
        ),
    ),
    "mpi-healthy": Incident(
        Label("four ranks finish", "none", None),
        alone("mpirun -np 4 --tag-output python mpi_sum.py", "mpirun"),
    ),
    "jax-lost": Incident(
        Label(
            "process 3 is killed by SIGKILL at step 12; the coordination service notices",
            "peer_lost", "retry", 3, ["unknown", "host_oom"],
        ),
        processes("python jax_sum.py lost"),
        limit_s=200,
    ),
    "ray-task-raises": Incident(
        Label(
            "a task raises: a record is split at the wrong sign",
            "user_code_error", "after_fix", None, ["input_data_error", "shape_or_index_error"],
        ),
        alone("python ray_jobs.py task", "driver"),
    ),
    "ray-heals": Incident(
        Label("a task's worker exits once; Ray retries it and all finish", "none", None),
        alone("python ray_jobs.py heals", "driver"),
    ),
}  # fmt: skip
