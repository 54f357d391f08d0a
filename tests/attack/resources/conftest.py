"""A small disk, and a secret that no output may hold."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

SECRET = "hunter2-is-secret"


@pytest.fixture
def secret(volume: Any) -> str:
    """A secret that no output may hold."""
    content = {"schema": 2, "redact": [SECRET], "values": {}}
    (volume.files / "secrets.json").write_text(json.dumps(content))
    return SECRET


@pytest.fixture
def disk(volume: Any, tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """The volume on a disk of a megabyte of its own."""
    if os.getuid() != 0:
        pytest.skip("only root may mount a disk")
    kept = tmp_path / "kept"
    shutil.move(volume.root, kept)
    volume.root.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "disk", str(volume.root)], check=True)
    shutil.copytree(kept, volume.root, dirs_exist_ok=True)
    yield volume.root
    subprocess.run(["umount", "-l", str(volume.root)], check=True)
