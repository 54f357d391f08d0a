"""The examination of a cluster, check by check."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, cast

from pairun.base.durations import format_duration
from pairun.contract.arguments import build
from pairun.contract.loading import load_module
from pairun.contract.sources import built_in_modules
from pairun.engines.doctor import rights
from pairun.engines.doctor.finding import DoctorFinding, Level, of_error
from pairun.engines.kubernetes.apierrors import ClusterRefusal
from pairun.engines.kubernetes.cluster import Cluster
from pairun.errors import PairunError, Problem, Problems, Source
from pairun.host.context import HostContext
from pairun.kube.ports import DEFAULT_RANGE
from pairun.module import CheckModule, Failure, Permanent, Skip
from pairun.openpai.exitspec import read_exit_spec
from pairun.openpai.podconfig import EXIT_SPEC

_SKEW_S = 5.0
"""From this skew on, do not trust the order of log lines."""
MAX_SKEW_S = 60.0
"""From this skew on, servers refuse tokens and certificates as expired or not yet valid."""
EXIT_SPEC_MAP = "runtime-exit-spec-configuration"
CONTROLLER = "frameworkcontroller"
NODE_PORTS = (30000, 32767)
"""Kubernetes' default of ``--service-node-port-range``, both inclusive."""

CHECK = "image_check"
"""The module that checks images in every Pod."""
REGISTRY_S = 15.0


class Examination(NamedTuple):
    """What to check, and from where.

    Attributes:
        account: the service account of init containers.
        in_pod: whether this login is that account.
        images: images that nodes must be able to pull.
        env: for requests to registries: proxies, certificate authorities.
        now: this machine's clock, in seconds since the epoch.
    """

    account: str
    in_pod: bool
    images: Sequence[str]
    env: Mapping[str, str]
    now: Callable[[], float]


def examine(cluster: Cluster, what: Examination) -> Iterator[DoctorFinding]:
    """Check the cluster and yield each finding as it is made; all requests only read.

    If the API server does not respond, the examination ends.
    """
    reached = _of_server(cluster)
    yield reached
    if reached.level != "failure":
        yield from _in_cluster(cluster, what)
    for image in what.images:
        yield _of_image(image, what.env)


def _in_cluster(cluster: Cluster, what: Examination) -> Iterator[DoctorFinding]:
    try:
        yield _of_clock(cluster, what.now())
        if not what.in_pod:
            yield from rights.of_person(cluster)
        yield from rights.of_account(cluster, what.account, is_own=what.in_pod)
        yield from _of_pull_secrets(cluster, what.account)
        yield _of_controller(cluster)
        yield from _of_exit_spec(cluster)
        yield _of_ports(cluster)
    except PairunError as e:
        yield of_error("API server", "failure", e)


def _of_server(cluster: Cluster) -> DoctorFinding:
    """Whether the API server accepts this login."""
    subject = f"API server {cluster.server}"
    try:
        return DoctorFinding(subject, "ok", f"answers: Kubernetes {cluster.version()}")
    except PairunError as e:
        return of_error(subject, "failure", e)


def _of_clock(cluster: Cluster, now: float) -> DoctorFinding:
    """Compare this machine's clock with the API server's.

    Args:
        now: this machine's clock, in seconds since the epoch.
    """
    subject = "clock"
    date = cluster.date()
    try:
        # RFC 9110, 5.6.7: whole seconds
        skew_s = now - parsedate_to_datetime(date or "").timestamp() - 0.5
    except ValueError:
        return DoctorFinding(subject, "warning", "unknown: the server sends no date", "check NTP")
    if abs(skew_s) < _SKEW_S:
        return DoctorFinding(subject, "ok", f"within {_SKEW_S:g} s of the API server's")
    where = "behind" if skew_s < 0 else "ahead of"
    message = f"this machine is {format_duration(abs(round(skew_s)))} {where} the API server"
    do = "synchronise both clocks (NTP); tokens and certificates depend on them"
    return DoctorFinding(subject, "failure" if abs(skew_s) > MAX_SKEW_S else "warning", message, do)


