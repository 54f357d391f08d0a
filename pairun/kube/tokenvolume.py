"""The volume with what a process in a Pod needs to ask the API server."""

from __future__ import annotations

from typing import Any

CREDENTIALS = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where a container finds it."""
TOKEN_S = 3607
"""Of the API token's life; kubelet renews it sooner. The value of Kubernetes' own tokens."""


def token_volume(name: str) -> dict[str, Any]:
    """A volume like the one that Kubernetes gives to containers, for those that are named alone.

    The source is `Bound service account token volume`_.

    Args:
        name: of the volume.

    .. _Bound service account token volume:
        https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/
    """
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    sources: list[dict[str, Any]] = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_S}},
        {"configMap": authority},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": name, "projected": {"sources": sources}}
