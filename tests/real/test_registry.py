"""image_check against real registries, servers that mean ill, and through ``pairun init``."""

from __future__ import annotations

import concurrent.futures
import contextlib
import email.utils
import hashlib
import http.client
import itertools
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import pytest

from pairun.contract.arguments import build
from pairun.contract.loading import load_module
from pairun.errors import Source
from pairun.host.context import HostContext
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.module import CheckModule, Permanent, Secret, TimedOut, Transient
from pairun.openpai.framework import make_framework, with_statuses
from pairun.playbook.document.reading import read_text
from pairun.volume.journal import read_journal

ROOT = pathlib.Path(__file__).parents[2]
IMAGE_CHECK = load_module("image_check", str(ROOT / "modules" / "image_check"))
OCI = "application/vnd.oci.image."
DOCKER = "application/vnd.docker.distribution.manifest.v2+json"
WRONG = "not-the-p4ssword"


def digest_of(data: bytes) -> str:
    """A content's name."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Pusher:
    """Puts small images into a registry without TLS and login."""

    def __init__(self, registry: str) -> None:
        self._registry = registry

    def _put(self, method: str, path: str, data: bytes, kind: str) -> str:
        connection = http.client.HTTPConnection(self._registry, timeout=10)
        connection.request(method, path, data, {"Content-Type": kind})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        assert answer.status in (201, 202), (method, path, answer.status)
        return answer.getheader("Location") or ""

    def blob(self, name: str, data: bytes) -> dict[str, Any]:
        """Upload a blob; returns its descriptor."""
        place = self._put("POST", f"/v2/{name}/blobs/uploads/", b"", "text/plain")
        path = place.removeprefix(f"http://{self._registry}")
        path += ("&" if "?" in path else "?") + "digest=" + digest_of(data)
        self._put("PUT", path, data, "application/octet-stream")
        return {"digest": digest_of(data), "size": len(data)}

    def manifest(self, name: str, tag: str, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        """Upload a manifest or an index; returns its descriptor."""
        data = json.dumps({"schemaVersion": 2, "mediaType": kind, **body}).encode()
        self._put("PUT", f"/v2/{name}/manifests/{tag}", data, kind)
        return {"mediaType": kind, "digest": digest_of(data), "size": len(data)}

    def image(self, name: str, tag: str, architecture: str, kind: str = OCI) -> dict[str, Any]:
        """Upload an image of one platform, in OCI's form or Docker's."""
        oci = kind == OCI
        config = {"os": "linux", "architecture": architecture, "rootfs": {"type": "layers"}}
        types = (
            (f"{OCI}config.v1+json", f"{OCI}layer.v1.tar+gzip", f"{OCI}manifest.v1+json")
            if oci
            else (
                "application/vnd.docker.container.image.v1+json",
                "application/vnd.docker.image.rootfs.diff.tar.gzip",
                DOCKER,
            )
        )
        body = {
            "config": {
                "mediaType": types[0],
                **self.blob(name, json.dumps(config).encode()),
            },
            "layers": [{"mediaType": types[1], **self.blob(name, b"layer " + tag.encode())}],
        }
        return self.manifest(name, tag, types[2], body)


@pytest.fixture(scope="module")
def pushed(registries: Mapping[str, str]) -> Mapping[str, str]:
    """The registries, with images in them: team/image and public/image, :1, :docker and :many."""
    pusher = Pusher(registries["LAB_REGISTRY"])
    digests = {}
    for name in ("team/image", "public/image"):
        one = pusher.image(name, "1", "amd64")
        pusher.image(name, "docker", "arm64", DOCKER)
        variants = [
            {**pusher.image(name, arch, arch), "platform": {"os": "linux", "architecture": arch}}
            for arch in ("amd64", "arm64")
        ]
        pusher.manifest(name, "many", f"{OCI}index.v1+json", {"manifests": variants})
        digests[name] = one["digest"]
    return {**registries, "DIGEST": digests["team/image"]}


@attrs.frozen
class Said:
    """What became of one attempt: its message, whether it is a definite no, or nobody knows."""

    message: str
    failed: bool
    unknown: bool
    retry_after_s: float | None
    took_s: float


Ask = Callable[..., Said]


def check(image: str, *, env: Mapping[str, str] | None = None, **args: Any) -> Said:
    """Check an image; nothing that is said holds the password."""
    auth = args.get("auth")
    if auth is not None:
        args["auth"] = {**auth, "password": Secret(auth["password"])}
    module, problems = build(IMAGE_CHECK, {"image": image, **args})
    assert isinstance(module, CheckModule), problems
    log: list[str] = []
    start, failed, unknown, retry_after_s = time.monotonic(), False, False, None
    try:
        result = module.check(HostContext(dict(env or {}), "/nowhere", None, log.append))
        assert result is not None
        message = result.message
    except Permanent as e:
        assert e.fault == "user"
        message, failed = f"{e.message}; {e.hint}", True
    except (Transient, TimedOut) as e:
        assert e.kind in module.harmless
        message, unknown, retry_after_s = e.message, True, e.retry_after_s
    shown = "\n".join([message, *log])
    assert not auth or auth["password"] not in shown
    return Said(message, failed, unknown, retry_after_s, time.monotonic() - start)


# --- real registries -------------------------------------------------------------------------------


@pytest.fixture(params=["", "_BASIC", "_TLS", "_TOKEN"], ids=lambda d: d or "plain")
def door(request: pytest.FixtureRequest, pushed: Mapping[str, str]) -> tuple[str, Ask]:
    """A registry's address and a check against it; no attempt may take long."""
    host = pushed[f"LAB_REGISTRY{request.param}"]
    tls = request.param == "_TLS"
    env = {"SSL_CERT_FILE": pushed["LAB_REGISTRY_TLS_CA"]} if tls else {}

    def ask(path: str, login: str = "right", **args: Any) -> Said:
        password = {"right": pushed["LAB_PASSWORD"], "wrong": WRONG}.get(login)
        if password is not None:
            args["auth"] = {
                "username": pushed["LAB_USER"], "password": password, "registry": host,
            }  # fmt: skip
        said = check(f"{'https://' if tls else ''}{host}/{path}", env=env, **args)
        assert said.took_s < 5, said
        return said

    return host, ask


