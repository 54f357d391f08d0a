"""The API server, the clocks, FrameworkController, the exit spec, and the ports of the nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

from pairun.base.durations import format_duration
from pairun.engines.doctor.finding import Finding, Level, is_missing, of_error
from pairun.engines.doctor.rights import FRAMEWORKS, has_group
from pairun.engines.kubernetes.cluster import Cluster
from pairun.errors import PairunError, Problem, Problems, Source
from pairun.kube.ports import DEFAULT_RANGE
from pairun.openpai.exitspec import read_exit_spec
from pairun.openpai.podconfig import EXIT_SPEC

SKEW_S = 5.0
"""From this skew on, do not trust the order of log lines."""
MAX_SKEW_S = 60.0
"""From this skew on, servers refuse tokens and certificates as expired or not yet valid."""
EXIT_SPEC_MAP = "runtime-exit-spec-configuration"
CONTROLLER = "frameworkcontroller"
NODE_PORTS = (30000, 32767)
"""Kubernetes' default of ``--service-node-port-range``, both inclusive."""


def of_server(cluster: Cluster) -> Finding:
    """Whether the API server accepts this login."""
    subject = f"API server {cluster.server}"
    try:
        return Finding(subject, "ok", f"answers: Kubernetes {cluster.version()}")
    except PairunError as e:
        return of_error(subject, "failure", e)


def of_clock(cluster: Cluster, now: float) -> Finding:
    """Compare this machine's clock with the API server's.

    Args:
        cluster: the cluster.
        now: this machine's clock, in seconds since the epoch.
    """
    subject = "clock"
    date = cluster.date()
    try:
        # RFC 9110, 5.6.7: whole seconds
        skew_s = now - parsedate_to_datetime(date or "").timestamp() - 0.5
    except ValueError:
        return Finding(subject, "warning", "unknown: the server sends no date", "check NTP")
    if abs(skew_s) < SKEW_S:
        return Finding(subject, "ok", f"within {SKEW_S:g} s of the API server's")
    where = "behind" if skew_s < 0 else "ahead of"
    message = f"this machine is {format_duration(abs(round(skew_s)))} {where} the API server"
    do = "synchronise both clocks (NTP); tokens and certificates depend on them"
    return Finding(subject, "failure" if abs(skew_s) > MAX_SKEW_S else "warning", message, do)


def of_controller(cluster: Cluster) -> Finding:
    """Find FrameworkController and its version."""
    subject = "FrameworkController"
    do = "install it to use --engine framework; other engines do not need it"
    try:
        if not has_group(cluster, FRAMEWORKS):
            return Finding(subject, "warning", "the kind Framework is not installed", do)
        query = {"fieldSelector": f"metadata.name={CONTROLLER}"}
        workloads: list[dict[str, Any]] = []
        for plural in ("statefulsets", "deployments"):
            workloads += cluster.get(f"/apis/apps/v1/{plural}", query).get("items") or []
    except PairunError as e:
        do = "run kubectl get statefulsets -A to see its image"
        return of_error(subject, "warning", e, do)
    if not workloads:
        message = f"the kind Framework exists, but no StatefulSet or Deployment {CONTROLLER}"
        return Finding(subject, "warning", message, "start FrameworkController")
    images = [_image(w) for w in workloads]
    if not any((w.get("status") or {}).get("readyReplicas") for w in workloads):
        do = f"run kubectl describe to see why the Pods of {CONTROLLER} are not ready"
        return Finding(subject, "failure", f"not ready: {', '.join(images)}", do)
    return Finding(subject, "ok", f"runs: {', '.join(images)}")


def _image(workload: dict[str, Any]) -> str:
    template = (workload.get("spec") or {}).get("template") or {}
    containers = (template.get("spec") or {}).get("containers") or [{}]
    return str(containers[0].get("image") or "an unknown image")


def of_exit_spec(cluster: Cluster) -> Iterator[Finding]:
    """Check the ConfigMap that describes exit codes; yield a finding for each mistake."""
    subject = f"exit spec, ConfigMap {EXIT_SPEC_MAP}"
    do = "apply deploy/exit-spec, or keep OpenPAI's ConfigMap"
    try:
        data = cluster.get(cluster.path("v1", "configmaps", EXIT_SPEC_MAP)).get("data") or {}
    except PairunError as e:
        if is_missing(e):
            message = f"missing in namespace {cluster.namespace}: pairun uses the command's own exit codes"
            yield Finding(subject, "warning", message, do)
        else:
            yield of_error(subject, "failure", e)
        return
    text = data.get(EXIT_SPEC)
    if not isinstance(text, str):
        yield Finding(subject, "warning", f"has no key {EXIT_SPEC}", do)
        return
    problems = Problems()
    try:
        spec = read_exit_spec(Source(EXIT_SPEC, "cluster", text), problems)
    except PairunError as e:
        yield from (_mistake(subject, "failure", p) for p in e.problems)
        return
    yield from (_mistake(subject, "warning", p) for p in problems)
    if not problems:
        yield Finding(subject, "ok", f"{len(spec.data['specs'])} exit codes")


def _mistake(subject: str, level: Level, problem: Problem) -> Finding:
    where = f"line {problem.place.line}: " if problem.place else ""
    return Finding(subject, level, f"{where}{problem.message}", problem.hint or "correct it")


def of_ports(cluster: Cluster) -> Finding:
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
        return Finding(subject, "warning", message, do)
    return Finding(subject, "ok", f"{hashed}; no service uses one (node ports: {low} to {high})")


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
