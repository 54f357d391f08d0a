"""A Pod of another controller into which `pairun inject` put the init container."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pairun.errors import PairunError, Place, Problem, Source
from pairun.inject.podspec import COMMAND, STYLES
from pairun.job.model import Job
from pairun.kube.gang import GangPods, read_gang
from pairun.kube.ports import PORT_ANNOTATION
from pairun.openpai.framework import make_framework
from pairun.playbook.document.reading import Node, node_of

GANG_FILE = "gang.json"
"""In ``runtime.d``: the gang as a Framework without status, for the barrier."""


def command_layer(env: Mapping[str, str]) -> Node | None:
    """The changes of the runtime playbook for the container's own command; None without one.

    Args:
        env: of the init container.

    Raises:
        PairunError: the variable is no list of words.
    """
    text = env.get(COMMAND)
    if not text:
        return None
    try:
        argv = json.loads(text)
    except ValueError:
        argv = None
    if not isinstance(argv, list) or not argv or not all(isinstance(a, str) for a in argv):
        raise PairunError(Problem("PR704", f"{COMMAND} is not a JSON list of words"))
    place = Place(Source("the container's command", "engine", ""), 0, 0)
    operations: list[dict[str, Any]] = [
        {"patch": "user_command", "args": {"script": None, "argv": argv}}
    ]
    if styles := env.get(STYLES):
        operations.append(
            {
                "before": "user_command",
                "id": "gang_environment",
                "name": "The gang's variables are exported",
                "gang_environment": {"styles": styles.split(",")},
            }
        )
    return node_of({"runtime": operations}, place)


def gang_in(env: Mapping[str, str]) -> tuple[GangPods, str, int] | None:
    """The gang that this Pod belongs to, its role and its number; None where it has none.

    Raises:
        PairunError: its description is not usable.
    """
    try:
        return read_gang(env)
    except ValueError as e:
        hint = "inject the manifest again with this version"
        raise PairunError(Problem("PR704", str(e), hint=hint)) from e


def gang_framework(job: Job, env: Mapping[str, str]) -> dict[str, Any]:
    """A gang as a Framework without status, which the barrier reads.

    Args:
        job: the job that was made of the gang.
        env: of the init container; ``FC_FRAMEWORK_NAME`` names the object.
    """
    framework = make_framework(job, framework_name=env.get("FC_FRAMEWORK_NAME") or job.name)
    for role in framework["spec"]["taskRoles"]:
        annotations = role["task"]["pod"]["metadata"]["annotations"]
        ports = {PORT_ANNOTATION: annotations[PORT_ANNOTATION]}
        role["task"]["pod"] = {"metadata": {"annotations": ports}}
    return framework
