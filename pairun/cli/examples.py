"""Two or three examples of each command, for its help and for the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Example(NamedTuple):
    """A command line, and its purpose in a few words."""

    command: str
    purpose: str


_BARRIER = (
    Example("pairun barrier wait data-ready", "in your command: wait for all instances"),
    Example(
        "pairun barrier wait --timeout 5m epoch-1",
        "exit 124 if an instance is missing after 5 minutes",
    ),
)
_INSTANCE = "--framework framework.json --role worker --index 0"
_MADE_BY = "--engine job --image registry.example.com/pairun:1"

EXAMPLES: Mapping[str, tuple[Example, ...]] = {
    "": (
        Example("pairun --dry-run job.yaml", "show what will run, and who set each value"),
        Example("pairun --dry-run --why image_check.retries job.yaml", "show who set one value"),
    ),
    "run": (
        Example("pairun run job.yaml", "run every instance of every role"),
        Example("pairun run --role worker --instances 1 job.yaml", "run one instance of one role"),
    ),
    "init": (
        Example("pairun init", "in a Pod's init container"),
        Example(f"pairun init --dry-run {_INSTANCE}", "probe with a saved Framework"),
    ),
    "runtime": (
        Example("pairun runtime", "as PID 1 of the user's container"),
        Example(
            "pairun runtime --dry-run", "probe in the user's container without changing anything"
        ),
    ),
    "manifest": (
        Example(f"pairun manifest {_MADE_BY} job.yaml", "print the objects"),
        Example(
            f"pairun manifest {_MADE_BY} job.yaml > objects.yaml",
            "write them to a file for kubectl apply",
        ),
    ),
    "inject": (
        Example(
            "pairun inject --image registry.example.com/pairun:1 pod.yaml",
            "print the manifest with pairun added",
        ),
        Example("pairun inject --remove injected.yaml", "remove pairun from the manifest"),
    ),
    "submit": (
        Example(f"pairun submit {_MADE_BY} job.yaml", "create the job's objects"),
        Example(
            f"pairun submit {_MADE_BY} --name job-2 job.yaml", "create them under another name"
        ),
    ),
    "status": (
        Example("pairun status job", "show the job's state"),
        Example("pairun status --json job", "print it for programs"),
    ),
    "logs": (
        Example("pairun logs job", "print the logs of all instances"),
        Example(
            "pairun logs --role worker --index 0 --tail 20 job",
            "print the last lines of one instance",
        ),
    ),
    "delete": (
        Example("pairun delete job", "stop the job and delete its objects"),
        Example("pairun delete --wait job-2", "return when its Pods have ended"),
    ),
    "doctor": (
        Example("pairun doctor", "check the cluster of the current kubeconfig"),
        Example("pairun doctor --timeout 20s --json", "check it for programs, within 20 s"),
    ),
    "barrier": _BARRIER,
    "progress": (
        Example("pairun progress --step 400", "in your command: after one or more steps"),
        Example(
            "pairun progress --epoch 2 --checkpoint /data/ckpt-2",
            "in your command: after a checkpoint",
        ),
    ),
    "barrier wait": _BARRIER,
    "new": (
        Example("pairun new job train", "create train.yaml"),
        Example("pairun new module check_disk", "create modules/check_disk.py and its test"),
    ),
    "lint": (
        Example("pairun lint job.yaml", "show all problems of a job file"),
        Example(
            "pairun lint --root cluster cluster job.yaml", "check a content root, and a job for it"
        ),
    ),
    "convert": (
        Example("pairun convert yarn.json", "print the job file"),
        Example("pairun convert yarn.json > converted.yaml", "write it to a file"),
    ),
    "diagnose": (
        Example("pairun diagnose train.log", "show the cause, and what to do"),
        Example("pairun diagnose logs/", "show which rank of a job failed first, and why"),
    ),
    "report": (
        Example("pairun report", "show the last run on this machine"),
        Example("pairun report --html report.html", "write it as a page with a timeline"),
    ),
    "doc": (
        Example("pairun doc git_clone", "show a module"),
        Example("pairun doc PR402", "show an error"),
    ),
    "schema": (
        Example("pairun schema job", "print the schema of job files"),
        Example("pairun schema playbook > playbook.schema.json", "write a schema for an editor"),
    ),
    "diff": (
        Example(
            "pairun diff built-in cluster job.yaml", "show what a content root changes for a job"
        ),
        Example("pairun diff built-in cluster job.yaml --json", "print the changes for a program"),
    ),
    "export": (
        Example("pairun export pod-failure-policy", "print the policy for a Kubernetes Job"),
        Example("pairun export jobset-failure-policy --root cluster", "add a cluster's rules"),
    ),
    "completion": (
        Example("source <(pairun completion bash)", "complete in this session"),
        Example("pairun completion fish > pairun.fish", "complete in later sessions"),
    ),
}
"""The examples by command. They use files that `pairun new job` and `pairun new root` write."""


def examples_of(prog: str) -> Sequence[Example]:
    """The examples of a command; none for internal commands.

    Args:
        prog: the program name of its parser, such as ``pairun run``.
    """
    return EXAMPLES.get(prog.removeprefix("pairun").strip(), ())
