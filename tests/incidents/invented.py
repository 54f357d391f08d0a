"""Incidents that a person wrote without knowing the diagnosis, in the forms of programs and collectors.

Each shows a family of layouts or reports that the diagnosis did not read when it first saw them.
"""

from __future__ import annotations

from tests.incidents.incident import Label

INCIDENTS: dict[str, Label] = {
    "node-keys-cloudwatch": Label(
        "node 4 cannot read a file any more (ESTALE), its clock is a minute ahead; CloudWatch's events",
        "storage_io_error", "retry_elsewhere", 4,
    ),
    "left-early-slurm": Label(
        "rank 7 reaches its limit of iterations and leaves; the others wait for it; one file each",
        "nccl_timeout", "after_fix", 7, ["peer_lost", "hang"],
    ),
    "raylet-kills-worker": Label(
        "the raylet of the second node kills the process of rank 2 for memory; Ray's session folders",
        "host_oom", "after_fix", 2,
    ),
    "tensor-worker-merged": Label(
        "worker 2 of a vLLM server with 4 GPUs accesses illegal memory; the engine repeats it",
        "cuda_kernel_error", "retry", 2,
    ),
    "process-at-end": Label(
        "an index is out of range on process 4 of 6; each line ends with the process's name",
        "device_assert", "after_fix", 4,
    ),
    "nodes-pdsh-environment": Label(
        "the third node has another conda environment, without a module; pdsh's output",
        "module_not_found", "after_fix", 8, also_first=[2, 3],
    ),
    "step-cancelled": Label(
        "a user cancels the job; one rank shows KeyboardInterrupt, others lose the store",
        "cancelled_by_user", "never",
    ),
}  # fmt: skip
