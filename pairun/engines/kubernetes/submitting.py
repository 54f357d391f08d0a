"""Creates a job's objects in a cluster, all or none, and deletes them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pairun.engines.kubernetes.apierrors import ClusterRefusal, Patience, Unreachable
from pairun.engines.kubernetes.cluster import Cluster
from pairun.engines.kubernetes.jobobjects import JobObjects, NoJob, find, pods_of, read_own
from pairun.errors import PairunError, Problem
from pairun.kube.labels import CONFIG_SECRET, JOB_CONFIG, KEY_SECRET, REGISTRY_SECRET

SUBMISSION = "pairun/submission"
"""Annotation: the submission that created an object; identifies it if the response was lost."""
HELPERS = (
    ("Secret", "secrets", (CONFIG_SECRET, REGISTRY_SECRET, KEY_SECRET)),
    ("ConfigMap", "configmaps", (JOB_CONFIG,)),
)
"""The kinds, plurals, and ends of the names of the objects beside a workload."""
GROUP = "PodGroup"
"""The kind that groups the Pods of a job for a scheduler."""
_POLL_S = 1.0
_LATE_S = 60
"""How long Pods may take to disappear after their grace time, in seconds."""


class Made(NamedTuple):
    """An object in the cluster.

    Attributes:
        kind: its kind.
        name: its name.
        path: its path in the API.
        uid: its uid.
        version: its apiVersion.
    """

    kind: str
    name: str
    path: str
    uid: str
    version: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def submit(
    cluster: Cluster, name: str, objects: Sequence[Mapping[str, Any]]
) -> tuple[list[Made], list[Problem]]:
    """Create the objects of a job, all or none.

    The workload then owns the Secrets and ConfigMaps, so Kubernetes deletes them with it. `remove`
    deletes those of plain Pods.

    Args:
        objects: the objects, in the order of creation.

    Returns:
        The created objects, and warnings.

    Raises:
        PairunError: no object was created; the message lists objects that could not be deleted.
    """
    submission = secrets.token_hex(8)
    made: list[Made] = []
    for obj in objects:
        path, body = _marked(cluster, obj, submission)
        try:
            made.append(_made(cluster.create(path, body), path, body))
        except BaseException as e:
            if isinstance(e, Unreachable):
                made += _unanswered(cluster, path, body, submission)
            left = _undo(cluster, made)
            if isinstance(e, PairunError):
                raise _failed(e, name, cluster, body, made, left) from None
            raise
    return made, _owned(cluster, made)


def _marked(
    cluster: Cluster, obj: Mapping[str, Any], submission: str
) -> tuple[str, dict[str, Any]]:
    """The path for an object, and the object with the submission's mark."""
    meta = dict(obj["metadata"])
    meta["annotations"] = {**(meta.get("annotations") or {}), SUBMISSION: submission}
    meta["namespace"] = cluster.namespace
    path = cluster.path(str(obj["apiVersion"]), f"{str(obj['kind']).lower()}s")
    return path, {**obj, "metadata": meta}


def _made(answer: Mapping[str, Any], path: str, body: Mapping[str, Any]) -> Made:
    meta = answer["metadata"]
    name = str(meta["name"])
    return Made(str(body["kind"]), name, f"{path}/{name}", str(meta["uid"]), body["apiVersion"])


def _unanswered(
    cluster: Cluster, path: str, body: Mapping[str, Any], submission: str
) -> list[Made]:
    """The object, if it was created and only the response was lost."""
    try:
        existing = cluster.get(f"{path}/{body['metadata']['name']}")
    except PairunError:
        return []
    marks = existing.get("metadata", {}).get("annotations") or {}
    return [_made(existing, path, body)] if marks.get(SUBMISSION) == submission else []


def _undo(cluster: Cluster, made: Sequence[Made]) -> list[Made]:
    """Delete what was created, the last first; returns what could not be deleted."""
    left = []
    for each in reversed(made):
        try:
            cluster.delete(each.path, each.uid)
        except PairunError:
            left.append(each)
    return left


def _failed(
    e: PairunError,
    name: str,
    cluster: Cluster,
    body: Mapping[str, Any],
    made: Sequence[Made],
    left: Sequence[Made],
) -> PairunError:
    """The error for a failed submission."""
    problem = e.problems[0]
    if isinstance(e, ClusterRefusal) and e.reason == "AlreadyExists":
        what = f"{body['kind']} {body['metadata']['name']}"
        text = f"there is already a job '{name}' in namespace {cluster.namespace} ({what})"
        where = f"--namespace {cluster.namespace}"
        hint = f"`pairun delete {name} {where}` deletes it; --name sets another name for this job"
        problem = Problem("PR789", text, hint=hint)
    elif made:
        gone = [str(m) for m in made if m not in left]
        removed = f"; removed again: {', '.join(gone)}" if gone else ""
        problem = problem._replace(message=problem.message + removed)
    if left:
        names = ", ".join(map(str, left))
        problem = problem._replace(
            message=f"{problem.message}; could not be removed: {names}",
            hint=f"`pairun delete {name} --namespace {cluster.namespace}` removes the rest",
        )
    return PairunError(problem)