@pytest.mark.parametrize("tag", [":1", ":docker", ":many", "@DIGEST", ":1@DIGEST"])
def test_an_image_that_is_there(door: tuple[str, Ask], pushed: Mapping[str, str], tag: str) -> None:
    """Every form of manifest, by tag and by digest, behind every kind of door."""
    tag = tag.replace("DIGEST", pushed["DIGEST"])
    said = door[1](f"team/image{tag}")
    assert (said.failed, said.message) == (False, f"{door[0]}/team/image{tag} exists")


@pytest.mark.parametrize("path", ["team/image:no-such-tag", "team/nothing:1", "deep/er/er/x"])
def test_an_image_that_is_missing(door: tuple[str, Ask], path: str) -> None:
    """A tag and a repository that do not exist are definite, with the login in hand."""
    said = door[1](path)
    assert said.failed
    assert "does not exist" in said.message


def test_a_digest_that_is_missing(door: tuple[str, Ask]) -> None:
    """So is a digest."""
    said = door[1]("team/image@" + digest_of(b"nothing"))
    assert said.failed
    assert "does not exist" in said.message


@pytest.mark.parametrize("login", ["none", "wrong"])
def test_a_login_that_does_not_do(door: tuple[str, Ask], login: str) -> None:
    """Where a login is wanted, none and a wrong one are refused at once; elsewhere none is used."""
    said = door[1]("team/image:1", login)
    words = {"none": "without a login", "wrong": "refuses the job's login"}[login]
    wanted = door[0].endswith((":5001", ":5003"))
    assert said.failed == wanted
    assert (words if wanted else "exists") in said.message


def test_a_public_image_of_a_token_registry(pushed: Mapping[str, str]) -> None:
    """It needs no login, and a missing tag beside it is definite."""
    host = pushed["LAB_REGISTRY_TOKEN"]
    assert check(f"{host}/public/image:1").message == f"{host}/public/image:1 exists"
    assert "does not exist" in check(f"{host}/public/image:2").message
    assert "without a login" in check(f"{host}/team/no-such-thing").message


def test_an_authority_that_is_not_known(pushed: Mapping[str, str]) -> None:
    """A certificate that nobody vouches for is unknown, at once, and says what to do with it."""
    said = check(f"https://{pushed['LAB_REGISTRY_TLS']}/team/image:1")
    assert said.unknown
    assert said.message.startswith(
        f"the certificate of {pushed['LAB_REGISTRY_TLS']} is not valid here: "
    )
    assert check(f"http://{pushed['LAB_REGISTRY_TLS']}/team/image:1").unknown


