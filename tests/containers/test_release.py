"""The files that `make release` writes: the same bytes twice, and an installation from them alone."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tarfile
from typing import Any, Protocol

import pytest

from pairun import __version__

ROOT = pathlib.Path(__file__).parents[2]
NAME = f"pairun-{__version__}"


class _Podman(Protocol):
    build_options: list[str]
    env: dict[str, str]

    def image(self, name: str) -> str: ...
    def ok(self, *argv: str | pathlib.Path, timeout_s: float = 60.0) -> str: ...


def _release(podman: _Podman, platforms: str, folder: pathlib.Path) -> pathlib.Path:
    podman.image("debian")
    subprocess.run(
        ["make", "release", f"--assume-old={sys.prefix}/.ready", f"VENV={sys.prefix}", f"RELEASE={folder}",
         f"PLATFORMS={platforms}", f"IMAGE_OPTIONS={' '.join(podman.build_options)}"],
        cwd=ROOT, env=podman.env, check=True, timeout=3000,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def release(podman: _Podman, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The files of a release for this machine's architecture."""
    return _release(podman, _native(), tmp_path_factory.mktemp("release") / "first")


def _native() -> str:
    arch = subprocess.check_output(["dpkg", "--print-architecture"], text=True).strip()
    return f"linux/{arch}"


def test_the_digests_name_every_file(release: pathlib.Path) -> None:
    lines = (release / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    ends = ("-image.tar", "-py3-none-any.whl", "-site.tar", ".cdx.json", ".tar.gz")
    assert set(sums) == {NAME + end for end in ends}
    assert sums == {name: _digest(release / name) for name in sums}


def _digest(file: pathlib.Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_second_run_writes_the_same_bytes(
    podman: _Podman, release: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    second = _release(podman, _native(), tmp_path / "second")
    assert (second / "SHA256SUMS").read_text() == (release / "SHA256SUMS").read_text()


@pytest.mark.nightly
def test_a_release_has_both_architectures(podman: _Podman, tmp_path: pathlib.Path) -> None:
    both = _release(podman, "linux/amd64,linux/arm64", tmp_path / "both")
    with tarfile.open(both / f"{NAME}-image.tar") as archive:
        (entry,) = _manifests(archive, "./index.json")
        index = _manifests(archive, f"./blobs/{entry['digest'].replace(':', '/')}")
    assert {m["platform"]["architecture"] for m in index} == {"amd64", "arm64"}


def _manifests(archive: tarfile.TarFile, name: str) -> list[dict[str, Any]]:
    file = archive.extractfile(name)
    assert file
    return json.loads(file.read())["manifests"]  # type: ignore[no-any-return]


def test_a_job_runs_in_the_image_of_the_archive(podman: _Podman, release: pathlib.Path) -> None:
    loaded = podman.ok("load", "--quiet", "--input", release / f"{NAME}-image.tar")
    image = loaded.split()[-1]
    said = podman.ok(
        "run", "--rm", "--pull=never", "--network=none", "-v", f"{ROOT / 'examples'}:/examples:ro", "-w", "/tmp",
        image, "run", "/examples/hello.yaml", timeout_s=180.0,
    )  # fmt: skip
    assert "hello" in said


def test_the_wheel_installs_without_an_index(release: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """With the packages that it needs at hand, as in the page; a job runs with that command."""
    wheels = tmp_path / "wheels"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "download", "--quiet", "--dest", wheels, "--require-hashes", "-r", ROOT / "requirements.lock"],
        check=True, timeout=600,
    )  # fmt: skip
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "new"], check=True)
    subprocess.run(
        [tmp_path / "new/bin/python", "-m", "pip", "install", "--quiet", "--no-index", "--find-links", wheels,
         release / f"{NAME}-py3-none-any.whl"],
        check=True, timeout=600,
    )  # fmt: skip
    done = subprocess.run(
        [tmp_path / "new/bin/pairun", "run", ROOT / "examples/hello.yaml"],
        cwd=tmp_path, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_documents_of_the_packages_and_the_site(release: pathlib.Path) -> None:
    parts = json.loads((release / f"{NAME}.cdx.json").read_text())["components"]
    assert {"openssl", "musl", "pairun", "requests"} <= {part["name"] for part in parts}
    with tarfile.open(release / f"{NAME}-site.tar") as site:
        assert "./start/install.html" in site.getnames()
