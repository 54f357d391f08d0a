"""The engine ``framework``: a Framework object, for FrameworkController."""

from __future__ import annotations

from pairun.engines.manifest.choices import Object, Options
from pairun.engines.manifest.objectnames import labels, metadata
from pairun.engines.manifest.rolepod import pod_template
from pairun.errors import Problems
from pairun.job.model import Job
from pairun.openpai.framework import make_framework

MAX_ANNOTATIONS = 256 * 1024
"""The API server's limit for annotations, keys and values together, in bytes."""


def framework_workload(job: Job, options: Options, problems: Problems) -> list[Object]:
    """Make the Framework of a job as OpenPAI's REST server does, with this engine's Pods.

    FrameworkController itself decides by the exit code whether to retry
    (``fancyRetryPolicy``).
    """
    framework = make_framework(job, framework_name=options.name)
    meta = framework["metadata"]
    meta |= {**metadata(options, options.name), "labels": {**meta["labels"], **labels(options)}}
    if options.namespace is None:
        meta.pop("namespace", None)
    size = sum(len(k.encode()) + len(v.encode()) for k, v in meta["annotations"].items())
    if size > MAX_ANNOTATIONS:
        problems.error(
            "PR783",
            f"the job is too large for an annotation: {size >> 10} KiB, at most "
            f"{MAX_ANNOTATIONS >> 10}",
            hint="download long content, such as scripts, at run time",
        )
    if options.whole.get("suspend"):
        framework["spec"]["executionType"] = "Create"
    for role, made in zip(job.roles, framework["spec"]["taskRoles"], strict=True):
        made["task"]["pod"] = pod_template(job, role, options)
    return [framework]
