"""Requests over HTTP: real servers, a real proxy, real TLS."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pairun.base.processes import processes
from pairun.host.context import HostContext, ProbeContext
from pairun.module import Fetched, Permanent, Secret, TimedOut, Transient
from pairun.net.session import Deadline, Session, fetch, may_share_headers

HIDDEN = "s3cret-value"


class Wire:
    """A server that reads a request's head and hands the connection to a function.

    Attributes:
        heads: what was asked, as text.
    """

    def __init__(
        self, serve: Callable[[socket.socket, str], None], tls: ssl.SSLContext | None
    ) -> None:
        self.heads: list[str] = []
        self._serve = serve
        self._tls = tls
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://localhost:{self.port}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            client.settimeout(10)
            with self._tls.wrap_socket(client, server_side=True) if self._tls else client as talk:
                head = b""
                while b"\r\n\r\n" not in head:
                    chunk = talk.recv(65536)
                    if not chunk:
                        return
                    head += chunk
                self.heads.append(head.decode())
                self._serve(talk, head.decode())

    def close(self) -> None:
        # shutdown wakes the thread in accept
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)


Start = Callable[..., Wire]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start servers: they say some bytes, or do what a function does."""
    running: list[Wire] = []

    def run(
        said: bytes | Callable[[socket.socket, str], None], tls: ssl.SSLContext | None = None
    ) -> Wire:
        def say(client: socket.socket, head: str) -> None:
            assert isinstance(said, bytes)
            client.sendall(said)

        running.append(Wire(said if callable(said) else say, tls))
        return running[-1]

    yield run
    for server in running:
        server.close()


@pytest.fixture
def ctx(tmp_path: Path) -> HostContext:
    """This machine, with no proxy."""
    return HostContext({"PATH": os.environ["PATH"]}, str(tmp_path))


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


# --- answers ---------------------------------------------------------------------------------------


def test_status_headers_and_body(ctx: HostContext, start: Start) -> None:
    """Names of headers are in lower case, and every value of one is kept, in order."""
    server = start(
        b'HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm="a, b"\r\nX-One: 1\r\n'
        b'www-authenticate: Bearer\r\n  realm="c"\r\nContent-Length: 4\r\n\r\nbody'
    )
    answer = ctx.fetch(f"{server.url}/p/a?q=1#fragment", headers={"X-Mine": "yes"})
    assert (answer.status, answer.body) == (401, b"body")
    assert answer.headers["www-authenticate"] == ('Basic realm="a, b"', 'Bearer realm="c"')
    assert answer.header("WWW-Authenticate") == 'Basic realm="a, b", Bearer realm="c"'
    assert answer.header("x-one") == "1"
    assert answer.header("x-two") is None
    (head,) = server.heads
    assert head.startswith("GET /p/a?q=1 HTTP/1.1\r\n")
    assert "\r\nX-Mine: yes\r\n" in head
    assert f"\r\nHost: localhost:{server.port}\r\n" in head


def test_a_secret_header_reaches_the_server(ctx: HostContext, start: Start) -> None:
    """A secret is revealed on the wire, characters beyond ASCII as UTF-8."""
    server = start(OK)
    ctx.fetch(server.url, headers={"Authorization": Secret("Basic ü")})
    assert "\r\nAuthorization: Basic ü\r\n" in server.heads[0]
    assert server.heads[0].startswith("GET / HTTP/1.1")


def test_head_has_no_body(ctx: HostContext, start: Start) -> None:
    """The length that HEAD tells is of a body that does not come."""
    server = start(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
    answer = ctx.fetch(server.url, method="HEAD")
    assert (answer.status, answer.body, answer.header("content-length")) == (200, b"", "500")
    assert server.heads[0].startswith("HEAD / ")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirection_is_an_answer(ctx: HostContext, start: Start, status: int) -> None:
    """Nobody follows it."""
    other = start(OK)
    server = start(
        f"HTTP/1.1 {status} Go\r\nLocation: {other.url}\r\nContent-Length: 0\r\n\r\n".encode()
    )
    answer = ctx.fetch(server.url, headers={"Authorization": Secret(HIDDEN)})
    assert (answer.status, answer.header("location")) == (status, other.url)
    assert other.heads == []


def test_a_body_in_pieces_and_one_without_a_length(ctx: HostContext, start: Start) -> None:
    """Chunks are put together; without a length the body ends with the connection."""
    chunked = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    )
    assert ctx.fetch(start(chunked).url).body == b"abcde"
    assert ctx.fetch(start(b"HTTP/1.0 200 OK\r\n\r\nall").url).body == b"all"


