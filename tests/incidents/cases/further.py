"""Further faults: the first rank, pipelines, attempts that differ, archives, names, GPUs."""

from __future__ import annotations

import os

from tests.incidents.cases.jax_processes import processes
from tests.incidents.incident import Incident, Label, alone, ranks

_ALONE = "torchrun --standalone --nproc-per-node"


def _cut_archive(job: str) -> None:
    """Write an archive that is none."""
    with open(os.path.join(job, "flowers.tar"), "w") as f:
        f.write("<html><body>404</body></html>\n" * 40)


INCIDENTS: dict[str, Incident] = {
    "ranks-record-in-loader": Incident(
        Label(
            "a record of rank 5 is cut: its DataLoader's worker raises; the others lose rank 5",
            "input_data_error", "after_fix", 5, ["user_code_error"],
        ),
        ranks("python parsing.py"),
        form="prefixed",
    ),
    "ranks-master-killed": Incident(
        Label(
            "rank 0, which has the store, is killed by SIGKILL; no exit code is known",
            "peer_lost", "retry", 0, ["unknown", "host_oom"],
        ),
        ranks("python lost.py", env={"KILLED_RANK": "0"}),
        form="docker",
    ),
    "ranks-killed-pods": Incident(
        Label(
            "rank 6 is killed by SIGKILL, and not for memory: its Pod's exit code is 137",
            "peer_lost", "retry", 6, ["unknown", "host_oom", "terminated_sigterm", "child_failed"],
        ),
        ranks("exec python lost.py", env={"KILLED_RANK": "6", "LOG_RANKS": "0"}),
        form="cri",
        pods=True,
    ),
    "ranks-pipeline": Incident(
        Label(
            "rank 2 waits for a sample and never sends; rank 3 times out in recv",
            "hang", "retry", 2, ["nccl_timeout", "peer_lost", "user_code_error"],
        ),
        ranks("python pipeline.py", 4, name="stage-{}"),
        limit_s=60,
    ),
    "ranks-archive": Incident(
        Label(
            "rank 0 cannot unpack the data set, which is a page of HTML",
            "input_data_error", "after_fix", 0, ["user_code_error"],
        ),
        ranks("python unpack.py", 4),
        form="gz",
        files=_cut_archive,
    ),
    "ranks-no-gpu": Incident(
        Label(
            "the image's torch was built without CUDA, for all ranks",
            "gpu_not_available", "after_fix", None, ["cuda_driver_mismatch", "config_error"],
        ),
        ranks("python to_gpu.py", 2),
    ),
    "ranks-master-unknown": Incident(
        Label(
            "MASTER_ADDR names a host that DNS does not know, for all ranks",
            "config_error", "after_fix", None,
            ["network_unreachable", "rendezvous_timeout", "nccl_system_error"],
        ),
        ranks("python slow.py", 4, env={"MASTER_ADDR": "trainer-0.trainers"}),
        limit_s=100,
    ),
    "torchrun-attempts-differ": Incident(
        Label(
            "rank 2's shapes do not fit in the first attempt; rank 0 raises KeyError in the last",
            "user_code_error", "after_fix", 0,
        ),
        alone(f"{_ALONE} 4 --max-restarts 1 attempts.py"),
    ),
    "torchrun-healthy-tee": Incident(
        Label("three ranks finish under torchrun with --tee", "none", None),
        alone(f"{_ALONE} 3 --tee 3 --log-dir logs noisy.py"),
    ),
    "mpi-deadlock": Incident(
        Label(
            "rank 3 raises IndexError and waits in MPI_Finalize, the others in an allreduce",
            "shape_or_index_error", "after_fix", 3, ["user_code_error"],
        ),
        alone("mpirun -np 4 --tag-output python mpi_deadlock.py", "mpirun"),
        limit_s=20,
    ),
    "jax-import-error": Incident(
        Label(
            "process 0, the coordinator, lacks a package; the others wait for it",
            "module_not_found", "after_fix", 0,
        ),
        processes("python jax_starts.py early"),
        form="cri",
        limit_s=120,
    ),
    "jax-coordinator-killed": Incident(
        Label(
            "process 0, the coordinator, is killed by SIGKILL at step 17",
            "peer_lost", "retry", 0, ["unknown", "host_oom"],
        ),
        processes("python jax_starts.py late"),
        limit_s=200,
    ),
    "ray-actor-init": Incident(
        Label(
            "an actor cannot open its configuration when it is created",
            "file_not_found", "after_fix", None, ["user_code_error"],
        ),
        alone("python ray_init.py", "driver"),
    ),
}  # fmt: skip
