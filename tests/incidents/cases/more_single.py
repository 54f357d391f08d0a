"""Further jobs of one process, of MPI, JAX and Ray."""

from __future__ import annotations

import os

from tests.incidents.cases.jax_processes import processes
from tests.incidents.incident import Incident, Label, alone


def _other_model(job: str) -> None:
    """Make a start script that first saves a smaller model."""
    with open(os.path.join(job, "start.sh"), "w") as f:
        f.write("sed 's/512/256/g' saving.py > before.py\npython before.py > /dev/null 2>&1\n")
        f.write("cp checkpoints/epoch-7.pt checkpoints/latest.pt\npython saving.py\n")


INCIDENTS: dict[str, Incident] = {
    "loader-killed": Incident(
        Label(
            "a DataLoader worker is killed by SIGKILL",
            "host_oom", "after_fix", None, ["child_failed", "peer_lost", "unknown"],
        ),
        alone("python loading.py cached"),
    ),
    "checkpoint-other-model": Incident(
        Label("the checkpoint is one of a smaller model", "checkpoint_error", "after_fix", None,
              ["shape_or_index_error"]),
        alone("bash start.sh"),
        files=_other_model,
    ),
    "no-network": Incident(
        Label("the network is down: a download fails three times", "network_unreachable", "retry"),
        alone("python download.py"),
    ),
    "command-missing": Incident(
        Label("the start script calls a program that the image lacks", "command_not_found",
              "after_fix"),
        alone("set -e; echo starting; deepspeed train.py; echo done"),
    ),
    "shell-syntax": Incident(
        Label("the command has a parenthesis too many", "shell_error", "after_fix", None,
              ["syntax_error"]),
        alone("bash -c 'for i in 1 2 3; do python slow.py --index $i); done'"),
    ),
    "mpi-segfault": Incident(
        Label("rank 1 crashes in a C library", "segfault", "retry", 1),
        alone("mpirun -np 4 python mpi_sum.py crashes", "mpirun"),
    ),
    "mpi-sigkill": Incident(
        Label(
            "rank 1 is killed by SIGKILL: mpirun notices signal 9",
            "host_oom", "retry", 1, ["peer_lost", "child_failed", "unknown"],
        ),
        alone("mpirun -np 4 --tag-output python mpi_sum.py killed", "mpirun"),
    ),
    "jax-one-missing": Incident(
        Label(
            "process 3 never starts; the others time out at the coordinator's barrier",
            "rendezvous_timeout", "retry", 3, ["peer_lost"], untold=True,
        ),
        processes("python jax_sum.py", skip=3),
        limit_s=120,
    ),
    "jax-healthy": Incident(
        Label("four processes finish", "none", None), processes("python jax_sum.py")
    ),
    "ray-memory": Incident(
        Label(
            "the actor of rank 1 keeps arrays until Ray's memory monitor kills it",
            "host_oom", "after_fix",
        ),
        alone(
            "mount --bind /sys/fs/cgroup/memory$(sed -n 's/.*:memory://p' /proc/self/cgroup) "
            "/sys/fs/cgroup/memory; python ray_jobs.py memory",
            "driver",
            memory_mib=3000,
        ),
        limit_s=150,
    ),
    "ray-unschedulable": Incident(
        Label(
            "a task asks for a GPU that no node has; the driver waits 20 s for it",
            "unschedulable", "after_fix", None, ["gpu_not_available", "hang", "config_error"],
        ),
        alone("python ray_jobs.py gpu", "driver"),
    ),
}  # fmt: skip
