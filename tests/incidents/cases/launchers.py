"""Accelerate and Lightning, which start the ranks themselves."""

from __future__ import annotations

from tests.incidents.incident import Incident, Label, alone

_ACCELERATE = "accelerate launch --cpu --num_processes 2 --num_machines 1 --mixed_precision no"

INCIDENTS: dict[str, Incident] = {
    "accelerate-no-ranks": Incident(
        Label(
            "accelerate launch with --cpu starts one process, whose environment has no RANK",
            "config_error", "after_fix", None, ["launcher_error", "user_code_error"],
        ),
        alone(f"{_ACCELERATE} elastic.py", "launcher"),
    ),
    "lightning-healthy": Incident(
        Label("two ranks that Lightning starts finish, with its warnings", "none", None),
        alone("python lightning_fit.py"),
    ),
}  # fmt: skip
