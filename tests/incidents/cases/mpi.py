"""Open MPI: mpirun and programs in Python."""

from __future__ import annotations

from tests.incidents.incident import Incident, Label, alone

INCIDENTS: dict[str, Incident] = {
    "mpi-slots": Incident(
        Label("eight processes are asked for, and the host has two slots", "launcher_error",
              "after_fix", None, ["config_error", "usage_error", "unschedulable"]),
        alone(
            "mpirun --mca rmaps_base_oversubscribe 0 --mca rmaps_base_no_oversubscribe 1 "
            "--host localhost:2 -np 8 python mpi_sum.py",
            "mpirun",
        ),
    ),
    "mpi-healthy": Incident(
        Label("four ranks finish", "none", None),
        alone("mpirun -np 4 --tag-output python mpi_sum.py", "mpirun"),
    ),
}  # fmt: skip
