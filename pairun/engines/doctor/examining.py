"""The examination of a cluster, check by check."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from pairun.contract.arguments import build
from pairun.contract.loading import load_module
from pairun.contract.sources import built_in_modules
from pairun.engines.doctor import rights, server
from pairun.engines.doctor.finding import Finding, is_missing, of_error
from pairun.engines.kubernetes.cluster import Cluster
from pairun.errors import PairunError
from pairun.host.context import HostContext
from pairun.module import CheckModule, Failure, Permanent, Skip

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


def examine(cluster: Cluster, what: Examination) -> Iterator[Finding]:
    """Check the cluster and yield each finding as it is made; all requests only read.

    If the API server does not respond, the examination ends.
    """
    reached = server.of_server(cluster)
    yield reached
    if reached.level != "failure":
        yield from _in_cluster(cluster, what)
    for image in what.images:
        yield _of_image(image, what.env)


def _in_cluster(cluster: Cluster, what: Examination) -> Iterator[Finding]:
    try:
        yield server.of_clock(cluster, what.now())
        if not what.in_pod:
            yield from rights.of_person(cluster)
        yield from rights.of_account(cluster, what.account, is_own=what.in_pod)
        yield from _of_pull_secrets(cluster, what.account)
        yield server.of_controller(cluster)
        yield from server.of_exit_spec(cluster)
        yield server.of_ports(cluster)
    except PairunError as e:
        yield of_error("API server", "failure", e)


def _of_pull_secrets(cluster: Cluster, account: str) -> Iterator[Finding]:
    """Check the account of the Pods, and its image pull secrets."""
    subject = f"account {account}"
    try:
        found = cluster.get(cluster.path("v1", "serviceaccounts", account))
    except PairunError as e:
        if is_missing(e):
            message = f"missing in namespace {cluster.namespace}: Pods of jobs cannot start"
            yield Finding(subject, "failure", message, "apply deploy/base")
        else:
            yield of_error(subject, "failure", e)
        return
    names = [str(s.get("name")) for s in found.get("imagePullSecrets") or ()]
    yield Finding(subject, "ok", f"pull secrets: {', '.join(names) or 'none'}")
    for name in names:
        try:
            cluster.get(cluster.path("v1", "secrets", name))
        except PairunError as e:
            subject = f"pull secret {name} of {account}"
            if is_missing(e):
                do = f"create it, or remove it from the account {account}"
                yield Finding(subject, "failure", "missing: private images cannot be pulled", do)
            else:
                yield of_error(subject, "warning", e)


def _of_image(image: str, env: Mapping[str, str]) -> Finding:
    """Ask the registry for an image, from this machine and without a login."""
    subject = f"image {image}"
    cls = load_module(CHECK, built_in_modules()[CHECK])
    module, problems = build(cls, {"image": image})
    if module is None:
        return Finding(subject, "failure", problems[0].message, problems[0].hint or "")
    context = HostContext(env, "/nonexistent", time.monotonic() + REGISTRY_S, lambda _: None)
    try:
        result = cast("CheckModule", module).check(context)
    except Permanent as e:
        return Finding(subject, "failure", e.message, e.hint or "correct the name, or log in")
    except Skip as e:
        return Finding(subject, "warning", e.because, "only the node can know")
    except Failure as e:
        do = e.hint or "check the registry's name, and the network to it"
        return Finding(subject, "failure", f"the registry does not answer: {e.message}", do)
    return Finding(subject, "ok", result.message if result else "exists")
