"""Earlier programs in later layouts, recorded after the diagnosis was changed for the fifth set."""

from __future__ import annotations

from tests.incidents import collecting
from tests.incidents.cases.fourth_set import _PEER, _USER, _agents, _fleet, _warehouse, _with
from tests.incidents.cases.jax_processes import processes
from tests.incidents.incident import Incident, Label, alone, ranks

_LATE = ["nccl_timeout", "peer_lost", "unknown"]


INCIDENTS: dict[str, Incident] = {
    "dgx-killed": Incident(
        Label("rank 3 of 4 is killed; pdsh's output, with a progress bar", "peer_lost", "retry", 3,
              ["unknown", "host_oom"]),
        ranks("python finetune.py", 4, name="dgx{}", env={"TROUBLE": "3:kill"}),
        form="pdsh",
    ),
    "vocabulary-compose": Incident(
        Label("rank 2 of 3 meets a token outside of the vocabulary; docker compose's output",
              *_USER, 2, ["input_data_error", "shape_or_index_error"]),
        ranks("python pretrain.py", 3, name="pre-{}",
              env={"FAULT": "vocabulary", "FAULT_RANKS": "2"}),
        form="compose",
    ),
    "column-tailed": Incident(
        Label("rank 1 of 3 raises KeyError; aws logs tail", *_USER, 1),
        ranks("python local_steps.py", 3, name="rep-{}", env={"FAULTS": "1=column@25"}),
        form="tailed",
    ),
    "tee-kubectl": Incident(
        Label("rank 3 of 4 raises KeyError; torchrun's tee in two Pods, by kubectl", *_USER, 3),
        _agents("--tee 3 --log-dir logs", "3:key"),
        form="kubectl",
        limit_s=120,
    ),
    "stacks-and-timeouts": Incident(
        Label("rank 1 of 4 waits for an event of its own; all print their stacks after 8 s, and "
              "the others time out after 15 s", "hang", "retry", 1, _LATE),
        _fleet("1:lock@9", 4, STACKS_AFTER_S="8", WAIT_S="15", LOGS="loguru"),
        limit_s=35,
    ),
    "jax-column-tagged": Incident(
        Label("process 1 of 3 raises KeyError; Fluentd's output", *_USER, 1),
        processes("python jax_rows.py column 1", 3),
        form="tagged",
        limit_s=100,
    ),
    "halo-code-tagged": Incident(
        Label("rank 1 of 3 exits with 7, without a word; mpirun's tags", "child_failed", "retry",
              1, ["user_code_error", "peer_lost", "unknown"]),
        alone("mpirun -np 3 --tag-output python mpi_halo.py code 1", "mpi"),
        limit_s=60,
    ),
    "boxes-decode": Incident(
        Label("worker 3 of 4 raises UnicodeDecodeError; its clock is 50 s ahead; Docker's form",
              "input_data_error", "after_fix", 3, ["user_code_error"]),
        [
            p._replace(skew_s=50.0 if n == 3 else 0.0)
            for n, p in enumerate(_warehouse("3:decode@12", 4, "box-{}"))
        ],
        form="docker",
    ),
    "memory-journal": Incident(
        Label("rank 1 of 3 is killed for its memory, which no log says; the journals of the hosts",
              "host_oom", "after_fix", 1, ["peer_lost", "unknown"]),
        _fleet("1:kept@9", 3, "hpc-{}", 600, LOGS="bare"),
        form="journal",
    ),
    "rich-loki": Incident(
        Label("rank 0 of 3 raises AttributeError; rich prints it, and exits at once; logcli",
              *_USER, 0),
        _fleet("0:attribute@9", 3, LOGS="rich", ON_ERROR="exit"),
        form="loki",
    ),
    "ray-all-lines": Incident(
        Label("Ray's actor of rank 1 is killed; Ray prints every line", "peer_lost", "retry", 1,
              ["host_oom", "child_failed"]),
        _with(alone("python ray_fleet.py killed 1", "driver"), RAY_DEDUP_LOGS="0"),
        limit_s=120,
    ),
    "late-start-stamped": Incident(
        Label("rank 2 of 3 reads an index and does not join; the others wait for 20 s",
              "rendezvous_timeout", "retry", 2, ["hang", *_LATE]),
        _fleet("2:late-start", 3, WAIT_S="20"),
        form="stamped",
        limit_s=40,
    ),
    "host-and-local": Incident(
        Label("rank 2 of 4 is killed; files have the number of the host and that of the process",
              "peer_lost", "retry", 2, ["unknown", "host_oom"]),
        _fleet("2:kill@9", 4, HELLO="ready"),
        collect=collecting.renamed(
            {f"worker-{r}.log": f"train.{r // 2}.{r % 2}.log" for r in range(4)}
        ),
    ),
    "tagged-healthy": Incident(
        Label("three ranks finish; Fluentd's output", "none", None),
        ranks("python finetune.py", 3, name="ft-{}", env={"TROUBLE": "9:late"}),
        form="tagged",
    ),
    "json-mixed": Incident(
        Label("rank 1 of 3 raises AttributeError; JSON lines of all ranks in one file", *_USER, 1),
        _fleet("1:attribute@9", 3, LOGS="json", LOG_RANK="1", ON_ERROR="logged"),
        form="mixed",
    ),
    "absl-mixed": Incident(
        Label("rank 2 of 3 raises ValueError; one file of all, in which torch names the ranks",
              *_USER, 2, ["input_data_error"]),
        _fleet("2:value@9", 3, LOGS="absl"),
        form="mixed",
    ),
    "crew-first-killed": Incident(
        Label("worker 0 of 3 is killed; the launcher, which is the job's own, says so", "host_oom",
              "retry", 0, [*_PEER, "hang"]),
        alone("python crew.py killed 0"),
        limit_s=40,
    ),
}  # fmt: skip
