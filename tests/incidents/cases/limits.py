"""Limits of a container: disks, files, shared memory, memory; and data and checkpoints."""

from __future__ import annotations

import os

from tests.incidents.incident import Incident, Label, alone


def _damaged(job: str) -> None:
    """Write a checkpoint that was cut, as by a node that died."""
    os.makedirs(os.path.join(job, "checkpoints"))
    with open(os.path.join(job, "checkpoints/latest.pt"), "wb") as f:
        f.write(b"PK\x03\x04\x00\x00\x08\x08\x00\x00" + bytes(5000))


INCIDENTS: dict[str, Incident] = {
    "disk-full": Incident(
        Label(
            "a volume of 400 KiB is full when the third checkpoint is saved",
            "disk_full", "after_fix", None, ["checkpoint_error"],
        ),
        alone("mkdir checkpoints; mount -t tmpfs -o size=400k tmpfs checkpoints; python saving.py"),
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
    "loader-raises": Incident(
        Label(
            "a record has an empty field: ValueError in a DataLoader worker",
            "user_code_error", "after_fix", None, ["input_data_error"],
        ),
        alone("python loading.py records"),
    ),
    "checkpoint-damaged": Incident(
        Label("the checkpoint that is loaded is cut", "checkpoint_error", "after_fix"),
        alone("python saving.py"),
        files=_damaged,
    ),
    "checkpoint-cut": Incident(
        Label("the checkpoint that is loaded lacks its second half", "checkpoint_error", "after_fix"),
        alone(
            "python saving.py > /dev/null 2>&1; mv checkpoints/epoch-7.pt checkpoints/latest.pt; "
            "truncate -s 80000 checkpoints/latest.pt; python saving.py"
        ),
    ),
    "loss-nan": Incident(
        Label("the learning rate of 5000 makes the loss infinite", "loss_nan", "after_fix"),
        alone("python saving.py 5000"),
    ),
    "memory-limit": Incident(
        Label(
            "an array does not fit in the address space of 4 GiB: MemoryError",
            "host_oom", "after_fix",
        ),
        alone("ulimit -v 4000000; python -c 'import numpy; numpy.ones((100_000, 100_000))'"),
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
