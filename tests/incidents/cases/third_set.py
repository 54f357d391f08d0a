"""Incidents of other programs, recorded after the diagnosis was changed for those before."""

from __future__ import annotations

from tests.incidents.cases.jax_processes import processes
from tests.incidents.incident import Incident, Label, Process, alone, ranks

_PEER = ["peer_lost", "child_failed", "unknown"]


def _finetune(trouble: str, n: int, name: str = "worker-{}", **env: str) -> list[Process]:
    return ranks("python finetune.py", n, name=name, env={"TROUBLE": trouble, **env})


INCIDENTS: dict[str, Incident] = {
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
}  # fmt: skip
