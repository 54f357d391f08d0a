"""The gang of a Pod into which `pairun inject` added the init container, for the barrier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pairun.job.model import Job
from pairun.kube.ports import PORT_ANNOTATION
from pairun.openpai.framework import make_framework


def gang_framework(job: Job, env: Mapping[str, str]) -> dict[str, Any]:
    """A gang as a Framework without status, for the barrier.

    Args:
        job: the job made from the gang.
        env: of the init container; ``FC_FRAMEWORK_NAME`` names the object.
    """
    framework = make_framework(job, framework_name=env.get("FC_FRAMEWORK_NAME") or job.name)
    for role in framework["spec"]["taskRoles"]:
        annotations = role["task"]["pod"]["metadata"]["annotations"]
        ports = {PORT_ANNOTATION: annotations[PORT_ANNOTATION]}
        role["task"]["pod"] = {"metadata": {"annotations": ports}}
    return framework
