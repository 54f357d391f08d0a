"""The lowest Kubernetes version that a job's objects need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pairun.engines.manifest.choices import ManifestOptions, Version
from pairun.errors import Problems
from pairun.job.model import Job
from pairun.kube.owners import Object


class Feature(NamedTuple):
    """A Kubernetes feature that older versions lack.

    Attributes:
        name: its name in the Kubernetes documentation.
        since: the first version that enables it by default.
        gated_since: the first version that has all of it behind a feature gate; None for none.
    """

    name: str
    since: Version
    gated_since: Version | None = None

    def __str__(self) -> str:
        return f"{self.since[0]}.{self.since[1]} or later"


BASE = Feature("the authority of the API server in every namespace (kube-root-ca.crt)", (1, 20))
_JOBSET = Feature("JobSet with failurePolicy rules", (1, 27))
POD_FAILURE_POLICY = Feature("a Job's podFailurePolicy", (1, 26))
IMAGE_VOLUME = Feature("volumes with an image (ImageVolume)", (1, 35), (1, 33))
"""Alpha in 1.31, beta with subPath in 1.33, enabled by default in 1.35:
https://kubernetes.io/docs/tasks/configure-pod-container/image-volumes/."""

_OF_A_JOB = {
    "suspend": Feature("a Job that starts suspended", (1, 22)),
    "ttlSecondsAfterFinished": Feature("a Job's ttlSecondsAfterFinished", (1, 21)),
    "completionMode": Feature("a Job with completionMode Indexed", (1, 22)),
    "podFailurePolicy": POD_FAILURE_POLICY,
    "backoffLimitPerIndex": Feature("a Job's backoffLimitPerIndex", (1, 29)),
    "successPolicy": Feature("a Job's successPolicy", (1, 31)),
}
"""The feature that each field of a Job's spec needs. From the Kubernetes feature gates:
https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/."""

_OF_A_SPREAD = {
    field: Feature(f"{field} in topologySpreadConstraints", since)
    for field, since in (
        ("nodeAffinityPolicy", (1, 26)),
        ("nodeTaintsPolicy", (1, 26)),
        ("minDomains", (1, 27)),
        ("matchLabelKeys", (1, 27)),
    )
}
"""The same for the fields of a constraint in a Pod's spec."""


def features_in(objects: Sequence[Object]) -> list[Feature]:
    """The features that objects need, the newest last."""
    features = {BASE}
    for each in objects:
        if each["kind"] == "JobSet":
            features.add(_JOBSET)
        for spec in _job_specs(each):
            features |= {f for field, f in _OF_A_JOB.items() if field in spec}
        for pod in _pod_specs(each):
            if any("image" in volume for volume in pod.get("volumes", ())):
                features.add(IMAGE_VOLUME)
            for spread in pod.get("topologySpreadConstraints", ()):
                features |= {f for field, f in _OF_A_SPREAD.items() if field in spread}
    return sorted(features, key=lambda f: f.since)


def lowest(objects: Sequence[Object]) -> Feature:
    """The newest feature that objects need; its version is the lowest that works."""
    return features_in(objects)[-1]


def _job_specs(each: Object) -> Iterator[dict[str, Any]]:
    if each["kind"] == "Job":
        yield each["spec"]
    elif each["kind"] == "JobSet":
        for replicated in each["spec"]["replicatedJobs"]:
            yield replicated["template"]["spec"]


def _pod_specs(each: Object) -> Iterator[dict[str, Any]]:
    if each["kind"] == "Pod":
        yield each["spec"]
    elif each["kind"] == "Framework":
        yield from (role["task"]["pod"]["spec"] for role in each["spec"]["taskRoles"])
    yield from (spec["template"]["spec"] for spec in _job_specs(each))


def check_version(
    job: Job, workload: Sequence[Object], options: ManifestOptions, problems: Problems
) -> None:
    """Report features that the cluster's Kubernetes version lacks."""
    if options.version is None:
        return
    role = job.roles[0].node
    for feature in features_in(workload):
        if options.version < feature.since:
            has, hint = "does not have", f"it needs {feature}"
            if feature.gated_since and options.version >= feature.gated_since:
                has = "has only behind a feature gate:"
                hint = f"if the gate is on, give --kubernetes-version {'.'.join(map(str, feature.since))}"
            version = ".".join(map(str, options.version))
            message = f"Kubernetes {version} {has} {feature.name}"
            problems.error("PR781", message, role.key or role.place, hint)
