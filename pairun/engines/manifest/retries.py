"""When a Job retries and completes: the job file's limits as fields of a Job.

The codes of init are those of docs/exit-codes.md; `pairun.report.exitcodes` has those of the user's
container, for `pairun manifest --retry-rules`, too.
The terms are Kubernetes': https://kubernetes.io/docs/concepts/workloads/controllers/job/.
"""

from __future__ import annotations

from collections.abc import Mapping

from pairun.engines.manifest.choices import Object, Options
from pairun.engines.manifest.versions import POD_FAILURE_POLICY
from pairun.errors import Place, Problems
from pairun.job.model import Job, Role
from pairun.report.exitcodes import DISRUPTED, codes, on_exit

_OF_INIT = {
    # no such image, a barrier that cannot pass
    "for good": [252, 254],
    # barrier failures, a port in use: the next Pod gets other ports
    "passing": [250, 253],
}


def place_of(role: Role) -> Place:
    """Where the job file sets a role's completion, or else the role."""
    completion = role.node.get("completion")
    return (completion.key if completion else None) or role.node.key or role.node.place


def restarts_alone(job: Job, role: Role) -> bool:
    """Whether an instance may restart while the other instances of its role run."""
    return role.instances == 1 or not job.gang


def counted(job: Job, role: Role) -> Object:
    """How many instances run, and how many may fail or must succeed.

    Returns:
        The fields of the Job; ``backoffLimit`` is right for a gang, which is not retried.
    """
    fields: Object = {"parallelism": role.instances, "completions": role.instances}
    many = role.instances > 1
    retries = 0 if job.gang else role.retry_count or 0
    if many and (role.min_failed != 1 or retries):
        fields["backoffLimitPerIndex"] = max(retries, 0)
        # -1, or more than there are instances, means never
        if 0 < role.min_failed <= role.instances:
            fields["maxFailedIndexes"] = role.min_failed - 1
    else:
        fields["backoffLimit"] = 0
    if 0 < role.min_succeeded < role.instances:
        fields["successPolicy"] = {"rules": [{"succeededCount": role.min_succeeded}]}
    return fields


def never_fails(role: Role) -> bool:
    """Whether the job continues however many instances of a role fail."""
    return not 0 < role.min_failed <= role.instances


def failure_rules(
    job: Job, role: Role, spec: Object, own: Mapping[str, int], *, alone: bool
) -> list[Object]:
    """The rules of a podFailurePolicy, first match first.

    A signal from outside (137, 143) counts as a failure. An eviction or preemption has a Pod
    condition instead; without the count, a Pod killed for its memory would restart forever.

    Args:
        spec: the Job's spec from `counted`.
        own: the cluster's exit codes for classes of failure; they outrank OpenPAI's.
        alone: whether a Pod may restart alone; then a temporary failure restarts it uncounted.
    """
    # If some instances may fail, a permanent failure counts as one of them.
    action = "FailIndex" if "backoffLimitPerIndex" in spec else "FailJob"
    give_up, uncounted = codes(own)
    rules = _by_container(action, _OF_INIT["for good"], give_up)
    if alone and restarts_alone(job, role):
        return [DISRUPTED, *rules, *_by_container("Ignore", _OF_INIT["passing"], uncounted)]
    return rules


def _by_container(action: str, of_init: list[int], of_app: list[int]) -> list[Object]:
    """One rule per container; one without codes has none."""
    table = {"init": of_init, "app": of_app}
    return [on_exit(action, name, values) for name, values in table.items() if values]


def has_failure_policy(options: Options) -> bool:
    """Whether the cluster's version supports exit codes in Jobs."""
    return options.version is None or options.version >= POD_FAILURE_POLICY.since


def warn_of_exit_codes(problems: Problems) -> None:
    """Warn of what a cluster without podFailurePolicy does not do."""
    problems.warning(
        "PR784",
        f"{POD_FAILURE_POLICY.name} is omitted: every failure counts as a retry, whatever its "
        "exit code",
        hint=f"it needs Kubernetes {POD_FAILURE_POLICY}",
    )
