"""Jobs that launchers start: torchrun, DeepSpeed, torch's spawn, Lightning, MPI, JAX, Ray."""

from __future__ import annotations

from tests.incidents.cases.jax_processes import processes
from tests.incidents.incident import Incident, Label, Process, alone

_ALONE = "torchrun --standalone --nproc-per-node"
_PEER = ["peer_lost", "child_failed", "unknown"]
_SPEED = "DS_ACCELERATOR=cpu deepspeed --num_gpus 4"


def _two_nodes(command: str, env: dict[str, str]) -> list[Process]:
    """Return torchrun's agents of two nodes with three ranks each."""
    return [
        Process(
            f"node-{node}",
            f"torchrun --nnodes 2 --node-rank {node} --nproc-per-node 3 --master-addr node-0 "
            f"--master-port 29500 --log-dir out/node-{node} --redirects 3 {command}",
            env,
            host=f"node-{node}",
        )
        for node in range(2)
    ]


INCIDENTS: dict[str, Incident] = {
    "agents-two-nodes": Incident(
        Label(
            "rank 4, the second of the second node, raises ValueError; torchrun's log folders",
            "user_code_error", "after_fix", 4, ["input_data_error", "shape_or_index_error"],
        ),
        _two_nodes("pretrain.py", {"FAULT": "vocabulary", "FAULT_RANKS": "4"}),
        folders=["out"],
        limit_s=150,
    ),
    "agents-two-nodes-killed": Incident(
        Label(
            "rank 1 of six is killed by SIGKILL; torchrun's agents of two nodes say so",
            "host_oom", "retry", 1, _PEER,
        ),
        _two_nodes("pretrain.py", {"FAULT": "kill", "FAULT_RANKS": "1"}),
        limit_s=150,
    ),
    "agent-abort": Incident(
        Label(
            "rank 3 of four calls abort(); torchrun's own output alone is kept",
            "native_abort", "retry", 3, ["child_failed", "segfault"],
        ),
        [
            p._replace(env={"FAULT": "abort", "FAULT_RANKS": "3", "LOG_STYLE": "bare"})
            for p in alone(f"{_ALONE} 4 --redirects 3 --log-dir logs pretrain.py", "launcher")
        ],
    ),
    "agent-restarts-folder": Incident(
        Label(
            "rank 2 of three meets the same token in both attempts; torchrun's log folder",
            "user_code_error", "after_fix", 2, ["input_data_error", "shape_or_index_error"],
        ),
        [
            p._replace(env={"FAULT": "vocabulary", "FAULT_RANKS": "2"})
            for p in alone(
                f"{_ALONE} 3 --max-restarts 1 --redirects 3 --log-dir logs pretrain.py", "agent"
            )
        ],
        folders=["logs"],
    ),
    "spawn-raises": Incident(
        Label(
            "process 2 that torch.multiprocessing starts raises IndexError",
            "shape_or_index_error", "after_fix", 2, ["user_code_error"], untold=True,
        ),
        alone("python spawned.py raises"),
    ),
    "spawn-killed": Incident(
        Label(
            "process 1 that torch.multiprocessing starts is killed by SIGKILL",
            "host_oom", "retry", 1, _PEER,
        ),
        alone("python spawned.py killed"),
    ),
    "lightning-validation": Incident(
        Label(
            "the validation of rank 2 of three looks for a metric that is not in the list",
            "user_code_error", "after_fix", 2,
        ),
        alone("python lightning_val.py"),
        limit_s=200,
    ),
    "zero-raises": Incident(
        Label(
            "rank 1 of four raises IndexError under DeepSpeed's launcher",
            "shape_or_index_error", "after_fix", 1, ["user_code_error"],
        ),
        alone(f"{_SPEED} zero.py raises 1", "deepspeed"),
        limit_s=200,
    ),
    "zero-killed": Incident(
        Label(
            "rank 3 of four is killed by SIGKILL under DeepSpeed's launcher",
            "host_oom", "retry", 3, _PEER,
        ),
        alone(f"{_SPEED} zero.py killed 3", "deepspeed"),
        limit_s=200,
    ),
    "halo-shape": Incident(
        Label(
            "rank 4 of six adds rows of other lengths, and mpi4py aborts; lines have tags",
            "shape_or_index_error", "after_fix", 4, ["user_code_error"],
        ),
        alone("mpirun -np 6 --tag-output python -m mpi4py mpi_halo.py shape 4", "mpirun"),
    ),
    "halo-memory": Incident(
        Label(
            "rank 1 of three asks for 27 GiB and has 6 GiB of address space",
            "host_oom", "after_fix", 1,
        ),
        alone("mpirun -np 3 --timestamp-output python -m mpi4py mpi_halo.py memory 1", "mpirun"),
    ),
    "halo-code-folders": Incident(
        Label(
            "rank 5 of eight exits with 7, without a word; mpirun's folder for each rank",
            "child_failed", "retry", 5, ["user_code_error", "peer_lost", "unknown"],
        ),
        alone("mpirun -np 8 --output-filename out python mpi_halo.py code 5", "mpirun"),
        folders=["out"],
    ),
    "halo-message": Incident(
        Label(
            "rank 2 of four prints an error and calls MPI_Abort with code 11",
            "user_code_error", "after_fix", 2, ["child_failed", "config_error"],
        ),
        alone("mpirun -np 4 --tag-output python mpi_halo.py message 2", "mpirun"),
    ),
    "halo-stuck": Incident(
        Label(
            "rank 2 of four waits, and so do the others, until the job is killed",
            "hang", "retry", 2, ["unknown"], untold=True,
        ),
        alone("mpirun -np 4 --tag-output python mpi_halo.py stuck 2", "mpirun"),
        limit_s=30,
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
    "rows-segfault": Incident(
        Label(
            "process 2 of three crashes with SIGSEGV; the coordination service notices",
            "segfault", "retry", 2, ["peer_lost", "native_abort", "unknown"],
        ),
        processes("python jax_rows.py segfault 2; echo exit $?", 3),
        form="kubectl",
        limit_s=200,
    ),
    "rows-asleep": Incident(
        Label(
            "process 0 of three reads its batch for longer than the others wait",
            "hang", "retry", 0, ["nccl_timeout", "peer_lost"], untold=True,
        ),
        processes("python jax_rows.py asleep 0", 3),
        limit_s=120,
    ),
    "ray-ranks-raise": Incident(
        Label(
            "Ray's actor of rank 2 of four raises KeyError",
            "user_code_error", "after_fix", 2,
        ),
        alone("python ray_trainers.py raises 2", "driver"),
        limit_s=150,
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
