"""Whether images can be pulled: the account's pull secrets, and the registry's answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import cast

from pairun.contract.arguments import build
from pairun.contract.loading import load_module
from pairun.contract.sources import built_in_modules
from pairun.engines.doctor.finding import Finding, is_missing, of_error
from pairun.engines.kubernetes.cluster import Cluster
from pairun.errors import PairunError
from pairun.host.context import HostContext
from pairun.module import CheckModule, Failure, Permanent, Skip

CHECK = "image_check"
"""The module that checks images in every Pod."""
REGISTRY_S = 15.0


def of_account(cluster: Cluster, account: str) -> Iterator[Finding]:
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


def of_image(image: str, env: Mapping[str, str]) -> Finding:
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
