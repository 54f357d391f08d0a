"""Two or three examples of each command, for its help and for the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Example(NamedTuple):
    """A command line, and its purpose in a few words."""

    command: str
    purpose: str


_BARRIER = (
    Example("pairun barrier wait data-ready", "in the user's command, until all instances come"),
    Example(
        "pairun barrier wait --timeout 5m epoch-1", "exit 124 if one is missing after 5 minutes"
    ),
)
_INSTANCE = "--framework framework.json --role worker --index 0"
_MADE_BY = "--engine job --image registry.example.com/pairun:1"

EXAMPLES: Mapping[str, tuple[Example, ...]] = {
    "": (
        Example("pairun --dry-run job.yaml", "what will run, and who set each value"),
        Example("pairun --dry-run --why image_check.retries job.yaml", "who set one value"),
    ),
    "run": (
        Example("pairun run job.yaml", "every instance of every role"),
        Example("pairun run --role worker --instances 1 job.yaml", "one instance of one role"),
    ),
    "init": (
        Example("pairun init", "the command of a Pod's init container"),
        Example(f"pairun init --dry-run {_INSTANCE}", "probe with a saved Framework"),
    ),
    "runtime": (
        Example("pairun runtime", "PID 1 of the user's container"),
        Example("pairun runtime --dry-run", "probe in the user's container, change nothing"),
    ),
    "manifest": (
        Example(f"pairun manifest {_MADE_BY} job.yaml", "print the objects"),
        Example(f"pairun manifest {_MADE_BY} job.yaml > objects.yaml", "for kubectl apply"),
    ),
    "inject": (
        Example(
            "pairun inject --image registry.example.com/pairun:1 pod.yaml", "print it injected"
        ),
        Example("pairun inject --remove injected.yaml", "take pairun out again"),
    ),
    "submit": (
        Example(f"pairun submit {_MADE_BY} job.yaml", "make the job's objects"),
        Example(f"pairun submit {_MADE_BY} --name job-2 job.yaml", "under another name"),
    ),
    "status": (
        Example("pairun status job", "how far the job is"),
        Example("pairun status --json job", "the same for programs"),
    ),
    "logs": (
        Example("pairun logs job", "what all instances print"),
        Example("pairun logs --role worker --index 0 --tail 20 job", "one instance's last lines"),
    ),
    "delete": (
        Example("pairun delete job", "end the job, and remove what belongs to it"),
        Example("pairun delete --wait job-2", "return when its Pods have ended"),
    ),
    "doctor": (
        Example("pairun doctor", "the cluster of the current kubeconfig"),
        Example("pairun doctor --timeout 20s --json", "for programs, within 20 s"),
    ),
    "barrier": _BARRIER,
    "progress": (
        Example("pairun progress --step 400", "in the user's command, after a step or many"),
        Example("pairun progress --epoch 2 --checkpoint /data/ckpt-2", "after a checkpoint"),
    ),
    "barrier wait": _BARRIER,
    "new": (
        Example("pairun new job train", "writes train.yaml"),
        Example("pairun new module check_disk", "writes modules/check_disk.py and its test"),
    ),
    "lint": (
        Example("pairun lint job.yaml", "all problems of a job file"),
        Example("pairun lint --root cluster cluster job.yaml", "a content root, and a job for it"),
    ),
    "convert": (
        Example("pairun convert yarn.json", "print the job file"),
        Example("pairun convert yarn.json > converted.yaml", "write it"),
    ),
    "diagnose": (
        Example("pairun diagnose train.log", "the cause, and what to do"),
        Example("pairun diagnose logs/", "which rank of a job failed first, and why"),
        Example(
            "pairun diagnose --learn logs/ --out rules.yaml", "draft rules from many jobs' logs"
        ),
    ),
    "report": (
        Example("pairun report", "the last run on this machine"),
        Example("pairun report --html report.html", "the same as a page with a timeline"),
    ),
    "doc": (
        Example("pairun doc git_clone", "a module"),
        Example("pairun doc PR402", "an error"),
    ),
    "schema": (
        Example("pairun schema job", "print the schema of job files"),
        Example("pairun schema playbook > playbook.schema.json", "for an editor"),
    ),
    "diff": (
        Example("pairun diff built-in cluster job.yaml", "what a content root changes for a job"),
        Example("pairun diff --against-openpai job.yaml", "what differs from OpenPAI's runtime"),
    ),
    "export": (
        Example("pairun export pod-failure-policy", "for a Job of Kubernetes"),
        Example("pairun export jobset-failure-policy --root cluster", "with a cluster's rules"),
    ),
    "completion": (
        Example("source <(pairun completion bash)", "for this session"),
        Example("pairun completion fish > pairun.fish", "for later sessions"),
    ),
}
"""The examples by command. They use files that `pairun new job` and `pairun new root` write."""


def examples_of(prog: str) -> Sequence[Example]:
    """The examples of a command; none for internal commands.

    Args:
        prog: the program name of its parser, such as ``pairun run``.
    """
    return EXAMPLES.get(prog.removeprefix("pairun").strip(), ())
