"""What an image runs is asked of its registry, with the user's login, and pinned by digest."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from pairun.errors import PairunError
from pairun.inject.imagecommand import Registries
from pairun.secrets.vault import Vault
from tests.inject.workloads import POD, injected, refusals

USER, PASSWORD = "reader", "open sesame"
PAIR = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


def digest(document: bytes) -> str:
    """The digest of a text."""
    return f"sha256:{hashlib.sha256(document).hexdigest()}"


CONFIG = json.dumps({"config": {"Entrypoint": ["/run", "$(X)"], "Cmd": ["--all"]}}).encode()
MANIFEST = json.dumps({"config": {"digest": digest(CONFIG)}}).encode()
OTHER_CONFIG = json.dumps({"config": {"Cmd": ["other"]}}).encode()
OTHER = json.dumps({"config": {"digest": digest(OTHER_CONFIG)}}).encode()


def index(**variants: bytes) -> bytes:
    """An image for several architectures, and what its builder attests."""
    platforms = [({"os": "linux", "architecture": a}, m) for a, m in variants.items()]
    platforms.append(({"os": "unknown", "architecture": "unknown"}, b"attestation"))
    platforms.append(({"os": "windows", "architecture": "amd64"}, b"windows"))
    manifests = [{"digest": digest(m), "platform": platform} for platform, m in platforms]
    return json.dumps({"manifests": manifests}).encode()


INDEX = index(arm64=MANIFEST, amd64=MANIFEST)
DIFFERENT = index(arm64=OTHER, amd64=MANIFEST)


class Handler(BaseHTTPRequestHandler):
    """A registry with one image, which it shows to one user."""

    def do_GET(self) -> None:
        found = {
            "/v2/team/train/manifests/1": INDEX,
            f"/v2/team/train/manifests/{digest(MANIFEST)}": MANIFEST,
            f"/v2/team/train/blobs/{digest(CONFIG)}": CONFIG,
            "/v2/team/train/manifests/different": DIFFERENT,
            f"/v2/team/train/manifests/{digest(OTHER)}": OTHER,
            f"/v2/team/train/blobs/{digest(OTHER_CONFIG)}": OTHER_CONFIG,
        }.get(self.path)
        status = 200 if found else 404
        if self.headers.get("Authorization") != f"Basic {PAIR}":
            status, found = 401, b""
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(found or b"")))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(found or b"")

    do_HEAD = do_GET  # noqa: N815 - the name that the library calls

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[str]:
    """The address of a registry."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def registries(
    folder: Path, config: dict[str, Any] | str, env: dict[str, str] | None = None
) -> Registries:
    """What asks registries with the logins of a file."""
    text = config if isinstance(config, str) else json.dumps(config)
    (folder / "config.json").write_text(text)
    return Registries({**(env or {}), "DOCKER_CONFIG": str(folder)}, Vault())


def test_an_image_without_a_command_in_the_manifest(registry: str, tmp_path: Path) -> None:
    """ENTRYPOINT and CMD are written behind PID 1, and the image is the one that was asked."""
    asked = registries(tmp_path, {"auths": {registry: {"auth": PAIR}}})
    text = POD.replace("busybox", f"{registry}/team/train:1").replace(
        """    command: ["sh", -c, 'exit 3']\n""", ""
    )
    made = injected(text, ask=asked.ask)
    (container,) = yaml.safe_load(made)["spec"]["containers"]
    assert container["command"] == ["/usr/local/pai/runtime", "--", "/run", "$$(X)", "--all"]
    assert container["image"] == f"{registry}/team/train:1@{digest(INDEX)}"
    assert injected(made, ask=asked.ask) == made


def test_the_arguments_of_the_container_replace_those_of_the_image(
    registry: str, tmp_path: Path
) -> None:
    """With `args` in the manifest, only the image's ENTRYPOINT counts."""
    asked = registries(tmp_path, {"auths": {registry: {"username": USER, "password": PASSWORD}}})
    text = POD.replace("busybox", f"{registry}/team/train:1").replace(
        """command: ["sh", -c, 'exit 3']""", "args: [--one]"
    )
    (container,) = yaml.safe_load(injected(text, ask=asked.ask))["spec"]["containers"]
    assert container["command"] == ["/usr/local/pai/runtime", "--", "/run", "$$(X)"]


def test_a_credential_helper(registry: str, tmp_path: Path) -> None:
    """A login may come from the program that the user's file names."""
    helper = tmp_path / "docker-credential-mine"
    answer = json.dumps({"Username": USER, "Secret": PASSWORD})
    helper.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{answer}'\n")
    helper.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", env["PATH"])
        asked = registries(tmp_path, {"credsStore": "mine"}, env)
        assert asked.ask(f"{registry}/team/train:1").cmd == ("--all",)


def test_a_registry_that_refuses(registry: str, tmp_path: Path) -> None:
    """Without a login, or with a file that cannot be read, the error says so and shows no secret."""
    with pytest.raises(PairunError, match="does not show team/train without a login") as refused:
        registries(tmp_path, {}).ask(f"{registry}/team/train:1")
    assert "--entrypoint COMMAND" in str(refused.value.problems[0].hint)
    with pytest.raises(PairunError, match="'a b' is not an image"):
        registries(tmp_path, {}).ask("a b")
    with pytest.raises(PairunError, match="cannot be read") as e:
        registries(tmp_path, f'{{"auths": "{PAIR}').ask(f"{registry}/team/train:1")
    assert PAIR not in str(e.value)


def test_the_architecture_of_the_pods_node(registry: str, tmp_path: Path) -> None:
    """The variant counts that the Pod's node runs; without a word of it, all must agree."""
    asked = registries(tmp_path, {"auths": {registry: {"auth": PAIR}}})
    text = POD.replace("busybox", f"{registry}/team/train:different").replace(
        """    command: ["sh", -c, 'exit 3']\n""", ""
    )
    for arch, command in (("arm64", ["other"]), ("amd64", ["/run", "$$(X)", "--all"])):
        on = text.replace("spec:\n", f"spec:\n  nodeSelector: {{kubernetes.io/arch: {arch}}}\n")
        (container,) = yaml.safe_load(injected(on, ask=asked.ask))["spec"]["containers"]
        assert container["command"] == ["/usr/local/pai/runtime", "--", *command]
        # The digest of the index, so that any node still pulls its own variant.
        assert container["image"].endswith(digest(DIFFERENT))
    (said,) = refusals(text, ask=asked.ask)
    assert "its variants run different commands: linux/arm64, linux/amd64" in said
    assert "--entrypoint COMMAND" in said
    on = text.replace("spec:\n", "spec:\n  nodeSelector: {kubernetes.io/arch: s390x}\n")
    (said,) = refusals(on, ask=asked.ask)
    assert "it is not built for linux/s390x, only for linux/arm64, linux/amd64" in said
