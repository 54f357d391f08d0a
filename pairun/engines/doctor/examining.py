"""The examination of a cluster, check by check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pairun.engines.doctor import images, rights, server
from pairun.engines.doctor.finding import Finding, of_error
from pairun.engines.kubernetes.cluster import Cluster
from pairun.errors import PairunError


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
        yield images.of_image(image, what.env)


def _in_cluster(cluster: Cluster, what: Examination) -> Iterator[Finding]:
    try:
        yield server.of_clock(cluster, what.now())
        if not what.in_pod:
            yield from rights.of_person(cluster)
        yield from rights.of_account(cluster, what.account, is_own=what.in_pod)
        yield from images.of_account(cluster, what.account)
        yield server.of_controller(cluster)
        yield from server.of_exit_spec(cluster)
        yield server.of_ports(cluster)
    except PairunError as e:
        yield of_error("API server", "failure", e)
