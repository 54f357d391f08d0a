"""A Pod's client of the API server: verified TLS, one persistent connection, strict limits."""

from __future__ import annotations

import contextlib
import math
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from pairun.base.foreignjson import parse_json
from pairun.base.refusals import REFUSALS, Refusals
from pairun.module import Failure, Fetched, Permanent, TimedOut, Transient
from pairun.net.apianswers import Refused, failure_of_answer, status_object
from pairun.net.apicredentials import NoApiServer, access_of_pod, read_token
from pairun.net.authorities import cluster_context
from pairun.net.failures import BadCertificate
from pairun.net.session import Deadline, Session, parse_address, too_large

METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""An `accept` header for objects without spec and status."""

_LONGEST_EVENT = 64 * 1024 * 1024
_LARGEST_ANSWER = 1024 * 1024


class _Question(NamedTuple):
    """A request; with ``data``, a request to create an object."""

    path: str
    query: Mapping[str, str] | None = None
    accept: str | None = None
    max_bytes: int = _LARGEST_ANSWER
    data: bytes | None = None
    is_watch: bool = False


class ApiServer:
    """The API server of one cluster.

    Args:
        address: its address: ``https://HOST:PORT``.
        token: the path of the token; None for requests without one.
        authority: the path of the CA that signed the server's certificate; None for those of this
            machine.
        refusals: what is known about the server's failures.

    Raises:
        NoApiServer: the address is invalid, or the token cannot be read.
    """

    def __init__(
        self,
        address: str,
        token: str | None = None,
        authority: str | None = None,
        refusals: Refusals = REFUSALS,
    ) -> None:
        try:
            parts = parse_address(address)
        except Permanent:
            message = "the address of the API server is not a plain http or https address"
            raise NoApiServer(message, fault="platform", hint="https://HOST:PORT") from None
        self._secure = parts.scheme == "https"
        self.host = parts.hostname or ""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        netloc = f"{shown}:{parts.port or (443 if self._secure else 80)}"
        self._base = f"{parts.scheme}://{netloc}"
        self._token_file, self._authority = token, authority
        self._token = read_token(token)
        self._refusals = refusals
        self._session: Session | None = None
        self.where = f"the API server at {netloc}"

    @classmethod
    def in_pod(cls, env: Mapping[str, str], refusals: Refusals = REFUSALS) -> ApiServer:
        """Open the API server of this Pod's cluster; see `access_of_pod`.

        Raises:
            NoApiServer: lists everything that is missing.
        """
        return cls(*access_of_pod(env), refusals)

    def ask(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        accept: str | None = None,
        timeout_s: float,
        max_bytes: int,
    ) -> bytes | None:
        """Read an object or a list; after a 401 read the token again and retry once.

        Args:
            path: the path of the resource, quoted.
            query: the query string, without the question mark.
            accept: the requested media type; JSON by default.
            timeout_s: seconds for everything: name, connection, TLS, response.
            max_bytes: the largest body.

        Returns:
            The body of a 200; None if the object does not exist.

        Raises:
            Refused: a permanent 401 or 403: the server rejects this Pod's token, or the account lacks a right.
            Transient: there was no response, or none that is HTTP; a status that is worth a retry;
                a 401 or 403 that may be temporary (`Refusals`).
            TimedOut: the time limit was exceeded.
            NoApiServer: the server's certificate is not valid, or the token cannot be read.
            Permanent: any other status, or the body is larger than ``max_bytes``.
        """
        question = _Question(path, query, accept, max_bytes)
        return self._object(question, timeout_s, (200,), (404, "NotFound"))

    def post(self, path: str, data: bytes, *, timeout_s: float) -> bytes | None:
        """Create an object, once.

        Args:
            path: the path of the collection, quoted.
            data: the object as JSON; with a fixed name, a repeated request creates only one.
            timeout_s: seconds for everything.

        Returns:
            The created object; None if an object with this name already exists.

        Raises:
            Failure: as for `ask`.
        """
        question = _Question(path, data=data)
        return self._object(question, timeout_s, (200, 201, 202), (409, "AlreadyExists"))

    def watch(
        self, path: str, *, query: Mapping[str, str] | None = None, timeout_s: float
    ) -> Iterator[dict[str, Any]]:
        """Yield events of a collection as they arrive, until the server ends or the time is up.

        Uses a separate connection (Kubernetes API concepts, "Efficient detection of changes").

        Args:
            path: the path of the collection, quoted.
            query: selectors and ``resourceVersion``.

        Raises:
            Failure: as for `ask`; an event that is not JSON is `Transient`.
        """
        deadline = Deadline(timeout_s)
        parameters = {**(query or {}), "watch": "1", "timeoutSeconds": str(math.ceil(timeout_s))}
        question = _Question(path, parameters, is_watch=True)
        try:
            with self._noted(), self._new_session() as session:
                head = self._head(session, question, deadline)
                if head.status == 200:
                    for line in _lines(session, deadline):
                        yield parse_json(line)
                    return
                answer = head._replace(body=session.body(deadline, _LARGEST_ANSWER))
        except TimedOut:
            return
        except ValueError as e:
            raise Transient(f"{self.where} sent an event that is not JSON") from e
        raise self._failure(question, answer)

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    # --- one request -----------------------------------------------------------------------------

    def _object(
        self, question: _Question, timeout_s: float, ok: tuple[int, ...], none: tuple[int, str]
    ) -> bytes | None:
        """The body of a response with a status of ``ok``; None for the status and reason ``none``."""
        deadline = Deadline(timeout_s)
        answer = self._taken(question, deadline)
        if answer.status == 401 and self._token_file is not None:
            # The kubelet replaces a token before it expires; ours may be the previous one.
            self._token = read_token(self._token_file)
            answer = self._taken(question, deadline)
        if answer.header("content-encoding") == "gzip":
            answer = answer._replace(body=self._inflated(answer.body, question.max_bytes))
        if answer.status in ok:
            return answer.body
        if (answer.status, status_object(answer.body).get("reason")) == none:
            return None
        raise self._failure(question, answer)

    def _taken(self, question: _Question, deadline: Deadline) -> Fetched:
        """Send a request on the persistent connection, and read the whole response."""
        is_kept = self._session is not None
        session = self._session = self._session or self._new_session()
        try:
            with self._noted():
                head = self._head(session, question, deadline)
                if session.reconnected:
                    # It broke between two requests, perhaps because the server restarted.
                    self._refusals.failed()
                return head._replace(body=session.body(deadline, question.max_bytes))
        except BaseException as e:
            self.close()
            if isinstance(e, TimedOut):
                self._refusals.failed()
            if not (is_kept and isinstance(e, Transient)):
                raise
        # The server may have closed an idle connection. A retry is safe: the request only reads,
        # or creates an object with a fixed name.
        return self._taken(question, deadline)

    @contextlib.contextmanager
    def _noted(self) -> Iterator[None]:
        """Record a failure of the connection, and explain one of the certificate."""
        try:
            yield
        except Transient:
            self._refusals.failed()
            raise
        except BadCertificate as e:
            by = f"by {self._authority}" if self._authority else "by an authority of this machine"
            raise NoApiServer(
                f"the certificate of {self.where} is not the one expected: it is not signed {by}, "
                f"or made out to another name ({e.reason})",
                fault="platform",
                hint="the Pod's ca.crt must be the cluster's; check that no proxy intercepts the connection",
            ) from None

    def _failure(self, question: _Question, answer: Fetched) -> Failure:
        """The failure that a response means; a 401 or 403 may be temporary."""
        verb = "" if question.data is None else "create"
        failure = failure_of_answer(
            answer, self.where, question.path, token_file=self._token_file, verb=verb
        )
        if self._refusals.may_pass(answer.status) and isinstance(failure, Refused):
            message = f"{failure.message}; this may be temporary, because requests failed before"
            return Transient(message, fault="platform", hint=failure.hint)
        return failure

    def _head(self, session: Session, question: _Question, deadline: Deadline) -> Fetched:
        path, query, accept, _, data, is_watch = question
        headers = {"Accept": accept or "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if not is_watch:
            # The server compresses large responses (Kubernetes API concepts, "Compression").
            headers["Accept-Encoding"] = "gzip"
        if data is not None:
            headers["Content-Type"] = "application/json"
        url = self._base + path + (f"?{urlencode(query)}" if query else "")
        return session.ask("GET" if data is None else "POST", url, deadline, headers, data)

    def _inflated(self, body: bytes, max_bytes: int) -> bytes:
        # One byte above the limit shows that the body is too large.
        inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            inflated = inflater.decompress(body, max_bytes + 1)
        except zlib.error:
            inflated = b""
        if len(inflated) > max_bytes:
            raise too_large(self.where, max_bytes)
        if not inflater.eof:
            raise Transient(f"{self.where} sent invalid compressed data", fault="platform")
        return inflated

    def _new_session(self) -> Session:
        try:
            return Session(self.where, cluster_context(self._authority) if self._secure else None)
        except OSError as e:
            raise NoApiServer(
                f"the certificate authority {self._authority or 'of this image'} cannot be used: "
                f"{e.strerror or 'no certificate'}",
                fault="platform",
            ) from e


def _lines(session: Session, deadline: Deadline) -> Iterator[bytes]:
    """The lines of a body as they arrive; the last one may be incomplete.

    Raises:
        ValueError: a line is longer than any event.
    """
    rest = b""
    while piece := session.read(deadline):
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        if len(rest) > _LONGEST_EVENT:
            raise ValueError("it is too long")
    if rest:
        yield rest
