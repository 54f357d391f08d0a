"""What pairun is made of is locked by digests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("path", sorted(ROOT.glob("requirements*.lock")), ids=lambda p: p.name)
def test_a_lock_has_a_digest_for_everything(path: Path) -> None:
    """Pip refuses a package whose digest differs, and one without a digest."""
    text = path.read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if re.match(r"[A-Za-z0-9]", line)]
    assert lines
    assert [
        line for line in lines if not re.search(r"==\S+ .*--hash=sha256:[0-9a-f]{64}", line)
    ] == []


def test_nothing_is_installed_without_digests() -> None:
    """Each pip of the image, the bundle, the Makefile and the gate requires them, or installs this project."""
    for name in ("Dockerfile", "Makefile", "bundle/link.sh", "image/root.sh", ".ci/run"):
        text = (ROOT / name).read_text().replace("\\\n", " ")
        for line in re.findall(r"^.*\bpip\b.* install .*$", text, re.MULTILINE):
            assert "--require-hashes" in line or "--no-deps" in line, f"{name}: {line}"


def test_the_lock_of_the_sources() -> None:
    """CPython, OpenSSL, OpenSSH, rclone and the rest: each with a description and a source, by SHA-256."""
    lines = [line.split() for line in (ROOT / "bundle/sources.lock").read_text().splitlines()]
    packages = {name for name, *_ in lines}
    assert packages == {
        "python3.11", "openssl", "zlib", "bzip2", "xz-utils", "openssh", "rclone", "fuse3",
    }  # fmt: skip
    for name in packages:
        own = [line for line in lines if line[0] == name]
        assert len({version for _, version, *_ in own}) == 1
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for _, _, digest, _ in own)
        files = [file for *_, file in own]
        assert any(each.endswith(".dsc") for each in files)
        assert any(".orig.tar." in each for each in files)


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_the_lock_of_the_images_packages(arch: str) -> None:
    """Every package of Debian in the image is locked for each architecture, by SHA-256, and no other is."""
    lines = [line.split() for line in (ROOT / "image/packages.lock").read_text().splitlines()]
    own = [line for line in lines if line[1] == arch]
    listed = (ROOT / "image/packages.txt").read_text().splitlines()
    names = {line.partition("#")[0].split()[0] for line in listed if line.partition("#")[0].split()}
    assert sorted(name for name, *_ in own) == sorted(names)
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for *_, digest, _ in own)
    assert {line[1] for line in lines} == {"amd64", "arm64"}
