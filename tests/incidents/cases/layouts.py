"""Loggers, collectors and layouts: errors that are logged, silent ends, stuck ranks, exports."""

from __future__ import annotations

from tests.incidents import collecting
from tests.incidents.incident import Incident, Label, Process, alone, ranks

_PEER = ["peer_lost", "child_failed", "unknown"]
_LATE = ["hang", "nccl_timeout", "peer_lost", "unknown"]


def _fleet(
    trouble: str, n: int = 3, name: str = "worker-{}", memory: int | None = None, **env: str
) -> list[Process]:
    """Return the ranks of fleet.py; ``memory`` limits those that have the trouble (MiB)."""
    limits = {int(trouble[0]): memory} if memory else None
    env = {"TROUBLE": trouble, **env}
    return ranks("python fleet.py", n, name=name, env=env, memory_mib=limits)


def _warehouse(trouble: str, n: int = 4, name: str = "node{}", **env: str) -> list[Process]:
    """Return the server and the workers of warehouse.py."""
    env = {"TROUBLE": trouble, "SERVER": name.format(0), **env}
    return ranks("python warehouse.py", n, name=name, env=env)


def _agents(options: str, faults: str) -> list[Process]:
    """Return torchrun's agents of two nodes with two ranks each."""
    return [
        Process(
            f"rack-{node}",
            f"torchrun --nnodes 2 --node-rank {node} --nproc-per-node 2 --master-addr rack-0 "
            f"--master-port 29511 {options} recorded_errors.py",
            {"FAULTS": faults},
            f"rack-{node}",
        )
        for node in range(2)
    ]


def _with(job: list[Process], **env: str) -> list[Process]:
    return [p._replace(env={**p.env, **env}) for p in job]


_USER = ("user_code_error", "after_fix")
_LATE_OR_LOST = ["nccl_timeout", "peer_lost", "unknown"]
_LOST = ["unknown", "host_oom"]


