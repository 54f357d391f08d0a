"""Storages of these tests, and what is mounted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pairun.base import system
from pairun.host import mounts
from tests.modules.conftest import Harness

NFS = {"type": "nfs", "server": "127.0.0.1", "export": "/data", "path": "{tmp}/mnt"}


LOCAL = {"type": "local", "source": "{tmp}/source", "path": "{tmp}/mnt"}


S3 = {"type": "s3", "bucket": "team", "access_key": "k", "secret_key": "s", "path": "{tmp}/mnt"}


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@pytest.fixture(autouse=True)
def unmounted(tmp_path: Path) -> Iterator[None]:
    """Whatever a test mounts is gone after it."""
    yield
    for mount in reversed(mounts.mounts()):
        if mount.target.startswith(str(tmp_path)):
            system.unmount(mount.target, mounts.MNT_DETACH)


def mounted(harness: Harness) -> list[str]:
    """What is mounted below the test's directory."""
    below = [m.target for m in mounts.mounts() if m.target.startswith(str(harness.tmp))]
    return [t.removeprefix(str(harness.tmp)) for t in below]
