"""The API server through the official client: raw objects, deadlines, errors for people.

The client's models and generated methods are not used: pairun sends and reads the JSON objects of
the Kubernetes API (kubernetes.io/docs/reference/kubernetes-api). The client does what differs
between clusters: kubeconfig files, certificates, logins, proxies.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import logging.handlers
import os
import re
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from pairun.base.retryafter import is_worth_a_retry, retry_after_s
from pairun.errors import PairunError, Problem, did_you_mean
from pairun.report.terminal import visible

CONNECT_S = 10
CALL_S = 60
"""How long one call may take, from its first byte to the last of its answer."""
SILENCE_S = 30
"""How long the server may say nothing in the middle of an answer."""
BUSY_S = 60
"""How long a server that has too much to do (429) is asked again."""
TROUBLE_S = 300
"""How long a server that does not answer is asked again while a job is followed."""
MAX_ANSWER_BYTES = 64 * 1024 * 1024
POOL = 64
"""Connections that are kept: one per stream of logs, and some."""
PAGE = 500
"""Objects per page of a list."""

POD_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where kubelet puts what a Pod's service account is."""
MERGE = "application/merge-patch+json"
VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}


class Access(NamedTuple):
    """Which cluster, as people say it on the command line; None where they say nothing.

    Attributes:
        kubeconfig: the file; ``KUBECONFIG``, else ``~/.kube/config``, else, in a Pod, its service
            account.
        context: its context; the current one.
        namespace: the namespace; the context's, else ``default``.
    """

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None


class Unreachable(PairunError):
    """The API server gave no answer; it may later."""


class ClusterRefusal(PairunError):
    """The API server's answer is an error.

    Args:
        problem: what it says.
        status: the HTTP status.
        reason: the API's word for it, as ``AlreadyExists``.
        retry_after_s: when it may be asked again, if it says so.
    """

    def __init__(
        self, problem: Problem, status: int, reason: str, retry_after_s: float = 1.0
    ) -> None:
        super().__init__(problem)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s

    @property
    def passing(self) -> bool:
        """Whether the same question may be answered later."""
        return is_worth_a_retry(self.status)


class Patience:
    """How long an API server that stays away, or has trouble of its own, is asked again."""

    def __init__(self) -> None:
        self._since: float | None = None

    def answered(self) -> None:
        """It is there."""
        self._since = None

    def bear(self, e: ClusterRefusal | Unreachable) -> None:
        """Take an error that may pass.

        Raises:
            ClusterRefusal, Unreachable: the error, when it will not pass, or has lasted too long.
        """
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if (isinstance(e, ClusterRefusal) and not e.passing) or now - self._since > TROUBLE_S:
            raise e


