"""The engine ``jobset``: every role as a Job of one JobSet.

The fields are those of JobSet's API, version v1alpha2 (https://jobset.sigs.k8s.io/docs/reference/).
"""

from __future__ import annotations

from pairun.engines.manifest.choices import Object, Options
from pairun.engines.manifest.objectnames import LABEL_MAX, metadata, short
from pairun.engines.manifest.podvalues import job_fields, workload_fields
from pairun.engines.manifest.retries import (
    counted,
    failure_rules,
    has_failure_policy,
    never_fails,
    place_of,
)
from pairun.engines.manifest.rolepod import pod_template
from pairun.errors import Problems
from pairun.job.model import Job, Role

API_VERSION = "jobset.x-k8s.io/v1alpha2"
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
"""The Pod label that counts the restarts of the JobSet."""


def jobset_workload(job: Job, options: Options, problems: Problems) -> list[Object]:
    """Make the JobSet of a job. A retry creates all its Pods again."""
    names = {role.name: _name(role, options) for role in job.roles}
    for role in job.roles:
        if never_fails(role):
            problems.error(
                "PR780",
                f"a JobSet fails when instances of '{role.name}' fail: it cannot ignore "
                "all of their failures",
                place_of(role),
                f"set minFailedInstances to a number from 1 to {role.instances}",
            )
    failure: Object = {"maxRestarts": job.retry_count}
    if job.retry_count and has_failure_policy(options):
        failure["rules"] = [
            {
                "name": "failed_for_good",
                "action": "FailJobSet",
                "onJobFailureReasons": ["PodFailurePolicy"],
            }
        ]
    spec: Object = {"failurePolicy": failure, **workload_fields(options)}
    # The first role that completes ends the job; a role with -1 waits for the others.
    ending = [names[r.name] for r in job.roles if 0 < r.min_succeeded <= r.instances]
    if ending and len(job.roles) > 1:
        spec["successPolicy"] = {"operator": "Any", "targetReplicatedJobs": ending}
    spec["replicatedJobs"] = [_replicated(job, r, names[r.name], options) for r in job.roles]
    return [
        {
            "apiVersion": API_VERSION,
            "kind": "JobSet",
            "metadata": metadata(options, options.name),
            "spec": spec,
        }
    ]


def _name(role: Role, options: Options) -> str:
    """A role's name in the JobSet, short enough for the names of its Pods."""
    after = f"--0-{role.instances - 1}-abcde"
    return short(role.fc_name, LABEL_MAX - len(options.name) - len(after))


def _replicated(job: Job, role: Role, name: str, options: Options) -> Object:
    spec = {**counted(job, role), **job_fields(role, options), "completionMode": "Indexed"}
    if has_failure_policy(options):
        spec["podFailurePolicy"] = {
            "rules": failure_rules(job, role, spec, options.exit_codes, alone=False)
        }
    path = f"metadata.labels['{ATTEMPT}']"
    attempt = {"valueFrom": {"fieldRef": {"fieldPath": path}}}
    spec["template"] = pod_template(job, role, options, attempt=attempt)
    return {"name": name, "replicas": 1, "template": {"spec": spec}}