def _of_controller(cluster: Cluster) -> DoctorFinding:
    """Find FrameworkController and its version."""
    subject = "FrameworkController"
    do = "install it to use --engine framework; other engines do not need it"
    try:
        if not rights.has_group(cluster, rights.FRAMEWORKS):
            return DoctorFinding(subject, "warning", "the kind Framework is not installed", do)
        query = {"fieldSelector": f"metadata.name={CONTROLLER}"}
        workloads: list[dict[str, Any]] = []
        for plural in ("statefulsets", "deployments"):
            workloads += cluster.get(f"/apis/apps/v1/{plural}", query).get("items") or []
    except PairunError as e:
        do = "run kubectl get statefulsets -A to see its image"
        return of_error(subject, "warning", e, do)
    if not workloads:
        message = f"the kind Framework exists, but no StatefulSet or Deployment {CONTROLLER}"
        return DoctorFinding(subject, "warning", message, "start FrameworkController")
    images = [_image(w) for w in workloads]
    if not any((w.get("status") or {}).get("readyReplicas") for w in workloads):
        do = f"run kubectl describe to see why the Pods of {CONTROLLER} are not ready"
        return DoctorFinding(subject, "failure", f"not ready: {', '.join(images)}", do)
    return DoctorFinding(subject, "ok", f"runs: {', '.join(images)}")


def _image(workload: dict[str, Any]) -> str:
    template = (workload.get("spec") or {}).get("template") or {}
    containers = (template.get("spec") or {}).get("containers") or [{}]
    return str(containers[0].get("image") or "an unknown image")


def _of_exit_spec(cluster: Cluster) -> Iterator[DoctorFinding]:
    """Check the ConfigMap that describes exit codes; yield a finding for each mistake."""
    subject = f"exit spec, ConfigMap {EXIT_SPEC_MAP}"
    do = "apply deploy/exit-spec, or keep OpenPAI's ConfigMap"
    message = f"missing in namespace {cluster.namespace}: pairun uses the command's own exit codes"
    found = _read(
        cluster, "configmaps", EXIT_SPEC_MAP, DoctorFinding(subject, "warning", message, do)
    )
    if isinstance(found, DoctorFinding):
        yield found
        return
    data = found.get("data") or {}
    text = data.get(EXIT_SPEC)
    if not isinstance(text, str):
        yield DoctorFinding(subject, "warning", f"has no key {EXIT_SPEC}", do)
        return
    problems = Problems()
    try:
        spec = read_exit_spec(Source(EXIT_SPEC, "cluster", text), problems)
    except PairunError as e:
        yield from (_mistake(subject, "failure", p) for p in e.problems)
        return
    yield from (_mistake(subject, "warning", p) for p in problems)
    if not problems:
        yield DoctorFinding(subject, "ok", f"{len(spec.data['specs'])} exit codes")


def _mistake(subject: str, level: Level, problem: Problem) -> DoctorFinding:
    where = f"line {problem.place.line}: " if problem.place else ""
    return DoctorFinding(subject, level, f"{where}{problem.message}", problem.hint or "correct it")


def _of_ports(cluster: Cluster) -> DoctorFinding:
    """Check whether services may use node ports that jobs use."""
    subject = "ports"
    first, end = DEFAULT_RANGE
    hashed = f"ports of jobs are {first} to {end - 1}"
    try:
        low, high = _node_port_range(cluster)
        taken = sorted(p for p in _node_ports(cluster) if first <= p < end)
    except PairunError as e:
        do = "node ports below 40000 can collide with ports of jobs: code 253, retried elsewhere"
        return of_error(subject, "warning", e, do)
    if taken:
        names = ", ".join(map(str, taken[:5])) + (" and more" if len(taken) > 5 else "")
        message = f"{hashed}; services use {names} on every node"
        do = "set schedulePortStart and schedulePortEnd to a range without node ports"
        return DoctorFinding(subject, "warning", message, do)
    return DoctorFinding(
        subject, "ok", f"{hashed}; no service uses one (node ports: {low} to {high})"
    )