def _owned(cluster: Cluster, made: Sequence[Made]) -> list[Problem]:
    """Make the workload the owner of its helper objects; warns if the API server refuses."""
    helpers = [m for m in made if m.kind in ("Secret", "ConfigMap", GROUP)]
    workloads = [m for m in made if m not in helpers and m.kind != "Pod"]
    if not workloads:
        # `remove` finds the ConfigMap of plain Pods; the PodGroup is deleted with it.
        helpers = [m for m in made if m.kind == GROUP]
        workloads = [m for m in made if m.kind == "ConfigMap"] if helpers else []
    owners = [
        {"apiVersion": m.version, "kind": m.kind, "name": m.name, "uid": m.uid} for m in workloads
    ]
    if not owners:
        return []
    for each in helpers:
        try:
            cluster.merge(each.path, {"metadata": {"ownerReferences": owners}})
        except PairunError as e:
            text = f"{each} stays when only the {owners[0]['kind']} is deleted: {e}"
            hint = "`pairun delete` removes all of a job"
            return [Problem("PR788", text, hint=hint, severity="warning")]
    return []


class Removed(NamedTuple):
    """What `remove` did.

    Attributes:
        what: the deleted objects.
        kept: why it could not look for some objects.
        grace_s: the longest grace time of the Pods, in seconds.
        pods: how many Pods the job had.
        found: the job's objects before.
    """

    what: list[str]
    kept: list[Problem]
    grace_s: int
    pods: int
    found: JobObjects | None


def remove(cluster: Cluster, name: str) -> Removed:
    """Delete a job: its workload, Pods, Secrets and ConfigMap; nothing, if its kind is unknown.

    Raises:
        PairunError: the job does not exist, or the API server refuses.
    """
    kept: list[Problem] = []
    try:
        job = find(cluster, name)
        helpers = _helpers(cluster, name, kept)
    except NoJob:
        job = None
        if not (helpers := _helpers(cluster, name, kept)):
            raise
    pods = pods_of(cluster, job) if job else ()
    what: list[Made] = []
    if job and job.workload is not None:
        kind = {"kind": job.kind.kind, "apiVersion": job.kind.version}
        path = cluster.path(job.kind.version, job.kind.plural)
        what = [_made(job.workload, path, kind)]
    elif job:
        what = [Made("Pod", p.pod, cluster.path("v1", "pods", p.pod), p.uid, "v1") for p in pods]
    gone = [str(m) for m in (*what, *helpers) if cluster.delete(m.path, m.uid)]
    return Removed(gone, kept, max((p.grace_s for p in pods), default=0), len(pods), job)


def _helpers(cluster: Cluster, name: str, kept: list[Problem]) -> list[Made]:
    """The Secrets and the ConfigMap of a job."""
    helpers = []
    for kind, plural, ends in HELPERS:
        body = {"kind": kind, "apiVersion": "v1"}
        try:
            found = [read_own(cluster, "v1", plural, f"{name}-{end}", name) for end in ends]
        except ClusterRefusal as e:
            if e.status != 403:
                raise
            text = f"{plural} of the job may remain: {e}"
            kept.append(e.problems[0]._replace(message=text, severity="warning"))
        else:
            helpers += [_made(each, cluster.path("v1", plural), body) for each in found if each]
    return helpers


def wait_until_gone(
    cluster: Cluster, removed: Removed, say: Callable[[str], None] = lambda _: None
) -> int:
    """Wait until the Pods have ended, at most their grace time and a margin.

    Args:
        say: takes lines for people about an outage.

    Returns:
        How many Pods still exist.

    Raises:
        ClusterRefusal, Unreachable: the API server refuses, or does not respond for minutes.
    """
    if removed.found is None:
        return 0
    patience = Patience(say)
    end = time.monotonic() + removed.grace_s + _LATE_S
    while True:
        try:
            left = len(pods_of(cluster, removed.found))
        except (ClusterRefusal, Unreachable) as e:
            patience.bear(e)
            end = max(end, time.monotonic() + _LATE_S)
        else:
            patience.answered()
            if not left or time.monotonic() > end:
                return left
        time.sleep(_POLL_S)