def test_a_body_may_be_as_large_as_allowed_and_no_larger(ctx: HostContext, start: Start) -> None:
    """One byte more is a failure, with a length and without."""
    for head in (b"Content-Length: 10\r\n", b""):
        server = start(b"HTTP/1.0 200 OK\r\n" + head + b"\r\n" + b"x" * 10)
        assert len(ctx.fetch(server.url, max_bytes=10).body) == 10
        with pytest.raises(Permanent, match=f"localhost:{server.port}.* larger than 9 bytes"):
            ctx.fetch(server.url, max_bytes=9)


def test_a_probe_may_ask(start: Start, tmp_path: Path) -> None:
    """Asking changes nothing."""
    assert ProbeContext({}, str(tmp_path)).fetch(start(OK).url).body == b"ok"


def test_asking_is_all_it_does(ctx: HostContext) -> None:
    """What could change the server is a bug of the module."""
    ask: Any = ctx.fetch
    with pytest.raises(ValueError, match="POST"):
        ask("http://localhost/", method="POST")


# --- trouble ---------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_nobody_listens(ctx: HostContext) -> None:
    """It is the platform's, may heal, and names the host but not the query."""
    port = free_port()
    with pytest.raises(Transient, match=f"the connection to 127.0.0.1:{port} failed") as caught:
        ctx.fetch(f"http://127.0.0.1:{port}/?token={HIDDEN}", headers={"A": Secret(HIDDEN)})
    assert caught.value.fault == "platform"
    assert HIDDEN not in str(caught.value)


def test_no_such_host(ctx: HostContext) -> None:
    """A name that is not found may be found later."""
    with pytest.raises((Transient, TimedOut), match=r"no-such-host\.invalid"):
        ctx.fetch("http://no-such-host.invalid/", timeout_s=5)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"SSH-2.0-OpenSSH_9\r\n",
        b"\0\1\2\3\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000,
    ],
    ids=lambda said: repr(said[:40]),
)
def test_garbage_may_heal(ctx: HostContext, start: Start, said: bytes) -> None:
    """What is no HTTP, or breaks off, is transient and the platform's."""
    with pytest.raises(Transient) as caught:
        ctx.fetch(start(said).url, timeout_s=5)
    assert caught.value.fault == "platform"
    assert "localhost:" in caught.value.message


@pytest.mark.parametrize("drip", [b"", b"H", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_the_time_holds_for_everything(ctx: HostContext, start: Start, drip: bytes) -> None:
    """Also when bytes keep coming, each in time."""
    stop = threading.Event()

    def serve(client: socket.socket, head: str) -> None:
        client.sendall(drip)
        while drip and not stop.wait(0.05):
            client.sendall(b"x")
        stop.wait(60)

    server = start(serve)
    begun = time.monotonic()
    with pytest.raises(TimedOut, match="did not answer within 300ms") as caught:
        ctx.fetch(server.url, timeout_s=0.3)
    assert 0.25 < time.monotonic() - begun < 30
    assert caught.value.fault == "platform"
    stop.set()


def test_the_attempts_time_bounds_it(start: Start, tmp_path: Path) -> None:
    """What is left of the attempt counts, also when nothing is."""
    hold = threading.Event()
    server = start(lambda client, head: bool(hold.wait(60)) and None)
    for left in (0.2, -1.0):
        ctx = HostContext({}, str(tmp_path), time.monotonic() + left)
        begun = time.monotonic()
        with pytest.raises(TimedOut):
            ctx.fetch(server.url, timeout_s=60)
        assert time.monotonic() - begun < 30
    hold.set()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host/path",
        "ftp://host/",
        "file:///etc/passwd",
        "http://",
        "http:///path",
        "http://host:port/",
        "http://host:99999/",
        "http://[::1/",
        "http://user:s3cret-value@host/",
        "http://host/a b",
        "http://host/\r\nX: y",
        "http://hö.example/",
    ],
)
def test_an_address_that_cannot_be_asked(ctx: HostContext, url: str) -> None:
    """It will not heal, and credentials in it are not repeated."""
    with pytest.raises(Permanent) as caught:
        ctx.fetch(url)
    assert HIDDEN not in f"{caught.value} {caught.value.hint}"


def test_a_name_that_is_none(ctx: HostContext) -> None:
    """Labels that no host can have are no internal error."""
    for host in ("a..b", "a" * 70 + ".example"):
        with pytest.raises(Permanent, match="not a host name"):
            ctx.fetch(f"http://{host}/")


