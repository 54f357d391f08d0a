"""Further jobs of several ranks: configurations, checkpoints, ports, nodes that go away."""

from __future__ import annotations

import os

from tests.incidents.incident import Incident, Label, alone, ranks

_ALONE = "torchrun --standalone --nproc-per-node"


INCIDENTS: dict[str, Incident] = {
    "ranks-oom-pods": Incident(
        Label(
            "rank 2 is killed for its cgroup's memory; the Pods' status says OOMKilled",
            "host_oom", "after_fix", 2,
        ),
        ranks("python growing.py", memory_mib={2: 500}, name="train-worker-{}"),
        form="docker",
        pods=True,
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
    "ranks-healthy-noisy": Incident(
        Label("four ranks finish; they print errors that they have handled", "none", None),
        ranks("python noisy.py", 4),
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
