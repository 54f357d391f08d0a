"""Finds the cluster's API server and the Pod's credentials.

Both are where every client in a Pod finds them (Kubernetes documentation, "Accessing the
Kubernetes API from a Pod"). The token appears in no message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from pairun.module import Permanent

_CREDENTIALS = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where the kubelet puts token, CA and namespace of the Pod's service account."""

_MAX_TOKEN = 1024 * 1024
_MAX_NAME = 1024


class NoApiServer(Permanent):
    """No API server can be used from here: no address, no token, no CA."""


class ApiAccess(NamedTuple):
    """The API server's address, and the paths of the token and the CA file, if they exist."""

    address: str
    token: str | None
    authority: str | None


def access_of_pod(env: Mapping[str, str]) -> ApiAccess:
    """Find how this Pod reaches the API server of its cluster.

    Args:
        env: ``KUBERNETES_SERVICE_HOST`` and ``_PORT`` give the address if there is a token,
            ``KUBE_APISERVER_ADDRESS`` if there is none. ``PAIRUN_API_CREDENTIALS`` overrides the
            folder `_CREDENTIALS`.

    Raises:
        NoApiServer: lists everything that is missing.
    """
    folder = env.get("PAIRUN_API_CREDENTIALS") or _CREDENTIALS
    token, authority = os.path.join(folder, "token"), os.path.join(folder, "ca.crt")
    known = authority if os.path.exists(authority) else None
    if not os.path.exists(token):
        if address := env.get("KUBE_APISERVER_ADDRESS"):
            return ApiAccess(address, None, known)
        raise NoApiServer(
            f"this Pod cannot ask the API server: there is no {token}, and the variable "
            "KUBE_APISERVER_ADDRESS is not set",
            fault="platform",
            hint="give the Pod a service account, and mount its token into the init container",
        )
    names = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
    if missing := [name for name in names if not env.get(name)]:
        message = f"this Pod cannot find the API server: not set: {', '.join(missing)}"
        hint = "the kubelet sets these variables in every container"
        raise NoApiServer(message, fault="platform", hint=hint)
    host, port = (env[name] for name in names)
    return ApiAccess(f"https://{f'[{host}]' if ':' in host else host}:{port}", token, known)


def namespace_of_pod(env: Mapping[str, str]) -> str:
    """The Pod's namespace, which the kubelet writes next to the token; empty if it does not."""
    folder = env.get("PAIRUN_API_CREDENTIALS") or _CREDENTIALS
    try:
        with open(os.path.join(folder, "namespace"), encoding="ascii") as file:
            return file.read(_MAX_NAME).strip()
    except (OSError, UnicodeError):
        return ""


def read_token(path: str | None) -> str:
    """Read the token from a file; empty if the file does not exist.

    Raises:
        NoApiServer: the token cannot be read, or is invalid.
    """
    if path is None:
        return ""
    try:
        with open(path, encoding="ascii") as file:
            token = file.read(_MAX_TOKEN).strip()
    except (OSError, UnicodeError) as e:
        why = (isinstance(e, OSError) and e.strerror) or "it is not text"
        raise NoApiServer(f"the token in {path} cannot be read: {why}", fault="platform") from None
    if not re.fullmatch("[!-~]+", token):
        raise NoApiServer(f"{path} holds no token", fault="platform")
    return token
