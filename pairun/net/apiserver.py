"""The cluster's API server, as a Pod asks it: verified TLS, one kept connection, limits that hold.

Where it is and who asks stands where every client in a Pod finds it (Kubernetes documentation,
"Accessing the Kubernetes API from a Pod"). The token appears in no message.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import os
import queue
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from pairun.base.system import BUNDLED
from pairun.module import Failure, Permanent, TimedOut, Transient, format_duration
from pairun.net.authorities import find_authorities

CREDENTIALS = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where the kubelet puts token, authority and namespace of the Pod's service account."""

METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""An `accept` that leaves an object's spec and status with the server."""

_LONGEST_EVENT = 64 * 1024 * 1024
_LARGEST_MADE = 1024 * 1024


class Answer(NamedTuple):
    """What the server said; ``retry_after_s`` is how long it asked us to wait, in seconds."""

    status: int
    body: bytes
    retry_after_s: float | None


class _Question(NamedTuple):
    """What is asked; with ``data``, what shall be made."""

    target: str
    accept: str | None
    max_bytes: int
    data: bytes | None = None


class NoApiServer(Permanent):
    """There is no API server that can be asked from here: no address, no proof, no trust."""


class Refused(Permanent):
    """The server knows what was asked for, and will not tell this Pod."""


