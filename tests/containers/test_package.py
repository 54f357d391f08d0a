"""The module package in a real Debian: its own apt, its servers, its lock, and no network at all."""

from __future__ import annotations

import concurrent.futures
import contextlib
import pathlib
import shlex
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import pytest

from pairun.contract.arguments import build
from pairun.contract.loading import load_module
from pairun.host.context import HostContext
from pairun.module import Completed, Failure, Module, Secret, StateModule

SOURCE = pathlib.Path(__file__).parents[2] / "modules" / "package"
APT_S = 300.0
HOLD_THE_LOCK = """
use Fcntl;
open(my $f, ">>", "/var/lib/dpkg/lock-frontend") or die;
my $lock = pack("s s x4 q q i x4", F_WRLCK, 0, 0, 0, 0);
fcntl($f, F_SETLK, $lock) or die;
$| = 1; print "$$\\n"; sleep 600;
"""

KILL_DPKG = """
until grep -qx dpkg /proc/[0-9]*/comm 2>/dev/null; do :; done
for comm in $(grep -lxE 'apt-get|dpkg|dpkg-deb' /proc/[0-9]*/comm 2>/dev/null); do
  pid=${comm%/comm}; kill -9 "${pid#/proc/}" || true  # its parent's end may have ended it
done
"""


class _Done(Protocol):
    code: int
    out: str
    err: str


class _Podman(Protocol):
    def image(self, name: str) -> str: ...
    def start(self, *argv: str | pathlib.Path) -> subprocess.Popen[str]: ...
    def run(self, *argv: str | pathlib.Path, timeout_s: float = ...) -> _Done: ...
    def ok(self, *argv: str | pathlib.Path, timeout_s: float = ...) -> str: ...


class Container(HostContext):
    """A container that a module acts on.

    Attributes:
        said: the lines that the module said.
    """

    def __init__(self, podman: _Podman, name: str) -> None:
        self.said: list[str] = []
        self.hear: Callable[[str], object] = lambda _: None
        super().__init__({}, "/usr/local/pai", emit_log=self._heard)
        self._podman = podman
        self._name = name

    def _heard(self, line: str) -> None:
        self.said.append(line)
        self.hear(line)

    def inside(self, *argv: str, env: Mapping[str, str | Secret | None] | None = None) -> _Done:
        """Run a command in it."""
        variables = [f"-e{n}={v}" for n, v in (env or {}).items() if v is not None]
        return self._podman.run("exec", *variables, self._name, *argv, timeout_s=APT_S)

    def query(self, argv: Sequence[str], **more: Any) -> Completed:
        done = self.inside(*argv, env=more.get("env"))
        return Completed(done.code, done.out.encode(), done.err.encode())

    run = query

    def which(self, program: str) -> str | None:
        return self.inside("sh", "-c", f"command -v {shlex.quote(program)}").out.strip() or None

    def read_file(self, path: str, max_bytes: int = 1 << 24) -> bytes | None:
        done = self.inside("cat", path)
        return done.out.encode() if done.code == 0 else None

    def list_dir(self, path: str) -> list[str] | None:
        done = self.inside("ls", "-A", path)
        return done.out.split() if done.code == 0 else None

    @contextlib.contextmanager
    def locked(self) -> Iterator[Callable[[], object]]:
        """Somebody else holds the lock of dpkg, until the function is called."""
        other = self._podman.start("exec", self._name, "perl", "-e", HOLD_THE_LOCK)
        assert other.stdout is not None
        assert other.stderr is not None
        with other.stdout, other.stderr:
            pid = other.stdout.readline().strip()
            assert pid, other.stderr.read()
            yield lambda: self.inside("sh", "-c", f"kill {pid}")
            other.wait(APT_S)


@pytest.fixture
def start(podman: _Podman, tmp_path: pathlib.Path) -> Iterator[Callable[[str], Container]]:
    """Starts a Debian with the cache folder at its place."""
    names: list[str] = []
    (tmp_path / "cache").mkdir()

    def run(network: str) -> Container:
        names.append(f"pairun-{uuid.uuid4()}")
        podman.ok(
            "run", "--detach", "--pull=never", f"--network={network}", f"--name={names[-1]}",
            "-v", f"{tmp_path / 'cache'}:/opt/pairun/packages", podman.image("debian"),
            "sleep", "3600",
        )  # fmt: skip
        return Container(podman, names[-1])

    yield run
    for name in names:
        podman.run("rm", "-f", "-i", "-t", "0", name)


def package(name: str) -> StateModule:
    """The module, for one package."""
    module: Module | None
    module, problems = build(load_module("package", str(SOURCE)), {"names": [name]})
    assert isinstance(module, StateModule), problems
    return module


def planned(container: Container, name: str) -> str:
    """What would be done."""
    module = package(name)
    return module.plan(module.probe(container)).kind


def test_from_the_network_and_from_the_cache(start: Callable[[str], Container]) -> None:
    """Installed once in spite of a lock, known again; and from the cache where there is no network."""
    online = start("host")
    assert planned(online, "less") == "will_change"
    with online.locked() as let_go:
        # Who waits says so once; with that the other one ends.
        online.hear = lambda _: let_go()
        package("less").apply(online)
    (said,) = online.said
    assert "locked by process" in said
    assert "(perl); waiting" in said
    assert planned(online, "less") == "no_change"
    # virtual: provided by what every Debian has
    assert planned(online, "awk") == "no_change"
    with pytest.raises(Failure, match="Unable to locate package no-such-package") as refused:
        package("no-such-package").apply(online)
    assert (refused.value.kind, refused.value.fault) == ("permanent", "user")
    online.inside("mkdir", "-p", "/opt/pairun/packages/file/partial")
    done = online.inside(
        "apt-get", "-y", "--no-install-recommends", "--download-only",
        "-oDir::Cache::archives=/opt/pairun/packages/file", "-oAPT::Sandbox::User=root",
        "install", "file",
    )  # fmt: skip
    assert done.code == 0, done.err

    offline = start("none")
    result = package("file").apply(offline)
    assert result is not None
    assert result.message == "1 package installed, 1 from /opt/pairun/packages"
    assert planned(offline, "file") == "no_change"
    assert offline.inside("file", "--version").code == 0
    with pytest.raises(Failure, match="less cannot be installed: ") as failed:
        package("less").apply(offline)
    assert (failed.value.kind, failed.value.fault) == ("transient", "platform")


def test_an_installation_that_is_killed_is_healed(start: Callable[[str], Container]) -> None:
    """Also where dpkg has begun; and then nothing is left to do."""
    online = start("host")
    for moment in range(3):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            begun = pool.submit(package("less").apply, online)
            assert online.inside("sh", "-c", f"sleep 0.{moment}; {KILL_DPKG}").code == 0
            with contextlib.suppress(Failure):
                begun.result()
        if planned(online, "less") == "will_change":
            package("less").apply(online)
        assert planned(online, "less") == "no_change"
        assert online.inside("dpkg", "--audit").out == ""
        assert online.inside("dpkg", "--purge", "less").code == 0
