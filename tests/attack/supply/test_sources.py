"""The bundle is built from sources with the locked digests, and from nothing else."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

BUNDLE = Path(__file__).parents[3] / "bundle"
FILES = {"tool_1.2-3.dsc": b"description", "tool_1.2.orig.tar.gz": b"source"}
SCRIPT = """
set -euo pipefail
say() { echo "bundle: $*" >&2; }
die() { echo "bundle: error: $*" >&2 && exit 1; }
quietly() { echo "RAN $1"; }
. "$HERE/downloads.sh"
. "$HERE/sources.sh"
list_sources() { :; }
private_apt() { cp "$ARCHIVE"/* .; }
unpack_source $(locked tool)
echo BUILT
"""


class Build:
    """The part of the build that takes sources, with an archive of files in the place of Debian's."""

    def __init__(self, folder: Path) -> None:
        self.archive, self.cache = folder / "archive", folder / "cache"
        self.archive.mkdir()
        self.lock = folder / "sources.lock"
        lines = []
        for name, data in FILES.items():
            (self.archive / name).write_bytes(data)
            lines.append(f"tool 1:1.2-3 {hashlib.sha256(data).hexdigest()} {name}\n")
        self.lock.write_text("".join(lines))

    def run(self) -> tuple[int, str]:
        """Take and unpack the source; returns the exit code and what was printed."""
        env = {
            "PATH": "/usr/bin:/bin", "HERE": str(BUNDLE), "CACHE": str(self.cache),
            "BUILD": str(self.cache / "build"), "ARCHIVE": str(self.archive),
            "PAIRUN_SOURCES_LOCK": str(self.lock),
        }  # fmt: skip
        done = subprocess.run(
            ["bash", "-c", SCRIPT], env=env, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """An archive whose files are as the lock says."""
    return Build(tmp_path)


def test_the_locked_sources_are_built(build: Build) -> None:
    """Nothing is in the way of the right files, downloaded or from the cache."""
    for _ in range(2):
        code, printed = build.run()
        assert code == 0, printed
        assert "RAN dpkg-source\nBUILT" in printed


@pytest.mark.parametrize("name", FILES)
def test_another_file_of_the_same_name(build: Build, name: str) -> None:
    """An archive that gives other bytes fails the build before anything is unpacked."""
    (build.archive / name).write_bytes(b"other")
    code, printed = build.run()
    assert code == 1
    assert "tool 1:1.2-3 is not what" in printed
    assert name in printed
    assert "RAN" not in printed


def test_a_changed_cache(build: Build) -> None:
    """What was downloaded once is compared each time."""
    assert build.run()[0] == 0
    (build.cache / "downloads/tool_1.2-3/tool_1.2.orig.tar.gz").write_bytes(b"other")
    code, printed = build.run()
    assert code == 1
    assert "RAN" not in printed


def test_a_file_more_or_less(build: Build) -> None:
    """The lock names every file that is unpacked."""
    (build.archive / "tool_1.2-3.debian.tar.xz").write_bytes(b"patches")
    assert build.run()[0] == 1
    (build.archive / "tool_1.2-3.debian.tar.xz").unlink()
    (build.archive / "tool_1.2.orig.tar.gz").unlink()
    (build.cache / "downloads/tool_1.2-3/complete").unlink()
    code, printed = build.run()
    assert code == 1
    assert "BUILT" not in printed


def test_a_package_that_is_not_locked(build: Build) -> None:
    """Its version is not looked for elsewhere."""
    build.lock.write_text("other 1 0 other_1.dsc\n")
    code, printed = build.run()
    assert code == 1
    assert "has no tool" in printed
