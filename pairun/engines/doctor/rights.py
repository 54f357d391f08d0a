"""The rights that pairun needs: one table for ``pairun doctor``, the documented Roles and their tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pairun.engines.doctor.finding import DoctorFinding, Level, of_error
from pairun.engines.kubernetes.apierrors import ClusterRefusal, role_rule
from pairun.engines.kubernetes.cluster import Cluster
from pairun.errors import PairunError
from pairun.kube.workloads import FRAMEWORK, KINDS, POD

_REVIEWS = "/apis/authorization.k8s.io/v1"
FRAMEWORKS = FRAMEWORK.group


class _Need(NamedTuple):
    """What the init container's account must be allowed to do.

    Attributes:
        group: the API group; empty for the core group.
        resource: the plural.
        verbs: the verbs, as in a Role.
        use: what needs the right.
    """

    group: str
    resource: str
    verbs: Sequence[str]
    use: str


INIT_NEEDS = (
    _Need("", "pods", ("get", "list", "watch"), "the barrier, and how Pods find each other"),
    _Need(FRAMEWORKS, "frameworks", ("get",), "the init phase of a Framework's Pods"),
)
"""What the init container's account needs; rights on Frameworks only if the kind exists."""

KIND_OF_ENGINE = {kind.engine: kind for kind in (*KINDS, POD)}
WORKLOAD = "the workload"
"""Stands for the kind that an engine creates."""


class Right(NamedTuple):
    """Verbs on a resource of the core group, or on `WORKLOAD`, and the engines that need them."""

    resource: str
    verbs: Sequence[str]
    engines: Sequence[str] = tuple(KIND_OF_ENGINE)


_CONTROLLED = tuple(kind.engine for kind in KINDS)
_MAPPED = ("jobset", "job", "pod")
_SUBMIT = (
    # delete and get: to undo a submission that fails; patch: to set the owner
    Right("secrets", ("create", "delete", "get")),
    Right("secrets", ("patch",), _CONTROLLED),
    Right("configmaps", ("create", "delete", "get"), _MAPPED),
    Right("configmaps", ("patch",), ("jobset", "job")),
    Right(WORKLOAD, ("create", "delete", "get")),
)
_READ = (
    Right(WORKLOAD, ("get",), _CONTROLLED),
    Right("configmaps", ("get",), ("pod",)),
    Right("pods", ("list",)),
)
_FOLLOW = (*_READ, Right("pods", ("watch",)))
_LOGS = (*_READ, Right("pods/log", ("get",)))
RIGHTS_OF_COMMANDS: Mapping[str, Sequence[Right]] = {
    "submit": _SUBMIT,
    "submit --wait": (*_SUBMIT, *_FOLLOW),
    "status": _READ,
    "status --watch": _FOLLOW,
    "logs": _LOGS,
    "logs --follow": (*_LOGS, Right("pods", ("get",))),
    "report": _LOGS,
    "delete": (
        *_READ,
        Right("secrets", ("delete", "get")),
        Right("configmaps", ("get",)),
        Right("configmaps", ("delete",), _MAPPED),
        Right(WORKLOAD, ("delete",)),
    ),
}
"""What a person needs for each command; `report` is that of a job in a cluster."""


def rules(engine: str, *commands: str) -> dict[tuple[str, str], list[str]]:
    """The verbs, by group and resource, of a Role for some commands with an engine."""
    merged: dict[tuple[str, str], set[str]] = {}
    kind = KIND_OF_ENGINE[engine]
    for right in (right for command in commands for right in RIGHTS_OF_COMMANDS[command]):
        if engine in right.engines:
            key = ("", right.resource)
            if right.resource == WORKLOAD:
                key = (kind.group, kind.plural)
            merged.setdefault(key, set()).update(right.verbs)
    return {key: sorted(merged[key]) for key in sorted(merged)}


_INSTALLED = {kind.group: kind.version for kind in KINDS if not kind.is_built_in}
"""API groups that some clusters lack, and their versions."""


def of_person(cluster: Cluster) -> Iterator[DoctorFinding]:
    """Check this login's rights for each engine whose kind exists; a failure if it can use none."""
    known: dict[tuple[str, str, str], bool] = {}
    lacking: dict[str, list[tuple[str, str, list[str]]]] = {}
    for engine, kind in KIND_OF_ENGINE.items():
        try:
            if kind.group in _INSTALLED and not has_group(cluster, kind.group):
                continue
            needed = rules(engine, *RIGHTS_OF_COMMANDS)
            for right in ((*key, verb) for key, verbs in needed.items() for verb in verbs):
                if right not in known:
                    known[right] = _may(cluster, *right, None)
        except PairunError as e:
            yield of_error("rights of you", "failure", e)
            return
        missing = [
            (*key, [v for v in verbs if not known[*key, v]]) for key, verbs in needed.items()
        ]
        lacking[engine] = [each for each in missing if each[2]]
    level: Level = "failure" if all(lacking.values()) else "warning"
    for engine, missing in lacking.items():
        subject = f"rights of you: --engine {engine}"
        if missing:
            words = ", ".join(f"{'/'.join(verbs)} {resource}" for _, resource, verbs in missing)
            message = f"may not {words} in namespace {cluster.namespace}"
            do = f"ask for these rules in a Role: {', '.join(role_rule(g, r, *v) for g, r, v in missing)}"
            yield DoctorFinding(subject, level, message, do)
        else:
            yield DoctorFinding(subject, "ok", "all commands")


def of_account(cluster: Cluster, account: str, *, is_own: bool) -> Iterator[DoctorFinding]:
    """Check the rights of the init container's account.

    Args:
        account: the account's name.
        is_own: whether this login is that account.
    """
    user = None if is_own else f"system:serviceaccount:{cluster.namespace}:{account}"
    for need in INIT_NEEDS:
        subject = f"rights of {account}: {need.resource}, for {need.use}"
        try:
            if need.group in _INSTALLED and not has_group(cluster, need.group):
                continue
            missing = [v for v in need.verbs if not _may(cluster, *need[:2], v, user)]
        except PairunError as e:
            yield of_error(subject, "failure", e, "run `pairun doctor` in a Pod of this account")
            return
        if missing:
            message = f"may not {', '.join(missing)} in namespace {cluster.namespace}"
            do = "apply deploy/base, deploy/frameworks or deploy/openpai with this account's name"
            yield DoctorFinding(subject, "failure", message, do)
        else:
            yield DoctorFinding(subject, "ok", f"may {', '.join(need.verbs)}")


def has_group(cluster: Cluster, group: str) -> bool:
    """Whether the cluster has the kinds of a group."""
    try:
        cluster.get(f"/apis/{_INSTALLED[group]}")
    except ClusterRefusal as e:
        if e.status in (403, 404):
            return False
        raise
    return True


def _may(cluster: Cluster, group: str, resource: str, verb: str, user: str | None) -> bool:
    """Ask about one right; Kubernetes stores nothing (API reference, ``SubjectAccessReview``)."""
    plural, _, part = resource.partition("/")
    attributes = {
        "namespace": cluster.namespace, "verb": verb, "group": group, "resource": plural,
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
