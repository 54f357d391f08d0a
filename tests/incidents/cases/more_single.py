"""Further jobs of one process, of MPI, JAX and Ray."""

from __future__ import annotations

from tests.incidents.cases.jax_processes import processes
from tests.incidents.incident import Incident, Label, alone

INCIDENTS: dict[str, Incident] = {
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
    "mpi-sigkill": Incident(
        Label(
            "rank 1 is killed by SIGKILL: mpirun notices signal 9",
            "host_oom", "retry", 1, ["peer_lost", "child_failed", "unknown"],
        ),
        alone("mpirun -np 4 --tag-output python mpi_sum.py killed", "mpirun"),
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
