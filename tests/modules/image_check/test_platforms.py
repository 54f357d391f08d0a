"""An image must have the platform of the node."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pairun.module import (
    Fetched,
)
from tests.modules.image_check.conftest import (
    DIGEST,
    OCI,
    PASSWORD,
    TOKEN,
    Asking,
    Part,
    Server,
    index,
    refused,
)
from tests.webserver import Answer, Asked


@pytest.fixture
def on(ask: Callable[..., Asking]) -> Iterator[Callable[..., Asking]]:
    """Check an image, of which the manifest (and the configuration) is given, for a platform."""
    server = Server()

    def run(platform: str, manifest: bytes, config: Answer | None = None, **more: Any) -> Asking:
        def behave(asked: Asked) -> Answer:
            if "/blobs/" in asked.path:
                return config or Answer(404)
            return Answer(200, OCI, b"" if asked.method == "HEAD" else manifest)

        server.behaviour = behave
        server.asked.clear()
        return ask(f"{server.host}/a", platform=platform, **more)

    yield run
    server.close()


BOTH = index("linux/amd64", "linux/arm64/v8", "unknown/unknown")


@pytest.mark.parametrize(
    ("platform", "offered"),
    [
        ("linux/amd64", BOTH),
        ("linux/arm64", BOTH),
        ("linux/x86_64", BOTH),
        ("linux/aarch64", BOTH),
        ("linux/arm64/v8", index("linux/arm64")),
        ("linux/arm/v7", index("linux/arm/v6")),
        ("linux/arm/v7", index("linux/arm")),
        ("linux/arm", index("linux/arm/v7")),
        ("linux/amd64/v3", index("linux/amd64/v2")),
        ("linux/amd64/v3", index("linux/amd64")),
        ("linux/amd64", index("linux/386")),
        ("linux/arm64", index("linux/arm/v7")),
        ("linux/amd64", index(None, 5, {"os": 1}, "linux/amd64")),
        ("windows/amd64", index("linux/amd64", "windows/amd64")),
    ],
)
def test_a_platform_that_the_image_has(
    on: Callable[..., Asking], platform: str, offered: bytes
) -> None:
    """Names are told apart as container engines do; a variant may be older, and may be unsaid."""
    assert " exists for " in on(platform, offered).message


@pytest.mark.parametrize(
    ("platform", "offered", "shown"),
    [
        ("linux/s390x", BOTH, "linux/amd64, linux/arm64/v8"),
        ("windows/amd64", BOTH, "linux/amd64, linux/arm64/v8"),
        ("linux/arm/v6", index("linux/arm/v7"), "linux/arm/v7"),
        ("linux/amd64/v2", index("linux/amd64/v3"), "linux/amd64/v3"),
        ("linux/386", index("linux/amd64"), "linux/amd64"),
        ("linux/amd64", index("wasi/wasm", "linux/" + PASSWORD, "linux/arm/" + TOKEN), "others"),
        ("linux/amd64", index("unknown/unknown"), "nothing"),
        ("linux/amd64", index(), "nothing"),
    ],
)
def test_a_platform_that_the_image_lacks(
    on: Callable[..., Asking], platform: str, offered: bytes, shown: str
) -> None:
    """That is definite, and the sentence says what there is, in words known here."""
    said = refused(on(platform, offered))
    assert f" is not built for {platform}, only for {shown};" in said


@pytest.mark.parametrize(
    "config",
    [b'{"os": "linux", "architecture": "amd64"}', b'{"os": "Linux", "architecture": "arm64"}'],
)
def test_a_single_image_says_it_in_its_configuration(
    on: Callable[..., Asking], config: bytes
) -> None:
    """Where there is no index the configuration is read, also where the registry keeps it away."""
    manifest = json.dumps({"config": {"digest": DIGEST}}).encode()
    platform = "linux/" + json.loads(config)["architecture"]
    assert "exists for" in on(platform, manifest, Answer(200, {}, config)).message
    assert "is not built for linux/s390x" in refused(
        on("linux/s390x", manifest, Answer(200, {}, config))
    )
    store = Server()
    store.behaviour = lambda _: Answer(200, {}, config)
    away = Answer(307, {"Location": f"http://{store.host}/blob?signed=1"})
    assert "exists for" in on(platform, manifest, away).message
    assert [a.authorization for a in store.asked] == [None]
    store.close()


@pytest.mark.parametrize(
    ("manifest", "config"),
    [
        (b"", None),
        (b"<html>", None),
        (b"[" * 100_000, None),
        (b"[]", None),
        (b'{"manifests": {}}', None),
        (b'{"manifests": [{}, 1]}', None),
        (index("linux/arm64") + b" " * 5_000_000, None),
        (b'{"config": 1}', None),
        (b'{"config": {"digest": "sha256:../../x"}}', None),
        (json.dumps({"config": {"digest": DIGEST}}).encode(), Answer(404)),
        (json.dumps({"config": {"digest": DIGEST}}).encode(), Answer(500)),
        (json.dumps({"config": {"digest": DIGEST}}).encode(), Answer(200, {}, b'{"os": "linux"}')),
        (json.dumps({"config": {"digest": DIGEST}}).encode(), Answer(200, {}, b" " * 5_000_000)),
    ],
    ids=lambda v: f"{str(v)[:60]}",
)
def test_a_platform_that_nobody_says(
    on: Callable[..., Asking], manifest: bytes, config: Answer | None
) -> None:
    """What cannot be read is unknown, not missing."""
    assert on("linux/amd64", manifest, config).unknown


@pytest.mark.parametrize("status", [201, 400, 403, 404])
def test_nothing_is_believed_of_an_error(
    elsewhere: Server, ask: Callable[..., Asking], status: int
) -> None:
    """A body that comes with another status than 200 is not looked at."""
    answer = Answer(status, OCI, index("linux/arm64"))
    elsewhere.behaviour = lambda a: Answer(200, OCI) if a.method == "HEAD" else answer
    assert "does not name" in ask(f"{elsewhere.host}/a", platform="linux/amd64").unknown


@pytest.mark.parametrize("depth", [*range(100, 1100, 50)])
def test_a_manifest_that_is_nested(part: Part, depth: int) -> None:
    """Depth is no trouble, wherever it is found."""
    deep = "[" * depth + "]" * depth
    for text in (f'{{"os": {deep}, "architecture": "a"}}', f'{{"config": {{"digest": {deep}}}}}'):
        document = part("registry")._json_object(Fetched(200, {}, text.encode()))
        assert part("platforms").platform_of(document) is None


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        ("x86_64", "linux/amd64"), ("aarch64", "linux/arm64"), ("armv7l", "linux/arm/v7"),
        ("ppc64le", "linux/ppc64le"), ("riscv64", "linux/riscv64"),
    ],
)  # fmt: skip
def test_the_platform_of_this_machine(
    part: Part, monkeypatch: pytest.MonkeyPatch, machine: str, expected: str
) -> None:
    """The kernel's word for it becomes the registry's."""
    real = os.uname()
    monkeypatch.setattr(os, "uname", lambda: type(real)((*tuple(real)[:4], machine)))
    assert str(part("platforms").parse_platform("node")) == expected
