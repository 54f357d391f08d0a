"""The image has Debian's packages with the locked digests, and no others."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FILES = {"one": "one_1_amd64.deb", "two": "two_1%3a2_all.deb"}
SCRIPT = """
set -euo pipefail
say() { echo "image: $*" >&2; }
die() { echo "image: error: $*" >&2 && exit 1; }
. "$ROOT/bundle/downloads.sh"
. "$HERE/packages.sh"
list_sources() { :; }
private_apt() { for word in "$@"; do case $word in *=1*) echo "GOT $word" >&3 && cp "$ARCHIVE/${word%%=*}"_* .;; esac; done; }
lock_packages 3>&1
echo LOCKED
"""


class Build:
    """The part of the image's build that takes packages, with a folder in the place of Debian's archive."""

    def __init__(self, folder: Path) -> None:
        self.here, self.archive, self.cache = (folder / n for n in ("image", "archive", "cache"))
        for made in (self.here, self.archive, self.cache):
            made.mkdir()
        (self.here / "packages.sh").write_text((ROOT / "image" / "packages.sh").read_text())
        (self.here / "packages.txt").write_text("# a comment\none  usr/bin/*\none\ntwo\n")
        self.lock = self.here / "packages.lock"
        lines = ["one arm64 1 0 one_1_arm64.deb", "two arm64 1:2 0 two_1%3a2_all.deb"]
        for (name, file), version in zip(FILES.items(), ("1", "1:2"), strict=True):
            (self.archive / file).write_bytes(name.encode())
            digest = hashlib.sha256(name.encode()).hexdigest()
            lines.append(f"{name} amd64 {version} {digest} {file}")
        self.lock.write_text("".join(f"{line}\n" for line in sorted(lines)))

    def run(self) -> tuple[int, str]:
        """Bring the packages; the exit code and what was printed."""
        env = {
            "PATH": "/usr/bin:/bin", "HERE": str(self.here), "ROOT": str(ROOT), "ARCH": "amd64",
            "CACHE": str(self.cache), "PACKAGES": str(self.cache / "packages-amd64"),
            "ARCHIVE": str(self.archive), "LC_ALL": "C",
        }  # fmt: skip
        done = subprocess.run(["bash", "-c", SCRIPT], env=env, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """An archive whose packages are as the lock says."""
    return Build(tmp_path)


def test_the_locked_packages_are_taken(build: Build) -> None:
    """By name and version, once: the second build has them. A package of an earlier lock goes."""
    code, printed = build.run()
    assert code == 0, printed
    assert "GOT one=1\nGOT two=1:2\n" in printed
    (build.cache / "packages-amd64" / "old_1_amd64.deb").touch()
    code, printed = build.run()
    assert code == 0, printed
    assert "GOT" not in printed
    assert sorted(p.name for p in (build.cache / "packages-amd64").iterdir()) == [*FILES.values()]


def test_another_file_of_the_same_name(build: Build) -> None:
    """An archive that gives other bytes ends the build."""
    (build.archive / FILES["one"]).write_bytes(b"other")
    code, printed = build.run()
    assert code == 1
    assert "one_1_amd64.deb: FAILED" in printed
    assert "is not what" in printed
    assert "LOCKED" not in printed


def test_a_changed_cache(build: Build) -> None:
    """A file of the cache with another digest is downloaded again."""
    assert build.run()[0] == 0
    (build.cache / "packages-amd64" / FILES["one"]).write_bytes(b"other")
    code, printed = build.run()
    assert code == 0, printed
    assert "GOT one=1\nLOCKED" in printed


def test_a_package_that_is_not_locked(build: Build) -> None:
    """The list and the lock name the same packages."""
    (build.here / "packages.txt").write_text("one\ntwo\nthree\n")
    code, printed = build.run()
    assert code == 1
    assert "< three" in printed
    assert "--update" in printed
