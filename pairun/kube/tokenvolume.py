"""The volume with the credentials for requests to the API server."""

from __future__ import annotations

from typing import Any

CREDENTIALS = "/var/run/secrets/kubernetes.io/serviceaccount"
"""The path at which a container mounts it."""
TOKEN_S = 3607
"""The lifetime of the API token in seconds; kubelet renews it earlier. Kubernetes' own value."""


def token_volume(name: str) -> dict[str, Any]:
    """A volume like the one that Kubernetes mounts, for the named containers only.

    The source is `Bound service account token volume`_.

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
