"""PyTorch with gloo, a process for each of eight ranks, as Pods of a job are."""

from __future__ import annotations

import os
import signal

from tests.incidents.incident import Incident, Label, Outside, ranks


def _shards(job: str, missing: int = 2) -> None:
    """Write the shards of all ranks but one."""
    import io
    import struct

    os.makedirs(os.path.join(job, "data/train"))
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (160, 16), }"
    head += b" " * (117 - len(head)) + b"\n"
    for rank in range(8):
        if rank != missing:
            text = io.BytesIO(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
            with open(os.path.join(job, f"data/train/shard-{rank:05d}.npy"), "wb") as f:
                f.write(text.getvalue() + bytes(4 * 160 * 16))


def _tokenizer(job: str) -> None:
    """Write the package that one rank's PYTHONPATH lacks."""
    os.makedirs(os.path.join(job, "libs"))
    with open(os.path.join(job, "libs/wordpieces.py"), "w") as f:
        f.write('PIECES = ["a", "b"]\n')


INCIDENTS: dict[str, Incident] = {
    "ranks-key-error": Incident(
        Label(
            "rank 3 raises KeyError: a record's label is missing in the table; the others lose it",
            "user_code_error", "after_fix", 3, ["input_data_error"],
        ),
        ranks("python labels.py"),
    ),
    "ranks-key-error-cri": Incident(
        Label(
            "rank 3 raises KeyError; the others get SIGTERM from the controller; CRI's form",
            "user_code_error", "after_fix", 3, ["input_data_error"],
        ),
        ranks("python labels.py", env={"LOG_TIMES": "0"}),
        form="cri",
        stop_others_s=0,
    ),
    "ranks-key-error-skewed": Incident(
        Label(
            "rank 3 raises KeyError; its host's clock is 90 s ahead, that of rank 5 is 40 s behind",
            "user_code_error", "after_fix", 3, ["input_data_error"],
        ),
        [
            process._replace(skew_s={"worker-3": 90.0, "worker-5": -40.0}.get(process.name, 0))
            for process in ranks("python labels.py", env={"LOG_TIMES": "0"})
        ],
        form="cri",
    ),
    "ranks-key-error-gz": Incident(
        Label(
            "rank 3 raises KeyError; the logs are packed",
            "user_code_error", "after_fix", 3, ["input_data_error"],
        ),
        ranks("python labels.py", name="host{}"),
        form="gz",
    ),
    "ranks-shape-labelled": Incident(
        Label(
            "the shard of rank 6 has other features; one file as by srun --label",
            "shape_or_index_error", "after_fix", 6, ["input_data_error"],
        ),
        ranks("python shapes.py", env={"LOG_RANKS": "0"}),
        form="labelled",
    ),
    "ranks-shape": Incident(
        Label(
            "the shard of rank 6 has other features: matrices do not fit at step 12",
            "shape_or_index_error", "after_fix", 6, ["input_data_error"],
        ),
        ranks("python shapes.py", name="trainer-{}", env={"LOG_RANKS": "0"}),
    ),
    "ranks-file-missing": Incident(
        Label(
            "the file of rank 2 is missing; the others stop when its connection closes",
            "file_not_found", "after_fix", 2,
        ),
        ranks("python shards.py", name="rank{}"),
        files=_shards,
    ),
    "ranks-import-error": Incident(
        Label(
            "the node of rank 1 lacks a package: ModuleNotFoundError on one rank",
            "module_not_found", "after_fix", 1,
        ),
        ranks(
            "python tokenize_text.py",
            env={"PYTHONPATH": "libs"},
            of_rank={1: {"PYTHONPATH": ""}},
        ),
        form="docker",
        files=_tokenizer,
    ),
    "ranks-extra-barrier": Incident(
        Label(
            "rank 0 enters a barrier after its evaluation that no other rank enters: a deadlock",
            "hang", "after_fix", 0, ["nccl_timeout", "user_code_error", "peer_lost"],
        ),
        ranks("python evaluation.py"),
    ),
    "ranks-hang-lock": Incident(
        Label(
            "rank 4 waits for a file lock in epoch 1 and never enters the step's all-reduce",
            "hang", "retry", 4, ["nccl_timeout", "peer_lost"],
        ),
        ranks("python cache_lock.py"),
        limit_s=70,
    ),
    "ranks-monitored-barrier": Incident(
        Label(
            "rank 5 sleeps and misses the monitored barrier, which names it",
            "hang", "retry", 5, ["nccl_timeout", "peer_lost", "rendezvous_timeout"],
        ),
        ranks("python monitored.py"),
        limit_s=60,
    ),
    "ranks-sigkill": Incident(
        Label(
            "rank 5 is killed by SIGKILL at step 17 and says nothing; the others lose it",
            "peer_lost", "retry", 5, ["unknown", "host_oom"],
        ),
        ranks("python lost.py"),
    ),
    "ranks-segfault": Incident(
        Label(
            "rank 2 crashes in a C library at step 11, with a stack by faulthandler",
            "segfault", "retry", 2, ["native_abort"],
        ),
        ranks("python native.py", env={"FAULTHANDLER": "1"}),
    ),
    "ranks-slow": Incident(
        Label(
            "rank 7 reads its shard for 30 s, longer than the timeout of 12 s that the others have",
            "nccl_timeout", "retry", 7, ["hang", "peer_lost", "storage_io_error"],
        ),
        ranks("python slow.py"),
    ),
    "ranks-slow-enough": Incident(
        Label("rank 7 is slow for 6 s, below the timeout; all ranks finish", "none", None),
        ranks("python slow.py", env={"SLOW_S": "6"}),
    ),
    "ranks-oom": Incident(
        Label(
            "rank 2 keeps all samples; its cgroup of 600 MiB is full and the kernel kills it",
            "host_oom", "after_fix", 2,
        ),
        ranks("python growing.py", memory_mib={2: 600}),
        kernel=True,
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
    "ranks-stopped": Incident(
        Label(
            "all ranks get SIGTERM from outside in the middle of the training",
            "terminated_sigterm", "retry", None, ["unknown"],
        ),
        ranks("python slow.py"),
        outside=Outside(signal.SIGTERM, "step 5"),
        pods=True,
    ),
    "ranks-one-missing": Incident(
        Label(
            "the job is told to be nine, and eight ranks start: they wait for the ninth in vain",
            "rendezvous_timeout", "after_fix", 8, ["config_error", "hang"],
        ),
        ranks("python slow.py", env={"WORLD_SIZE": "9"}),
    ),
}  # fmt: skip