def test_a_line_break_in_a_header_is_refused(ctx: HostContext, start: Start) -> None:
    """Nothing is sent, and the value is not shown."""
    server = start(OK)
    for value in ("a\r\nX: s3cret-value", "s3cret-value\n", "s3cret-value\0"):
        with pytest.raises(Permanent, match="the header X-A") as caught:
            ctx.fetch(server.url, headers={"X-A": Secret(value)})
        assert HIDDEN not in str(caught.value)
    assert server.heads == []


# --- TLS -------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for localhost and r.example, signed by itself."""
    if shutil.which("openssl") is None:
        pytest.skip("the openssl program makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
            "subjectAltName=DNS:localhost,DNS:r.example", "-keyout", "key.pem", "-out", "cert.pem",
        ],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    """The server's side of it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    return context


def test_an_unknown_authority_is_permanent(
    ctx: HostContext, start: Start, tls: ssl.SSLContext
) -> None:
    """The server's certificate is verified; the hint says what to do, and nothing was sent."""
    server = start(OK, tls)
    with pytest.raises(Permanent, match="certificate of localhost") as caught:
        ctx.fetch(server.url, headers={"Authorization": Secret(HIDDEN)})
    assert caught.value.fault == "platform"
    assert "SSL_CERT_FILE" in str(caught.value.hint)
    assert server.heads == []


def test_a_known_authority_and_the_right_name(
    start: Start, tls: ssl.SSLContext, certificate: Path, tmp_path: Path
) -> None:
    """SSL_CERT_FILE of the task's environment names the authorities; the name must fit too."""
    ctx = HostContext({"SSL_CERT_FILE": str(certificate / "cert.pem")}, str(tmp_path))
    server = start(OK, tls)
    assert ctx.fetch(server.url).body == b"ok"
    with pytest.raises(Permanent, match="not valid here"):
        ctx.fetch(f"https://127.0.0.1:{server.port}/")


def test_authorities_that_cannot_be_read(tmp_path: Path) -> None:
    """The file is named, and it is the platform's."""
    (tmp_path / "empty").write_text("")
    for name in ("absent", "empty"):
        ctx = HostContext({"SSL_CERT_FILE": str(tmp_path / name)}, str(tmp_path))
        with pytest.raises(Permanent, match=f"authorities in .*{name} cannot be read"):
            ctx.fetch("https://localhost:1/")


def test_plain_http_where_tls_is_expected(ctx: HostContext, start: Start) -> None:
    """A server without TLS may get it."""
    server = start(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 3)
    with pytest.raises((Transient, TimedOut)):
        ctx.fetch(f"https://localhost:{server.port}/", timeout_s=1)


# --- proxies ---------------------------------------------------------------------------------------


def with_proxy(tmp_path: Path, port: int, **more: str) -> HostContext:
    """A machine behind a proxy with a password."""
    proxy = f"http://me:{HIDDEN}@127.0.0.1:{port}"
    return HostContext({"HTTP_PROXY": proxy, "https_proxy": proxy, **more}, str(tmp_path))


LOGIN = "Basic " + base64.b64encode(f"me:{HIDDEN}".encode()).decode()


def test_http_through_a_proxy(start: Start, tmp_path: Path) -> None:
    """The proxy gets the whole address and its own login."""
    proxy = start(OK)
    answer = with_proxy(tmp_path, proxy.port).fetch("http://r.example:81/p?q")
    assert answer.body == b"ok"
    assert proxy.heads[0].startswith("GET http://r.example:81/p?q HTTP/1.1\r\n")
    assert f"\r\nProxy-Authorization: {LOGIN}\r\n" in proxy.heads[0]
    assert "\r\nHost: r.example:81\r\n" in proxy.heads[0]


def test_https_through_a_tunnel(
    start: Start, tls: ssl.SSLContext, certificate: Path, tmp_path: Path
) -> None:
    """The proxy sees the host and its own login; the rest is between us and the server."""

    def serve(client: socket.socket, head: str) -> None:
        client.sendall(b"HTTP/1.1 200 Go on\r\n\r\n")
        with tls.wrap_socket(client, server_side=True) as inner:
            inside.append(inner.recv(65536).decode())
            inner.sendall(OK)

    inside: list[str] = []
    proxy = start(serve)
    authorities = {"SSL_CERT_FILE": str(certificate / "cert.pem")}
    ctx = with_proxy(tmp_path, proxy.port, **authorities)
    assert ctx.fetch("https://r.example/p").body == b"ok"
    assert proxy.heads[0].startswith("CONNECT r.example:443 ")
    assert f"Proxy-Authorization: {LOGIN}" in proxy.heads[0]
    assert inside[0].startswith("GET /p ")
    assert "Authorization" not in inside[0]
    with pytest.raises(Permanent, match=r"certificate of s\.example through the proxy 127"):
        ctx.fetch("https://s.example/")


