"""The ConfigMap with the job for its init containers, for engines without a Framework."""

from __future__ import annotations

import json

from pairun.engines.manifest.choices import Object, Options
from pairun.engines.manifest.objectnames import ENGINE, metadata
from pairun.errors import Problems
from pairun.job.model import Job
from pairun.kube.ports import PORT_ANNOTATION
from pairun.openpai.framework import make_framework

FOLDER = "/usr/local/pai-job"
"""Where it is mounted: not on the shared volume, where the user's container may write."""
FILE = "framework.json"
MAX_BYTES = 1024 * 1024
"""The API server's limit for the data of one ConfigMap or Secret, in bytes."""


def config_map_name(options: Options) -> str:
    """The ConfigMap's name."""
    return f"{options.name}-job"


def config_map(job: Job, options: Options, problems: Problems) -> Object:
    """Store the job as a Framework object without status.

    Args:
        job: the job, without secrets in its text.
        options: the options for its objects.
        problems: collects errors.
    """
    framework = make_framework(job, framework_name=options.name)
    framework["metadata"].pop("namespace")
    for role in framework["spec"]["taskRoles"]:
        # Init reads only the ports of a Pod; the rest would be a duplicate.
        annotations = role["task"]["pod"]["metadata"]["annotations"]
        ports = {PORT_ANNOTATION: annotations[PORT_ANNOTATION]}
        role["task"]["pod"] = {"metadata": {"annotations": ports}}
    text = json.dumps(framework, indent=1, ensure_ascii=False) + "\n"
    if (size := len(text.encode())) > MAX_BYTES:
        problems.error(
            "PR783",
            f"the job is too large for a ConfigMap: {size >> 10} KiB, at most {MAX_BYTES >> 10}",
            hint="download long content, such as scripts, at run time",
        )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            **metadata(options, config_map_name(options)),
            "annotations": {ENGINE: options.engine},
        },
        "data": {FILE: text},
    }