class ApiServer:
    """The API server of one cluster.

    Args:
        address: where it is: ``https://HOST:PORT``.
        token: the file that holds the token, or None to ask without one.
        authority: the file of the authority that signed the server's certificate, or None for
            those of this machine.

    Attributes:
        host: its name or address.

    Raises:
        NoApiServer: the address is none, or the token cannot be read.
    """

    def __init__(
        self, address: str, token: str | None = None, authority: str | None = None
    ) -> None:
        try:
            parts = urlsplit(address)
            self._host, port = parts.hostname or "", parts.port
        except ValueError:
            self._host, port = "", None
        if parts.scheme not in ("http", "https") or not self._host:
            raise NoApiServer(
                "the address of the API server is no plain http or https address",
                fault="platform",
                hint="https://HOST:PORT",
            )
        self.host = self._host
        self._secure = parts.scheme == "https"
        self._port = port or (443 if self._secure else 80)
        self._token_file, self._authority = token, authority
        self._token = _read_token(token)
        self._connection: http.client.HTTPConnection | None = None
        shown = f"[{self._host}]" if ":" in self._host else self._host
        self.where = f"the API server at {shown}:{self._port}"

    @classmethod
    def in_pod(cls, env: Mapping[str, str]) -> ApiServer:
        """The API server of the cluster that this Pod is in.

        Args:
            env: ``KUBERNETES_SERVICE_HOST`` and ``_PORT`` say where it is, where there is a token;
                ``KUBE_APISERVER_ADDRESS`` where there is none. ``PAIRUN_API_CREDENTIALS`` names
                another folder than `CREDENTIALS`.

        Raises:
            NoApiServer: what is missing, all of it.
        """
        folder = env.get("PAIRUN_API_CREDENTIALS") or CREDENTIALS
        token, authority = os.path.join(folder, "token"), os.path.join(folder, "ca.crt")
        known = authority if os.path.exists(authority) else None
        if not os.path.exists(token):
            if address := env.get("KUBE_APISERVER_ADDRESS"):
                return cls(address, None, known)
            raise NoApiServer(
                f"this Pod cannot ask the API server: there is no {token}, and the variable "
                "KUBE_APISERVER_ADDRESS is not set",
                fault="platform",
                hint="give the Pod a service account, and mount its token into the init container",
            )
        names = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
        if missing := [name for name in names if not env.get(name)]:
            raise NoApiServer(
                f"this Pod cannot find the API server: not set: {', '.join(missing)}",
                fault="platform",
                hint="the kubelet sets these variables in every container",
            )
        host, port = (env[name] for name in names)
        return cls(f"https://{f'[{host}]' if ':' in host else host}:{port}", token, known)

    def get(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        accept: str | None = None,
        timeout_s: float,
        max_bytes: int,
    ) -> Answer:
        """Ask for something, once; a 401 is asked again with the token as the file has it now.

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
        answer = self._admitted(_Question(path, None, _LARGEST_MADE, data), timeout_s)
        if answer.status in (200, 201, 202):
            return answer.body
        if answer.status == 409 and _status(answer.body).get("reason") == "AlreadyExists":
            return None
        raise self._words(path, answer, "create")

    def _admitted(self, question: _Question, timeout_s: float) -> Answer:
        """The answer to a question; after a 401 it is asked again with the token of now."""
        end = time.monotonic() + timeout_s
        answer = self._answer(question, end)
        if answer.status == 401 and self._token_file is not None:
            # The kubelet replaces a token before it expires; ours may be the one before.
            self._token = _read_token(self._token_file)
            answer = self._answer(question, end)
        return answer

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
            Transient: 408, 410, 429 and 5xx, and as `get`.
            Failure: as `get`, and any other status.
        """
        answer = self.get(
            path, query=query, accept=accept, timeout_s=timeout_s, max_bytes=max_bytes
        )
        if answer.status == 200:
            return answer.body
        if answer.status == 404 and _status(answer.body).get("reason") == "NotFound":
            return None
        raise self._words(path, answer)

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
        end = time.monotonic() + timeout_s
        asked = {**(query or {}), "watch": "1", "timeoutSeconds": str(math.ceil(timeout_s))}
        connection = self._new_connection(timeout_s)
        try:
            connection.request("GET", f"{path}?{urlencode(asked)}", headers=self._headers(None))
            response = connection.getresponse()
            if response.status != 200:
                body = response.read(64 * 1024)
                retry_after = _seconds(response.headers.get("Retry-After"))
                raise self._words(path, Answer(response.status, body, retry_after))
            while (left := end - time.monotonic()) > 0:
                if connection.sock is not None:
                    connection.sock.settimeout(left)
                line = response.readline(_LONGEST_EVENT)
                if not line:
                    return
                yield json.loads(line)
        except TimeoutError:
            return
        except ValueError as e:
            raise Transient(f"{self.where} sent an event that is no JSON") from e
        except (OSError, http.client.HTTPException) as e:
            raise self._trouble(e, timeout_s) from None
        finally:
            connection.close()

    def close(self) -> None:
        """Let go of the connection; the next question makes another."""
        connection, self._connection = self._connection, None
        if connection is not None and connection.sock is not None:
            # Wakes a thread that reads from it, which then closes it.
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        if connection is not None:
            connection.close()

    # --- one exchange ----------------------------------------------------------------------------

    def _answer(self, question: _Question, end: float) -> Answer:
        connection, limit_s = self._connection, max(0.001, end - time.monotonic())
        answer: Answer | Exception = ConnectionResetError()
        if connection is not None and connection.sock is not None:
            connection.sock.settimeout(limit_s)
            answer = self._exchange(connection, question, limit_s)
        # A server may have closed a connection that was idle; the question itself is harmless: it
        # only reads, or makes an object that has a name.
        if isinstance(answer, ConnectionError | http.client.BadStatusLine):
            self.close()
            self._connection = self._new_connection(limit_s)
            answer = self._exchange(self._connection, question, limit_s)
        if isinstance(answer, Answer):
            return answer
        self.close()
        raise self._trouble(answer, limit_s) from None

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        question: _Question,
        limit_s: float,
    ) -> Answer | Exception:
        """One question and its answer, or why there is none.

        In a thread: no timeout of a socket bounds the look-up of a name, or a server that sends a
        byte now and then.
        """
        answers: queue.SimpleQueue[Answer | Exception] = queue.SimpleQueue()
        # The server compresses what is large (Kubernetes API concepts, "Compression").
        headers = self._headers(question.accept) | {"Accept-Encoding": "gzip"}
        method = "GET" if question.data is None else "POST"
        if question.data is not None:
            headers["Content-Type"] = "application/json"

        def work() -> None:
            try:
                connection.request(method, question.target, body=question.data, headers=headers)
                with connection.getresponse() as response:
                    answers.put(self._whole(response, question.max_bytes))
            except Exception as e:  # noqa: BLE001 - for the thread that waits
                answers.put(e)

        threading.Thread(target=work, daemon=True).start()
        try:
            return answers.get(timeout=limit_s)
        except queue.Empty:
            return TimeoutError()

    def _whole(self, response: http.client.HTTPResponse, max_bytes: int) -> Answer:
        # One byte more than allowed shows that there is more.
        body = response.read(max_bytes + 1)
        if response.length and len(body) <= max_bytes:
            raise ConnectionResetError("it ended before the answer did")
        if response.headers.get("Content-Encoding") == "gzip":
            body = self._inflated(body, max_bytes + 1)
        if len(body) > max_bytes:
            raise Permanent(f"{self.where} sent more than {max_bytes} bytes", fault="platform")
        retry_after = _seconds(response.headers.get("Retry-After"))
        return Answer(response.status, body, retry_after)

    def _inflated(self, body: bytes, most: int) -> bytes:
        inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            found = inflater.decompress(body, most)
        except zlib.error:
            found = b""
        if not inflater.eof and len(found) < most:
            raise Transient(f"{self.where} sent what cannot be inflated", fault="platform")
        return found

    def _headers(self, accept: str | None) -> dict[str, str]:
        headers = {"Accept": accept or "application/json", "User-Agent": "pairun"}
        return headers | ({"Authorization": f"Bearer {self._token}"} if self._token else {})

    def _new_connection(self, limit_s: float) -> http.client.HTTPConnection:
        """A connection that is not made yet."""
        if not self._secure:
            return http.client.HTTPConnection(self._host, self._port, timeout=limit_s)
        file = self._authority or (find_authorities() if BUNDLED else None)
        try:
            context = ssl.create_default_context(cafile=file)
        except OSError as e:
            raise NoApiServer(
                f"the certificate authority {file} cannot be used: {e.strerror or 'no certificate'}",
                fault="platform",
            ) from e
        # Go, which the rest of the cluster checks with, accepts authorities without the key usage
        # that Python asks for since 3.13; clusters have them.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return http.client.HTTPSConnection(self._host, self._port, timeout=limit_s, context=context)

    # --- in words --------------------------------------------------------------------------------

    def _trouble(self, error: Exception, limit_s: float) -> Failure:
        """Why there is no answer."""
        if isinstance(error, Failure):
            return error
        if isinstance(error, TimeoutError):
            waited = format_duration(limit_s)
            return TimedOut(f"{self.where} did not answer within {waited}", fault="platform")
        if isinstance(error, ssl.SSLCertVerificationError):
            by = f"by {self._authority}" if self._authority else "by an authority of this machine"
            return NoApiServer(
                f"the certificate of {self.where} is not the one expected: it is not signed {by}, "
                f"or made out to another name ({error.verify_message})",
                fault="platform",
                hint="the Pod's ca.crt must be the cluster's; something may stand in between",
            )
        if isinstance(error, OSError | UnicodeError):
            reason = getattr(error, "strerror", None) or str(error) or "it broke off"
            return Transient(f"the connection to {self.where} failed: {reason}", fault="platform")
        if isinstance(error, http.client.HTTPException):
            said = type(error).__name__
            return Transient(f"{self.where} broke off, or spoke no HTTP ({said})", fault="platform")
        raise error

    def _words(self, path: str, answer: Answer, doing: str | None = None) -> Failure:
        """Why an answer is no help; ``doing`` is the verb where it was no question."""
        status = answer.status
        said = str(_status(answer.body).get("message") or "")
        verb, resource, namespace = _asked(path)
        verb = doing or verb
        if status == 401:
            if self._token_file is None:
                what, hint = "wants to know who asks, and there is no token", None
            else:
                what = f"refuses the token in {self._token_file}, which was read again"
                hint = "it has expired, or its service account or Pod was deleted"
            return Refused(f"{self.where} {what} (401)", fault="platform", hint=hint)
        if status == 403:
            found = re.search(r'[Uu]ser "([^"\s]{1,300})"', said)
            user = found[1] if found else None
            return Refused(
                f"{user or 'this Pod'} may not {verb} {resource} in the namespace {namespace}: "
                f"{self.where} says 403",
                fault="platform",
                hint=_grant(verb, resource, namespace, user),
            )
        if status in (408, 410, 429) or status >= 500:
            return Transient(
                f"{self.where} says {status} to `{verb} {resource}`",
                fault="platform",
                retry_after_s=answer.retry_after_s,
            )
        if status == 404:
            return Permanent(
                f"{self.where} knows no {resource}",
                fault="platform",
                hint="is the CustomResourceDefinition installed in this cluster?",
            )
        shown = f": {' '.join(said.split())[:200]}" if said else ""
        return Permanent(
            f"{self.where} says {status} to `{verb} {resource}`{shown}", fault="platform"
        )