@pytest.mark.parametrize(
    ("tag", "platform", "verdict"),
    [
        ("many", "linux/amd64", "exists for linux/amd64"),
        ("many", "linux/arm64/v8", "exists for linux/arm64/v8"),
        ("many", "linux/s390x", "is not built for linux/s390x, only for linux/amd64, linux/arm64;"),
        ("1", "linux/amd64", "exists for linux/amd64"),
        ("1", "linux/arm64", "is not built for linux/arm64, only for linux/amd64;"),
        ("docker", "linux/arm64", "exists for linux/arm64"),
        ("docker", "linux/amd64", "is not built for linux/amd64, only for linux/arm64;"),
    ],
)
def test_the_platform(door: tuple[str, Ask], tag: str, platform: str, verdict: str) -> None:
    """An index, an OCI image and a Docker image say for what they are."""
    said = door[1](f"team/image:{tag}", platform=platform)
    assert verdict in said.message
    assert said.failed == ("is not built for" in verdict)


def test_a_burst(pushed: Mapping[str, str]) -> None:
    """Forty checks at once against a registry that limits them: none is missing, none fails."""
    image = f"{pushed['LAB_REGISTRY_LIMITED']}/team/image:1"
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        all_said = list(pool.map(lambda _: check(image, timeout="10s"), range(40)))
    assert not any(said.failed for said in all_said)
    kinds = Counter(said.message for said in all_said)
    busy = f"{pushed['LAB_REGISTRY_LIMITED']} answered 429"
    assert set(kinds) == {f"{image} exists", busy}
    assert max(said.took_s for said in all_said) < 12
    assert {said.retry_after_s for said in all_said if said.unknown} == {3.0}


# --- servers that mean ill -------------------------------------------------------------------------


def hang(connection: socket.socket, stop: threading.Event) -> None:
    stop.wait(20)


def saying(*parts: bytes, forever: bytes = b"", pause_s: float = 0.0) -> Callable[..., None]:
    """A server that says some things, and one of them again and again."""

    def behave(connection: socket.socket, stop: threading.Event) -> None:
        connection.recv(65536)
        for part in itertools.chain(parts, itertools.repeat(forever) if forever else ()):
            if stop.is_set():
                return
            connection.sendall(part)
            stop.wait(pause_s)

    return behave


def hang_after(text: bytes) -> Callable[..., None]:
    def behave(connection: socket.socket, stop: threading.Event) -> None:
        saying(text)(connection, stop)
        stop.wait(20)

    return behave


def by_path(**answers: bytes) -> Callable[..., None]:
    """A server that tells HEAD from GET."""

    def behave(connection: socket.socket, stop: threading.Event) -> None:
        method = connection.recv(65536).split(b" ")[0].decode()
        connection.sendall(answers[method])

    return behave


