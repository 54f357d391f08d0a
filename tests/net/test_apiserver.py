"""Asking the API server: a server of our own that answers what a test wants."""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import signal
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.base.signals import STOP_SIGNALS
from pairun.errors import PairunError
from pairun.host.context import HostContext
from pairun.host.worlds import ReviewContext
from pairun.init import fromcluster as head
from pairun.init.phase import API_EXIT_CODES
from pairun.init.podinput import read_pod_input
from pairun.module import Failure, Fetched, Permanent, TimedOut, Transient, UnknownUntilRun
from pairun.net.apianswers import Refused, failure_of_answer
from pairun.net.apicredentials import NoApiServer
from pairun.net.apiserver import ApiServer
from tests.webserver import Answer, Asked, WebServer

SECRET = "t0ken-that-nobody-may-see"
POD = "/api/v1/namespaces/default/pods/x"
NOT_FOUND = json.dumps({"kind": "Status", "reason": "NotFound"}).encode()
JSON = Answer(200, body=b"{}")
LIMITS: Any = {"timeout_s": 5.0, "max_bytes": 1000}


@pytest.fixture
def server() -> Iterator[WebServer]:
    """A server without TLS."""
    made = WebServer(lambda _: JSON)
    yield made
    made.close()


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """The file of a token."""
    path = tmp_path / "token"
    path.write_text(SECRET + "\n")
    return path


@pytest.fixture
def api(server: WebServer, token: Path) -> Iterator[ApiServer]:
    """The client of that server, with that token."""
    with contextlib.closing(ApiServer(f"http://127.0.0.1:{server.port}", str(token))) as made:
        yield made


# --- the connection ------------------------------------------------------------------------------


def test_a_connection_is_kept(server: WebServer, api: ApiServer) -> None:
    """Several questions go over one connection, each with the token."""
    for _ in range(3):
        assert api.ask(POD, query={"a": "b=c"}, **LIMITS) == b"{}"
    assert [(a.path, a.query, a.authorization) for a in server.asked] == [
        (POD, {"a": ["b=c"]}, f"Bearer {SECRET}")
    ] * 3
    assert server.connections == 1


def test_a_kept_connection_that_was_closed_is_made_again(server: WebServer, api: ApiServer) -> None:
    """What the server closed while nobody asked is no failure."""
    server.reply = lambda _: JSON if len(server.asked) != 2 else None
    assert api.ask(POD, **LIMITS) == b"{}"
    assert api.ask(POD, **LIMITS) == b"{}"
    assert server.connections == 2


def test_a_server_that_is_not_there(server: WebServer, api: ApiServer) -> None:
    """Refused at once, and asked again with success once it is there."""
    server.reply = lambda _: None
    with pytest.raises(Transient, match=f"the API server at 127.0.0.1:{server.port}"):
        api.ask(POD, **LIMITS)
    server.reply = lambda _: Answer(200, body=b"x")
    assert api.ask(POD, **LIMITS) == b"x"


def test_a_limit_holds_whatever_the_server_does(server: WebServer, api: ApiServer) -> None:
    """A body that comes byte by byte is given up when the time is up, and the next goes well."""
    stop = threading.Event()

    def trickle(asked: Asked) -> None:
        asked.handler.send_response(200)
        asked.handler.send_header("Content-Length", "100000")
        asked.handler.end_headers()
        while not stop.wait(0.02):
            asked.handler.wfile.write(b"x")

    server.reply = trickle
    began = time.monotonic()
    with pytest.raises(TimedOut, match="did not answer within"):
        api.ask(POD, timeout_s=0.3, max_bytes=10**6)
    assert time.monotonic() - began < 60
    stop.set()
    server.reply = lambda _: Answer(200, body=b"x")
    assert api.ask(POD, **LIMITS) == b"x"


def test_a_body_that_is_too_large(server: WebServer, api: ApiServer) -> None:
    """Nothing larger than allowed is kept."""
    server.reply = lambda _: Answer(200, body=b"x" * 1001)
    with pytest.raises(Permanent, match="larger than 1000 bytes"):
        api.ask(POD, **LIMITS)


