"""Ray on one node."""

from __future__ import annotations

from tests.incidents.incident import Incident, Label, alone

INCIDENTS: dict[str, Incident] = {
    "ray-task-raises": Incident(
        Label(
            "a task raises: a record is split at the wrong sign",
            "user_code_error", "after_fix", None, ["input_data_error", "shape_or_index_error"],
        ),
        alone("python ray_jobs.py task", "driver"),
    ),
    "ray-heals": Incident(
        Label("a task's worker exits once; Ray retries it and all finish", "none", None),
        alone("python ray_jobs.py heals", "driver"),
    ),
}  # fmt: skip
