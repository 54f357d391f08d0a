"""Further layouts, recorded after the diagnosis was changed for the fourth set."""

from __future__ import annotations

from tests.incidents import collecting
from tests.incidents.cases.fourth_set import _PEER, _USER, _agents, _fleet, _jax, _warehouse
from tests.incidents.incident import Incident, Label, Process, alone

_LATE = ["nccl_timeout", "peer_lost", "unknown"]
_SPIED = "python fleet.py & sleep 15; py-spy dump --pid $! > stacks/$HOST.txt; kill -9 $!"
_GREEK = ("alpha", "beta", "gamma", "delta")


def _indexed(job: list[Process], *ends: str) -> list[Process]:
    """Return processes with the names of an indexed Job's Pods."""
    return [p._replace(name=f"{p.name}-{end}") for p, end in zip(job, ends, strict=True)]


INCIDENTS: dict[str, Incident] = {
    "spied-files": Incident(
        Label("rank 0 of 3 waits for an event of its own; py-spy's dumps are files of their own",
              "hang", "retry", 0, _LATE),
        [
            p._replace(command=f"mkdir -p stacks; {_SPIED}", env={**p.env, "HOST": p.name})
            for p in _fleet("0:lock@9", 3, "trainer-{}")
        ],
        folders=["stacks"],
        limit_s=40,
    ),
    "indexed-killed-stern": Incident(
        Label("rank 2 of 4 is killed; the Pods of an indexed Job", "peer_lost", "retry", 2,
              ["unknown", "host_oom"]),
        _indexed(_fleet("2:kill@9", 4, "sft-{}", LOGS="clock"), "x7k2m", "b4xqn", "zz9td", "h5wtr"),
        form="stern",
    ),
    "locals-of-hosts": Incident(
        Label("rank 3 of 4, the second of the second host, raises ValueError; a file for each "
              "process of each host", *_USER, 3, ["input_data_error"]),
        _fleet("3:value@9", 4, ON_ERROR="logged", HELLO="rank {r}/{n} is up on {h}"),
        collect=collecting.renamed(
            {f"worker-{r}.log": f"{'ab'[r // 2]}17/{r % 2}.log" for r in range(4)}
        ),
    ),
    "journal-json-key": Incident(
        Label("rank 1 of 3 raises KeyError; journalctl -o json of all hosts", *_USER, 1),
        _fleet("1:key@9", 3, "hpc-{}", ON_ERROR="logged", LOGS="loguru"),
        form="journal-json",
    ),
    "headers-exit": Incident(
        Label("rank 2 of 4 exits with 3, without a word; one file, in which tail's headers name "
              "the ranks' files", "child_failed", "retry", 2,
              ["peer_lost", "unknown", "user_code_error"]),
        _fleet("2:exit@9", 4),
        collect=collecting.under_headers("all.txt"),
    ),
    "column-zero": Incident(
        Label("rank 2 of 3 raises ZeroDivisionError; one file, in which loggers print the worker",
              *_USER, 2),
        _fleet("2:zero@9", 3, LOGS="column", ON_ERROR="logged"),
        form="mixed",
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
    "array-killed": Incident(
        Label("rank 2 of 3 is killed; a JSON array from Google Cloud's console", "peer_lost",
              "retry", 2, ["unknown", "host_oom"]),
        _fleet("2:kill@9", 3, "fleet-{}", LOGS="structlog"),
        form="cloud",
        collect=collecting.as_array("downloaded-logs.jsonl"),
    ),
    "stacks-loader": Incident(
        Label("rank 2 of 3 waits for its DataLoader for ever; every rank prints its stacks after "
              "12 s", "hang", "retry", 2, _LATE),
        _fleet("2:loader-asleep", 3, "job-{}", STACKS_AFTER_S="12"),
        form="compose",
        limit_s=25,
    ),
    "greek-decode": Incident(
        Label("worker 1 of 4 raises UnicodeDecodeError; hosts have no numbers, and the logs name "
              "the workers", "input_data_error", "after_fix", 1, ["user_code_error"]),
        _warehouse("1:decode@12", 4),
        collect=collecting.renamed({f"node{n}.log": f"{h}.log" for n, h in enumerate(_GREEK)}),
    ),
    "warehouse-server-killed": Incident(
        Label("the server, rank 0, is killed; pdsh's output", "peer_lost", "retry", 0,
              ["unknown", "host_oom"]),
        _warehouse("0:kill@12", 4, "depot-{}", STAMP="%H:%M:%S"),
        form="pdsh",
    ),
    "crew-killed": Incident(
        Label("worker 1 of 3 is killed; the launcher, which is the job's own, says so", "host_oom",
              "retry", 1, [*_PEER, "hang"]),
        alone("python crew.py killed 1"),
        limit_s=40,
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
    "jax-labelled-killed": Incident(
        Label("process 1 of 3 is killed by SIGKILL", "peer_lost", "retry", 1,
              ["unknown", "host_oom"]),
        _jax("1:kill"),
        form="labelled",
        limit_s=100,
    ),
    "lightning-loader": Incident(
        Label("a loader's worker raises IndexError at row 61, which rank 0 of 3 gets", "shape_or_index_error",
              "after_fix", 0, ["user_code_error", "input_data_error"]),
        alone("python lightning_fleet.py", "fit"),
        limit_s=120,
    ),
}  # fmt: skip
