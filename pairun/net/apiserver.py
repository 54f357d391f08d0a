"""The cluster's API server, as a Pod asks it: verified TLS, one kept connection, limits that hold."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from pairun.module import Fetched, TimedOut, Transient
from pairun.net.apianswers import Asked, failure_of_answer, status_object
from pairun.net.apicredentials import NoApiServer, access_of_pod, read_token
from pairun.net.authorities import cluster_context
from pairun.net.exchange import Deadline, Exchange, too_large
from pairun.net.failures import BadCertificate
from pairun.net.session import Session

METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""An `accept` that leaves an object's spec and status with the server."""

_LONGEST_EVENT = 64 * 1024 * 1024
_LARGEST_ANSWER = 1024 * 1024


class _Question(NamedTuple):
    """What is asked; with ``data``, what shall be made."""

    target: str
    accept: str | None
    max_bytes: int
    data: bytes | None = None
    is_watch: bool = False


class ApiServer:
    """The API server of one cluster.

    Args:
        address: where it is: ``https://HOST:PORT``.
        token: the file that holds the token, or None to ask without one.
        authority: the file of the authority that signed the server's certificate, or None for
            those of this machine.

    Attributes:
        host: its name or address.
        where: the server, for people.

    Raises:
        NoApiServer: the address is none, or the token cannot be read.
    """

    def __init__(
        self, address: str, token: str | None = None, authority: str | None = None
    ) -> None:
        try:
            parts = urlsplit(address)
            self.host, port = parts.hostname or "", parts.port
        except ValueError:
            self.host, port = "", None
        if parts.scheme not in ("http", "https") or not self.host:
            raise NoApiServer(
                "the address of the API server is no plain http or https address",
                fault="platform",
                hint="https://HOST:PORT",
            )
        self._secure = parts.scheme == "https"
        shown = f"[{self.host}]" if ":" in self.host else self.host
        netloc = f"{shown}:{port or (443 if self._secure else 80)}"
        self._base = f"{parts.scheme}://{netloc}"
        self._token_file, self._authority = token, authority
        self._token = read_token(token)
        self._session: Session | None = None
        self.where = f"the API server at {netloc}"

    @classmethod
    def in_pod(cls, env: Mapping[str, str]) -> ApiServer:
        """The API server of the cluster that this Pod is in; see `access_of_pod`.

        Raises:
            NoApiServer: what is missing, all of it.
        """
        return cls(*access_of_pod(env))

    def get(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        accept: str | None = None,
        timeout_s: float,
        max_bytes: int,
    ) -> Fetched:
        """Ask for something, once; after a 401, once more with the token as the file has it now.

        Args:
            path: of the resource, quoted.
            query: what follows the question mark.
            accept: the form that is wanted; JSON by default.
            timeout_s: seconds for everything: name, connection, TLS, answer.
            max_bytes: the largest body.

        Raises:
            Transient: there was no answer, or none that is HTTP.
            TimedOut: the time was up.
            NoApiServer: the server's certificate is not valid, or the token cannot be read.
            Permanent: the body is larger than ``max_bytes``.
        """
        target = path + (f"?{urlencode(query)}" if query else "")
        return self._admitted(_Question(target, accept, max_bytes), timeout_s)

    def ask(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        accept: str | None = None,
        timeout_s: float,
        max_bytes: int,
    ) -> bytes | None:
        """The same, for callers who want the body or a failure in words.

        Returns:
            The body of a 200; None where the object does not exist.

        Raises:
            Refused: 401 or 403: this Pod's token is not accepted, or lacks a right.
            Transient: a status that is worth a retry, and as `get`.
            Failure: as `get`, and any other status.
        """
        answer = self.get(
            path, query=query, accept=accept, timeout_s=timeout_s, max_bytes=max_bytes
        )
        if answer.status == 200:
            return answer.body
        if answer.status == 404 and status_object(answer.body).get("reason") == "NotFound":
            return None
        raise failure_of_answer(self._asked(path), answer)

    def post(self, path: str, data: bytes, *, timeout_s: float) -> bytes | None:
        """Have an object made, once.

        Args:
            path: of the collection, quoted.
            data: the object as JSON; with a name of its own, asking twice makes one.
            timeout_s: seconds for everything.

        Returns:
            The object as it was made; None where there is one of that name already.

        Raises:
            Failure: as `ask`.
        """
        answer = self._admitted(_Question(path, None, _LARGEST_ANSWER, data), timeout_s)
        if answer.status in (200, 201, 202):
            return answer.body
        if answer.status == 409 and status_object(answer.body).get("reason") == "AlreadyExists":
            return None
        raise failure_of_answer(self._asked(path, "create"), answer)

    def watch(
        self, path: str, *, query: Mapping[str, str] | None = None, timeout_s: float
    ) -> Iterator[dict[str, Any]]:
        """Events of a collection as they come, until the server ends it or the time is up.

        They come on a connection of their own (Kubernetes API concepts, "Efficient detection of
        changes").

        Args:
            path: of the collection, quoted.
            query: selectors and ``resourceVersion``.
            timeout_s: seconds after which it ends.

        Raises:
            Failure: as `ask`; an event that is no JSON is `Transient`.
        """
        deadline = Deadline(timeout_s)
        parameters = {**(query or {}), "watch": "1", "timeoutSeconds": str(math.ceil(timeout_s))}
        target = f"{path}?{urlencode(parameters)}"
        question = _Question(target, None, _LARGEST_ANSWER, is_watch=True)
        try:
            with (
                self._new_session() as session,
                self._exchange(session, question, deadline) as exchange,
            ):
                head = exchange.head(deadline)
                if head.status != 200:
                    answer = head._replace(body=exchange.body(deadline, _LARGEST_ANSWER))
                    raise failure_of_answer(self._asked(path), answer)
                for line in _lines(exchange, deadline):
                    yield json.loads(line)
        except TimedOut:
            return
        except ValueError as e:
            raise Transient(f"{self.where} sent an event that is no JSON") from e
        except BadCertificate as e:
            raise self._distrust(e) from None

    def close(self) -> None:
        """Let go of the connection; the next question makes another."""
        session, self._session = self._session, None
        if session is not None:
            session.abort()
            session.close()

    # --- one question ----------------------------------------------------------------------------

    def _admitted(self, question: _Question, timeout_s: float) -> Fetched:
        """The answer to a question; after a 401 it is asked again with the token of now."""
        deadline = Deadline(timeout_s)
        answer = self._answer(question, deadline)
        if answer.status == 401 and self._token_file is not None:
            # The kubelet replaces a token before it expires; ours may be the one before.
            self._token = read_token(self._token_file)
            answer = self._answer(question, deadline)
        return answer

    def _answer(self, question: _Question, deadline: Deadline) -> Fetched:
        """The answer, over the connection that is kept where that still works."""
        kept = self._session
        connections = kept.connections if kept is not None else 0
        try:
            answer = self._taken(question, deadline)
        except Transient:
            if kept is None or kept.connections != connections:
                raise
            # The server may have closed a connection that was idle. The question can be asked
            # again: it only reads, or makes an object that has a name.
            answer = self._taken(question, deadline)
        if answer.header("content-encoding") == "gzip":
            return answer._replace(body=self._inflated(answer.body, question.max_bytes))
        return answer

    def _taken(self, question: _Question, deadline: Deadline) -> Fetched:
        """Ask once, and take the whole answer; a connection that fails is not kept."""
        if self._session is None:
            self._session = self._new_session()
        try:
            with self._exchange(self._session, question, deadline) as exchange:
                head = exchange.head(deadline)
                return head._replace(body=exchange.body(deadline, question.max_bytes))
        except BaseException as e:
            self.close()
            if isinstance(e, BadCertificate):
                raise self._distrust(e) from None
            raise

    def _exchange(self, session: Session, question: _Question, deadline: Deadline) -> Exchange:
        headers = {"Accept": question.accept or "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if not question.is_watch:
            # The server compresses what is large (Kubernetes API concepts, "Compression").
            headers["Accept-Encoding"] = "gzip"
        if question.data is not None:
            headers["Content-Type"] = "application/json"
        return Exchange(
            session,
            "GET" if question.data is None else "POST",
            self._base + question.target,
            headers=headers,
            deadline=deadline,
            data=question.data,
        )

    def _inflated(self, body: bytes, max_bytes: int) -> bytes:
        # One byte more than allowed shows that there is more.
        inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            inflated = inflater.decompress(body, max_bytes + 1)
        except zlib.error:
            inflated = b""
        if len(inflated) > max_bytes:
            raise too_large(self.where, max_bytes)
        if not inflater.eof:
            raise Transient(f"{self.where} sent what cannot be inflated", fault="platform")
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

    def _asked(self, path: str, verb: str | None = None) -> Asked:
        return Asked(self.where, path, self._token_file, verb)

    def _distrust(self, failure: BadCertificate) -> NoApiServer:
        by = f"by {self._authority}" if self._authority else "by an authority of this machine"
        return NoApiServer(
            f"the certificate of {self.where} is not the one expected: it is not signed {by}, "
            f"or made out to another name ({failure.reason})",
            fault="platform",
            hint="the Pod's ca.crt must be the cluster's; something may stand in between",
        )


def _lines(exchange: Exchange, deadline: Deadline) -> Iterator[bytes]:
    """The lines of a body as they come; the last may lack its end.

    Raises:
        ValueError: a line is longer than any event.
    """
    rest = b""
    while piece := exchange.read(deadline):
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        if len(rest) > _LONGEST_EVENT:
            raise ValueError("it is too long")
    if rest:
        yield rest
