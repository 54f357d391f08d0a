"""One process: programs, shells, and limits."""

from __future__ import annotations

import os
import signal

from tests.incidents.cases.launchers import processes
from tests.incidents.incident import Incident, Label, Outside, alone, ranks

_SETUP = """from setuptools import Extension, setup

setup(name="fastops", version="0.3", ext_modules=[Extension("fastops", ["fastops.c"])])
"""


def _extension(job: str) -> None:
    """Write a package whose C source includes a header that is not installed."""
    os.mkdir(os.path.join(job, "fastops"))
    for name, text in {"setup.py": _SETUP, "fastops.c": '#include "cuda_ops.h"\n'}.items():
        with open(os.path.join(job, "fastops", name), "w") as f:
            f.write(text)


def _start(job: str) -> None:
    """Write a start script that nobody may execute."""
    with open(os.path.join(job, "start.sh"), "w") as f:
        f.write("#!/bin/bash\npython saving.py\n")


_REQUESTS = "; ".join(
    f"curl -s -o /dev/null {request} || true; sleep 0.3"
    for request in ("localhost:8000/health", "localhost:8000/v1/models", "-X POST localhost:8000/")
)


_UNBOUND = """set -euo pipefail
echo "starting on $(hostname)"
mkdir -p output
echo "data: $DATA_DIR"
python saving.py
"""


_SOURCE = """set -e
echo "preparing"
source /opt/cluster/env.sh
python saving.py
"""


def _incident(label: Label, text: str) -> Incident:
    """Return an incident whose process is a script with this text."""

    def write(job: str) -> None:
        with open(os.path.join(job, "start.sh"), "w") as f:
            f.write(text)

    return Incident(label, alone("bash start.sh"), files=write)


INCIDENTS: dict[str, Incident] = {
    "server-healthy": Incident(
        Label("a server answers with 404 and 501 and is stopped by its script", "none", None),
        alone(f"python -m http.server 8000 & sleep 1; {_REQUESTS}; kill $!; wait; echo stopped"),
    ),
    "build-fails": Incident(
        Label(
            "pip cannot compile an extension: a header is missing",
            "build_failed", "after_fix",
        ),
        alone(
            "set -e; pip install --no-build-isolation --no-deps ./fastops; python -c 'import fastops'"
        ),
        files=_extension,
    ),
    "not-executable": Incident(
        Label("the start script has no permission to run", "permission_denied", "after_fix"),
        alone("./start.sh; exit $?"),
        files=_start,
    ),
    "syntax-error": Incident(
        Label("a parenthesis is missing in the program, for all ranks", "syntax_error", "after_fix"),
        alone("mv unclosed.txt unclosed.py; torchrun --standalone --nproc-per-node 2 unclosed.py"),
    ),
    "ranks-stopped-gracefully": Incident(
        Label(
            "all ranks get SIGTERM, save a checkpoint and exit",
            "terminated_sigterm", "retry", None, ["evicted"],
        ),
        ranks("exec python graceful.py", 4),
        outside=Outside(signal.SIGTERM, "step 10"),
        pods=True,
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
    "shell-unbound": _incident(
        Label("a variable that is not set, under nounset", "shell_error", "after_fix"), _UNBOUND
    ),
    "shell-source": _incident(
        Label(
            "the file given to source is missing",
            "shell_error", "after_fix", None, ["file_not_found"],
        ),
        _SOURCE,
    ),
    "open-files": Incident(
        Label(
            "a data set leaves its files open; the limit is 64",
            "too_many_open_files", "after_fix",
        ),
        alone("ulimit -n 64; python loading.py files"),
    ),
    "shm-small": Incident(
        Label("/dev/shm has 1 MiB, too little for the loader's workers", "shm_too_small", "after_fix"),
        alone("mount -t tmpfs -o size=1m tmpfs /dev/shm; python loading.py images"),
    ),
    "checkpoint-cut": Incident(
        Label("the checkpoint that is loaded lacks its second half", "checkpoint_error", "after_fix"),
        alone(
            "python saving.py > /dev/null 2>&1; mv checkpoints/epoch-7.pt checkpoints/latest.pt; "
            "truncate -s 80000 checkpoints/latest.pt; python saving.py"
        ),
    ),
    "read-only": Incident(
        Label(
            "the folder of checkpoints is mounted read-only",
            "permission_denied", "after_fix", None,
            ["storage_io_error", "config_error", "container_setup_error", "checkpoint_error"],
        ),
        alone(
            "mkdir checkpoints; mount --bind checkpoints checkpoints; "
            "mount -o remount,ro,bind checkpoints; python saving.py"
        ),
    ),
}  # fmt: skip
