"""The same inputs give the same bundle and the same layers of the image, byte for byte."""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.surroundings import GIVEN

ROOT = pathlib.Path(__file__).parents[2]
NOT_COPIED = (
    ".git",
    ".venv",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
    "pairun-run",
)
"""What of a checkout no build reads."""

ARCHITECTURES = ("amd64", "arm64")
BUILD_S = 3 * 3600.0
WITH_THE_BUNDLE = """\
mount -t tmpfs none /opt && mkdir /opt/pairun && mount --bind "$1" /opt/pairun && shift && exec "$@"
"""
"""Runs a command with the bundle where the build of the image has it."""


def _digests(folder: pathlib.Path) -> dict[str, str]:
    """What is below a folder, by path: the digest of a file's bytes, its mode and time, or where a link leads."""
    digests = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        link = os.readlink(path) if path.is_symlink() else ""
        digests[str(path.relative_to(folder))] = (
            f"{status.st_mode:o} {status.st_mtime} {content} {link}"
        )
    return digests


def _programs(folder: pathlib.Path) -> dict[str, str]:
    """The digest of each file beside a bundle, and of the bundle."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def _differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


@pytest.fixture
def checkout(tmp_path: pathlib.Path, make_bundle: object) -> pathlib.Path:
    """A copy of what the build reads: this checkout may change meanwhile."""
    return _copy(ROOT, tmp_path / "one")


def _copy(checkout: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    shutil.copytree(
        checkout, folder, symlinks=True,
        ignore=lambda where, names: [n for n in names if n in NOT_COPIED or (where == str(ROOT) and n == "build")],
    )  # fmt: skip
    return folder


def _run(*argv: str | pathlib.Path, umask: int = 0o022, **env: str) -> None:
    done = subprocess.run(
        argv, env={**_warm(), **env}, capture_output=True, text=True, umask=umask, timeout=BUILD_S
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arch", ["amd64", pytest.param("arm64", marks=pytest.mark.nightly)])
def test_packed_elsewhere(checkout: pathlib.Path, tmp_path: pathlib.Path, arch: str) -> None:
    """The same sources in another folder, linked once more, become the same files."""
    outputs = []
    for seed, folder in enumerate((checkout, _copy(checkout, tmp_path / "another-folder"))):
        outputs.append(tmp_path / f"output-{seed}")
        _run(
            folder / "bundle/build.sh", "--arch", arch, "--output", outputs[-1] / "runtime",
            PYTHONHASHSEED=str(seed),
        )  # fmt: skip
    one, other = map(_programs, outputs)
    assert {"runtime", "tools/sshd", "licences/musl"} <= one.keys()
    assert _differences(one, other) == []


@pytest.mark.nightly
def test_built_from_nothing(checkout: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """CPython, the libraries, OpenSSH and rclone, compiled once more for both machines, are the same files."""
    cache = tmp_path / "cache"
    for part in ("", "rclone"):  # the downloads alone: their digests are compared
        downloads = pathlib.Path(_warm()["PAIRUN_BUNDLE_CACHE"]) / part / "downloads"
        if downloads.exists():
            shutil.copytree(downloads, cache / part / "downloads")
    # The build for the other machine compiles this one's CPython, too.
    for arch in sorted(ARCHITECTURES, reverse=True):
        outputs = []
        for name, used in (("warm", _warm()["PAIRUN_BUNDLE_CACHE"]), ("cold", str(cache))):
            outputs.append(tmp_path / f"{arch}-{name}")
            for script, file in (("build.sh", "runtime"), ("rclone.sh", "tools")):
                _run(
                    checkout / "bundle" / script, "--arch", arch, "--output", outputs[-1] / file,
                    PAIRUN_BUNDLE_CACHE=used,
                )  # fmt: skip
        assert _differences(*map(_programs, outputs)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_images_layers(checkout: pathlib.Path, tmp_path: pathlib.Path, arch: str) -> None:
    """Made twice, in other folders, with another mask, order of sets and time zone, the layers are the same."""
    bundle = tmp_path / "bundle"
    _run(checkout / "bundle/build.sh", "--arch", arch, "--output", bundle / "runtime")
    _run(checkout / "bundle/rclone.sh", "--arch", arch, "--output", bundle / "tools")
    layers = []
    for name, umask, seed, zone in (("a", 0o022, "1", "UTC"), ("b", 0o077, "2", "Asia/Tokyo")):
        layers.append(tmp_path / name)
        _run(
            "unshare", "--mount", "sh", "-c", WITH_THE_BUNDLE, "sh", bundle,
            checkout / "image/root.sh", "--arch", arch, "--output", layers[-1],
            umask=umask, PYTHON=sys.executable, PYTHONHASHSEED=seed, TZ=zone,
        )  # fmt: skip
    one, other = map(_digests, layers)
    assert any(name.endswith("site-packages/kubernetes.zip") for name in one)
    assert _differences(one, other) == []


def _warm() -> dict[str, str]:
    """The environment with the cache that other tests use."""
    cache = os.environ.get("PAIRUN_BUNDLE_CACHE", str(ROOT / "build" / "bundle-cache"))
    return {**GIVEN, "PAIRUN_BUNDLE_CACHE": cache}
