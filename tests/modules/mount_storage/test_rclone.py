"""Object stores without a server."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from pairun.module import Permanent, Secret
from tests.modules.conftest import Harness
from tests.modules.mount_storage.conftest import S3

FAKE = """#!/bin/sh
if [ "$1" = lsf ]; then echo "$RESULT" >&2; exit 1; fi
"""


SAID = [
    ("AccessDenied: no secret-s", "permanent", "the server refuses"),
    ("directory not found", "permanent", "no such bucket"),
    ("dial tcp: connection refused", "transient", "cannot be reached"),
    ("dial tcp: lookup s3.example.com on 10.0.0.10:53: no such host", "transient",
     "s3.example.com: no such host"),
    ("dial tcp: lookup s3.example.com: server misbehaving", "transient", "cannot be reached"),
    ("2026/11/20 18:04:57 ERROR : no authentication method configured", "permanent",
     "{tmp}/mnt: no authentication method"),
    ("something with secret-s", "transient", "something with ******"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "kind", "says"), SAID)
def test_what_rclone_says_is_said_in_words(
    harness: Harness, line: str, kind: str, says: str
) -> None:
    """Its message is classed, secrets in it are left out, and no key stays behind."""
    if not Path("/dev/fuse").exists():
        pytest.skip("this machine has no /dev/fuse")
    tools = harness.tmp / "tools"
    tools.mkdir()
    (tools / "rclone").write_text(FAKE.replace("$RESULT", line))
    (tools / "rclone").chmod(0o755)
    storage = {**S3, "secret_key": Secret("secret-s")}
    env = {"PAIRUN_TOOLS": str(tools)}
    failure = harness.run("mount_storage", {"storages": [storage]}, env).failure
    assert failure is not None
    assert failure.kind == kind
    assert says.replace("{tmp}", str(harness.tmp)) in failure.message
    assert "secret-s" not in failure.message
    assert [p.name for p in (harness.pai_dir / "storage").iterdir() if p.suffix == ".conf"] == []


def test_without_rclone_it_is_said_where_it_comes_from(harness: Harness) -> None:
    """Neither pairun's image nor the user's has it."""
    if not Path("/dev/fuse").exists():
        pytest.skip("this machine has no /dev/fuse")
    env = {"PATH": "/nonexistent"}
    failure = harness.run("mount_storage", {"storages": [S3]}, env).failure
    assert failure is not None
    assert failure.kind == "permanent"
    assert "there is no rclone to mount s3 s3:team" in failure.message


def test_a_container_without_the_device_is_told(harness: Harness) -> None:
    """/dev/fuse is the platform's to give."""
    answers = {"stat": lambda path: None if path == "/dev/fuse" else NotImplemented}
    module: Any = harness.make("mount_storage", {"storages": [S3]})
    with contextlib.suppress(KeyError), pytest.raises(Permanent, match="no /dev/fuse") as raised:
        module.apply(harness.world(answers=answers).ctx)
    assert raised.value.fault == "platform"
