"""PyTorch with gloo, a process for each of eight ranks, as Pods of a job are."""

from __future__ import annotations

from tests.incidents.incident import Incident, Label, ranks

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
}  # fmt: skip