def _node_port_range(cluster: Cluster) -> tuple[int, int]:
    """The API server's flag if its Pods are visible, else Kubernetes' default."""
    query = {"labelSelector": "component=kube-apiserver"}
    pods = cluster.get("/api/v1/namespaces/kube-system/pods", query).get("items") or []
    for pod in pods:
        for container in (pod.get("spec") or {}).get("containers") or ():
            words = " ".join([*(container.get("command") or ()), *(container.get("args") or ())])
            if match := re.search(r"--service-node-port-range[= ](\d+)-(\d+)", words):
                return int(match[1]), int(match[2])
    return NODE_PORTS


def _node_ports(cluster: Cluster) -> Iterator[int]:
    for service in cluster.objects("/api/v1/services", ""):
        for port in (service.get("spec") or {}).get("ports") or ():
            if isinstance(number := port.get("nodePort"), int):
                yield number


def _read(
    cluster: Cluster, plural: str, name: str, missing: DoctorFinding, level: Level = "failure"
) -> dict[str, Any] | DoctorFinding:
    """Read an object; returns the finding if it is missing or cannot be read.

    Args:
        plural: the plural of its kind, in the core group.
        name: its name.
        missing: the finding if it does not exist.
        level: the level if it cannot be read.
    """
    try:
        return cluster.get(cluster.path("v1", plural, name))
    except PairunError as e:
        if isinstance(e, ClusterRefusal) and e.status == 404:
            return missing
        return of_error(missing.subject, level, e)


def _of_pull_secrets(cluster: Cluster, account: str) -> Iterator[DoctorFinding]:
    """Check the account of the Pods, and its image pull secrets."""
    subject = f"account {account}"
    message = f"missing in namespace {cluster.namespace}: Pods of jobs cannot start"
    missing = DoctorFinding(subject, "failure", message, "apply deploy/base")
    found = _read(cluster, "serviceaccounts", account, missing)
    if isinstance(found, DoctorFinding):
        yield found
        return
    names = [str(s.get("name")) for s in found.get("imagePullSecrets") or ()]
    yield DoctorFinding(subject, "ok", f"pull secrets: {', '.join(names) or 'none'}")
    for name in names:
        do = f"create it, or remove it from the account {account}"
        missing = DoctorFinding(f"pull secret {name} of {account}", "failure",
                          "missing: private images cannot be pulled", do)  # fmt: skip
        found = _read(cluster, "secrets", name, missing, "warning")
        if isinstance(found, DoctorFinding):
            yield found


def _of_image(image: str, env: Mapping[str, str]) -> DoctorFinding:
    """Ask the registry for an image, from this machine and without a login."""
    subject = f"image {image}"
    cls = load_module(CHECK, built_in_modules()[CHECK])
    module, problems = build(cls, {"image": image})
    if module is None:
        return DoctorFinding(subject, "failure", problems[0].message, problems[0].hint or "")
    context = HostContext(env, "/nonexistent", time.monotonic() + REGISTRY_S, lambda _: None)
    try:
        result = cast("CheckModule", module).check(context)
    except Permanent as e:
        return DoctorFinding(subject, "failure", e.message, e.hint or "correct the name, or log in")
    except Skip as e:
        return DoctorFinding(subject, "warning", e.because, "only the node can know")
    except Failure as e:
        do = e.hint or "check the registry's name, and the network to it"
        return DoctorFinding(subject, "failure", f"the registry does not answer: {e.message}", do)
    return DoctorFinding(subject, "ok", result.message if result else "exists")
