"""What an incident is: what runs, what fails in it, and what a good diagnosis says about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

Form = Literal[
    "plain", "cri", "docker", "gz",
    "prefixed", "labelled", "mixed", "kubectl", "stamped", "stern", "compose", "pdsh", "nodes",
    "journal", "shipped", "cloud", "loki", "journal-json", "tagged", "tailed",
    "honcho", "parallel", "csv", "logfmt", "ci", "pm2",
]  # fmt: skip
"""How the output is kept: a file for each process as it is, in CRI's or Docker's form, or packed by
gzip; or one file of all, with the process's name or number (as by ``srun --label``) before each
line, or without; as ``kubectl logs --prefix`` prints it, also with ``--timestamps``; as stern,
``docker compose``, pdsh, a launcher of nodes (``node-1: [2] ...``, two ranks each) and journald
print it; as a log shipper, Google Cloud's logging (JSON) and Loki's logcli store and print it; as
``journalctl -o json``, Fluentd's file output, ``aws logs tail``, honcho, ``parallel --tag``, exports as
CSV and in logfmt, a CI server and PM2 do."""


class Label(NamedTuple):
    """What is known about the fault, since it was injected.

    Attributes:
        how: the fault, in one sentence.
        cls: the class of the failure that comes first.
        retry: what to do with the job; None for a healthy one.
        first_rank: the rank that fails first; None when there are no ranks, or none is first.
        also: classes that are acceptable, too.
        also_first: ranks that are acceptable as the first, too, since they fail together.
        untold: no log shows which rank is first, so that none is the right answer.
    """

    how: str
    cls: str
    retry: str | None
    first_rank: int | None = None
    also: Sequence[str] = ()
    also_first: Sequence[int] = ()
    untold: bool = False

    def data(self, made: str) -> dict[str, Any]:
        """Return what expected.json holds."""
        ranks = {"also_first": list(self.also_first)} if self.also_first else {}
        return {
            "first_rank": self.first_rank,
            **ranks,
            **({"untold": True} if self.untold else {}),
            "class": self.cls,
            "also": list(self.also),
            "retry": self.retry,
            "healthy": self.cls == "none",
            "how": self.how,
            "made": made,
        }


class Process(NamedTuple):
    """A process that the launcher of an incident starts.

    Attributes:
        name: the stem of its log's name.
        command: for bash.
        env: added to the environment.
        host: its host name.
        memory_mib: the limit of its memory cgroup.
        skew_s: how far its host's clock is ahead, in CRI's and Docker's form.
    """

    name: str
    command: str
    env: Mapping[str, str] = {}
    host: str = "trainer-0"
    memory_mib: int | None = None
    skew_s: float = 0


class Outside(NamedTuple):
    """A signal from outside, as a person or a node sends it.

    Attributes:
        signal: its number.
        when: a text in the output that the signal waits for.
        process: the process's name; None for all.
    """

    signal: int
    when: str
    process: str | None = None


class Incident(NamedTuple):
    """A job that fails for a known reason, or runs well.

    Attributes:
        label: what is known.
        processes: what the launcher starts.
        form: how the output is kept.
        outside: a signal from outside.
        stop_others_s: after one process fails, the others get SIGTERM this many seconds later, as
            from a controller; None waits until they end.
        limit_s: everything is killed after this many seconds, as a hang is in the end.
        folders: folders of the job whose files are kept, too (``torchrun --log-dir``).
        kernel: the kernel's messages are kept, too.
        pods: each process is a Pod whose end is kept as ``kubectl get pods -o json`` shows it.
        files: what lies in the job's folder before it starts: a function of the folder.
        collect: what becomes of the logs before a person gets them: a function of their folder.
    """

    label: Label
    processes: Sequence[Process]
    form: Form = "plain"
    outside: Outside | None = None
    stop_others_s: float | None = None
    limit_s: float = 120
    folders: Sequence[str] = ()
    kernel: bool = False
    pods: bool = False
    files: Callable[[str], None] | None = None
    collect: Callable[[str], None] | None = None


def ranks(
    command: str,
    n: int = 8,
    *,
    name: str = "worker-{}",
    env: Mapping[str, str] | None = None,
    of_rank: Mapping[int, Mapping[str, str]] | None = None,
    memory_mib: Mapping[int, int] | None = None,
) -> list[Process]:
    """Return a process for each rank, each on a host with its name, as Pods are."""
    base = {"MASTER_ADDR": name.format(0), "MASTER_PORT": "29500", "WORLD_SIZE": str(n)}
    return [
        Process(
            name.format(rank),
            command,
            {**base, "RANK": str(rank), **(env or {}), **(of_rank or {}).get(rank, {})},
            name.format(rank),
            (memory_mib or {}).get(rank),
        )
        for rank in range(n)
    ]


def alone(command: str, name: str = "main", memory_mib: int | None = None) -> list[Process]:
    """Return the one process of a job."""
    return [Process(name, command, memory_mib=memory_mib)]
