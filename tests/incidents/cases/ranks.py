"""Ranks of torch without a launcher, and of the programs own_loop.py, finetune.py and pretrain.py."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tests.incidents import collecting
from tests.incidents.cases.launchers import processes
from tests.incidents.incident import Incident, Label, Process, alone, ranks

_ALONE = "torchrun --standalone --nproc-per-node"
_JOURNAL = (
    "{ %s; } 2>&1 | while IFS= read -r line; do "
    'printf "%%s %%s train[%%s]: %%s\\n" "$(date "+%%b %%d %%H:%%M:%%S")" $HOSTNAME $$ "$line"; done'
)


_PEER = ["peer_lost", "child_failed", "unknown"]


def _finetune(trouble: str, n: int, name: str = "worker-{}", **env: str) -> list[Process]:
    return ranks("python finetune.py", n, name=name, env={"TROUBLE": trouble, **env})


_PEER_OWN = ["peer_lost", "unknown"]


def _pretrain(
    fault: str,
    n: int,
    hit: int | str,
    *,
    name: str = "worker-{}",
    command: str = "python pretrain.py",
    env: Mapping[str, str] | None = None,
    of_rank: Mapping[int, Mapping[str, str]] | None = None,
    memory_mib: Mapping[int, int] | None = None,
) -> list[Process]:
    """Return the ranks of a training in which a fault happens to one, or to some."""
    fixed = {"FAULT": fault, "FAULT_RANKS": str(hit)}
    return ranks(
        command, n, name=name, env={**fixed, **(env or {})}, of_rank=of_rank, memory_mib=memory_mib
    )


def _for_each(n: int, name: str, new: str) -> collecting.Collect:
    return collecting.renamed({f"{name.format(r)}.log": new.format(r, r // 4) for r in range(n)})


INCIDENTS: dict[str, Incident] = {
    "ranks-monitored-barrier": Incident(
        Label(
            "rank 5 sleeps and misses the monitored barrier, which names it",
            "hang", "retry", 5, ["nccl_timeout", "peer_lost", "rendezvous_timeout"],
        ),
        ranks("python monitored.py"),
        limit_s=60,
    ),
    "ranks-slow-enough": Incident(
        Label("rank 7 is slow for 6 s, below the timeout; all ranks finish", "none", None),
        ranks("python slow.py", env={"SLOW_S": "6"}),
    ),
    "ranks-mismatch": Incident(
        Label(
            "rank 2 leaves the loop after 13 steps and broadcasts while the others all-reduce",
            "user_code_error", "after_fix", 2,
            ["nccl_timeout", "hang", "peer_lost", "native_abort", "shape_or_index_error"],
        ),
        ranks("python mismatch.py"),
    ),
    "ranks-flight-recorder": Incident(
        Label(
            "rank 1 has no samples left and never enters the 24th all-reduce; dumps say who is behind",
            "hang", "retry", 1, ["nccl_timeout", "peer_lost"],
        ),
        ranks(
            "python recorded.py json nccl_trace_rank",
            4,
            env={"TORCH_FR_BUFFER_SIZE": "30", "SKIPPING_RANK": "1", "DUMP_AFTER_S": "14"},
        ),
        folders=["dumps"],
        limit_s=45,
    ),
    "ranks-oom-pods": Incident(
        Label(
            "rank 2 is killed for its cgroup's memory; the Pods' status says OOMKilled",
            "host_oom", "after_fix", 2,
        ),
        ranks("python growing.py", memory_mib={2: 500}, name="train-worker-{}"),
        form="docker",
        pods=True,
    ),
    "ranks-checkpoint-disk-full": Incident(
        Label(
            "the volume of rank 0 is full when it saves the model; the others wait at a barrier",
            "disk_full", "after_fix", 0, ["checkpoint_error"],
        ),
        [
            p._replace(command="mount -t tmpfs -o size=600k tmpfs checkpoints; " + p.command)
            if p.name == "worker-0" else p
            for p in ranks("python keeping.py")
        ],
        form="cri",
        files=lambda job: os.mkdir(os.path.join(job, "checkpoints")),
    ),
    "ranks-healthy-noisy": Incident(
        Label("four ranks finish; they print errors that they have handled", "none", None),
        ranks("python noisy.py", 4),
    ),
    "torchrun-usage": Incident(
        Label("an option has a typo, for all ranks", "usage_error", "after_fix"),
        alone(f"{_ALONE} 4 options.py --steps 20 --learning-rte 0.1"),
    ),
    "torchrun-heals-log-dir": Incident(
        Label("rank 1 fails in the first attempt; the second one finishes", "none", None),
        alone(f"{_ALONE} 2 --max-restarts 1 --tee 3 --log-dir logs elastic.py heals", "torchrun"),
        folders=["logs"],
    ),
    "torchrun-abort": Incident(
        Label(
            "an assertion in a C library aborts rank 0; outputs are in torchrun's log folder",
            "native_abort", "retry", 0,
        ),
        alone(f"{_ALONE} 4 --redirects 3 --log-dir logs checked.py", "torchrun"),
        folders=["logs"],
    ),
    "ranks-record-in-loader": Incident(
        Label(
            "a record of rank 5 is cut: its DataLoader's worker raises; the others lose rank 5",
            "input_data_error", "after_fix", 5, ["user_code_error"],
        ),
        ranks("python parsing.py"),
        form="prefixed",
    ),
    "ranks-no-gpu": Incident(
        Label(
            "the image's torch was built without CUDA, for all ranks",
            "gpu_not_available", "after_fix", None, ["cuda_driver_mismatch", "config_error"],
        ),
        ranks("python to_gpu.py", 2),
    ),
    "torchrun-healthy-tee": Incident(
        Label("three ranks finish under torchrun with --tee", "none", None),
        alone(f"{_ALONE} 3 --tee 3 --log-dir logs noisy.py"),
    ),
    "ray-actor-init": Incident(
        Label(
            "an actor cannot open its configuration when it is created",
            "file_not_found", "after_fix", None, ["user_code_error"],
        ),
        alone("python ray_init.py", "driver"),
    ),
    "replicas-two-fail-kubectl": Incident(
        Label(
            "rank 5 of 6 fails an assertion; rank 1 raises KeyError a second later, by itself",
            "user_code_error", "after_fix", 5, ["input_data_error"],
        ),
        ranks("python local_steps.py", 6, env={"FAULTS": "5=assert@3 1=column@19"}, name="rep-{}"),
        form="kubectl",
        limit_s=150,
    ),
    "tree-settings": Incident(
        Label(
            "rank 0 of five cannot parse the settings; mpirun's folder for each rank",
            "config_error", "after_fix", 0, ["user_code_error", "input_data_error"],
        ),
        alone("mpirun -np 5 --output-filename out python -m mpi4py mpi_tree.py", "mpirun"),
        folders=["out"],
    ),
    "scan-journal": Incident(
        Label(
            "process 3 of 4 raises TypeError: its state has another type; the journal's form",
            "user_code_error", "after_fix", 3, ["shape_or_index_error"],
        ),
        [
            p._replace(env={**p.env, "HOSTNAME": p.name})
            for p in processes(_JOURNAL % "python jax_scan.py")
        ],
        form="mixed",
        limit_s=200,
    ),
    "replicas-all-settings": Incident(
        Label("a file of settings is missing for all four ranks", "file_not_found", "after_fix",
              None, ["config_error"]),
        ranks(
            "python local_steps.py", 4,
            env={"FAULTS": "0=settings@2 1=settings@2 2=settings@2 3=settings@2"},
        ),
        form="cri",
    ),
    "replicas-memory": Incident(
        Label(
            "rank 1 of 3 is killed for its memory, which no log says; a shipper's export",
            "host_oom", "after_fix", 1, ["peer_lost", "unknown"],
        ),
        ranks("python local_steps.py", 3, env={"FAULTS": "1=kept@30"}, memory_mib={1: 600}),
        form="shipped",
    ),
    "replicas-fetch": Incident(
        Label(
            "rank 3 of 4 cannot resolve the host of its data",
            "network_unreachable", "retry", 3,
        ),
        ranks("python local_steps.py", 4, env={"FAULTS": "3=fetch@9"}, name="n{}"),
        form="gz",
    ),
    "finetune-healthy": Incident(
        Label("three ranks finish; the export of a log shipper", "none", None),
        _finetune("9:late", 3),
        form="shipped",
    ),
    "power-bus": Incident(
        Label(
            "rank 3 of 5 gets SIGBUS, as from a full /dev/shm",
            "segfault", "retry", 3, ["native_abort", "shm_too_small", "child_failed"],
        ),
        alone("mpirun -np 5 --tag-output python mpi_power.py bus 3", "mpi"),
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
    "loop-late-start": Incident(
        Label(
            "rank 6 of 7 copies data for 60 s before it joins; the others wait for 25 s",
            "rendezvous_timeout", "retry", 6, ["hang", "nccl_timeout", "peer_lost"],
        ),
        _pretrain("late", 7, 6, env={"TIMEOUT_S": "25"}),
        limit_s=110,
    ),
    "loop-library": Incident(
        Label(
            "the node of rank 1 of 3 lacks libnvjpeg.so.12",
            "shared_lib_error", "after_fix", 1, ["module_not_found", "file_not_found"],
        ),
        _pretrain("library", 3, 1, name="pai-task-{}"),
        form="gz",
    ),
    "loop-host-lost": Incident(
        Label(
            "the host of ranks 4 to 7 is lost: SIGKILL for all four at once",
            "peer_lost", "retry", 4, ["unknown", "node_stuck", "host_oom"], [5, 6, 7],
        ),
        _pretrain("kill", 8, "4,5,6,7"),
        collect=_for_each(8, "worker-{}", "host-{1}/rank{0}.log"),
    ),
    "loop-all-nan": Incident(
        Label(
            "the loss is not a number on all ranks at the same step", "loss_nan", "after_fix",
            None, ["user_code_error"],
        ),
        _pretrain("nan", 4, "0,1,2,3"),
        form="labelled",
    ),
    "loop-emergency": Incident(
        Label(
            "rank 7 is killed; the others fail to save an emergency checkpoint: a missing folder",
            "peer_lost", "retry", 7, ["unknown", "host_oom"],
        ),
        _pretrain("kill", 8, 7, env={"EMERGENCY": "1"}),
        form="cri",
    ),
    "loop-abort-tail": Incident(
        Label(
            "rank 0 of 2 calls abort() in a library; of each log the last 12 lines are left",
            "native_abort", "retry", 0, ["segfault", "peer_lost", "unknown"],
        ),
        _pretrain("abort", 2, 0, command="python pretrain.py; echo exit code $?"),
        collect=collecting.last_lines(12),
    ),
}  # fmt: skip
