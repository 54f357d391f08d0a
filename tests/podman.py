"""podman with the laboratory's images."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import subprocess
import time
from collections.abc import Callable

import attrs

from tests.surroundings import GIVEN

ROOT = pathlib.Path(__file__).parents[1]
AUTHORITIES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
IMAGE = "localhost/pairun:containers"
WAIT_S = 180.0
"""A container of another architecture takes many times as long as one of this machine's."""
BUILD_S = 3600.0

Lab = Callable[..., str]


@attrs.frozen
class Done:
    """A container that has ended.

    Attributes:
        code: its exit code.
        out: its standard output.
        err: its standard error.
        seconds: how long it took, with its start and removal.
    """

    code: int
    out: str
    err: str
    seconds: float

    @property
    def said(self) -> str:
        """All it printed."""
        return self.out + self.err


class Podman:
    """podman with the laboratory's images.

    Args:
        lab: runs a command of the laboratory.
        folder: where podman runs; its monitor leaves a file there when memory runs out.
    """

    def __init__(self, lab: Lab, folder: pathlib.Path) -> None:
        self._lab = lab
        self._folder = folder
        found = re.findall(r"^export ([A-Z0-9_]+)=(.*)$", lab("podman", "env"), re.MULTILINE)
        self.env = {**GIVEN, **{n: "".join(shlex.split(v)) for n, v in found}}

    def start(self, *argv: str | pathlib.Path) -> subprocess.Popen[str]:
        """Start a command of podman."""
        return subprocess.Popen(
            ["podman", *map(str, argv)], env=self.env, cwd=self._folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(
        self, *argv: str | pathlib.Path, stdin: str | None = None, timeout_s: float = WAIT_S
    ) -> Done:
        """Run a command of podman to its end."""
        began = time.monotonic()
        done = subprocess.run(
            ["podman", *map(str, argv)], env=self.env, cwd=self._folder, capture_output=True,
            text=True, input=stdin or "", timeout=timeout_s,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr, time.monotonic() - began)

    def ok(self, *argv: str | pathlib.Path, timeout_s: float = WAIT_S) -> str:
        """Run a command of podman that must succeed; what it printed."""
        done = self.run(*argv, timeout_s=timeout_s)
        assert done.code == 0, done.said[-4000:]
        return done.out

    def image(self, name: str) -> str:
        """The tag of one of the laboratory's images, which is made when it is missing."""
        return self._lab("image", name).split()[-1]

    @property
    def build_options(self) -> list[str]:
        """Options of a build: what the bundle is made of comes from its cache, and goes there."""
        given = os.environ.get("PAIRUN_BUNDLE_CACHE")
        cache = pathlib.Path(given or ROOT / "build" / "bundle-cache")
        cache.mkdir(parents=True, exist_ok=True)
        options = ["--pull=never", "--network=host", "-v", f"{cache}:{cache}", f"--build-arg=PAIRUN_BUNDLE_CACHE={cache}"]  # fmt: skip
        if AUTHORITIES.exists():
            # where the way to Python's packages has an authority of its own
            options += ["-v", f"{AUTHORITIES}:/authorities.crt:ro", "--build-arg=PIP_CERT=/authorities.crt"]  # fmt: skip
        return options

    def build(self, arch: str = "") -> str:
        """Build the image of this checkout; its name.

        Args:
            arch: amd64 or arm64; this machine's by default.
        """
        self.image("debian")
        options = self.build_options
        name = IMAGE
        if arch:
            name = f"{IMAGE}-{arch}"
            native = subprocess.check_output(["dpkg", "--print-architecture"], text=True).strip()
            options += [f"--platform=linux/{arch}", f"--build-arg=BUILDPLATFORM=linux/{native}"]
        self.ok(
            "build", "--quiet", "--layers", *options,
            "--build-arg=VERSION=1.2.3", "--build-arg=REVISION=abc", "-t", name, ROOT,
            timeout_s=BUILD_S,
        )  # fmt: skip
        return name
