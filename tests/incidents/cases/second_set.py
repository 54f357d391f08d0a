"""Incidents of further programs: ranks that fail one after the other, Kubeflow's names, journals."""

from __future__ import annotations

from tests.incidents import collecting
from tests.incidents.cases.jax_processes import processes
from tests.incidents.incident import Incident, Label, Process, alone, ranks

_JOURNAL = (
    "{ %s; } 2>&1 | while IFS= read -r line; do "
    'printf "%%s %%s train[%%s]: %%s\\n" "$(date "+%%b %%d %%H:%%M:%%S")" $HOSTNAME $$ "$line"; done'
)


def _kubeflow(command: str, n: int, **env: str) -> list[Process]:
    """Return ranks with the names of Kubeflow's PyTorchJob: rank 0 is the master."""
    names = ["bert-master-0", *(f"bert-worker-{k}" for k in range(n - 1))]
    shared = {"MASTER_ADDR": names[0], "MASTER_PORT": "29500", "WORLD_SIZE": str(n), **env}
    return [
        Process(name, command, {**shared, "RANK": str(rank)}, name)
        for rank, name in enumerate(names)
    ]


INCIDENTS: dict[str, Incident] = {
    "replicas-two-fail": Incident(
        Label(
            "rank 2 of 8 divides by zero; rank 6 raises KeyError a second later, by itself",
            "user_code_error", "after_fix", 2,
        ),
        ranks("python local_steps.py", env={"FAULTS": "2=ratio@3 6=column@18"}),
        form="docker",
        limit_s=200,
    ),
    "replicas-two-fail-kubectl": Incident(
        Label(
            "rank 5 of 6 fails an assertion; rank 1 raises KeyError a second later, by itself",
            "user_code_error", "after_fix", 5, ["input_data_error"],
        ),
        ranks("python local_steps.py", 6, env={"FAULTS": "5=assert@3 1=column@19"}, name="rep-{}"),
        form="kubectl",
        limit_s=150,
    ),
    "kubeflow-assertion": Incident(
        Label(
            "rank 2 of 4, which is Kubeflow's bert-worker-1, fails an assertion",
            "user_code_error", "after_fix", 2, ["input_data_error"],
        ),
        _kubeflow("python local_steps.py", 4, FAULTS="2=assert@25"),
    ),
    "kubeflow-memory": Incident(
        Label(
            "rank 3 of 4, which is Kubeflow's bert-worker-2, is killed for its memory",
            "host_oom", "after_fix", 3,
        ),
        [
            p._replace(memory_mib=600 if p.name == "bert-worker-2" else None)
            for p in _kubeflow("python local_steps.py", 4, FAULTS="3=kept@25")
        ],
        form="cri",
        pods=True,
    ),
    "dumping-stuck": Incident(
        Label(
            "rank 4 of 6 searches a checkpoint for ever; every rank prints its stack after 25 s",
            "hang", "retry", 4, ["nccl_timeout", "user_code_error", "peer_lost"],
        ),
        ranks("python dumping.py", 6, name="node-{}"),
        limit_s=90,
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
    "elastic-data": Incident(
        Label(
            "rank 1 is killed in the first attempt; rank 0 raises KeyError in the second and last",
            "user_code_error", "after_fix", 0, ["checkpoint_error"],
        ),
        alone(
            "torchrun --standalone --nproc-per-node 3 --max-restarts 1 --tee 3 --log-dir logs "
            "elastic_data.py"
        ),
        limit_s=200,
    ),
    "replicas-write": Incident(
        Label(
            "rank 2 of 5 cannot make its folder; a file for each of Slurm's tasks",
            "permission_denied", "after_fix", 2, ["file_not_found", "storage_io_error"],
        ),
        ranks(
            "python local_steps.py", 5,
            env={"FAULTS": "2=write@30", "FORMAT": "%(asctime)s:%(name)s:%(message)s"},
        ),
        collect=collecting.renamed({f"worker-{r}.log": f"job.4711.0.{r}.out" for r in range(5)}),
    ),
    "replicas-healthy": Incident(
        Label("four ranks finish; each prints errors that it has handled", "none", None),
        ranks("python local_steps.py", 4),
        form="labelled",
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
    "replicas-quiet": Incident(
        Label(
            "rank 4 of 6 exits with 5, without a word; the heads of the logs are lost",
            "child_failed", "retry", 4, ["peer_lost", "unknown", "user_code_error"],
        ),
        ranks("python local_steps.py", 6, env={"FAULTS": "4=quiet@33"}),
        collect=collecting.last_lines(8),
    ),
    "replicas-lease": Incident(
        Label(
            "rank 7 of 10 raises TimeoutError: a lease was not renewed; one file of all",
            "user_code_error", "after_fix", 7, ["storage_io_error", "network_unreachable", "unknown"],
        ),
        ranks("python local_steps.py", 10, env={"FAULTS": "7=term@12"}),
        form="prefixed",
        limit_s=200,
    ),
}  # fmt: skip