class Cluster:
    """A namespace of a cluster.

    Args:
        api: an ``ApiClient`` of the official client.
        namespace: what all paths are in.
    """

    def __init__(self, api: Any, namespace: str) -> None:
        self._api = api
        self.namespace = namespace
        self.server = str(api.configuration.host)

    def path(self, api_version: str, plural: str, name: str = "", sub: str = "") -> str:
        """The path of objects in the namespace, of one of them, or of a part of one."""
        root = "/apis/" if "/" in api_version else "/api/"
        parts = ["namespaces", self.namespace, plural, *filter(None, (name, sub))]
        return f"{root}{api_version}/{'/'.join(quote(p, safe='') for p in parts)}"

    def version(self) -> str:
        """The server's version of Kubernetes, as ``1.28``."""
        said = self.get("/version")
        return f"{said.get('major')}.{said.get('minor')}".rstrip("+")

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Read one object."""
        return self._json("GET", path, query=query)

    def create(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Make an object; a field that the server does not know is an error where it can tell."""
        return self._json("POST", path, query={"fieldValidation": "Strict"}, body=body)

    def merge(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Change parts of an object."""
        return self._json("PATCH", path, body=body, content_type=MERGE)

    def delete(self, path: str, uid: str) -> bool:
        """Delete this object, and no later one of its name; False where it is gone already.

        What it owns goes after it, with its grace time.
        """
        body = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        try:
            self._json("DELETE", path, body=body)
        except ClusterRefusal as e:
            # 409: another object of this name
            if e.status in (404, 409):
                return False
            raise
        return True

    def objects(self, path: str, selector: str) -> Iterator[dict[str, Any]]:
        """The objects that a label selector finds, page by page."""
        for page in self.pages(path, selector):
            yield from page.get("items") or ()

    def pages(self, path: str, selector: str) -> Iterator[dict[str, Any]]:
        """The lists that a label selector finds, with the version of each."""
        query = {"labelSelector": selector, "limit": str(PAGE)}
        while True:
            page = self._json("GET", path, query=query, verb="list")
            yield page
            more = page.get("metadata", {}).get("continue")
            if not more:
                return
            query = {**query, "continue": more}

    def watch(
        self, path: str, selector: str, version: str, seconds: int
    ) -> Iterator[dict[str, Any]]:
        """What changes after a version, for some seconds.

        Raises:
            Unreachable, ClusterRefusal: also where the version is too old, with status 410.
        """
        query = {
            "watch": "true",
            "labelSelector": selector,
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        rest = b""
        for data in self.stream(path, query, silence_s=seconds + SILENCE_S, verb="watch"):
            rest += data
            *lines, rest = rest.split(b"\n")
            for event in (self._read_json(line) for line in lines if line):
                if event.get("type") == "ERROR":
                    status = event.get("object") or {}
                    code = status.get("code")
                    raise self._refusal(
                        "GET", path, "watch", code if isinstance(code, int) else 500, status
                    )
                yield event
            if len(rest) > MAX_ANSWER_BYTES:
                raise self._unreachable("an answer that never ends")

    def stream(
        self, path: str, query: Mapping[str, str], *, silence_s: float, verb: str = "get"
    ) -> Iterator[bytes]:
        """The bytes of an answer as they come.

        Args:
            path: what to read.
            query: how.
            silence_s: how long nothing may come.
            verb: what a Role would call it.

        Raises:
            Unreachable, ClusterRefusal: as they say.
        """
        with self._answer("GET", path, query, None, None, silence_s, verb) as answer:
            yield from answer.stream(65536)

    def _json(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str | None = None,
        verb: str = "",
    ) -> dict[str, Any]:
        """One call, asked again for a while where the server has too much to do."""
        end = time.monotonic() + BUSY_S
        while True:
            try:
                return self._once(method, path, query, body, content_type, verb)
            except ClusterRefusal as e:
                if e.status != 429 or time.monotonic() + e.retry_after_s > end:
                    raise
                wait_s = e.retry_after_s
            time.sleep(wait_s)

    def _once(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
        content_type: str | None,
        verb: str,
    ) -> dict[str, Any]:
        data = bytearray()
        end = time.monotonic() + CALL_S
        with self._answer(method, path, query, body, content_type, SILENCE_S, verb) as answer:
            for part in answer.stream(65536):
                data += part
                if time.monotonic() > end:
                    raise self._unreachable(f"no whole answer within {CALL_S} s")
                if len(data) > MAX_ANSWER_BYTES:
                    raise self._unreachable("an answer that never ends")
        return self._read_json(bytes(data))

    def _read_json(self, data: bytes) -> dict[str, Any]:
        try:
            read = json.loads(data)
        except (ValueError, RecursionError):
            read = None
        if not isinstance(read, dict):
            raise self._unreachable("what answers there is no API server")
        return read

    @contextlib.contextmanager
    def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
        content_type: str | None,
        silence_s: float,
        verb: str,
    ) -> Iterator[Any]:
        from urllib3.exceptions import HTTPError

        refusal = importlib.import_module("kubernetes.client.exceptions").ApiException
        answer = None
        whole = False
        try:
            answer = self._api.call_api(
                path,
                method,
                query_params=list((query or {}).items()),
                header_params={
                    "Accept": "application/json",
                    "Content-Type": content_type or "application/json",
                    "User-Agent": "pairun",
                },
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _return_http_data_only=True,
                _request_timeout=(CONNECT_S, silence_s),
            )
            yield answer
            whole = True
        except refusal as e:
            if not e.status:
                raise self._unreachable(str(e.reason)) from None
            after_s = _pause_s((e.headers or {}).get("Retry-After"))
            raise self._refusal(
                method, path, verb, int(e.status), _status(e.body), after_s
            ) from None
        except (HTTPError, OSError) as e:
            raise self._unreachable(str(e)) from None
        finally:
            if answer is not None:
                if not whole:
                    answer.close()
                answer.release_conn()

    def _unreachable(self, why: str) -> Unreachable:
        text = f"the API server {self.server} cannot be reached: {_why(why)}"
        return Unreachable(Problem("PR787", text, hint=_hint(why)))

    def _refusal(
        self,
        method: str,
        path: str,
        verb: str,
        status: int,
        said: Mapping[str, Any],
        after_s: float = 1.0,
    ) -> ClusterRefusal:
        reason = str(said.get("reason") or "")
        words = visible(str(said.get("message") or reason or f"HTTP status {status}"))[:1000]
        parts = path.rpartition("/namespaces/")[2].split("/")
        # NAMESPACE/PLURAL/NAME/PART, or a path outside of namespaces
        what = "/".join((*parts[1:2], *parts[3:4]))
        verb = verb or VERBS.get(method, "get")
        hint = None
        if status == 401:
            text = f"the API server {self.server} does not accept this login"
            hint = "log in again: the kubeconfig's token or certificate may have expired"
        elif status == 403 and f"cannot {verb} " in words:
            text = f"not permitted in namespace {self.namespace}: {verb} {what} ({words})"
            hint = f"ask for a Role in that namespace with the verb '{verb}' on '{what}'"
        else:
            text = f"the API server refuses to {verb} {what}: {words}"
            if re.search('serviceaccount "[^"]*" not found', words):
                hint = "deploy/base has what a namespace needs; --service-account names another one"
            elif is_worth_a_retry(status):
                hint = "retry later: the fault is the server's"
        return ClusterRefusal(Problem("PR788", text, hint=hint), status, reason, after_s)


def connect(access: Access) -> Cluster:
    """The namespace that a kubeconfig, or this Pod, leads to; nothing is asked of the server yet.

    Args:
        access: which one.

    Raises:
        PairunError: the client is incomplete, or the kubeconfig cannot be used.
    """
    try:
        client = importlib.import_module("kubernetes.client")
        config = importlib.import_module("kubernetes.config.kube_config")
    except ImportError as e:
        message = f"the Kubernetes client is incomplete: {e.name or e} is missing"
        raise PairunError(Problem("PR785", message, hint="install pairun again")) from None
    # What they have to say is said here, in words.
    for name in ("kubernetes", "urllib3"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module="urllib3")
    settings = client.Configuration()
    # An address that nobody gave would be localhost.
    settings.host = ""
    # Calls are repeated here, where it is known which may be.
    settings.retries = False
    settings.connection_pool_maxsize = POOL
    paths = access.kubeconfig or str(config.KUBE_CONFIG_DEFAULT_LOCATION)
    if access == Access(namespace=access.namespace) and _is_pod(paths):
        namespace = _enter_as_pod(settings)
    else:
        namespace = _enter(config, settings, paths, access.context)
    return Cluster(client.ApiClient(configuration=settings), access.namespace or namespace)


def _is_pod(paths: str) -> bool:
    """Whether a Pod's service account is all there is, as kubectl decides it."""
    there = any(os.path.exists(os.path.expanduser(p)) for p in paths.split(os.pathsep) if p)
    is_pod = "KUBERNETES_SERVICE_HOST" in os.environ and os.path.exists(f"{POD_ACCOUNT}/token")
    return is_pod and not there and not os.environ.get("KUBECONFIG")


def _enter_as_pod(settings: Any) -> str:
    """Set up what every Pod is given (Kubernetes, "Accessing the API from a Pod"); its namespace."""
    config = importlib.import_module("kubernetes.config.incluster_config")
    try:
        config.load_incluster_config(settings)
        with open(f"{POD_ACCOUNT}/namespace", encoding="utf-8") as f:
            return f.read().strip()
    except (config.ConfigException, OSError, ValueError) as e:
        message = f"this Pod's service account at {POD_ACCOUNT} cannot be used: {e}"
        raise PairunError(Problem("PR786", message, hint="--kubeconfig names a file")) from None


def _enter(config: Any, settings: Any, paths: str, wanted: str | None) -> str:
    """Set up what a kubeconfig says; the context's namespace."""
    read = _read_kubeconfig(config, paths)
    context = _context(read, paths, wanted)
    try:
        with _overheard() as heard:
            config.KubeConfigLoader(
                config_dict=read, active_context=context["name"], config_base_path=None
            ).load_and_set(settings)
    except Exception as e:  # noqa: BLE001  # whatever the file makes the client stumble over
        raise _unusable(paths, _config_words(e), _SEE) from None
    complaints = [record.getMessage() for record in heard.buffer]
    if complaints and not (settings.api_key or settings.cert_file or settings.username):
        # The client would go on as nobody.
        words = visible("; ".join(complaints))[:500]
        hint = "log in again, or see what the command of the kubeconfig's user needs"
        raise _unusable(paths, f"the login of '{visible(context['user'])}' failed: {words}", hint)
    address = urlsplit(settings.host)
    if address.scheme not in ("http", "https") or not address.netloc:
        raise _unusable(paths, f"context '{visible(context['name'])}' has no address of a server")
    return context["namespace"] or "default"


@contextlib.contextmanager
def _overheard() -> Iterator[logging.handlers.BufferingHandler]:
    """What the client only logs of a login that failed."""
    heard = logging.handlers.BufferingHandler(capacity=1000)
    heard.setLevel(logging.ERROR)
    root = logging.getLogger()
    root.addHandler(heard)
    try:
        yield heard
    finally:
        root.removeHandler(heard)


def _read_kubeconfig(config: Any, paths: str) -> Any:
    """What the files say together, as the official client merges them."""
    given = [os.path.expanduser(p) for p in paths.split(os.pathsep) if p]
    there = [p for p in given if os.path.exists(p)]
    if not there:
        raise _unusable(paths, "there is no such file")
    try:
        read = config.KubeConfigMerger(paths).config
    except OSError as e:
        raise _unusable(paths, e.strerror or str(e)) from None
    except Exception as e:  # noqa: BLE001
        # The text of it is never shown: it may be the line with a token.
        mark = getattr(e, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark is not None else ""
        raise _unusable(paths, f"it is not the YAML of a kubeconfig{where}") from None
    return read


def _context(read: Any, paths: str, wanted: str | None) -> dict[str, str]:
    """Name, namespace and user of the context that is asked for, else of the current one."""
    try:
        values = [getattr(c, "value", c) for c in read.value["contexts"]]
        known = {str(c["name"]): c.get("context") or {} for c in values}
        name = wanted or read.value.get("current-context")
        namespace = str(known.get(name, {}).get("namespace") or "")
        user = str(known.get(name, {}).get("user") or "")
        users = {str(getattr(u, "value", u)["name"]) for u in read.value.get("users") or ()}
    except (AttributeError, KeyError, TypeError):
        raise _unusable(paths, "it is not the YAML of a kubeconfig") from None
    if not name:
        raise _unusable(paths, "it has no current context", "choose one with --context")
    if name not in known:
        hint = did_you_mean(str(name), known)
        raise _unusable(paths, f"there is no context '{visible(str(name))}' in it", hint)
    if user and user not in users:
        hint = did_you_mean(user, users) or _SEE
        raise _unusable(paths, f"there is no user '{visible(user)}' in it", hint)
    return {"name": str(name), "namespace": namespace, "user": user}


_SEE = "`kubectl config view` shows what is in it"


def _unusable(paths: str, why: str, hint: str | None = None) -> PairunError:
    hint = hint or "--kubeconfig or KUBECONFIG names the file"
    return PairunError(Problem("PR786", f"kubeconfig {visible(paths)}: {why}", hint=hint))


def _config_words(e: Exception) -> str:
    """What is wrong, without what the file says: the client's own words can hold a token."""
    text = str(e)
    for pattern in (r"Expected key [\w-]+", r"Expected object with name [\w.@:/-]+",
                    r"File does not exist: [^\n]+", r"exec: process returned \d+"):  # fmt: skip
        if match := re.search(pattern, text):
            return visible(match.group())
    return f"its login or its server cannot be used ({type(e).__name__})"


def _status(body: object) -> Mapping[str, Any]:
    """A Status of the API, from the body of an error; empty where it is something else."""
    try:
        read = json.loads(body) if isinstance(body, bytes | str) else None
    except (ValueError, RecursionError):
        read = None
    return read if isinstance(read, dict) else {}


def _pause_s(retry_after: str | None) -> float:
    """The seconds to wait by a ``Retry-After``, within bounds; one second where it says nothing."""
    asked_s = retry_after_s(retry_after, time.time())
    return 1.0 if asked_s is None else min(max(asked_s, 0.1), 60.0)


def _why(text: str) -> str:
    """The last words of what the libraries nest into one another."""
    for pattern, words in _WHY:
        if match := re.search(pattern, text, re.IGNORECASE):
            return words.format(*match.groups())
    return visible(text.replace("\n", " "))[-300:]


def _hint(why: str) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in why or "WRONG_VERSION" in why:
        return "the kubeconfig's certificate-authority-data and server must be of one cluster"
    return "see the server's address in the kubeconfig, and what lies between here and there"


_WHY = (
    (r"certificate verify failed: ([^(\[]+)", "its certificate is not trusted: {0}"),
    (r"WRONG_VERSION_NUMBER", "it does not speak TLS"),
    (r"Connection refused", "the connection is refused"),
    (r"Name or service not known|failure in name resolution|No address associated|nodename nor",
     "its name is not known"),
    (r"(?:connect timeout|ConnectTimeout)", f"no connection within {CONNECT_S} s"),
    (r"Read timed out", f"it says nothing for {SILENCE_S} s"),
    (r"(?:Connection aborted|Remote end closed|Connection reset|IncompleteRead|prematurely)",
     "it broke the connection off"),
    (r"unreachable", "no way leads there"),
)  # fmt: skip
