"""Incidents of other programs, recorded after the diagnosis was changed for those before."""

from __future__ import annotations

from tests.incidents import collecting
from tests.incidents.cases.jax_processes import processes
from tests.incidents.incident import Incident, Label, Process, alone, ranks

_PEER = ["peer_lost", "child_failed", "unknown"]
_TEE = "torchrun --nnodes 2 --nproc-per-node 2 --tee 3 --log-dir logs --master-addr rack-0"


def _finetune(trouble: str, n: int, name: str = "worker-{}", **env: str) -> list[Process]:
    return ranks("python finetune.py", n, name=name, env={"TROUBLE": trouble, **env})


INCIDENTS: dict[str, Incident] = {
    "tee-two-nodes": Incident(
        Label(
            "rank 3 of 4 lacks a column; torchrun's tee shows the ranks of each node only",
            "user_code_error", "after_fix", 3, ["input_data_error"],
        ),
        [
            Process(
                f"rack-{node}", f"{_TEE} --node-rank {node} --master-port 29511 finetune.py",
                {"TROUBLE": "3:column"}, f"rack-{node}",
            )
            for node in range(2)
        ],
        limit_s=150,
    ),
    "finetune-resume-slurm": Incident(
        Label(
            "rank 1 of 5 loads weights of another size; a file for each of Slurm's tasks",
            "checkpoint_error", "after_fix", 1, ["shape_or_index_error", "user_code_error"],
        ),
        _finetune("1:resume", 5),
        collect=collecting.renamed({f"worker-{r}.log": f"slurm-9931_{r}.out" for r in range(5)}),
    ),
    "finetune-stopped-kubectl": Incident(
        Label(
            "rank 2 of 6 is stopped by SIGSTOP; the others time out after 20 s",
            "hang", "retry", 2, ["nccl_timeout", "peer_lost"],
        ),
        _finetune("2:stop", 6, "ft-node-{}", WAIT="20"),
        form="kubectl",
        limit_s=80,
    ),
    "finetune-assertion-hashes": Incident(
        Label(
            "rank 4 of 6 meets a negative label; the files have Pods' names with random endings",
            "user_code_error", "after_fix", 4, ["input_data_error"],
        ),
        _finetune("4:assertion", 6),
        collect=collecting.renamed(
            {
                f"worker-{r}.log": f"trainer-6f7c9d-{end}.log"
                for r, end in enumerate(("x2x4q", "b9kzd", "77hvp", "mmq2l", "c5tgw", "z8f6n"))
            }
        ),
    ),
    "finetune-two-killed": Incident(
        Label(
            "ranks 1 and 6 of 8 are killed at once, on different hosts",
            "peer_lost", "retry", 1, ["unknown", "host_oom"], [6], untold=True,
        ),
        _finetune("1,6:kill", 8),
        form="cri",
    ),
    "finetune-late": Incident(
        Label(
            "rank 3 of 4 comes 45 s late to a collective; the others wait for 20 s",
            "nccl_timeout", "retry", 3, ["hang", "peer_lost"],
        ),
        _finetune("3:late", 4, "gpu-host-{}", WAIT="20"),
        form="docker",
        limit_s=90,
    ),
    "finetune-code-cut": Incident(
        Label(
            "rank 5 of 7 exits with 2, without a word; the last 10 lines of each log are left",
            "child_failed", "retry", 5, ["peer_lost", "unknown", "user_code_error"],
        ),
        _finetune("5:code", 7),
        collect=collecting.last_lines(10),
    ),
    "finetune-healthy": Incident(
        Label("three ranks finish; the export of a log shipper", "none", None),
        _finetune("9:late", 3),
        form="shipped",
    ),
    "finetune-killed-prefixed": Incident(
        Label(
            "rank 0 of 5, which has the store, is killed; one file of all",
            "peer_lost", "retry", 0, ["unknown", "host_oom"],
        ),
        _finetune("0:kill", 5, "task-{}"),
        form="prefixed",
    ),
    "power-kill-folders": Incident(
        Label(
            "rank 0 of 4 is killed by SIGKILL; mpirun's own output beside a folder for each rank",
            "host_oom", "retry", 0, _PEER,
        ),
        alone("mpirun -np 4 --output-filename out python mpi_power.py kill 0", "job"),
        folders=["out"],
    ),
    "power-bus": Incident(
        Label(
            "rank 3 of 5 gets SIGBUS, as from a full /dev/shm",
            "segfault", "retry", 3, ["native_abort", "shm_too_small", "child_failed"],
        ),
        alone("mpirun -np 5 --tag-output python mpi_power.py bus 3", "mpi"),
    ),
    "power-file": Incident(
        Label("a matrix is missing for rank 2 of 4", "file_not_found", "after_fix", 2, untold=True),
        alone("mpirun -np 4 python -m mpi4py mpi_power.py file 2", "mpi"),
    ),
    "begin-token": Incident(
        Label(
            "process 2 of 4 may not write and never initializes; the others wait for it for 30 s",
            "permission_denied", "after_fix", 2, ["storage_io_error", "user_code_error"],
        ),
        [
            p._replace(env={**p.env, "WITHOUT_TOKEN": "2"})
            for p in processes("python jax_begin.py")
        ],
        form="kubectl",
        limit_s=120,
    ),
    "zero-code": Incident(
        Label(
            "rank 2 of 3 exits with 2, without a word, under DeepSpeed's launcher",
            "child_failed", "retry", 2, ["peer_lost", "unknown", "user_code_error"],
        ),
        [
            p._replace(env={"TROUBLE": "2:code"})
            for p in alone("DS_ACCELERATOR=cpu deepspeed --num_gpus 3 finetune.py", "deepspeed")
        ],
        limit_s=150,
    ),
}  # fmt: skip
