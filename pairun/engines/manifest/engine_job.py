"""The engine ``job``: one role as a Kubernetes Job."""

from __future__ import annotations

from pairun.engines.manifest.choices import Object, Options
from pairun.engines.manifest.objectnames import metadata
from pairun.engines.manifest.podvalues import job_fields, workload_fields
from pairun.engines.manifest.retries import (
    counted,
    failure_rules,
    has_failure_policy,
    never_fails,
    place_of,
    restarts_alone,
    warn_of_exit_codes,
)
from pairun.engines.manifest.rolepod import pod_template
from pairun.errors import Problems
from pairun.job.model import Job, Role


def job_workload(job: Job, options: Options, problems: Problems) -> list[Object]:
    """Make the Job of a job's only role."""
    for other in job.roles[1:]:
        problems.error(
            "PR780",
            f"a Job of Kubernetes has one role, and '{other.name}' is a second one",
            other.node.key,
            "use --engine jobset for several roles",
        )
    role = job.roles[0]
    alone = role.instances == 1
    _warn(job, role, problems)
    spec: Object = {**counted(job, role), **workload_fields(options), **job_fields(role, options)}
    if not alone:
        spec["completionMode"] = "Indexed"
    if "backoffLimit" in spec and restarts_alone(job, role):
        retries = 0 if job.gang else max(role.retry_count or 0, 0)
        # all attempts except the first
        spec["backoffLimit"] = (retries + 1) * (job.retry_count + 1) - 1
    if has_failure_policy(options):
        spec["podFailurePolicy"] = {
            "rules": failure_rules(job, role, spec, options.exit_codes, alone=True)
        }
    else:
        warn_of_exit_codes(problems)
    spec["template"] = pod_template(job, role, options, index=0 if alone else None)
    return [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata(options, options.name),
            "spec": spec,
        }
    ]


def _warn(job: Job, role: Role, problems: Problems) -> None:
    """Warn of differences to FrameworkController."""
    if job.retry_count and (not restarts_alone(job, role) or role.instances > 1):
        retries = job.node.get("jobRetryCount")
        problems.warning(
            "PR784",
            "a Job of Kubernetes cannot restart all instances: jobRetryCount has no effect",
            retries.place if retries else None,
            "--engine jobset does",
        )
    if never_fails(role):
        problems.warning(
            "PR784",
            "a Job of Kubernetes whose instances have all ended, some with a failure, is failed; "
            "FrameworkController counts it as a success",
            place_of(role),
        )
