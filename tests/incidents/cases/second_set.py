"""Incidents of further programs: ranks that fail one after the other, Kubeflow's names, journals."""

from __future__ import annotations

from tests.incidents.cases.jax_processes import processes
from tests.incidents.incident import Incident, Label, alone, ranks

_JOURNAL = (
    "{ %s; } 2>&1 | while IFS= read -r line; do "
    'printf "%%s %%s train[%%s]: %%s\\n" "$(date "+%%b %%d %%H:%%M:%%S")" $HOSTNAME $$ "$line"; done'
)


INCIDENTS: dict[str, Incident] = {
    "replicas-two-fail-kubectl": Incident(
        Label(
            "rank 5 of 6 fails an assertion; rank 1 raises KeyError a second later, by itself",
            "user_code_error", "after_fix", 5, ["input_data_error"],
        ),
        ranks("python local_steps.py", 6, env={"FAULTS": "5=assert@3 1=column@19"}, name="rep-{}"),
        form="kubectl",
        limit_s=150,
    ),
    "tree-settings": Incident(
        Label(
            "rank 0 of five cannot parse the settings; mpirun's folder for each rank",
            "config_error", "after_fix", 0, ["user_code_error", "input_data_error"],
        ),
        alone("mpirun -np 5 --output-filename out python -m mpi4py mpi_tree.py", "mpirun"),
        folders=["out"],
    ),
    "scan-journal": Incident(
        Label(
            "process 3 of 4 raises TypeError: its state has another type; the journal's form",
            "user_code_error", "after_fix", 3, ["shape_or_index_error"],
        ),
        [
            p._replace(env={**p.env, "HOSTNAME": p.name})
            for p in processes(_JOURNAL % "python jax_scan.py")
        ],
        form="mixed",
        limit_s=200,
    ),
    "replicas-all-settings": Incident(
        Label("a file of settings is missing for all four ranks", "file_not_found", "after_fix",
              None, ["config_error"]),
        ranks(
            "python local_steps.py", 4,
            env={"FAULTS": "0=settings@2 1=settings@2 2=settings@2 3=settings@2"},
        ),
        form="cri",
    ),
    "replicas-memory": Incident(
        Label(
            "rank 1 of 3 is killed for its memory, which no log says; a shipper's export",
            "host_oom", "after_fix", 1, ["peer_lost", "unknown"],
        ),
        ranks("python local_steps.py", 3, env={"FAULTS": "1=kept@30"}, memory_mib={1: 600}),
        form="shipped",
    ),
    "replicas-fetch": Incident(
        Label(
            "rank 3 of 4 cannot resolve the host of its data",
            "network_unreachable", "retry", 3,
        ),
        ranks("python local_steps.py", 4, env={"FAULTS": "3=fetch@9"}, name="n{}"),
        form="gz",
    ),
}  # fmt: skip
