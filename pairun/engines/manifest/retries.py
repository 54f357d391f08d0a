"""When a Job retries and completes: the job file's limits as fields of a Job, and each engine's retry rules.

The codes of init are those of docs/exit-codes.md.
The terms are Kubernetes': https://kubernetes.io/docs/concepts/workloads/controllers/job/.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pairun.diagnose.classes import CLASSES, EXIT_CODES
from pairun.diagnose.signals import CERTAIN
from pairun.diagnose.table import WEIGHTS
from pairun.diagnose.weighing import ADVISED
from pairun.engines.manifest.choices import ManifestOptions
from pairun.engines.manifest.versions import POD_FAILURE_POLICY
from pairun.errors import PairunError, Place, Problem, Problems
from pairun.job.goregex import from_go
from pairun.job.model import Job, Role
from pairun.kube.owners import Object
from pairun.playbook.rules import Rules

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
    rules = _by_container(action, {"init": _OF_INIT["for good"], "app": give_up})
    if alone and restarts_alone(job, role):
        passing = {"init": _OF_INIT["passing"], "app": uncounted}
        return [DISRUPTED, *rules, *_by_container("Ignore", passing)]
    return rules


def has_failure_policy(options: ManifestOptions) -> bool:
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


# --- the table of exit codes, for `pairun manifest --retry-rules`, too -------------------------------

PERMANENT = frozenset(
    {127, 132, 135, 136, 141, 220, 221, 222, 224, 225, 226, *range(228, 236), 249}
)
"""Exit codes of the user's container that a retry does not change.

OpenPAI's table calls them permanent; it has 220 for a command that the shell did not find, which is
127 without an exit spec. 130 and 143 are not here: a signal does not tell who sent it.
"""
TRANSIENT = frozenset({223})
"""Exit codes that may be retried without counting: a memory error of the GPU.

137 and 143 are not here: uncounted retries are unlimited, and a command that is killed for its
memory would begin again forever. An eviction or preemption has a Pod condition instead.
"""


def codes(own: Mapping[str, int]) -> tuple[list[int], list[int]]:
    """Exit codes that must not be retried, and those to retry without counting.

    This table decides for `pairun manifest`. The platform counts every other code like any failure.

    Args:
        own: the cluster's exit codes for classes of failure; they outrank OpenPAI's.
    """
    classes: dict[int, set[str]] = {}
    for klass, code in own.items():
        classes.setdefault(code, set()).add(klass)
    give_up, uncounted = set(PERMANENT - classes.keys()), set(TRANSIENT - classes.keys())
    for code, those in classes.items():
        # The shell's meaning of a code stays beside the cluster's.
        shells, weight = EXIT_CODES.get(code, ("", 0))
        kinds = [CLASSES[k] for k in (those | {shells} if weight >= ADVISED else those)]
        if all(k.retry in ("after_fix", "never") for k in kinds):
            give_up.add(code)
        elif all(k.fault in ("platform", "hardware") for k in kinds):
            uncounted.add(code)
    return sorted(give_up), sorted(uncounted)


DISRUPTED: Object = {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}
"""The rule of a podFailurePolicy for an eviction or a preemption."""


def _by_container(action: str, codes: Mapping[str, list[int]]) -> list[Object]:
    """One rule per container; one without codes has none."""
    return [
        {"action": action, "onExitCodes": {"containerName": n, "operator": "In", "values": values}}
        for n, values in codes.items()
        if values
    ]


def pod_failure_policy(rules: Rules, container: str) -> Object:
    """A Job's policy (Kubernetes, "Handling retriable and non-retriable pod failures").

    Args:
        rules: the rules of all content roots.
        container: the container whose exit codes count; those of pairun-init mean something else.
    """
    give_up, uncounted = codes(rules.exit_codes)
    fatal = _by_container("FailJob", {container: give_up})
    passing = _by_container("Ignore", {container: uncounted})
    return {"podFailurePolicy": {"rules": [DISRUPTED, *fatal, *passing]}}


def jobset_failure_policy(rules: Rules, container: str) -> Object:
    """A JobSet's policy (JobSet, "Failure policy"), and the Pod failure policy of its Jobs."""
    return {
        "failurePolicy": {
            "maxRestarts": 3,
            "rules": [
                {
                    "name": "giveUp",
                    "action": "FailJobSet",
                    "onJobFailureReasons": ["PodFailurePolicy", "DeadlineExceeded"],
                }
            ],
        },
        **pod_failure_policy(rules, container),
    }


def exit_spec(rules: Rules, _container: str) -> list[Object]:
    """OpenPAI's exit spec for the classes that have an exit code.

    The first match wins, so the more certain classes come first. The spec omits rules about
    neighbouring lines, and patterns that Go does not support.
    """
    entries: dict[str, tuple[int, list[Object]]] = {}
    for sample in rules.samples.values():
        klass = sample.data["class"]
        weight = sample.data.get("weight", WEIGHTS[sample.data["role"]])
        # An exit spec cannot express conditions on neighbouring lines.
        if (
            klass not in rules.exit_codes
            or weight < CERTAIN
            or {"near", "unless"} & set(sample.data)
        ):
            continue
        regexes = [p["regex"] for p in sample.data["patterns"] if _is_go_regex(p["regex"])]
        before, patterns = entries.get(klass, (0, []))
        patterns += [{"userLogRegex": each} for each in regexes]
        entries[klass] = (max(before, weight), patterns)
    if not entries:
        raise PairunError(
            Problem(
                "PR795",
                "no class of failure has an exit code, so there is nothing to export; "
                "define `exit_codes` in a file of a content root's folder diagnosis",
            )
        )
    ordered = sorted(entries.items(), key=lambda e: -e[1][0])
    return [_entry(klass, rules.exit_codes[klass], p) for klass, (_, p) in ordered]


def _entry(klass: str, code: int, patterns: list[Object]) -> Object:
    kind = CLASSES[klass]
    is_transient = kind.retry in ("retry", "retry_elsewhere")
    return {
        "containerExitCode": code,
        "issuer": "USER_CONTAINER" if kind.fault == "user" else "PLATFORM",
        "causer": kind.fault.upper(),
        "type": "TRANSIENT_FAILURE" if is_transient else "PERMANENT_FAILURE",
        "reason": kind.meaning,
        "solution": [kind.advice],
        "patterns": patterns,
    }


def _is_go_regex(regex: str) -> bool:
    try:
        from_go(regex)
    except ValueError:
        return False
    return not re.search(r"\(\?[!=<](?!P)", regex)


POLICY_NOTE = """\
# The exit codes of one container, from the table that `pairun manifest JOB` uses. For a job, that
# adds the codes of the init container. Where an instance cannot restart alone, it omits uncounted retries.
"""
"""What a policy says about its differences from a manifest's."""

WRITERS: Mapping[str, Callable[[Rules, str], Any]] = {
    "job": pod_failure_policy,
    "jobset": jobset_failure_policy,
    "framework": exit_spec,
}
"""What makes the rules of an engine, for the exit codes of a container."""