class Hostile:
    """Servers on raw sockets."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.asked = 0

    def serve(self, behave: Callable[..., None]) -> str:
        """Start one; returns its address."""
        listening = socket.create_server(("127.0.0.1", 0))
        self._sockets.append(listening)
        self._start(self._accept, listening, behave)
        return f"127.0.0.1:{listening.getsockname()[1]}"

    def deaf(self) -> str:
        """One whose queue is full, so that a connection is not even made."""
        listening = socket.create_server(("127.0.0.1", 0), backlog=0)
        self._sockets.append(listening)
        for _ in range(3):
            waiting = socket.socket()
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
            self._sockets.append(waiting)
        return f"127.0.0.1:{listening.getsockname()[1]}"

    def _start(self, function: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=function, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listening: socket.socket, behave: Callable[..., None]) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            self.asked += 1
            self._start(self._serve, connection, behave)

    def _serve(self, connection: socket.socket, behave: Callable[..., None]) -> None:
        with connection, contextlib.suppress(OSError):
            behave(connection, self._stop)

    def close(self) -> None:
        """End them all."""
        self._stop.set()
        for s in self._sockets:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()
        for thread in self._threads:
            thread.join(5)


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    """Servers that end with the test."""
    servers = Hostile()
    yield servers
    servers.close()


OK = b"HTTP/1.1 200 OK\r\n"
NO_BODY = b"Content-Length: 0\r\n\r\n"
ILL: dict[str, Callable[..., None]] = {
    "hangs": hang,
    "hangs within the headers": hang_after(OK + b"Content-Le"),
    "drips": saying(OK, forever=b"X", pause_s=0.05),
    "closes": lambda connection, stop: None,
    "closes within the headers": saying(OK + b"X: "),
    "garbage": saying(b"\x00\xff\x16\x03" * 200),
    "another protocol": saying(b"220 mail.example.com ESMTP\r\n"),
    "endless headers": saying(OK, forever=b"X: y\r\n" * 1000),
    "one endless header": saying(OK + b"X: ", forever=b"y" * 65536),
    "endless 100s": saying(forever=b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "an odd status": saying(b"HTTP/1.1 999 Odd\r\n" + NO_BODY),
    "a status that is none": saying(b"HTTP/1.1 2OO OK\r\n" + NO_BODY),
    "a page": saying(OK + b"Content-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"),
    "a header without a name": saying(OK + b": x\r\n\xff\xfe\r\n" + NO_BODY),
    "a 401 without a challenge": saying(b"HTTP/1.1 401 No\r\n" + NO_BODY),
    "a 403": saying(b"HTTP/1.1 403 No\r\n" + NO_BODY),
    "a 500": saying(b"HTTP/1.1 500 No\r\n" + NO_BODY),
    "a redirection to itself": saying(b"HTTP/1.1 307 There\r\nLocation: ?\r\n" + NO_BODY),
    "a huge body": by_path(
        HEAD=b"HTTP/1.1 404 No\r\n" + NO_BODY,
        GET=OK + b"Content-Length: 99999999\r\n\r\n" + b"x" * 5_000_000,
    ),
    "a body that is cut off": by_path(
        HEAD=b"HTTP/1.1 404 No\r\n" + NO_BODY, GET=OK + b"Content-Length: 99\r\n\r\nx"
    ),
    "chunks that are none": by_path(
        HEAD=b"HTTP/1.1 404 No\r\n" + NO_BODY,
        GET=OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n-5\r\n",
    ),
}


@pytest.mark.parametrize("what", ILL)
def test_a_server_that_means_ill(hostile: Hostile, what: str) -> None:
    """Whatever it does is unknown, in the time that there is."""
    said = check(f"{hostile.serve(ILL[what])}/a", timeout="700ms")
    assert said.unknown
    assert said.took_s < 2
    assert "\n" not in said.message


def test_a_server_that_does_not_take_connections(hostile: Hostile) -> None:
    """The time holds before there is a connection, too."""
    said = check(f"{hostile.deaf()}/a", timeout="700ms")
    assert "did not answer within" in said.message
    assert said.took_s < 2


def test_a_registry_that_is_never_satisfied(hostile: Hostile) -> None:
    """After one token and one more 401 it has said no: nobody asks for ever."""
    host = ""

    def behave(connection: socket.socket, stop: threading.Event) -> None:
        if b"/token?" in connection.recv(65536):
            connection.sendall(OK + b'Content-Length: 13\r\n\r\n{"token":"t"}')
        else:
            challenge = f'Bearer realm="http://{host}/token"'
            connection.sendall(
                f"HTTP/1.1 401 No\r\nWWW-Authenticate: {challenge}\r\n".encode() + NO_BODY
            )

    host = hostile.serve(behave)
    said = check(f"{host}/a")
    assert said.failed
    assert "does not show a without a login" in said.message
    assert hostile.asked == 3


@pytest.mark.parametrize(
    ("after", "least_s", "most_s"),
    [
        ("1", 1, 1),
        (lambda: email.utils.formatdate(time.time() + 60, usegmt=True), 30, 60),
        ("999999999", 999999999, 999999999),
        ("9" * 5000, None, None),
        ("-1", None, None),
        (lambda: "Fri, 31 Dec 9999 23:59:59 GMT", 1e9, 1e12),
        (lambda: "Thu, 01 Jan 1970 00:00:00 GMT", 0, 0),
    ],
)
def test_a_server_that_asks_for_patience(
    hostile: Hostile, after: str | Callable[[], str], least_s: float | None, most_s: float | None
) -> None:
    """What it asks for reaches the executor; garbage does not."""

    def behave(connection: socket.socket, stop: threading.Event) -> None:
        text = after if isinstance(after, str) else after()
        connection.recv(65536)
        connection.sendall(f"HTTP/1.1 503 Busy\r\nRetry-After: {text}\r\n".encode() + NO_BODY)

    host = hostile.serve(behave)
    said = check(f"{host}/a", timeout="6s")
    assert said.message == f"{host} answered 503"
    assert hostile.asked == 1
    if least_s is None or most_s is None:
        assert said.retry_after_s is None
    else:
        assert said.retry_after_s is not None
        assert least_s <= said.retry_after_s <= most_s


# --- through the init phase ------------------------------------------------------------------------

UID = "11111111-2222-3333-4444-555555555555"


def run_init(folder: pathlib.Path, image: str) -> tuple[int, str, list[dict[str, Any]]]:
    """``pairun init`` with the default task; its exit code, its output, and the task's records."""
    job_text = json.dumps(
        {
            "protocolVersion": 2, "name": "small", "type": "job",
            "prerequisites": [{"type": "dockerimage", "name": "i", "uri": image}],
            "taskRoles": {
                "worker": {
                    "instances": 1, "dockerImage": "i", "commands": ["true"],
                    "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0},
                }
            },
        }
    )  # fmt: skip
    job, problems = read_job(read_text(Source("job", "job", job_text), JS))
    assert job is not None, list(problems)
    pods = {job.roles[0].fc_name: [{"podUID": UID, "podHostIP": "10.0.0.1"}]}
    framework, volume = folder / "framework.json", folder / "pai"
    framework.write_text(json.dumps(with_statuses(make_framework(job), pods)))
    volume.mkdir()
    (folder / "layer.yaml").write_text(
        "init:\n"
        "  - disable: barrier\n"
        "  - disable: port_check\n"
        "  - before: job_environment\n"
        "    id: placed\n"
        "    name: The addresses are there\n"
        f"    cmd: {{script: 'cp {framework} {volume}/framework.json'}}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pairun", "init"],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"], "PAIRUN_PAI_DIR": str(volume),
            "PAIRUN_FRAMEWORK_FILE": str(framework),
            "PAIRUN_ENGINE_LAYER": str(folder / "layer.yaml"), "PAIRUN_HOST_IP": "127.0.0.1",
            "PAIRUN_GANG_DIR": str(folder / "gang"), "FC_TASKROLE_NAME": "worker",
            "FC_TASK_INDEX": "0", "FC_POD_UID": UID,
        },
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    records = read_journal(str(volume / "logs" / UID / "journal.jsonl"))
    return done.returncode, done.stdout + done.stderr, [dict(r) for r in records]


