"""Two or three examples of each command, for its help and for the reference."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Example(NamedTuple):
    """A command line, and its purpose in a few words."""

    command: str
    purpose: str


_TEXT = """
[]
pairun plan job.yaml # show what will run, and who set each value
pairun run job.yaml # run it on this machine
[plan]
pairun plan job.yaml # show what will run, and who set each value
pairun plan --why image_check.retries job.yaml # show who set one value
[run]
pairun run job.yaml # run every instance of every role
pairun run --role worker --instances 1 job.yaml # run one instance of one role
[init]
pairun init # in a Pod's init container
pairun init --dry-run --framework framework.json --role worker --index 0 # probe with a saved Framework
[runtime]
pairun runtime # as PID 1 of the user's container
pairun runtime --dry-run # probe in the user's container without changing anything
[manifest]
pairun manifest --engine job --image registry.example.com/pairun:1 job.yaml # print the objects
pairun manifest --engine job --image registry.example.com/pairun:1 job.yaml > objects.yaml # write them to a file for kubectl apply
pairun manifest --retry-rules --engine job --root cluster # print the retry rules for a Job of your own
[inject]
pairun inject --image registry.example.com/pairun:1 pod.yaml # print the manifest with pairun added
pairun inject --remove injected.yaml # remove pairun from the manifest
[submit]
pairun submit --engine job --image registry.example.com/pairun:1 job.yaml # create the job's objects
pairun submit --engine job --image registry.example.com/pairun:1 --name job-2 job.yaml # create them under another name
[status]
pairun status job # show the job's state
pairun status --json job # print it for programs
[logs]
pairun logs job # print the logs of all instances
pairun logs --role worker --index 0 --tail 20 job # print the last lines of one instance
[delete]
pairun delete job # stop the job and delete its objects
pairun delete --wait job-2 # return when its Pods have ended
[doctor]
pairun doctor # check the cluster of the current kubeconfig
pairun doctor --timeout 20s --json # check it for programs, within 20 s
[barrier]
pairun barrier wait data-ready # in your command: wait for all instances
pairun barrier wait --timeout 5m epoch-1 # exit 124 if an instance is missing after 5 minutes
[progress]
pairun progress --step 400 # in your command: after one or more steps
pairun progress --epoch 2 --checkpoint /data/ckpt-2 # in your command: after a checkpoint
[barrier wait]
pairun barrier wait data-ready # in your command: wait for all instances
pairun barrier wait --timeout 5m epoch-1 # exit 124 if an instance is missing after 5 minutes
[new]
pairun new job train # create train.yaml
pairun new module check_disk # create modules/check_disk.py and its test
[lint]
pairun lint job.yaml # show all problems of a job file
pairun lint --root cluster cluster job.yaml # check a content root, and a job for it
[convert]
pairun convert yarn.json # print the job file
pairun convert yarn.json > converted.yaml # write it to a file
[diagnose]
pairun diagnose train.log # show the cause, and what to do
pairun diagnose logs/ # show which rank of a job failed first, and why
[report]
pairun report # show the last run on this machine
pairun report --html report.html # write it as a page with a timeline
[doc]
pairun doc git_clone # show a module
pairun doc PR402 # show an error
[schema]
pairun schema job # print the schema of job files
pairun schema playbook > playbook.schema.json # write a schema for an editor
[diff]
pairun diff built-in cluster job.yaml # show what a content root changes for a job
pairun diff built-in cluster job.yaml --json # print the changes for a program
[completion]
source <(pairun completion bash) # complete in this session
pairun completion fish > pairun.fish # complete in later sessions
"""

EXAMPLES: Mapping[str, tuple[Example, ...]] = {
    name: tuple(Example(*line.split(" # ")) for line in lines.strip().splitlines())
    for name, lines in re.findall(r"\[(.*)\]\n([^[]*)", _TEXT)
}
"""The examples by command. They use files that `pairun new job` and `pairun new root` write."""


def examples_of(prog: str) -> Sequence[Example]:
    """The examples of a command; none for internal commands.

    Args:
        prog: the program name of its parser, such as ``pairun run``.
    """
    return EXAMPLES.get(prog.removeprefix("pairun").strip(), ())
