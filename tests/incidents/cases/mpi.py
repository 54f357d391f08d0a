"""Open MPI: mpirun and programs in Python."""

from __future__ import annotations

from tests.incidents.incident import Incident, Label, alone

INCIDENTS: dict[str, Incident] = {
    "mpi-raises": Incident(
        Label(
            "rank 2 raises KeyError and mpi4py aborts the job; lines have mpirun's tags",
            "user_code_error", "after_fix", 2,
        ),
        alone("mpirun -np 4 --tag-output python -m mpi4py mpi_sum.py raises", "mpirun"),
    ),
    "mpi-abort": Incident(
        Label(
            "rank 1 gives up and calls MPI_Abort with code 3",
            "user_code_error", "after_fix", 1, ["child_failed", "loss_nan"],
        ),
        alone("mpirun -np 4 python mpi_sum.py abort", "mpirun"),
    ),
    "mpi-exits-early": Incident(
        Label(
            "rank 1 exits with 1 before MPI_Finalize, without a word",
            "child_failed", "retry", 1, ["user_code_error", "peer_lost", "unknown"],
        ),
        alone("mpirun -np 4 --timestamp-output python mpi_sum.py exits", "mpirun"),
    ),
    "mpi-slots": Incident(
        Label("eight processes are asked for, and the host has two slots", "launcher_error",
              "after_fix", None, ["config_error", "usage_error", "unschedulable"]),
        alone(
            "mpirun --mca rmaps_base_oversubscribe 0 --mca rmaps_base_no_oversubscribe 1 "
            "--host localhost:2 -np 8 python mpi_sum.py",
            "mpirun",
        ),
    ),
    "mpi-program-missing": Incident(
        Label(
            "mpirun cannot find the program, whose name has a typo",
            "command_not_found", "after_fix", None, ["launcher_error", "file_not_found"],
        ),
        alone("mpirun -np 4 pyhton mpi_sum.py", "mpirun"),
    ),
    "mpi-healthy": Incident(
        Label("four ranks finish", "none", None),
        alone("mpirun -np 4 --tag-output python mpi_sum.py", "mpirun"),
    ),
}  # fmt: skip
