"""The rights of an account, verb by verb, as the API server decides them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pairun.engines.doctor.finding import Finding, Level, of_error
from pairun.engines.kubernetes.apierrors import ClusterRefusal
from pairun.engines.kubernetes.cluster import Cluster
from pairun.errors import PairunError

_REVIEWS = "/apis/authorization.k8s.io/v1"
FRAMEWORKS = "frameworkcontroller.microsoft.com"


class Need(NamedTuple):
    """What an account must be allowed to do.

    Attributes:
        group: the API group; empty for the core group.
        resource: the plural; a subresource follows a slash.
        verbs: the verbs, as in a Role.
        level: the level of a finding if one is missing.
        use: what needs the right.
    """

    group: str
    resource: str
    verbs: Sequence[str]
    level: Level
    use: str


INIT = (
    Need(
        "", "pods", ("get", "list", "watch"), "failure", "the barrier, and how Pods find each other"
    ),
    Need(FRAMEWORKS, "frameworks", ("get",), "failure", "the init phase of a Framework's Pods"),
)
"""What the init container's account needs; rights on Frameworks only if the kind exists."""

_MADE = ("create", "delete", "get", "list")
PERSON = (
    Need("", "pods", ("get", "list", "watch"), "failure", "pairun status"),
    Need("", "pods/log", ("get",), "failure", "pairun logs"),
    Need("", "secrets", ("create", "delete", "list", "patch"), "failure", "pairun submit"),
    Need("", "configmaps", ("create", "delete", "list", "patch"), "failure", "pairun submit"),
    Need("", "pods", _MADE, "warning", "--engine pod"),
    Need("batch", "jobs", _MADE, "warning", "--engine job"),
    Need(FRAMEWORKS, "frameworks", _MADE, "warning", "--engine framework"),
    Need("jobset.x-k8s.io", "jobsets", _MADE, "warning", "--engine jobset"),
)
"""What a person needs to submit jobs; rights on operators' kinds only if the kinds exist."""

_INSTALLED = {FRAMEWORKS: "v1", "jobset.x-k8s.io": "v1alpha2"}
"""API groups that some clusters lack, and their versions."""


def of_person(cluster: Cluster) -> Iterator[Finding]:
    """Check the rights of this login."""
    yield from _findings(cluster, PERSON, None, "you", "ask the cluster's administrator for a Role")


def of_account(cluster: Cluster, account: str, *, is_own: bool) -> Iterator[Finding]:
    """Check the rights of the init container's account.

    Args:
        cluster: the namespace.
        account: the account's name.
        is_own: whether this login is that account.
    """
    user = None if is_own else f"system:serviceaccount:{cluster.namespace}:{account}"
    do = "apply deploy/base, deploy/frameworks or deploy/openpai with this account's name"
    yield from _findings(cluster, INIT, user, account, do)


def has_group(cluster: Cluster, group: str) -> bool:
    """Whether the cluster has the kinds of a group."""
    try:
        cluster.get(f"/apis/{group}/{_INSTALLED[group]}")
    except ClusterRefusal as e:
        if e.status in (403, 404):
            return False
        raise
    return True


def _findings(
    cluster: Cluster, needs: Sequence[Need], user: str | None, who: str, do: str
) -> Iterator[Finding]:
    for need in needs:
        subject = f"rights of {who}: {need.resource}, for {need.use}"
        try:
            if need.group in _INSTALLED and not has_group(cluster, need.group):
                continue
            missing = [v for v in need.verbs if not _may(cluster, need, v, user)]
        except PairunError as e:
            yield of_error(subject, "failure", e, "run `pairun doctor` in a Pod of this account")
            return
        if missing:
            message = f"may not {', '.join(missing)} in namespace {cluster.namespace}"
            yield Finding(subject, need.level, message, do)
        else:
            yield Finding(subject, "ok", f"may {', '.join(need.verbs)}")


def _may(cluster: Cluster, need: Need, verb: str, user: str | None) -> bool:
    """Ask about one right; Kubernetes stores nothing (API reference, ``SubjectAccessReview``)."""
    resource, _, part = need.resource.partition("/")
    attributes = {
        "namespace": cluster.namespace, "verb": verb, "group": need.group, "resource": resource,
        "subresource": part,
    }  # fmt: skip
    spec: dict[str, Any] = {"resourceAttributes": attributes}
    kind = "SelfSubjectAccessReview"
    if user is not None:
        kind = "SubjectAccessReview"
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{cluster.namespace}",
                  "system:authenticated"]  # fmt: skip
        spec |= {"user": user, "groups": groups}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    answer = cluster.create(f"{_REVIEWS}/{kind.lower()}s", body)
    return bool((answer.get("status") or {}).get("allowed"))