def test_a_proxy_that_refuses(start: Start, tmp_path: Path) -> None:
    """It is named, its password is not."""
    proxy = start(b"HTTP/1.1 407 Who are you\r\n\r\n")
    with pytest.raises(Transient, match=r"through the proxy 127\.0\.0\.1 failed: .*407") as caught:
        with_proxy(tmp_path, proxy.port).fetch("https://r.example/")
    assert HIDDEN not in str(caught.value)


@pytest.mark.parametrize("proxy", ["socks5://h:1", "https://h:1", "http://:s3cret-value@", "h:x"])
def test_a_proxy_that_cannot_be_used(tmp_path: Path, proxy: str) -> None:
    """The variable is named, its text is not."""
    with pytest.raises(Permanent, match="HTTP_PROXY is not a usable proxy") as caught:
        HostContext({"HTTP_PROXY": proxy}, str(tmp_path)).fetch("http://r.example/")
    assert HIDDEN not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "no_proxy", "direct"),
    [
        ("r.example", "", False),
        ("r.example", "r.example", True),
        ("r.example", "other, R.Example ,x", True),
        ("a.r.example", "r.example", True),
        ("a.r.example", ".r.example", True),
        ("a.r.example", "*.r.example", True),
        ("ar.example", "r.example", False),
        ("r.example", "*", True),
        ("r.example:81", "r.example:81", True),
        ("r.example:81", "r.example:82", False),
        ("r.example", ",", False),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("[fd00::1]", "fd00::/8", True),
        ("localhost", "", True),
        ("127.0.0.5", "", True),
        ("[::1]", "", True),
    ],
)
def test_who_is_asked_without_a_proxy(host: str, no_proxy: str, direct: bool) -> None:
    """NO_PROXY holds hosts, domains, networks; this machine never needs a proxy."""
    from pairun.net.proxies import proxy_for
    from pairun.net.session import parse_address

    env = {"HTTP_PROXY": "p.example:3128", "NO_PROXY": no_proxy}
    assert (proxy_for(parse_address(f"http://{host}/"), env) is None) == direct


def test_the_smaller_case_of_a_variable_wins(tmp_path: Path, start: Start) -> None:
    """As curl has it; an address of the other scheme does not use it."""
    proxy = start(OK)
    env = {"http_proxy": f"127.0.0.1:{proxy.port}", "HTTP_PROXY": "http://127.0.0.1:1"}
    assert isinstance(HostContext(env, str(tmp_path)).fetch("http://r.example/"), Fetched)


# --- what requests does by itself, and sessions do not ---------------------------------------------


