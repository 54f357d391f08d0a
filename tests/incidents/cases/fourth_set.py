"""Further loggers and layouts: errors that are logged and not raised, silent ends, stuck ranks."""

from __future__ import annotations

from tests.incidents import collecting
from tests.incidents.cases.jax_processes import processes
from tests.incidents.incident import Incident, Label, Process, alone, ranks

_PEER = ["peer_lost", "child_failed", "unknown"]
_LATE = ["hang", "nccl_timeout", "peer_lost", "unknown"]
_STACKS = "python fleet.py & sleep {s}; py-spy dump --pid $!; kill -9 $!"


def _fleet(
    trouble: str, n: int = 3, name: str = "worker-{}", memory: int | None = None, **env: str
) -> list[Process]:
    """Return the ranks of fleet.py; ``memory`` limits those that have the trouble (MiB)."""
    limits = {int(trouble[0]): memory} if memory else None
    env = {"TROUBLE": trouble, **env}
    return ranks("python fleet.py", n, name=name, env=env, memory_mib=limits)


def _stacks(trouble: str, n: int, seconds: int, name: str = "worker-{}") -> list[Process]:
    """Return ranks whose stacks py-spy prints after some seconds."""
    command = _STACKS.format(s=seconds)
    return ranks(command, n, name=name, env={"TROUBLE": trouble, "LOGS": "clock"})


def _warehouse(trouble: str, n: int = 4, name: str = "node{}", **env: str) -> list[Process]:
    """Return the server and the workers of warehouse.py."""
    env = {"TROUBLE": trouble, "SERVER": name.format(0), **env}
    return ranks("python warehouse.py", n, name=name, env=env)


def _jax(trouble: str, n: int = 3) -> list[Process]:
    """Return the processes of jax_fleet.py."""
    return [
        p._replace(env={**p.env, "TROUBLE": trouble}) for p in processes("python jax_fleet.py", n)
    ]


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