def test_a_compressed_body(server: WebServer, api: ApiServer) -> None:
    """It is inflated, as far as it may be large; one that is broken may be right the next time."""
    sent = {"Content-Encoding": "gzip"}
    server.reply = lambda _: Answer(200, sent, gzip.compress(b'{"a": 1}'))
    assert api.ask(POD, **LIMITS) == b'{"a": 1}'
    server.reply = lambda _: Answer(200, sent, gzip.compress(b"x" * 1001))
    with pytest.raises(Permanent, match="larger than 1000 bytes"):
        api.ask(POD, **LIMITS)
    broken = [gzip.compress(b"{}")[:-9], b"no gzip"]
    server.reply = lambda _: Answer(200, sent, broken.pop())
    while broken:
        with pytest.raises(Transient, match="invalid compressed data"):
            api.ask(POD, **LIMITS)


def test_half_an_answer_is_none(server: WebServer, api: ApiServer) -> None:
    """A body that ends too early is trouble on the way."""
    half = {"Content-Length": "10", "Connection": "close"}
    server.reply = lambda _: Answer(200, half, b"x")
    with pytest.raises(Transient):
        api.ask(POD, **LIMITS)


def test_a_certificate_of_somebody_else(tmp_path: Path, token: Path) -> None:
    """Is said plainly, and the token is not sent; the one expected is accepted."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    for name in ("own", "other"):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
             "-subj", "/CN=x", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", tmp_path / f"{name}.key", "-out", tmp_path / f"{name}.crt"],
            check=True, capture_output=True,
        )  # fmt: skip
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "own.crt", tmp_path / "own.key")
    server = WebServer(lambda _: JSON, tls)
    url = f"https://127.0.0.1:{server.port}"
    try:
        with pytest.raises(NoApiServer, match="is not the one expected"):
            ApiServer(url, str(token), str(tmp_path / "other.crt")).ask(POD, **LIMITS)
        assert server.asked == []
        with contextlib.closing(ApiServer(url, str(token), str(tmp_path / "own.crt"))) as own:
            assert own.ask(POD, **LIMITS) == b"{}"
    finally:
        server.close()
    (tmp_path / "none.crt").write_text("nothing")
    with pytest.raises(NoApiServer, match=r"none\.crt cannot be used"):
        ApiServer(url, str(token), str(tmp_path / "none.crt")).ask(POD, **LIMITS)


# --- answers -------------------------------------------------------------------------------------


def test_a_token_is_read_again_once(server: WebServer, api: ApiServer, token: Path) -> None:
    """A 401 is asked again with the token as it is now; a second one is final."""
    server.reply = lambda a: Answer(200 if "new" in str(a.authorization) else 401, body=b"{}")
    token.write_text("new-one")
    assert api.ask(POD, **LIMITS) == b"{}"
    assert [a.authorization for a in server.asked] == [f"Bearer {SECRET}", "Bearer new-one"]
    token.write_text(SECRET)
    server.reply = lambda _: Answer(401, body=b"{}")
    with pytest.raises(Refused, match="which was read again"):
        api.ask(POD, **LIMITS)
    assert len(server.asked) == 4


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (401, b"", Refused, "refuses the token"),
        (
            403,
            b'{"kind":"Status","message":"User \\"ann\\" cannot"}',
            Refused,
            "ann may not get pods",
        ),
        (403, b"<html>", Refused, "this Pod may not get pods in the namespace default"),
        (404, b"404 page not found", Permanent, "does not have the resource pods"),
        (
            406,
            b'{"kind":"Status","message":"only\\nthese"}',
            Permanent,
            "answered 406 .*: only these",
        ),
        (429, b"", Transient, "answered 429"),
        (500, b"\xff", Transient, "answered 500"),
        (503, b"[" * 100_000, Permanent, "larger than"),
        (410, b"", Transient, "answered 410"),
        (400, b"Client sent an HTTP request to an HTTPS server.\n", Permanent, "requires https"),
    ],
)
def test_what_an_answer_means(
    server: WebServer, api: ApiServer, status: int, body: bytes, kind: type[Failure], says: str
) -> None:
    """What may heal is told from what will not, in words without the token."""
    server.reply = lambda _: Answer(status, {"Retry-After": "7"}, body)
    with pytest.raises(kind, match=says) as e:
        api.ask(POD, **LIMITS)
    assert SECRET not in f"{e.value.message} {e.value.hint}"
    if status in (429, 500):
        assert e.value.retry_after_s == 7


def test_what_does_not_exist_is_no_failure(server: WebServer, api: ApiServer) -> None:
    """An object that is not there is None."""
    server.reply = lambda _: Answer(404, body=NOT_FOUND)
    assert api.ask(POD, **LIMITS) is None


@given(st.binary(max_size=200))
def test_no_refusal_is_too_strange(body: bytes) -> None:
    """Whatever a 403 carries, words come of it."""
    failure = failure_of_answer(Fetched(403, {}, body), "the API server at x", POD)
    assert isinstance(failure, Refused)
    assert "may not get pods" in failure.message


def test_events_come_as_they_happen(server: WebServer, api: ApiServer) -> None:
    """Each line is an event; the end of the time ends it, and so does the server."""
    more = threading.Event()

    def events(asked: Asked) -> None:
        asked.handler.send_response(200)
        asked.handler.end_headers()
        asked.handler.wfile.write(b'{"type": "ADDED"}\n')
        more.wait(10)
        asked.handler.wfile.write(b'{"type": "MODIFIED"}\n')

    server.reply = events
    watch = api.watch("/api/v1/namespaces/default/pods", query={"labelSelector": "a"}, timeout_s=9)
    assert next(watch) == {"type": "ADDED"}
    more.set()
    assert list(watch) == [{"type": "MODIFIED"}]
    asked = server.asked[0]
    assert asked.query == {"labelSelector": ["a"], "watch": ["1"], "timeoutSeconds": ["9"]}
    assert asked.authorization == f"Bearer {SECRET}"
    more.clear()
    assert list(api.watch("/api/v1/pods", timeout_s=2)) == [{"type": "ADDED"}]
    more.set()
    server.reply = lambda _: Answer(403)
    with pytest.raises(Refused, match="may not list pods"):
        next(api.watch("/api/v1/namespaces/default/pods", timeout_s=5))


# --- where it is ---------------------------------------------------------------------------------


def test_where_a_pod_finds_it(tmp_path: Path, token: Path) -> None:
    """By the variables of every container where there is a token, by the old one where not."""
    env = {
        "PAIRUN_API_CREDENTIALS": str(tmp_path),
        "KUBERNETES_SERVICE_HOST": "fd00::1",
        "KUBERNETES_SERVICE_PORT": "6443",
        "KUBE_APISERVER_ADDRESS": "http://old:8080",
    }
    assert ApiServer.in_pod(env).where == "the API server at [fd00::1]:6443"
    token.unlink()
    assert ApiServer.in_pod(env).where == "the API server at old:8080"


@pytest.mark.parametrize(
    ("text", "env", "says"),
    [
        (None, {}, "there is no .*/token, and the variable KUBE_APISERVER_ADDRESS"),
        (None, {"KUBE_APISERVER_ADDRESS": "ftp://x"}, "not a plain http or https address"),
        (None, {"KUBE_APISERVER_ADDRESS": "http://x:y"}, "not a plain http or https address"),
        ("x", {}, "not set: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT"),
        ("", {"KUBERNETES_SERVICE_HOST": "x", "KUBERNETES_SERVICE_PORT": "1"}, "holds no token"),
        ("a\nb", {"KUBERNETES_SERVICE_HOST": "x", "KUBERNETES_SERVICE_PORT": "1"}, "no token"),
        ("ä", {"KUBERNETES_SERVICE_HOST": "x", "KUBERNETES_SERVICE_PORT": "1"}, "it is not text"),
    ],
)
def test_a_pod_that_cannot_ask(
    tmp_path: Path, text: str | None, env: dict[str, str], says: str
) -> None:
    """What is missing is named, all of it."""
    if text is not None:
        (tmp_path / "token").write_text(text)
    with pytest.raises(NoApiServer, match=says):
        ApiServer.in_pod({"PAIRUN_API_CREDENTIALS": str(tmp_path), **env})


# --- the two who ask -----------------------------------------------------------------------------


def test_a_module_asks_through_its_context(server: WebServer, token: Path, tmp_path: Path) -> None:
    """One connection for all its questions; a review asks nobody."""
    token.unlink()
    env = {
        "PAIRUN_API_CREDENTIALS": str(tmp_path),
        "KUBE_APISERVER_ADDRESS": f"http://127.0.0.1:{server.port}",
    }
    ctx = HostContext(env, str(tmp_path), deadline=time.monotonic() + 60)
    assert [ctx.ask_api(POD), ctx.ask_api(POD)] == [b"{}", b"{}"]
    assert server.connections == 1
    assert ctx.connects("127.0.0.1", server.port)
    assert not ctx.connects("127.0.0.1", 1)
    assert ctx._api is not None
    ctx._api.close()
    review = ReviewContext(env, str(tmp_path))
    with pytest.raises(UnknownUntilRun, match="cluster's API server"):
        review.ask_api(POD)
    with pytest.raises(UnknownUntilRun, match="port 80"):
        review.connects("x", 80)


@pytest.fixture
def env(server: WebServer, token: Path, tmp_path: Path) -> dict[str, str]:
    """The variables of a Framework's Pod."""
    token.unlink()
    return {
        "PAIRUN_API_CREDENTIALS": str(tmp_path),
        "KUBE_APISERVER_ADDRESS": f"http://127.0.0.1:{server.port}",
        "FC_FRAMEWORK_NAMESPACE": "default",
        "FC_FRAMEWORK_NAME": "fw",
        "FC_TASKROLE_NAME": "worker",
        "FC_TASK_INDEX": "0",
    }