def test_a_missing_image_ends_the_init_phase(
    pushed: Mapping[str, str], tmp_path: pathlib.Path
) -> None:
    """The container exits with 254 at the first attempt, and says which image is not there."""
    image = f"{pushed['LAB_REGISTRY']}/team/image:missing"
    code, said, records = run_init(tmp_path, image)
    assert code == 254, said
    assert f"image {image} does not exist" in said
    begun = [r for r in records if r["type"] == "attempt_begin" and r["task"] == "image_check"]
    assert len(begun) == 1


def test_an_image_that_is_there_does_not(pushed: Mapping[str, str], tmp_path: pathlib.Path) -> None:
    """With a digest of a real image the phase succeeds."""
    image = f"{pushed['LAB_REGISTRY']}/team/image@{pushed['DIGEST']}"
    code, said, _ = run_init(tmp_path, image)
    assert code == 0, said


def test_a_busy_registry_does_not(hostile: Hostile, tmp_path: pathlib.Path) -> None:
    """With 429 all the way the task is retried and then ignored, and the phase succeeds."""
    host = hostile.serve(saying(b"HTTP/1.1 429 Busy\r\nRetry-After: 0\r\n" + NO_BODY))
    code, said, records = run_init(tmp_path, f"{host}/team/image:1")
    assert code == 0, said
    (end,) = [r for r in records if r["type"] == "task_end" and r["task"] == "image_check"]
    assert (end["outcome"], end["kind"], end["attempts"]) == ("ignored", "transient", 3)
    assert end["message"] == f"{host} answered 429"
    assert f"{host} answered 429" in said
