"""PyTorch with a loop of its own, a process for each rank, in many layouts of logs."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tests.incidents import collecting
from tests.incidents.incident import Incident, Label, Outside, Process, ranks

_PEER = ["peer_lost", "unknown"]


def _pretrain(
    fault: str,
    n: int,
    hit: int | str,
    *,
    name: str = "worker-{}",
    command: str = "python pretrain.py",
    env: Mapping[str, str] | None = None,
    of_rank: Mapping[int, Mapping[str, str]] | None = None,
    memory_mib: Mapping[int, int] | None = None,
) -> list[Process]:
    """Return the ranks of a training in which a fault happens to one, or to some."""
    fixed = {"FAULT": fault, "FAULT_RANKS": str(hit)}
    return ranks(
        command, n, name=name, env={**fixed, **(env or {})}, of_rank=of_rank, memory_mib=memory_mib
    )


def _for_each(n: int, name: str, new: str) -> collecting.Collect:
    return collecting.renamed({f"{name.format(r)}.log": new.format(r, r // 4) for r in range(n)})


def _out_and_err(job: str) -> None:
    os.mkdir(os.path.join(job, "out"))


def _parts(job: str) -> None:
    for rank in range(6):
        os.makedirs(os.path.join(job, f"parts/{rank}"))


INCIDENTS: dict[str, Incident] = {
    "loop-vocabulary-16": Incident(
        Label(
            "rank 11 of 16 meets a token that is outside of the vocabulary; a folder for each node",
            "user_code_error", "after_fix", 11, ["input_data_error", "shape_or_index_error"],
        ),
        _pretrain("vocabulary", 16, 11, env={"LOG_STYLE": "glog"}),
        collect=_for_each(16, "worker-{}", "node{1}/rank_{0}.txt"),
        limit_s=200,
    ),
    "loop-grow-labelled": Incident(
        Label(
            "rank 4 of 6 is killed for its memory, which no log says; one file by srun --label",
            "host_oom", "after_fix", 4, _PEER,
        ),
        _pretrain("grow", 6, 4, memory_mib={4: 700}, env={"LOG_STYLE": "bare"}),
        form="labelled",
    ),
    "loop-segfault-streams": Incident(
        Label(
            "rank 2 of 4 crashes in a C library; standard output and error are separate files",
            "segfault", "retry", 2, ["native_abort"],
        ),
        _pretrain(
            "segfault", 4, 2, env={"FAULTHANDLER": "1"},
            command="python pretrain.py > out/rank-$RANK.out 2> out/rank-$RANK.err",
        ),
        folders=["out"],
        files=_out_and_err,
    ),
    "loop-stuck-kubectl": Incident(
        Label(
            "rank 5 of 8 waits for a batch that never comes; one file by kubectl logs --prefix",
            "hang", "retry", 5, ["nccl_timeout", "peer_lost"],
        ),
        _pretrain("stuck", 8, 5, env={"LOG_STYLE": "bare", "TIMEOUT_S": "25"}, name="train-{}"),
        form="kubectl",
        limit_s=110,
    ),
    "loop-nan-json": Incident(
        Label(
            "the loss of rank 1 of 4 is not a number; the program prints JSON lines",
            "loss_nan", "after_fix", 1, ["user_code_error"],
        ),
        _pretrain("nan", 4, 1, env={"LOG_STYLE": "json"}),
    ),
    "loop-loader-killed": Incident(
        Label(
            "the DataLoader worker of rank 3 of 4 is killed by SIGKILL",
            "host_oom", "after_fix", 3, ["child_failed", "peer_lost", "unknown"],
        ),
        _pretrain("loader", 4, 3),
        form="docker",
    ),
    "loop-late-start": Incident(
        Label(
            "rank 6 of 7 copies data for 60 s before it joins; the others wait for 25 s",
            "rendezvous_timeout", "retry", 6, ["hang", "nccl_timeout", "peer_lost"],
        ),
        _pretrain("late", 7, 6, env={"TIMEOUT_S": "25"}),
        limit_s=110,
    ),
    "loop-size": Incident(
        Label(
            "rank 2 of 5 sums 48 values while the others sum 64",
            "user_code_error", "after_fix", 2,
            ["nccl_timeout", "peer_lost", "native_abort", "shape_or_index_error", "hang"],
        ),
        _pretrain("size", 5, 2, env={"TIMEOUT_S": "25"}),
        form="shipped",
        limit_s=110,
    ),
    "loop-leaves": Incident(
        Label(
            "rank 3 of 8 has no documents left and exits with 0; the others lose it",
            "peer_lost", "after_fix", 3, ["user_code_error", "input_data_error", "hang", "unknown"],
        ),
        _pretrain("leave", 8, 3),
        form="prefixed",
    ),
    "loop-disk": Incident(
        Label(
            "the volume of rank 5 of 6 is full when it writes its part of the optimizer",
            "disk_full", "after_fix", 5, ["checkpoint_error"],
        ),
        [
            p._replace(command="mount -t tmpfs -o size=200k tmpfs parts/5; " + p.command)
            if p.name == "worker-5" else p
            for p in _pretrain("disk", 6, 5)
        ],
        form="cri",
        files=_parts,
    ),
    "loop-library": Incident(
        Label(
            "the node of rank 1 of 3 lacks libnvjpeg.so.12",
            "shared_lib_error", "after_fix", 1, ["module_not_found", "file_not_found"],
        ),
        _pretrain("library", 3, 1, name="pai-task-{}"),
        form="gz",
    ),
    "loop-host-lost": Incident(
        Label(
            "the host of ranks 4 to 7 is lost: SIGKILL for all four at once",
            "peer_lost", "retry", 4, ["unknown", "node_stuck", "host_oom"], [5, 6, 7],
        ),
        _pretrain("kill", 8, "4,5,6,7"),
        collect=_for_each(8, "worker-{}", "host-{1}/rank{0}.log"),
    ),
    "loop-all-import": Incident(
        Label("all six ranks lack a package", "module_not_found", "after_fix"),
        _pretrain("import", 6, "0,1,2,3,4,5"),
    ),
    "loop-all-nan": Incident(
        Label(
            "the loss is not a number on all ranks at the same step", "loss_nan", "after_fix",
            None, ["user_code_error"],
        ),
        _pretrain("nan", 4, "0,1,2,3"),
        form="labelled",
    ),
    "stages-cascade": Incident(
        Label(
            "the last of four stages raises KeyError; each stage loses its neighbour in turn",
            "user_code_error", "after_fix", 3, ["shape_or_index_error"],
        ),
        ranks("python stages.py", 4, name="stage-{}"),
        collect=_for_each(4, "stage-{}", "pp{0}.log"),
    ),
    "loop-cut-tail": Incident(
        Label(
            "rank 6 of 8 raises ValueError, and the end of its log is lost with its node",
            "user_code_error", "after_fix", 6, ["peer_lost", "unknown", "input_data_error"],
        ),
        _pretrain("vocabulary", 8, 6),
        collect=collecting.cut("worker-6.log", tail=22),
    ),
    "loop-missing-log": Incident(
        Label(
            "rank 2 of 8 is killed by SIGKILL, and its log is missing",
            "peer_lost", "retry", 2, ["unknown", "host_oom"],
        ),
        _pretrain("kill", 8, 2),
        collect=collecting.without("worker-2.log"),
    ),
    "loop-clocks": Incident(
        Label(
            "rank 1 of 4 fails; the clock of rank 0 is 240 s behind, that of rank 3 130 s ahead",
            "shared_lib_error", "after_fix", 1, ["file_not_found", "module_not_found"],
        ),
        _pretrain(
            "library", 4, 1, name="gpu{:02}",
            of_rank={0: {"LOG_SKEW_S": "-240"}, 3: {"LOG_SKEW_S": "130"}},
        ),
    ),
    "loop-two-causes-clocks": Incident(
        Label(
            "rank 2 raises; the others fail to save an emergency checkpoint; clocks differ by minutes",
            "user_code_error", "after_fix", 2, ["input_data_error"],
        ),
        _pretrain(
            "vocabulary", 4, 2, env={"EMERGENCY": "1"},
            of_rank={0: {"LOG_SKEW_S": "-200"}, 3: {"LOG_SKEW_S": "90"}},
        ),
    ),
    "loop-emergency": Incident(
        Label(
            "rank 7 is killed; the others fail to save an emergency checkpoint: a missing folder",
            "peer_lost", "retry", 7, ["unknown", "host_oom"],
        ),
        _pretrain("kill", 8, 7, env={"EMERGENCY": "1"}),
        form="cri",
    ),
    "loop-zones": Incident(
        Label(
            "rank 2 of 3 raises RecursionError; its host's time zone is Tokyo's, another's New York's",
            "user_code_error", "after_fix", 2,
        ),
        _pretrain(
            "recursion", 3, 2, env={"LOG_STYLE": "zone"},
            of_rank={2: {"TZ": "JST-9"}, 1: {"TZ": "EST5"}},
        ),
    ),
    "loop-copies": Incident(
        Label(
            "rank 1 of 4 raises FileNotFoundError; a file of all logs in turn lies beside them",
            "file_not_found", "after_fix", 1, ["permission_denied", "checkpoint_error"],
        ),
        _pretrain("proc", 4, 1, env={"LOG_STYLE": "zone"}),
        collect=collecting.joined_as("all.log", reverse=True),
    ),
    "loop-term-one": Incident(
        Label(
            "rank 6 of 8 gets SIGTERM as from a preemption; its Pod's exit code is 143",
            "terminated_sigterm", "retry", 6, ["evicted", "peer_lost", "unknown"],
        ),
        _pretrain("term", 8, 6, command="exec python pretrain.py"),
        pods=True,
    ),
    "loop-abort-tail": Incident(
        Label(
            "rank 0 of 2 calls abort() in a library; of each log the last 12 lines are left",
            "native_abort", "retry", 0, ["segfault", "peer_lost", "unknown"],
        ),
        _pretrain("abort", 2, 0, command="python pretrain.py; echo exit code $?"),
        collect=collecting.last_lines(12),
    ),
    "loop-exit-code": Incident(
        Label(
            "rank 9 of 12 exits with 3, without a word; wrappers print the exit codes",
            "child_failed", "retry", 9, ["user_code_error", "peer_lost", "unknown"],
        ),
        _pretrain(
            "exit", 12, 9, env={"FAULT_CODE": "3", "LOG_STYLE": "bare"},
            command='python pretrain.py; code=$?; echo "$(hostname): training exited with code $code"',
        ),
        form="kubectl",
        limit_s=200,
    ),
    "store-late": Incident(
        Label(
            "rank 3 of 5 builds an index for 60 s; the others wait for its key in the store for 12 s",
            "rendezvous_timeout", "retry", 3, ["hang", "nccl_timeout", "peer_lost"],
        ),
        ranks("python waiting_for_key.py", 5, env={"FAULT_RANKS": "3"}),
        limit_s=60,
    ),
    "loop-asleep": Incident(
        Label(
            "rank 0 of 4 reads a part of the data for 60 s; the others give up after 20 s",
            "nccl_timeout", "retry", 0, ["hang", "peer_lost", "storage_io_error"],
        ),
        _pretrain("asleep", 4, 0, env={"TIMEOUT_S": "20"}),
        form="docker",
        limit_s=90,
    ),
    "loop-healthy-folders": Incident(
        Label("five ranks finish; a folder for each host", "none", None),
        _pretrain("asleep", 5, 2, env={"SLEEP_S": "0.1"}),
        collect=_for_each(5, "worker-{}", "host{1}/worker-{0}.stdout"),
    ),
    "loop-stopped-by-person": Incident(
        Label(
            "a person's Ctrl-C (SIGINT) stops all four ranks",
            "cancelled_by_user", "never", None, ["terminated_sigterm"],
        ),
        _pretrain("", 4, "", env={"LOG_STYLE": "zone"}),
        outside=Outside(2, "iteration       10"),
    ),
}  # fmt: skip
