"""PyTorch under torchrun: its summaries, its log folders, its restarts."""

from __future__ import annotations

import signal

from tests.incidents.incident import Incident, Label, Outside, Process, alone

_ALONE = "torchrun --standalone --nproc-per-node"

INCIDENTS: dict[str, Incident] = {
    "torchrun-restarts": Incident(
        Label(
            "rank 1 fails in the same place in each of three attempts (--max-restarts 2)",
            "shape_or_index_error", "after_fix", 1, ["user_code_error"],
        ),
        alone(f"{_ALONE} 2 --max-restarts 2 elastic.py", "torchrun"),
    ),
    "torchrun-oom": Incident(
        Label(
            "rank 2 fills the container's cgroup of 1600 MiB; the kernel's messages say so",
            "host_oom", "after_fix", 2,
        ),
        alone(f"{_ALONE} 4 growing.py", memory_mib=1600),
        kernel=True,
    ),
    "torchrun-script-missing": Incident(
        Label(
            "the script's name has a typo, for all ranks",
            "file_not_found", "after_fix", None, ["usage_error", "launcher_error"],
        ),
        alone(f"{_ALONE} 4 trian.py"),
    ),
    "torchrun-port": Incident(
        Label("another program listens on the master's port", "port_in_use", "retry"),
        alone(
            "python -m http.server 29500 > /dev/null & sleep 3; "
            "torchrun --nnodes 1 --nproc-per-node 2 --master-port 29500 slow.py"
        ),
    ),
    "torchrun-node-missing": Incident(
        Label(
            "the second of two nodes never starts: the rendezvous times out",
            "rendezvous_timeout", "retry",
        ),
        alone(
            "torchrun --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d --rdzv-id train "
            "--rdzv-endpoint localhost:29400 --rdzv-conf join_timeout=15 slow.py"
        ),
    ),
    "torchrun-two-nodes": Incident(
        Label(
            "rank 3, on the second of two nodes, raises KeyError; the first node's ranks lose it",
            "user_code_error", "after_fix", 3, ["input_data_error"],
        ),
        [
            Process(
                f"node-{rank}",
                f"torchrun --nnodes 2 --node-rank {rank} --nproc-per-node 2 "
                "--master-addr node-0 --master-port 29500 labels.py",
                host=f"node-{rank}",
            )
            for rank in range(2)
        ],
        form="cri",
    ),
    "torchrun-sigterm": Incident(
        Label(
            "torchrun gets SIGTERM from outside, as at the end of a preempted Pod",
            "terminated_sigterm", "retry",
        ),
        alone(f"{_ALONE} 4 slow.py"),
        outside=Outside(signal.SIGTERM, "step 5"),
    ),
}  # fmt: skip
