"""Further jobs of several ranks: configurations, checkpoints, ports, nodes that go away."""

from __future__ import annotations

import os
import signal

from tests.incidents.incident import Incident, Label, Outside, Process, alone, ranks

_ALONE = "torchrun --standalone --nproc-per-node"


def _bad_config(job: str) -> None:
    """Write a configuration with a comma too many."""
    with open(os.path.join(job, "config.json"), "w") as f:
        f.write('{"steps": 20, "model": "small",}\n')


def _first(command: str) -> list[Process]:
    """Return eight ranks; a command runs on rank 0's host before it."""
    first, *others = ranks("python slow.py")
    return [first._replace(command=f"{command}; {first.command}"), *others]


INCIDENTS: dict[str, Incident] = {
    "ranks-config": Incident(
        Label(
            "rank 0 cannot parse the configuration and never joins; the others wait for its store",
            "config_error", "after_fix", 0, ["user_code_error", "input_data_error"],
        ),
        ranks("python configured.py", name="trainer-{}", env={"LOG_RANKS": "0"}),
        form="prefixed",
        files=_bad_config,
    ),
    "ranks-assertion-mixed": Incident(
        Label(
            "rank 6 fails an assertion at step 18; all ranks write into one file without times",
            "user_code_error", "after_fix", 6, ["input_data_error", "shape_or_index_error"],
        ),
        ranks("python padded.py", env={"LOG_TIMES": "0"}),
        form="mixed",
    ),
    "ranks-oom-pods": Incident(
        Label(
            "rank 2 is killed for its cgroup's memory; the Pods' status says OOMKilled",
            "host_oom", "after_fix", 2,
        ),
        ranks("python growing.py", memory_mib={2: 500}, name="train-worker-{}"),
        form="docker",
        pods=True,
    ),
    "ranks-spins": Incident(
        Label(
            "rank 3 loops for ever before its third epoch, the others' all-reduce times out",
            "hang", "retry", 3, ["nccl_timeout", "user_code_error", "peer_lost"],
        ),
        ranks("python searching.py"),
        form="cri",
        limit_s=70,
    ),
    "ranks-checkpoint-disk-full": Incident(
        Label(
            "the volume of rank 0 is full when it saves the model; the others wait at a barrier",
            "disk_full", "after_fix", 0, ["checkpoint_error"],
        ),
        [
            p._replace(command="mount -t tmpfs -o size=600k tmpfs checkpoints; " + p.command)
            if p.name == "worker-0" else p
            for p in ranks("python keeping.py")
        ],
        form="cri",
        files=lambda job: os.mkdir(os.path.join(job, "checkpoints")),
    ),
    "ranks-port": Incident(
        Label(
            "another server has the master's port on rank 0's host; no rank joins",
            "port_in_use", "retry", 0,
        ),
        _first("python -m http.server 29500 > /dev/null 2>&1 & sleep 2"),
        limit_s=60,
    ),
    "ranks-flight-recorder-pickled": Incident(
        Label(
            "rank 3 has no samples left and never enters the 24th all-reduce; dumps are pickles",
            "hang", "retry", 3, ["nccl_timeout", "peer_lost"],
        ),
        ranks(
            "python recorded.py pickle comm_lib_trace_rank",
            4,
            env={"TORCH_FR_BUFFER_SIZE": "30", "SKIPPING_RANK": "3", "DUMP_AFTER_S": "14"},
        ),
        folders=["dumps"],
        limit_s=45,
    ),
    "ranks-healthy-noisy": Incident(
        Label("four ranks finish; they print errors that they have handled", "none", None),
        ranks("python noisy.py", 4),
    ),
    "torchrun-node-lost": Incident(
        Label(
            "the second node is lost (SIGKILL for its agent and rank 1); rank 0 loses it",
            "peer_lost", "retry", 1, ["unknown", "node_stuck", "nccl_timeout"],
        ),
        [
            Process(
                f"node-{rank}",
                "exec unshare --pid --fork --kill-child --mount-proc "
                f"torchrun --nnodes 2 --node-rank {rank} --nproc-per-node 1 "
                "--master-addr node-0 --master-port 29500 slow.py",
                host=f"node-{rank}",
            )
            for rank in range(2)
        ],
        outside=Outside(signal.SIGKILL, "step 10", "node-1"),
    ),
    "torchrun-usage": Incident(
        Label("an option has a typo, for all ranks", "usage_error", "after_fix"),
        alone(f"{_ALONE} 4 options.py --steps 20 --learning-rte 0.1"),
    ),
    "torchrun-heals-log-dir": Incident(
        Label("rank 1 fails in the first attempt; the second one finishes", "none", None),
        alone(f"{_ALONE} 2 --max-restarts 1 --tee 3 --log-dir logs elastic.py heals", "torchrun"),
        folders=["logs"],
    ),
    "torchrun-abort": Incident(
        Label(
            "an assertion in a C library aborts rank 0; outputs are in torchrun's log folder",
            "native_abort", "retry", 0,
        ),
        alone(f"{_ALONE} 4 --redirects 3 --log-dir logs checked.py", "torchrun"),
        folders=["logs"],
    ),
}  # fmt: skip
