"""Limits of a container: disks, files, shared memory, memory; and data and checkpoints."""

from __future__ import annotations

from tests.incidents.incident import Incident, Label, alone

INCIDENTS: dict[str, Incident] = {
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
