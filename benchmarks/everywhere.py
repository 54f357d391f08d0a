"""The image's size, unpacked and as a node pulls it."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

from benchmarks.measure import ROOT, NotMeasured, Row, fixed

IMAGE = "localhost/pairun:containers"
"""What the tests of containers have built."""

BASE = "docker.io/library/debian:bookworm-slim"
UNPACKED_MB, PULLED_MB = 140, 60


def rows() -> Iterator[Row]:
    """Both sizes.

    Raises:
        NotMeasured: the image is missing.
    """
    env = _podman_env()
    inspected = [_run(["podman", "image", "inspect", name], env) for name in (IMAGE, BASE)]
    image, base = (json.loads(text)[0]["Size"] / 1e6 for text in inspected)
    yield Row(
        "the image, unpacked", "MB", fixed(image), UNPACKED_MB, "Debian's minimal", fixed(base)
    )
    pulled = [_pulled_mb(name, env) for name in (IMAGE, BASE)]
    yield Row(
        "the image, as it is pulled", "MB", fixed(pulled[0]), PULLED_MB,
        "Debian's minimal", fixed(pulled[1]), "layers of zstd",
    )  # fmt: skip


def _pulled_mb(name: str, env: dict[str, str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        options = ["--quiet", "--compress", "--compression-format=zstd"]
        _run(["podman", "push", *options, name, f"dir:{folder}"], env)
        return sum(path.stat().st_size for path in pathlib.Path(folder).iterdir()) / 1e6


def _podman_env() -> dict[str, str]:
    """The variables of podman with the laboratory's images, where there is one."""
    lab = ROOT / os.environ.get("PAIRUN_SHARED", "../shared") / "lab" / "lab"
    if not lab.exists() or shutil.which("podman") is None:
        raise NotMeasured("the image: needs podman and the laboratory of container images")
    found = re.findall(
        r"^export ([A-Z0-9_]+)=(.*)$", _run([str(lab), "podman", "env"]), re.MULTILINE
    )
    env = {**os.environ, **{name: "".join(shlex.split(value)) for name, value in found}}
    if subprocess.run(["podman", "image", "exists", IMAGE], env=env, check=False).returncode != 0:
        raise NotMeasured("the image: `make test-containers` builds it")
    return env


def _run(argv: list[str], env: dict[str, str] | None = None) -> str:
    return subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout
