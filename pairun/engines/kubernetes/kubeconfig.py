"""Opens a namespace of a cluster, from a kubeconfig or from inside a Pod."""

from __future__ import annotations

import contextlib
import importlib
import logging
import logging.handlers
import os
import re
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pairun.base.escapes import visible
from pairun.engines.kubernetes.cluster import Cluster
from pairun.errors import PairunError, Problem, did_you_mean
from pairun.kube.tokenvolume import CREDENTIALS
from pairun.secrets.vault import Vault

POOL = 64
"""How many connections to keep: one per log stream, and some spare ones."""


class Access(NamedTuple):
    """The cluster that the command line selects; None for what it omits.

    Attributes:
        kubeconfig: the file; default: ``KUBECONFIG``, then ``~/.kube/config``, then, in a Pod, its
            service account.
        context: the context; the default is the current one.
        namespace: the namespace; the default is the context's, then ``default``.
    """

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None


def connect(access: Access, vault: Vault) -> Cluster:
    """Open the namespace that a kubeconfig or this Pod selects; sends no request yet.

    Args:
        access: the selection.
        vault: masks the login: a server may quote it.

    Raises:
        PairunError: the client is incomplete, or the kubeconfig cannot be used.
    """
    try:
        client = importlib.import_module("kubernetes.client")
        config = importlib.import_module("kubernetes.config.kube_config")
    except ImportError as e:
        message = f"the Kubernetes client is incomplete: {e.name or e} is missing"
        raise PairunError(Problem("PR785", message, hint="reinstall pairun")) from None
    # pairun reports their errors itself.
    for name in ("kubernetes", "urllib3"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module="urllib3")
    settings = client.Configuration()
    # The client's default is localhost.
    settings.host = ""
    # Cluster retries calls itself: it knows which ones may be repeated.
    settings.retries = False
    settings.connection_pool_maxsize = POOL
    paths = access.kubeconfig or str(config.KUBE_CONFIG_DEFAULT_LOCATION)
    in_pod = access == Access(namespace=access.namespace) and _is_pod(paths)
    if in_pod:
        namespace = _enter_as_pod(settings)
    else:
        namespace = _enter(config, settings, paths, access.context)
    _hide_login(settings, vault)
    api = client.ApiClient(configuration=settings)
    return Cluster(api, access.namespace or namespace, in_pod=in_pod)


def _hide_login(settings: Any, vault: Vault) -> None:
    """Mask the token and the password, and each token that the client renews."""

    def hide(settings: Any) -> None:
        tokens = [str(value).removeprefix("Bearer ") for value in settings.api_key.values()]
        vault.add([*tokens, settings.password or ""])

    renew = settings.refresh_api_key_hook
    if renew is not None:

        def renew_and_hide(settings: Any) -> None:
            renew(settings)
            hide(settings)

        settings.refresh_api_key_hook = renew_and_hide
    hide(settings)


def _is_pod(paths: str) -> bool:
    """Whether to use the Pod's service account, by kubectl's rule."""
    is_pod = "KUBERNETES_SERVICE_HOST" in os.environ and os.path.exists(f"{CREDENTIALS}/token")
    return is_pod and not _exists(paths) and not os.environ.get("KUBECONFIG")


def _exists(paths: str) -> bool:
    """Whether one of the files of a kubeconfig exists."""
    return any(os.path.exists(os.path.expanduser(p)) for p in paths.split(os.pathsep) if p)


def _enter_as_pod(settings: Any) -> str:
    """Load the Pod's service account (Kubernetes, "Accessing the API from a Pod"); its namespace."""
    config = importlib.import_module("kubernetes.config.incluster_config")
    try:
        config.load_incluster_config(settings)
        with open(f"{CREDENTIALS}/namespace", encoding="utf-8") as f:
            return f.read().strip()
    except (config.ConfigException, OSError, ValueError) as e:
        message = f"this Pod's service account at {CREDENTIALS} cannot be used: {e}"
        raise PairunError(Problem("PR786", message, hint="give a file with --kubeconfig")) from None


def _enter(config: Any, settings: Any, paths: str, chosen: str | None) -> str:
    """Load a kubeconfig; returns the namespace of its context."""
    read = _read_kubeconfig(config, paths)
    context = _context(read, paths, chosen)
    try:
        with _logged_errors() as logged:
            config.KubeConfigLoader(
                config_dict=read, active_context=context["name"], config_base_path=None
            ).load_and_set(settings)
    except Exception as e:  # noqa: BLE001  # the client raises anything for a bad file
        raise _unusable(paths, _config_words(e), _SEE) from None
    complaints = [record.getMessage() for record in logged.buffer]
    if complaints and not (settings.api_key or settings.cert_file or settings.username):
        # The client would continue without a login.
        words = visible("; ".join(complaints))[:500]
        hint = "log in again, or check the command of the kubeconfig's user"
        raise _unusable(paths, f"the login of '{visible(context['user'])}' failed: {words}", hint)
    address = urlsplit(settings.host)
    if address.scheme not in ("http", "https") or not address.netloc:
        raise _unusable(paths, f"context '{visible(context['name'])}' has no server address")
    return context["namespace"] or "default"


@contextlib.contextmanager
def _logged_errors() -> Iterator[logging.handlers.BufferingHandler]:
    """Keep what the client logs about a failed login: the client raises nothing."""
    handler = logging.handlers.BufferingHandler(capacity=1000)
    handler.setLevel(logging.ERROR)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield handler
    finally:
        root.removeHandler(handler)


def _read_kubeconfig(config: Any, paths: str) -> Any:
    """Read the files as one document, merged as the official client does."""
    if not _exists(paths):
        if "KUBERNETES_SERVICE_HOST" in os.environ and paths == "~/.kube/config":
            message = f"this Pod has no token at {CREDENTIALS}, and no kubeconfig at {paths}"
            hint = "let the container mount its service account's token, or give a file with --kubeconfig"
            raise PairunError(Problem("PR786", message, hint=hint))
        raise _unusable(paths, "the file does not exist")
    try:
        read = config.KubeConfigMerger(paths).config
    except OSError as e:
        raise _unusable(paths, e.strerror or str(e)) from None
    except Exception as e:  # noqa: BLE001
        # Never show the text: the line may contain a token.
        mark = getattr(e, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark is not None else ""
        raise _unusable(paths, f"it is not a kubeconfig in YAML{where}") from None
    return read


def _context(read: Any, paths: str, chosen: str | None) -> dict[str, str]:
    """Name, namespace and user of the selected context, else of the current one."""
    try:
        values = [getattr(c, "value", c) for c in read.value["contexts"]]
        known = {str(c["name"]): c.get("context") or {} for c in values}
        name = chosen or read.value.get("current-context")
        namespace = str(known.get(name, {}).get("namespace") or "")
        user = str(known.get(name, {}).get("user") or "")
        users = {str(getattr(u, "value", u)["name"]) for u in read.value.get("users") or ()}
    except (AttributeError, KeyError, TypeError):
        raise _unusable(paths, "it is not a kubeconfig in YAML") from None
    if not name:
        raise _unusable(paths, "it has no current context", "choose one with --context")
    if name not in known:
        hint = did_you_mean(str(name), known)
        raise _unusable(paths, f"there is no context '{visible(str(name))}' in it", hint)
    if user and user not in users:
        hint = did_you_mean(user, users) or _SEE
        raise _unusable(paths, f"there is no user '{visible(user)}' in it", hint)
    return {"name": str(name), "namespace": namespace, "user": user}


_SEE = "run `kubectl config view` to see its content"


def _unusable(paths: str, why: str, hint: str | None = None) -> PairunError:
    hint = hint or "set the file with --kubeconfig or KUBECONFIG"
    return PairunError(Problem("PR786", f"kubeconfig {visible(paths)}: {why}", hint=hint))


def _config_words(e: Exception) -> str:
    """The error without quotes from the file: the client's messages can contain a token."""
    text = str(e)
    for pattern in (r"Expected key [\w-]+", r"Expected object with name [\w.@:/-]+",
                    r"File does not exist: [^\n]+", r"exec: process returned \d+"):  # fmt: skip
        if match := re.search(pattern, text):
            return visible(match.group())
    return f"its login or its server cannot be used ({type(e).__name__})"
