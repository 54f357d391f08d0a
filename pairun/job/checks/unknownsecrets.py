"""Finds commands that need a secret whose value only the cluster has."""

from __future__ import annotations

from collections.abc import Iterator

from pairun.errors import Problem
from pairun.job.model import Job
from pairun.job.templates import TAG, command_nodes, tag_key, tag_place


def unknown_secrets(job: Job) -> Iterator[Problem]:
    """An error for each secret's tag in a command, if the job's secrets are unknown.

    Such a tag would stay in the script, where bash reads `<% $secrets.token %>` as a redirection.
    """
    if not job.secrets_unknown:
        return
    for role in job.roles:
        for node in command_nodes(job, role):
            for tag in TAG.finditer(node.value):
                if (tag_key(tag) or "").startswith("$secrets."):
                    message = f"the command of {role.name} needs {tag[0]}, whose value is unknown"
                    hint = "run the original job file, which has the values"
                    yield Problem("PR510", message, tag_place(node, tag[0]), hint)