@pytest.mark.parametrize(
    ("answer", "change", "id_", "code"),
    [
        ((200, b"[]"), {"KUBE_APISERVER_ADDRESS": ""}, "PR770", 252),
        ((404, NOT_FOUND), {}, "PR771", 252),
        ((403, b""), {}, "PR772", 252),
        ((401, b""), {}, "PR772", 252),
        ((404, b""), {}, "PR772", 252),
        ((503, b""), {}, "PR773", 1),
        ((200, b"[]"), {"BARRIER_CHECK_TIMEOUT_SEC": "1201"}, "PR774", 252),
        ((200, b"[]"), {"BARRIER_CHECK_TIMEOUT_SEC": "1e2"}, "PR774", 252),
        ((200, b"[]"), {"FC_FRAMEWORK_NAME": ""}, "PR774", 252),
        ((200, b"[]"), {}, "PR704", 1),
    ],
)
def test_a_job_that_cannot_be_read(
    server: WebServer,
    env: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: tuple[int, bytes],
    change: dict[str, str],
    id_: str,
    code: int,
) -> None:
    """Each way has an id, and the id the exit code of the init phase."""
    monkeypatch.setattr(head, "_DEFAULT_TIMEOUT_S", 60)
    if answer[0] == 503:
        monkeypatch.setattr(head, "_TIMEOUTS_S", (0, 60))
        monkeypatch.setattr(head, "_DEFAULT_TIMEOUT_S", 0)
    server.reply = lambda _: Answer(answer[0], body=answer[1])
    with pytest.raises(PairunError) as e:
        read_pod_input(str(tmp_path), {**env, **change})
    assert [p.id for p in e.value.problems] == [id_]
    assert API_EXIT_CODES.get(id_, 1) == code