def test_the_environment_of_the_process_does_not_count(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxies and logins come from the task: no variable, no ``.netrc`` of the process."""
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine localhost login me password s3cret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{free_port()}")
    server = start(OK)
    assert fetch(server.url, {}, method="GET", headers=None, limit_s=5).body == b"ok"
    assert "authorization" not in server.heads[0].lower()


def test_a_compressed_body_stays_as_it_was_sent(start: Start) -> None:
    """What is counted and digested is what came; nobody asked for compression either."""
    packed = gzip.compress(b"x" * 10_000)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    server = start(head.encode() + packed)
    answer = fetch(server.url, {}, method="GET", headers=None, limit_s=5, max_bytes=len(packed))
    assert answer.body == packed
    assert "\r\nAccept-Encoding: identity\r\n" in server.heads[0]


def test_no_cookie_is_kept(start: Start) -> None:
    """A server that sets one is not told it again."""
    server = start(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n")
    for _ in range(2):
        fetch(server.url, {}, method="GET", headers=None, limit_s=5)
    assert not [head for head in server.heads if "cookie" in head.lower()]


def test_a_name_that_nobody_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look-up of a name has no timeout of its own, and the limit holds all the same."""
    release = threading.Event()

    def no_answer(*_: object, **__: object) -> list[object]:
        release.wait(30)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")

    monkeypatch.setattr(socket, "getaddrinfo", no_answer)
    began = time.monotonic()
    with pytest.raises(TimedOut, match="did not answer within 200ms"):
        fetch("http://name.example/", {}, method="GET", headers=None, limit_s=0.2)
    release.set()
    assert time.monotonic() - began < 25


# --- cost ------------------------------------------------------------------------------------------


def test_who_does_not_ask_does_not_pay() -> None:
    """The heavy parts of the library are imported by the first request."""
    code = (
        "import sys; import pairun.host.context; "
        "print([m for m in ('ssl', 'http.client', 'email', 'requests') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- into a file -------------------------------------------------------------------------------------


def _sends_to(url: str) -> bytes:
    return f"HTTP/1.1 302 Found\r\nLocation: {url}\r\nContent-Length: 0\r\n\r\n".encode()


def test_from_https_to_http_only_with_a_sum(
    start: Start, tls: ssl.SSLContext, certificate: Path, tmp_path: Path
) -> None:
    """A redirection that gives up TLS is followed where the content is known; no header is."""
    ctx = HostContext({"SSL_CERT_FILE": str(certificate / "cert.pem")}, str(tmp_path / "pai"))
    plain = start(OK)
    secure = start(_sends_to(f"{plain.url}/x"), tls)
    path = str(tmp_path / "f")
    with pytest.raises(Permanent, match="from https to http") as caught:
        ctx.fetch_file(secure.url, path)
    assert caught.value.hint
    sha256 = hashlib.sha256(b"ok").hexdigest()
    headers = {"Authorization": Secret(HIDDEN)}
    assert ctx.fetch_file(secure.url, path, headers=headers, sha256=sha256).size == 2
    assert HIDDEN in secure.heads[1]
    assert HIDDEN not in plain.heads[0]


def test_over_tls(start: Start, tls: ssl.SSLContext, certificate: Path, tmp_path: Path) -> None:
    """A certificate that is not valid ends it; with its authority, the file comes."""
    server = start(OK, tls)
    path = tmp_path / "f"
    with pytest.raises(Permanent, match="certificate of localhost"):
        HostContext({}, str(tmp_path / "pai")).fetch_file(server.url, str(path))
    ctx = HostContext({"SSL_CERT_FILE": str(certificate / "cert.pem")}, str(tmp_path / "pai"))
    ctx.fetch_file(server.url, str(path), mode=0o600)
    assert path.read_bytes() == b"ok"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("url", "to", "same"),
    [
        ("http://a/x", "http://a/y", True),
        ("http://a/x", "http://A:80/y", True),
        ("http://a/x", "https://a/y", True),
        ("http://a:8080/x", "https://a/y", False),
        ("https://a/x", "http://a/y", False),
        ("http://a/x", "http://a:81/y", False),
        ("http://a/x", "http://b/y", False),
        ("http://a/x", "http://a.b/y", False),
    ],
)
def test_who_may_see_the_headers(url: str, to: str, same: bool) -> None:
    """The same scheme, host and port, or the same host by its default port with TLS."""
    assert may_share_headers(url, to) is same


@pytest.mark.parametrize("said", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\n"])
def test_what_is_no_http_is_transient(
    ctx: HostContext, start: Start, tmp_path: Path, said: bytes
) -> None:
    """Whatever a server sends instead of an answer, it may be well the next time."""
    server = start(said)
    with pytest.raises(Transient):
        ctx.fetch_file(server.url, str(tmp_path / "f"))
    assert not (tmp_path / "f").exists()


def test_endless_interim_answers_are_a_stall(
    ctx: HostContext, start: Start, tmp_path: Path
) -> None:
    """A server that goes on saying 100 Continue is not waited for."""

    def go_on(client: socket.socket, head: str) -> None:
        while True:
            client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            time.sleep(0.01)

    server = start(go_on)
    began = time.monotonic()
    with pytest.raises(TimedOut, match="did not answer within 300ms"):
        ctx.fetch_file(server.url, str(tmp_path / "f"), stall_s=0.3)
    assert time.monotonic() - began < 10


def test_no_process_is_left(ctx: HostContext, start: Start, tmp_path: Path) -> None:
    """A download that fails ends the process that sent its request."""

    def endless(client: socket.socket, head: str) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            client.sendall(b"x" * 65536)

    server = start(endless)
    before = {p.pid for p in processes() if p.parent == os.getpid()}
    with pytest.raises(Permanent, match="more than"):
        ctx.fetch_file(server.url, str(tmp_path / "f"), max_bytes=5_000_000)
    assert {p.pid for p in processes() if p.parent == os.getpid()} <= before


def test_the_process_that_asks_holds_nothing_open(start: Start) -> None:
    """Readers of the program's pipes, and those who wait for its locks, see its end."""
    server = start(OK * 2)
    reader, writer = os.pipe()
    with Session.to(server.url, {}) as session:
        session.ask("GET", server.url, Deadline(10), {})
        os.close(writer)
        assert os.read(reader, 1) == b""
    os.close(reader)
