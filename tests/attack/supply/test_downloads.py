"""A download of the build is tried again while another attempt may help, and its failure says what to do."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.webserver import Answer, WebServer

pytestmark = pytest.mark.slow

BUNDLE = Path(__file__).parents[3] / "bundle"
FILES = {"tool_1.2-3.dsc": b"description", "tool_1.2.orig.tar.gz": b"source"}
SCRIPT = """
set -euo pipefail
say() { echo "bundle: $*" >&2; }
die() { echo "bundle: error: $*" >&2 && exit 1; }
quietly() { echo "RAN $1"; }
sleep() { echo "WAITED $1"; }
. "$HERE/downloads.sh"
. "$HERE/sources.sh"
list_sources() {
  mkdir -p "$CACHE"/downloads "$CACHE"/apt/{lists/partial,cache/archives/partial,sources.list.d}
  echo "$SOURCES" >"$CACHE/apt/sources.list"
  download "$CACHE/apt/update.log" private_apt apt-get update --error-on=any ||
    download_failed "Debian's list of sources" "$CACHE/apt/update.log" "check /etc/apt/sources.list"
}
# one connection each time: the attempts are the build's
private_apt_with_retries=$(declare -f private_apt)
eval "${private_apt_with_retries/Acquire::Retries=3/Acquire::Retries=0}"
unpack_source $(locked tool)
echo BUILT
"""


class Mirror:
    """An archive of Debian's form on a real server, whose answers a test changes.

    Attributes:
        url: of the archive.
        refused: by the end of a path, how many requests get status 503 first.
        missing: ends of paths that get status 404.
    """

    def __init__(self) -> None:
        self.refused: dict[str, int] = {}
        self.missing: set[str] = set()
        self._files = _archive("1.2-3")
        self._server = WebServer(lambda asked: self._answer(asked.path))
        self.url = f"{self._server.url}/debian"
        self.close = self._server.close

    def newer(self) -> None:
        """Replace the version by a newer one."""
        self._files = _archive("1.2-4")

    def _answer(self, path: str) -> Answer:
        """The status and the content for a path."""
        for end, count in self.refused.items():
            if path.endswith(end) and count:
                self.refused[end] = count - 1
                return Answer(503)
        data = self._files.get(path.removeprefix("/debian/"))
        if data is None or any(path.endswith(end) for end in self.missing):
            return Answer(404)
        return Answer(200, body=data)


def _archive(version: str) -> dict[str, bytes]:
    """The files of an archive with one source package (deb-src, the format of repositories)."""
    sizes = "".join(
        f" {hashlib.sha256(data).hexdigest()} {len(data)} {name}\n" for name, data in FILES.items()
    )
    sources = (
        f"Package: tool\nBinary: tool\nVersion: 1:{version}\nFormat: 3.0 (quilt)\nArchitecture: any\n"
        f"Directory: pool/tool\nChecksums-Sha256:\n{sizes}\n"
    ).encode()
    packed = gzip.compress(sources, mtime=0)
    listed = "".join(
        f" {hashlib.sha256(data).hexdigest()} {len(data)} main/source/{name}\n"
        for name, data in (("Sources", sources), ("Sources.gz", packed))
    )
    release = f"Suite: stable\nCodename: bookworm\nComponents: main\nSHA256:\n{listed}"
    return {
        "dists/bookworm/Release": release.encode(),
        "dists/bookworm/main/source/Sources": sources,
        "dists/bookworm/main/source/Sources.gz": packed,
        **{f"pool/tool/{name}": data for name, data in FILES.items()},
    }


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    """A mirror that has everything."""
    made = Mirror()
    yield made
    made.close()


@pytest.fixture
def build(mirror: Mirror, tmp_path: Path) -> Callable[[], tuple[int, str]]:
    """Runs the part of the build that downloads sources; the exit code and what it printed."""
    if shutil.which("apt-get") is None:
        pytest.skip("the build runs on Debian, with apt")
    lock = tmp_path / "sources.lock"
    lock.write_text(
        "".join(f"tool 1:1.2-3 {hashlib.sha256(d).hexdigest()} {n}\n" for n, d in FILES.items())
    )

    def run() -> tuple[int, str]:
        env = {
            "PATH": "/usr/bin:/bin", "HERE": str(BUNDLE), "CACHE": str(tmp_path / "cache"),
            "BUILD": str(tmp_path / "build"), "PAIRUN_SOURCES_LOCK": str(lock), "LC_ALL": "C",
            "SOURCES": f"deb-src [trusted=yes] {mirror.url} bookworm main",
        }  # fmt: skip
        done = subprocess.run(["bash", "-c", SCRIPT], env=env, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    return run


def test_a_mirror_that_has_it(build: Callable[[], tuple[int, str]]) -> None:
    code, printed = build()
    assert code == 0, printed
    assert "RAN dpkg-source\nBUILT" in printed
    assert "attempt" not in printed


def test_a_hiccup(build: Callable[[], tuple[int, str]], mirror: Mirror) -> None:
    """A server that is busy twice does not end the build; each attempt's reason is printed."""
    mirror.refused["orig.tar.gz"] = 2
    code, printed = build()
    assert code == 0, printed
    assert "BUILT" in printed
    assert "attempt 2 of 3 failed, retrying in 15 s: E: " in printed
    assert "503" in printed


def test_a_server_that_stays_busy(build: Callable[[], tuple[int, str]], mirror: Mirror) -> None:
    """The attempts end; apt's error is shown, and nothing says that Debian lacks the version."""
    mirror.refused["orig.tar.gz"] = 1000
    code, printed = build()
    assert code == 1
    assert printed.count("WAITED") == 2
    assert "503" in printed
    assert "cannot download the source of tool 1:1.2-3 in 3 attempts" in printed
    assert "does not have it" not in printed
    assert "--update" not in printed


def test_no_server(build: Callable[[], tuple[int, str]], mirror: Mirror) -> None:
    """Without the list of sources the build ends: an old list would tell of versions that are gone."""
    mirror.close()
    code, printed = build()
    assert code == 1
    assert "cannot download Debian's list of sources in 3 attempts" in printed
    assert "Connection refused" in printed


@pytest.mark.parametrize("change", [Mirror.newer, lambda m: m.missing.add(".dsc")])
def test_a_version_that_is_gone(
    build: Callable[[], tuple[int, str]], mirror: Mirror, change: Callable[[Mirror], None]
) -> None:
    """One attempt; the message says how to take a newer version."""
    change(mirror)
    code, printed = build()
    assert code == 1
    assert "WAITED" not in printed
    assert "cannot download the source of tool 1:1.2-3: the server does not have it: use Debian's newest sources with --update" in printed  # fmt: skip
    assert "E: " in printed