INCIDENTS: dict[str, Incident] = {
    "fleet-rich-compose": Incident(
        Label(
            "rank 1 of 3 multiplies shapes that do not fit; rich prints the traceback in boxes",
            "shape_or_index_error", "after_fix", 1, ["user_code_error"],
        ),
        _fleet("1:shape@9", 3, "trainer-{}", LOGS="rich", ON_ERROR="logged"),
        form="compose",
    ),
    "fleet-asleep-nodes": Incident(
        Label("rank 1 of 4 waits in its own code; the others time out after 20 s; two nodes",
              "hang", "retry", 1, _LATE),
        _fleet("1:asleep@9", 4, WAIT_S="20", LOGS="loguru"),
        form="nodes",
        limit_s=50,
    ),
    "fleet-loader-timeout": Incident(
        Label("rank 0 of 3: DataLoader times out after 12 s", "hang", "retry", 0,
              ["input_data_error", "storage_io_error", "user_code_error", "nccl_timeout"]),
        _fleet("0:loader-stuck", 3),
        form="loki",
        limit_s=60,
    ),
    "fleet-stacks-later": Incident(
        Label("rank 1 of 4 sleeps; every rank prints its stacks after 25 s and is stopped at 40 s",
              "hang", "retry", 1, _LATE),
        _fleet("1:asleep@9", 4, "n{}", STACKS_AFTER_S="25"),
        form="prefixed",
        limit_s=40,
    ),
    "fleet-controller-cloud": Incident(
        Label("rank 2 of 3 cannot write to a full disk; a controller stops the others after 1 s",
              "disk_full", "after_fix", 2, ["storage_io_error"]),
        _fleet("2:full@9", 3, "fleet-{}", ON_TERM="1", ON_ERROR="message"),
        form="cloud",
        stop_others_s=1,
    ),
    "fleet-exit-journal": Incident(
        Label("rank 1 of 3 exits with 3, without a word; the journals of the hosts",
              "child_failed", "retry", 1, ["peer_lost", "unknown", "user_code_error"]),
        _fleet("1:exit@9", 3, "hpc-{}", LOGS="clock"),
        form="journal",
    ),
    "fleet-healthy-noise": Incident(
        Label("three ranks finish; each logs an error with its traceback that it handles", "none",
              None),
        _fleet("", 3, NOISE="1", LOGS="json"),
        form="stern",
    ),
    "warehouse-memory": Incident(
        Label("the server, rank 0, raises MemoryError; the workers meet EOF", "host_oom",
              "after_fix", 0),
        _warehouse("0:memory@12", 4, "depot-{}"),
        form="labelled",
    ),
    "warehouse-logged": Incident(
        Label("worker 1 of 4 logs that its index is corrupt, and exits with 4", "input_data_error",
              "after_fix", 1, ["user_code_error", "checkpoint_error", "storage_io_error", "child_failed"]),
        _warehouse("1:logged@12", STAMP="%Y/%m/%d %H:%M:%S"),
        form="compose",
    ),
    "recorded-launchers-only": Incident(
        Label("rank 2 of 4 crashes with SIGSEGV; the agents' own logs only", "segfault", "retry", 2,
              ["native_abort", "child_failed"]),
        _agents("--redirects 3 --log-dir logs", "2:segv"),
        form="pdsh",
        limit_s=120,
    ),
    "accelerated-gather": Incident(
        Label("rank 1 of 3 of Accelerate reshapes to a size that does not fit; mpirun's time stamps",
              "shape_or_index_error", "after_fix", 1, ["user_code_error"]),
        _with(
            alone("mpirun -np 3 --timestamp-output --tag-output python accelerated.py", "launch"),
            MASTER_ADDR="127.0.0.1", MASTER_PORT="29533", ACCELERATE_USE_CPU="true",
        ),
        limit_s=120,
    ),
    "mpi-asleep-tagged": Incident(
        Label("rank 1 of 4 sleeps, and the job is stopped after 30 s; its last line is that of the "
              "others", "hang", "retry", 1, _LATE, untold=True),
        alone("mpirun -np 4 --tag-output python mpi_fleet.py asleep 1", "mpi"),
        limit_s=30,
    ),
    "ray-fleet-asleep": Incident(
        Label("Ray's actor of rank 1 sleeps; the driver waits for 25 s", "hang", "retry", 1,
              [*_LATE, "rendezvous_timeout"], untold=True),
        alone("python ray_fleet.py asleep 1", "driver"),
        limit_s=120,
    ),
    "journal-json-key": Incident(
        Label("rank 1 of 3 raises KeyError; journalctl -o json of all hosts", *_USER, 1),
        _fleet("1:key@9", 3, "hpc-{}", ON_ERROR="logged", LOGS="loguru"),
        form="journal-json",
    ),
    "tagged-swallowed": Incident(
        Label("rank 1 of 4 logs KeyError in one line and ends with 0; Fluentd's output", *_USER, 1,
              ["peer_lost", "unknown"]),
        _fleet("1:key@9", 4, "w-{}", LOGS="absl", ON_ERROR="swallowed"),
        form="tagged",
    ),
    "tailed-segfault": Incident(
        Label("rank 0 of 3 crashes with SIGSEGV under faulthandler; aws logs tail", "segfault",
              "retry", 0, ["native_abort"]),
        _fleet("0:segv@9", 3, "fleet-{}"),
        form="tailed",
    ),
    "crew-code": Incident(
        Label("worker 2 of 3 exits with 9 after an error; the launcher says so", "child_failed",
              "retry", 2, ["user_code_error", "unknown", "peer_lost", "hang"]),
        alone("python crew.py code 2"),
        limit_s=40,
    ),
    "agents-exit-stern": Incident(
        Label("rank 2 of 4 raises ValueError; the agents' own logs only", *_USER, 2,
              ["child_failed", "input_data_error"]),
        _agents("--redirects 3 --log-dir logs", "2:value"),
        form="stern",
        limit_s=120,
    ),
    "late-start-stamped": Incident(
        Label("rank 2 of 3 reads an index and does not join; the others wait for 20 s",
              "rendezvous_timeout", "retry", 2, ["hang", *_LATE_OR_LOST]),
        _fleet("2:late-start", 3, WAIT_S="20"),
        form="stamped",
        limit_s=40,
    ),
    "parallel-killed": Incident(
        Label("rank 2 of 4 is killed; GNU parallel's tags", "peer_lost", "retry", 2, _LOST),
        _fleet("2:kill@9", 4, LOGS="clock"),
        form="parallel",
    ),
    "csv-segfault": Incident(
        Label("rank 0 of 3 crashes with SIGSEGV under faulthandler; an export as CSV", "segfault",
              "retry", 0, ["native_abort"]),
        _fleet("0:segv@9", 3, "run-7-{}"),
        form="csv",
        collect=collecting.renamed({"export.csv": "export.txt"}),
    ),
    "logfmt-value": Incident(
        Label("rank 2 of 3 raises ValueError; lines in logfmt", *_USER, 2, ["input_data_error"]),
        _fleet("2:value@9", 3, "fleet-{}", LOGS="absl", ON_ERROR="logged"),
        form="logfmt",
    ),
    "ci-asleep": Incident(
        Label("rank 1 of 3 waits in its own code; the others time out after 15 s; a CI server's log",
              "hang", "retry", 1, _LATE_OR_LOST),
        _fleet("1:asleep@9", 3, "worker-{}", WAIT_S="15"),
        form="ci",
        limit_s=30,
    ),
    "pm2-zero": Incident(
        Label("rank 2 of 3 raises ZeroDivisionError; PM2's output", *_USER, 2),
        _fleet("2:zero@9", 3, LOGS="bare", ON_ERROR="logged"),
        form="pm2",
    ),
    "folded-attribute": Incident(
        Label("rank 0 of 3 raises AttributeError; dshbak's blocks", *_USER, 0),
        _fleet("0:attribute@9", 3, ON_ERROR="logged"),
        collect=collecting.in_turn(
            collecting.renamed({f"worker-{r}.log": f"gpu-{r}" for r in range(3)}),
            collecting.under_headers("all.txt", "----------------\n{}\n----------------\n"),
        ),
    ),
    "warehouse-honcho": Incident(
        Label("worker 2 of 4 is killed; the server meets EOF; honcho's output", "peer_lost", "retry",
              2, _LOST),
        _warehouse("2:kill@12", 4),
        form="honcho",
    ),
}  # fmt: skip
