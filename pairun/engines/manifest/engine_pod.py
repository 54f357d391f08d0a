"""The engine ``pod``: bare Pods, one per task, which Kubernetes does not restart."""

from __future__ import annotations

from pairun.engines.manifest.choices import Object, Options
from pairun.engines.manifest.objectnames import LABEL_MAX, labels, metadata, short
from pairun.engines.manifest.rolepod import pod_template
from pairun.errors import Problems
from pairun.job.model import Job


def pod_workload(job: Job, options: Options, problems: Problems) -> list[Object]:
    """Make the Pods of a job."""
    if job.retry_count:
        retries = job.node.get("jobRetryCount")
        problems.warning(
            "PR784",
            "no controller restarts bare Pods: jobRetryCount has no effect",
            retries.place if retries else None,
            "--engine job or jobset does",
        )
    if sum(role.instances for role in job.roles) > 1:
        problems.warning(
            "PR784",
            "no controller ends bare Pods when another one has ended: completion has no effect",
            hint="--engine jobset ends them; `pairun delete` does when you say so",
        )
    made: list[Object] = []
    for role in job.roles:
        for index in range(role.instances):
            template = pod_template(job, role, options, index=index)
            end = f"-{index}"
            name = short(f"{options.name}-{role.fc_name}", LABEL_MAX - len(end)) + end
            meta = metadata(options, name)
            meta["labels"] = {**labels(options), **template["metadata"]["labels"]}
            meta["annotations"] = template["metadata"]["annotations"]
            made.append(
                {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}
            )
    return made