INCIDENTS: dict[str, Incident] = {
    "fleet-loguru-caught": Incident(
        Label("rank 2 of 4 raises KeyError; loguru's exception() prints it, exit 1", *_USER, 2),
        _fleet("2:key@9", 4, LOGS="loguru", ON_ERROR="logged"),
    ),
    "fleet-rich-compose": Incident(
        Label(
            "rank 1 of 3 multiplies shapes that do not fit; rich prints the traceback in boxes",
            "shape_or_index_error", "after_fix", 1, ["user_code_error"],
        ),
        _fleet("1:shape@9", 3, "trainer-{}", LOGS="rich", ON_ERROR="logged"),
        form="compose",
    ),
    "fleet-absl-pdsh": Incident(
        Label("rank 3 of 4 raises ValueError; absl logs it; pdsh's output", *_USER, 3,
              ["input_data_error"]),
        _fleet("3:value@13", 4, "c17-{}", LOGS="absl", ON_ERROR="logged"),
        form="pdsh",
    ),
    "fleet-json-hashes": Incident(
        Label(
            "rank 0 of 3 raises AttributeError, logged as JSON with a stack trace; the rank is a "
            "field, and files have Pods' hashes", *_USER, 0,
        ),
        _fleet("0:attribute@9", 3, LOGS="json", LOG_RANK="1", ON_ERROR="logged"),
        collect=collecting.renamed(
            {f"worker-{r}.log": f"fleet-5d8f-{end}.log"
             for r, end in enumerate(("z7k2m", "b4xqn", "h9wtr"))}
        ),
    ),
    "fleet-swallowed-stern": Incident(
        Label("rank 1 of 4 logs KeyError in one line and ends with 0; stern's output", *_USER, 1,
              ["peer_lost"]),
        _fleet("1:key@6", 4, "fleet-worker-{}", ON_ERROR="swallowed"),
        form="stern",
    ),
    "fleet-thread-srun": Incident(
        Label(
            "KeyError in rank 2's prefetching thread; its main thread waits for ever, and the "
            "others time out after 20 s", *_USER, 2, ["hang"],
        ),
        _fleet("2:thread@7", 4, WAIT_S="20"),
        form="labelled",
        limit_s=60,
    ),
    "fleet-thread-logged": Incident(
        Label(
            "rank 1's prefetcher logs one line and stops; the others time out after 20 s",
            *_USER, 1, ["input_data_error", *_LATE],
        ),
        _fleet("1:thread-logged@7", 3, WAIT_S="20", LOGS="structlog"),
        form="cri",
        limit_s=60,
    ),
    "fleet-segfault-stamped": Incident(
        Label("rank 1 of 3 crashes with SIGSEGV under faulthandler", "segfault", "retry", 1,
              ["native_abort"]),
        _fleet("1:segv@9", 3),
        form="stamped",
    ),
    "fleet-killed-epoch": Incident(
        Label("rank 2 of 4 is killed by SIGKILL; times are seconds since 1970", "peer_lost",
              "retry", 2, ["unknown", "host_oom"]),
        _fleet("2:kill@9", 4, LOGS="epoch"),
    ),
    "fleet-memory-compose": Incident(
        Label("rank 2 of 3 is killed for its memory; no log says so", "host_oom", "after_fix", 2,
              ["peer_lost", "unknown"]),
        _fleet("2:kept@9", 3, memory=600),
        form="compose",
    ),
    "fleet-asleep-nodes": Incident(
        Label("rank 1 of 4 waits in its own code; the others time out after 20 s; two nodes",
              "hang", "retry", 1, _LATE),
        _fleet("1:asleep@9", 4, WAIT_S="20", LOGS="loguru"),
        form="nodes",
        limit_s=50,
    ),
    "fleet-silent-hang": Incident(
        Label(
            "rank 3 of 4 stops in its own code and nothing times out; the job is stopped after "
            "40 s; the last steps of the ranks are the same", "hang", "retry", 3, _LATE, untold=True,
        ),
        _fleet("3:asleep@9", 4),
        limit_s=40,
    ),
    "fleet-loader-timeout": Incident(
        Label("rank 0 of 3: DataLoader times out after 12 s", "hang", "retry", 0,
              ["input_data_error", "storage_io_error", "user_code_error", "nccl_timeout"]),
        _fleet("0:loader-stuck", 3),
        form="loki",
        limit_s=60,
    ),
    "fleet-loader-asleep": Incident(
        Label("rank 2 of 3 waits for its DataLoader for ever; the others time out after 20 s",
              "hang", "retry", 2, _LATE),
        _fleet("2:loader-asleep", 3, "gpu{}", WAIT_S="20"),
        form="docker",
        limit_s=60,
    ),
    "fleet-loader-raises": Incident(
        Label("a worker of rank 1's DataLoader meets wrong bytes", "input_data_error", "after_fix",
              1, ["user_code_error"]),
        _fleet("1:loader-raises", 3, LOGS="ranked", ON_ERROR="logged"),
        form="mixed",
    ),
    "fleet-lock-py-spy": Incident(
        Label("rank 2 of 4 waits for an event of its own; py-spy shows all stacks after 30 s",
              "hang", "retry", 2, _LATE),
        _stacks("2:lock@9", 4, 30),
        limit_s=60,
    ),
    "fleet-stacks-later": Incident(
        Label("rank 1 of 4 sleeps; every rank prints its stacks after 25 s and is stopped at 40 s",
              "hang", "retry", 1, _LATE),
        _fleet("1:asleep@9", 4, "n{}", STACKS_AFTER_S="25"),
        form="prefixed",
        limit_s=40,
    ),
    "fleet-slow": Incident(
        Label("rank 2 of 4 becomes 60 times slower; the others wait for 10 s", "hang", "retry", 2,
              _LATE),
        _fleet("2:slow@0", 4, WAIT_S="10", PAUSE_S="0.3", EVERY="1", LOGS="clock"),
        limit_s=60,
    ),
    "fleet-all-import": Incident(
        Label("a module is missing for all ranks", "module_not_found", "after_fix", None,
              ["user_code_error"]),
        _fleet("0,1,2:early-import", 3, ON_ERROR="logged"),
        form="stern",
    ),
    "fleet-empty-file": Incident(
        Label("rank 2 of 4 is killed; its file is empty, since nothing of it was written",
              "peer_lost", "retry", 2, ["unknown", "host_oom"]),
        _fleet("2:kill@9", 4),
        collect=collecting.emptied("worker-2.log"),
    ),
    "fleet-missing-part": Incident(
        Label("rank 1 of 4 is killed; the export of logs has no line of it", "peer_lost", "retry",
              1, ["unknown", "host_oom"]),
        _fleet("1:kill@9", 4),
        form="cri",
        collect=collecting.without("worker-1.log"),
    ),
    "fleet-cut-bytes": Incident(
        Label("rank 3 of 4 raises ZeroDivisionError; its file ends in the middle of the traceback",
              *_USER, 3, ["peer_lost", "unknown"]),
        _fleet("3:zero@9", 4, LOGS="loguru"),
        collect=collecting.cut_bytes("worker-3.log", tail=90),
    ),
    "fleet-skewed-docker": Incident(
        Label("rank 1 of 3 raises ValueError; its clock is 200 s ahead, rank 2's 100 s behind",
              *_USER, 1, ["input_data_error"]),
        [
            p._replace(skew_s={1: 200.0, 2: -100.0}.get(n, 0.0))
            for n, p in enumerate(_fleet("1:value@9", 3, LOGS="bare", ON_ERROR="logged"))
        ],
        form="docker",
    ),
    "fleet-mixed-torch": Incident(
        Label("rank 1 of 4 raises KeyError; one file of all, in which torch names the ranks",
              *_USER, 1),
        _fleet("1:key@9", 4, LOGS="bare"),
        form="mixed",
    ),
    "fleet-mixed-killed": Incident(
        Label("rank 1 of 3 is killed; one file of all, in which no line of it is left to see",
              "peer_lost", "retry", 1, ["unknown", "host_oom"], untold=True),
        _fleet("1:kill@9", 3, LOGS="bare", HELLO="ready", ON_ERROR="logged"),
        form="mixed",
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
    "fleet-noise-journal": Incident(
        Label("rank 2 of 3 may not write; all ranks log a handled error with a traceback before",
              "permission_denied", "after_fix", 2, ["storage_io_error", "file_not_found"]),
        _fleet("2:write@9", 3, "hpc-{}", NOISE="1", ON_ERROR="logged"),
        form="journal",
    ),
    "fleet-noise-folders": Incident(
        Label("rank 3 of 4 raises KeyError; handled errors before; a folder for each node",
              *_USER, 3),
        _fleet("3:key@11", 4, NOISE="1", ON_ERROR="exit", LOGS="loguru"),
        collect=collecting.renamed(
            {f"worker-{r}.log": f"node-{r // 2}/rank_{r}.txt" for r in range(4)}
        ),
    ),
    "fleet-healthy-noise": Incident(
        Label("three ranks finish; each logs an error with its traceback that it handles", "none",
              None),
        _fleet("", 3, NOISE="1", LOGS="json"),
        form="stern",
    ),
    "fleet-healthy-compose": Incident(
        Label("four ranks finish", "none", None),
        _fleet("", 4, LOGS="loguru", EVERY="2"),
        form="compose",
    ),
    "fleet-nan": Incident(
        Label("all ranks raise FloatingPointError at the same step", "loss_nan", "after_fix", None,
              ["user_code_error"]),
        _fleet("0,1,2:nan@9", 3, ON_ERROR="logged", LOGS="structlog"),
        form="kubectl",
    ),
    "fleet-late-start": Incident(
        Label("rank 1 of 4 reads an index and does not join; the others wait for 25 s",
              "rendezvous_timeout", "retry", 1, _LATE),
        _fleet("1:late-start", 4, WAIT_S="25", ON_ERROR="logged"),
        form="pdsh",
        limit_s=60,
    ),
    "fleet-task-lost": Incident(
        Label("an asyncio task of rank 1 raises KeyError, for which nobody waits; the others time "
              "out after 20 s", *_USER, 1, ["hang"]),
        _fleet("1:task@9", 3, WAIT_S="20"),
        limit_s=50,
    ),
    "fleet-leaves": Incident(
        Label("rank 1 of 3 leaves its loop early and ends with 0", "peer_lost", "retry", 1,
              ["hang", "user_code_error", "unknown"]),
        _fleet("1:leave@9", 3, LOGS="rich", ON_ERROR="message"),
        form="stern",
    ),
    "fleet-two-causes-bare": Incident(
        Label("rank 2 of 4 has no settings; the others wait for it for 20 s; no times in the logs",
              "file_not_found", "after_fix", 2, ["config_error", "user_code_error"]),
        _fleet("2:settings", 4, WAIT_S="20", LOGS="bare", ON_ERROR="message"),
        limit_s=50,
    ),
    "warehouse-decode": Incident(
        Label("worker 2 of 4 raises UnicodeDecodeError; the server then meets EOF, and the other "
              "workers too", "input_data_error", "after_fix", 2, ["user_code_error"]),
        _warehouse("2:decode@12"),
    ),
    "warehouse-memory": Incident(
        Label("the server, rank 0, raises MemoryError; the workers meet EOF", "host_oom",
              "after_fix", 0),
        _warehouse("0:memory@12", 4, "depot-{}"),
        form="labelled",
    ),
    "warehouse-killed": Incident(
        Label("worker 3 of 4 is killed; the server meets EOF, and then the others", "peer_lost",
              "retry", 3, ["unknown", "host_oom"]),
        _warehouse("3:kill@12", STAMP="%H:%M:%S"),
    ),
    "warehouse-logged": Incident(
        Label("worker 1 of 4 logs that its index is corrupt, and exits with 4", "input_data_error",
              "after_fix", 1, ["user_code_error", "checkpoint_error", "storage_io_error", "child_failed"]),
        _warehouse("1:logged@12", STAMP="%Y/%m/%d %H:%M:%S"),
        form="compose",
    ),
    "warehouse-stuck": Incident(
        Label("worker 2 of 4 waits; the server times out after 15 s, and the others meet EOF",
              "hang", "retry", 2, [*_LATE, "network_unreachable"]),
        _warehouse("2:stuck@12", WAIT_S="15", STAMP="%d/%b/%Y:%H:%M:%S"),
        form="prefixed",
        limit_s=40,
    ),
    "recorded-restarts": Incident(
        Label("rank 1 raises ValueError in the first attempt, rank 2 KeyError in the second",
              *_USER, 2),
        _with(
            alone("torchrun --standalone --nproc-per-node 3 --max-restarts 1 --tee 3 "
                  "--log-dir logs recorded_errors.py"),
            FAULTS="1:value 2:key",
        ),
        limit_s=120,
    ),
    "recorded-two-nodes": Incident(
        Label("rank 3 of 4 exits with 3, without a word; tee of two nodes", "child_failed", "retry",
              3, ["peer_lost", "unknown", "user_code_error"]),
        _agents("--tee 3 --log-dir logs", "3:exit"),
        limit_s=120,
    ),
    "recorded-launchers-only": Incident(
        Label("rank 2 of 4 crashes with SIGSEGV; the agents' own logs only", "segfault", "retry", 2,
              ["native_abort", "child_failed"]),
        _agents("--redirects 3 --log-dir logs", "2:segv"),
        form="pdsh",
        limit_s=120,
    ),
    "recorded-errors-kubectl": Incident(
        Label("rank 1 of 4 raises KeyError, kept by record(); the agents' own logs only", *_USER, 1,
              ["child_failed"]),
        _agents("--redirects 3 --log-dir logs", "1:key"),
        form="kubectl",
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
    "mpi-refused": Incident(
        Label("rank 2 of 4 reports a singular matrix; rank 0 misses its part and aborts",
              *_USER, 2, ["child_failed", "input_data_error"]),
        alone("mpirun -np 4 --tag-output python mpi_fleet.py refused 2", "mpi"),
        limit_s=60,
    ),
    "jax-logged-stern": Incident(
        Label("process 1 of 3 raises KeyError, which absl logs; the others lose it", *_USER, 1),
        _jax("1:raises"),
        form="stern",
        limit_s=100,
    ),
    "jax-killed-cri": Incident(
        Label("process 2 of 3 is killed by SIGKILL", "peer_lost", "retry", 2,
              ["unknown", "host_oom"]),
        _jax("2:kill"),
        form="cri",
        limit_s=100,
    ),
    "jax-coordinator-raises": Incident(
        Label("process 0 of 3, the coordinator, raises KeyError, which absl logs", *_USER, 0),
        _jax("0:raises"),
        limit_s=100,
    ),
    "ray-fleet-raises": Incident(
        Label("Ray's actor of rank 1 raises IndexError; it says its rank in its first line only",
              "shape_or_index_error", "after_fix", 1, ["user_code_error"], untold=True),
        alone("python ray_fleet.py raises 1", "driver"),
        limit_s=120,
    ),
    "ray-fleet-killed": Incident(
        Label("Ray's actor of rank 2 is killed; its process is known from its first line",
              "peer_lost", "retry", 2, ["host_oom", "child_failed"]),
        alone("python ray_fleet.py killed 2", "driver"),
        limit_s=120,
    ),
    "ray-fleet-asleep": Incident(
        Label("Ray's actor of rank 1 sleeps; the driver waits for 25 s", "hang", "retry", 1,
              [*_LATE, "rendezvous_timeout"], untold=True),
        alone("python ray_fleet.py asleep 1", "driver"),
        limit_s=120,
    ),
    "ray-fleet-logged": Incident(
        Label("Ray's actor of rank 0 prints an error and exits with 0", *_USER, 0,
              ["peer_lost", "child_failed"]),
        alone("python ray_fleet.py logged 0", "driver"),
        limit_s=120,
    ),
}  # fmt: skip
