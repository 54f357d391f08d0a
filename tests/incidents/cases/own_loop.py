"""PyTorch with a loop of its own, a process for each rank, in many layouts of logs."""

from __future__ import annotations

from collections.abc import Mapping

from tests.incidents import collecting
from tests.incidents.incident import Incident, Label, Process, ranks

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


INCIDENTS: dict[str, Incident] = {
    "loop-late-start": Incident(
        Label(
            "rank 6 of 7 copies data for 60 s before it joins; the others wait for 25 s",
            "rendezvous_timeout", "retry", 6, ["hang", "nccl_timeout", "peer_lost"],
        ),
        _pretrain("late", 7, 6, env={"TIMEOUT_S": "25"}),
        limit_s=110,
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
    "loop-all-nan": Incident(
        Label(
            "the loss is not a number on all ranks at the same step", "loss_nan", "after_fix",
            None, ["user_code_error"],
        ),
        _pretrain("nan", 4, "0,1,2,3"),
        form="labelled",
    ),
    "loop-emergency": Incident(
        Label(
            "rank 7 is killed; the others fail to save an emergency checkpoint: a missing folder",
            "peer_lost", "retry", 7, ["unknown", "host_oom"],
        ),
        _pretrain("kill", 8, 7, env={"EMERGENCY": "1"}),
        form="cri",
    ),
    "loop-abort-tail": Incident(
        Label(
            "rank 0 of 2 calls abort() in a library; of each log the last 12 lines are left",
            "native_abort", "retry", 0, ["segfault", "peer_lost", "unknown"],
        ),
        _pretrain("abort", 2, 0, command="python pretrain.py; echo exit code $?"),
        collect=collecting.last_lines(12),
    ),
}  # fmt: skip
