"""What an image runs is asked of its registry, with the user's login, and pinned by digest."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pairun.errors import PairunError
from pairun.inject.imagecommand import Registries
from pairun.secrets.vault import Vault
from tests.inject.workloads import POD, injected, refusals
from tests.webserver import Answer, Asked, WebServer

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


FOUND = {
    "/v2/team/train/manifests/1": INDEX,
    f"/v2/team/train/manifests/{digest(MANIFEST)}": MANIFEST,
    f"/v2/team/train/blobs/{digest(CONFIG)}": CONFIG,
    "/v2/team/train/manifests/different": DIFFERENT,
    f"/v2/team/train/manifests/{digest(OTHER)}": OTHER,
    f"/v2/team/train/blobs/{digest(OTHER_CONFIG)}": OTHER_CONFIG,
}


def reply(asked: Asked) -> Answer:
    """A registry with one image, which it shows to one user."""
    if asked.authorization != f"Basic {PAIR}":
        return Answer(401, {"WWW-Authenticate": 'Basic realm="x"'})
    if (found := FOUND.get(asked.path)) is None:
        return Answer(404)
    return Answer(200, {"Content-Type": "application/json"}, found)


@pytest.fixture
def registry() -> Iterator[str]:
    """The address of a registry."""
    with WebServer(reply) as server:
        yield server.host


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