def test_only_the_metadata_of_a_job_is_read(server: WebServer, env: dict[str, str]) -> None:
    """Spec and status, which may be large, stay where they are."""
    server.reply = lambda _: Answer(200, body=b'{"metadata": {}}')
    assert head.read_head("default", "fw", env) == {"metadata": {}}
    (asked,) = server.asked
    assert asked.headers["accept"] == (
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    )


def test_a_stop_signal_ends_the_wait(server: WebServer, env: dict[str, str]) -> None:
    """A signal that was held back is taken while the server is waited for."""
    server.reply = lambda _: Answer(503, {"Retry-After": "60"}, b"")
    old = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        with pytest.raises(SystemExit) as e:
            head.read_head("default", "fw", env)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
    assert e.value.code == 143


# --- after a failure of the server ---------------------------------------------------------------


def test_a_refusal_after_a_failure_counts_when_it_lasts(
    server: WebServer, api: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For reads, writes and watches; the message is that of a true refusal."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    server.reply = lambda _: None
    with pytest.raises(Transient):
        api.ask(POD, **LIMITS)
    server.reply = lambda _: Answer(403)
    for now[0] in (10.0, 69.0):
        with pytest.raises(Transient, match=r"may not get pods .* may be temporary"):
            api.ask(POD, **LIMITS)
        with pytest.raises(Transient, match=r"may not list pods .* may be temporary"):
            next(api.watch("/api/v1/namespaces/default/pods", timeout_s=5))
    now[0] = 71.0
    with pytest.raises(Refused):
        api.ask(POD, **LIMITS)
    with pytest.raises(Refused):
        next(api.watch("/api/v1/namespaces/default/pods", timeout_s=5))


def test_a_kept_connection_that_broke_is_a_failure(server: WebServer, api: ApiServer) -> None:
    """The server may have restarted between two requests."""
    server.reply = lambda _: Answer(200, {"Connection": "close"}, b"{}")
    api.ask(POD, **LIMITS)
    server.reply = lambda _: Answer(403)
    with pytest.raises(Transient, match="may be temporary"):
        api.ask(POD, **LIMITS)