def _read_token(path: str | None) -> str:
    if path is None:
        return ""
    try:
        with open(path, encoding="ascii") as file:
            token = file.read(1024 * 1024).strip()
    except (OSError, UnicodeError) as e:
        why = (isinstance(e, OSError) and e.strerror) or "it is no text"
        raise NoApiServer(f"the token in {path} cannot be read: {why}", fault="platform") from None
    if not re.fullmatch("[!-~]+", token):
        raise NoApiServer(f"{path} holds no token", fault="platform")
    return token


def _status(body: bytes) -> dict[str, Any]:
    """The ``Status`` object of an answer that is not good; empty where it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and found.get("kind") == "Status" else {}


def _asked(path: str) -> tuple[str, str, str]:
    """Verb, resource with its group, and namespace of a path (Kubernetes API concepts)."""
    parts = path.strip("/").split("/")
    group = parts[1] if parts[0] == "apis" and len(parts) > 1 else ""
    rest = parts[3:] if parts[0] == "apis" else parts[2:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    resource = rest[0] if rest else path
    return "get" if len(rest) > 1 else "list", f"{resource}.{group}".rstrip("."), namespace


def _grant(verb: str, resource: str, namespace: str, user: str | None) -> str:
    """How to give somebody a right."""
    who = f"--user={user or 'USER'}"
    if user and user.startswith("system:serviceaccount:"):
        who = f"--serviceaccount={user.removeprefix('system:serviceaccount:')}"
    name = f"pairun-{verb}-{resource.partition('.')[0]}"
    return (
        f"grant it: kubectl -n {namespace} create role {name} --verb={verb} --resource={resource} "
        f"&& kubectl -n {namespace} create rolebinding {name} --role={name} {who}"
    )


def _seconds(header: str | None) -> float | None:
    """The seconds of a ``Retry-After``; the API server never writes a date there."""
    return float(header) if header is not None and re.fullmatch("[0-9]{1,6}", header) else None
