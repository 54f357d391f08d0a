"""Further faults: the first rank, pipelines, attempts that differ, archives, names, GPUs."""

from __future__ import annotations

from tests.incidents.incident import Incident, Label, alone, ranks

_ALONE = "torchrun --standalone --nproc-per-node"


INCIDENTS: dict[str, Incident] = {
    "ranks-record-in-loader": Incident(
        Label(
            "a record of rank 5 is cut: its DataLoader's worker raises; the others lose rank 5",
            "input_data_error", "after_fix", 5, ["user_code_error"],
        ),
        ranks("python parsing.py"),
        form="prefixed",
    ),
    "ranks-no-gpu": Incident(
        Label(
            "the image's torch was built without CUDA, for all ranks",
            "gpu_not_available", "after_fix", None, ["cuda_driver_mismatch", "config_error"],
        ),
        ranks("python to_gpu.py", 2),
    ),
    "torchrun-healthy-tee": Incident(
        Label("three ranks finish under torchrun with --tee", "none", None),
        alone(f"{_ALONE} 3 --tee 3 --log-dir logs noisy.py"),
    ),
    "ray-actor-init": Incident(
        Label(
            "an actor cannot open its configuration when it is created",
            "file_not_found", "after_fix", None, ["user_code_error"],
        ),
        alone("python ray_init.py", "driver"),
    ),
}  # fmt: skip
