"""A namespace of a cluster, through the official client: raw objects and deadlines.

pairun uses only the client's access to clusters: kubeconfig files, certificates, logins, proxies.
It sends and reads the JSON objects of the Kubernetes API itself
(kubernetes.io/docs/reference/kubernetes-api), without the client's models.
"""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from pairun.base.foreignjson import parse_record
from pairun.base.refusals import Refusals
from pairun.engines.kubernetes import apierrors
from pairun.engines.kubernetes.apierrors import ClusterRefusal, Unreachable
from pairun.kube.paths import object_path
from pairun.module import TimedOut, Transient
from pairun.net.apianswers import status_object
from pairun.net.boundedcall import lookup

_CALL_S = 60
"""Limit for one call, from the request to the last byte of the response."""
BUSY_S = 60
"""How long pairun retries an overloaded server (429)."""
MAX_RESPONSE_BYTES = 64 * 1024 * 1024
PAGE = 500
"""Objects per page of a list."""

MERGE = "application/merge-patch+json"


class Cluster:
    """A namespace of a cluster.

    Args:
        api: an ``ApiClient`` of the official client.
        namespace: the namespace of all paths.
        in_pod: whether the login is that of this Pod's service account.
    """

    def __init__(self, api: Any, namespace: str, *, in_pod: bool = False) -> None:
        self._api = api
        self.namespace = namespace
        self.in_pod = in_pod
        self.server = str(api.configuration.host)
        self._refusals = Refusals()
        self._is_resolved = False

    def path(self, api_version: str, plural: str, name: str = "", sub: str = "") -> str:
        """The path of a collection in the namespace, of one object, or of its subresource."""
        return object_path(api_version, plural, self.namespace, name, sub)

    def version(self) -> str:
        """The server's Kubernetes version, such as ``1.28``."""
        version = self.get("/version")
        return f"{version.get('major')}.{version.get('minor')}".rstrip("+")

    def date(self) -> str | None:
        """The ``Date`` of a response: the server's clock (RFC 9110, 6.6.1)."""
        with self._response("GET", "/version") as r:
            date = r.headers.get("Date")
            # A connection can be reused only after its response is read to the end.
            for _ in r.stream(65536):
                pass
        return None if date is None else str(date)

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Read one object."""
        return self._json("GET", path, query=query)

    def create(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object; from Kubernetes 1.25 on, a field unknown to the server is an error."""
        return self._json("POST", path, query={"fieldValidation": "Strict"}, body=body)

    def merge(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Merge a patch into an object."""
        return self._json("PATCH", path, body=body, content_type=MERGE)

    def delete(self, path: str, uid: str) -> bool:
        """Delete the object with this uid; False if it no longer exists.

        Kubernetes then deletes the objects that it owns, after their grace time.
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
        """List the objects that match a label selector; requests one page at a time."""
        for page in self.pages(path, selector):
            yield from page.get("items") or ()

    def pages(self, path: str, selector: str) -> Iterator[dict[str, Any]]:
        """List the pages of objects that match a label selector, each with its resource version.

        A token expires after 5 to 10 minutes. Later pages then have another version.
        """
        query = {"labelSelector": selector, "limit": str(PAGE)}
        while True:
            try:
                page = self._json("GET", path, "list", query=query)
            except ClusterRefusal as e:
                if not e.next_page:
                    raise
                query["continue"] = e.next_page
                continue
            yield page
            more = page.get("metadata", {}).get("continue")
            if not more:
                return
            query = {**query, "continue": more}

    def watch(
        self, path: str, selector: str, version: str, seconds: int
    ) -> Iterator[dict[str, Any]]:
        """Yield the changes after a resource version, for some seconds.

        Raises:
            Unreachable, ClusterRefusal: also for a version that is too old (status 410).
        """
        query = {
            "watch": "true",
            "labelSelector": selector,
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        rest = b""
        for data in self.stream(path, query, silence_s=seconds + apierrors.SILENCE_S, verb="watch"):
            rest += data
            *lines, rest = rest.split(b"\n")
            for event in (self._parse(line) for line in lines if line):
                if event.get("type") == "ERROR":
                    status = event.get("object") or {}
                    code = status.get("code")
                    code = code if isinstance(code, int) else 500
                    raise self._refusal("watch", path, code, status)
                yield event
            if len(rest) > MAX_RESPONSE_BYTES:
                raise self._unreachable("a response that never ends")

    def stream(
        self, path: str, query: Mapping[str, str], *, silence_s: float, verb: str = "get"
    ) -> Iterator[bytes]:
        """Yield the bytes of a response as they arrive.

        Args:
            silence_s: the read fails after this many seconds without a byte.
            verb: the verb in a Role.

        Raises:
            Unreachable, ClusterRefusal: the server does not respond, or responds with an error.
        """
        with self._response("GET", path, verb, query=query, silence_s=silence_s) as response:
            yield from response.stream(65536)

    def log(
        self, pod: str, query: Mapping[str, str], silence_s: float = apierrors.SILENCE_S
    ) -> Iterator[bytes]:
        """Yield the bytes of a container's log; see `stream` (Pod API, "read log")."""
        return self.stream(self.path("v1", "pods", pod, "log"), query, silence_s=silence_s)

    def _json(self, method: str, path: str, verb: str = "", **parts: Any) -> dict[str, Any]:
        """Make one call; retry it for a while if the server is overloaded."""
        end = time.monotonic() + BUSY_S
        while True:
            try:
                return self._parse(self._read(method, path, verb, **parts))
            except ClusterRefusal as e:
                if e.status != 429 or time.monotonic() + e.retry_after_s > end:
                    raise
                wait_s = e.retry_after_s
            time.sleep(wait_s)

    def _read(self, method: str, path: str, verb: str, **parts: Any) -> bytes:
        """The whole body of a response."""
        data, end = bytearray(), time.monotonic() + _CALL_S
        with self._response(method, path, verb, **parts) as response:
            for part in response.stream(65536):
                data += part
                if time.monotonic() > end:
                    raise self._unreachable(f"no complete response within {_CALL_S} s")
                if len(data) > MAX_RESPONSE_BYTES:
                    raise self._unreachable("a response that never ends")
        return bytes(data)

    def _parse(self, data: bytes) -> dict[str, Any]:
        if (parsed := parse_record(data)) is None:
            raise self._unreachable("the response is not from an API server")
        return parsed

    @contextlib.contextmanager
    def _response(
        self,
        method: str,
        path: str,
        verb: str = "",
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        silence_s: float | None = None,
    ) -> Iterator[Any]:
        from urllib3.exceptions import HTTPError

        api_exception = importlib.import_module("kubernetes.client.exceptions").ApiException
        response = None
        whole = False
        self._resolve()
        try:
            response = self._api.call_api(
                path,
                method,
                query_params=list((query or {}).items()),
                header_params={
                    "Accept": "application/json",
                    "Content-Type": content_type,
                    "User-Agent": "pairun",
                },
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _return_http_data_only=True,
                _request_timeout=(apierrors.CONNECT_S, silence_s or apierrors.SILENCE_S),
            )
            yield response
            whole = True
        except api_exception as e:
            if not e.status:
                raise self._unreachable(str(e.reason)) from None
            raise self._refusal(
                verb or apierrors.VERBS[method], path, int(e.status), status_object(e.body or b""),
                (e.headers or {}).get("Retry-After"),
            ) from None  # fmt: skip
        except (HTTPError, OSError) as e:
            raise self._unreachable(str(e)) from None
        finally:
            if response is not None:
                if not whole:
                    response.close()
                response.release_conn()

    def _resolve(self) -> None:
        """Look up the server's name, once: a name server can block the client for minutes.

        Raises:
            Unreachable: no name server answered in time.
        """
        host = urlsplit(self._api.configuration.proxy or self.server).hostname
        if not self._is_resolved and host:
            try:
                lookup(host, apierrors.CONNECT_S)
            except TimedOut as e:
                raise self._unreachable(e.message) from None
            except Transient:
                pass  # the client's request fails, too
            self._is_resolved = True

    def _refusal(
        self,
        verb: str,
        path: str,
        status: int,
        document: Mapping[str, Any],
        retry_after: str | None = None,
    ) -> ClusterRefusal:
        passing = self._refusals.may_pass(status)
        return apierrors.refusal(
            self.server, verb, path, status, document, retry_after, passing=passing
        )

    def _unreachable(self, why: str) -> Unreachable:
        self._refusals.failed()
        return apierrors.unreachable(self.server, why)
