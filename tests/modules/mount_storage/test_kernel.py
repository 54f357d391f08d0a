"""What the kernel mounts, and the words for what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pairun.host import mounts
from pairun.module import Context, Failure, NoSuchHost, Permanent, Secret, TimedOut, reveal
from pairun.net import boundedcall
from pairun.testing import in_turn
from tests.modules.conftest import Harness
from tests.modules.mount_storage.conftest import LOCAL, NFS, mounted, needs_root

ROOT = Path(__file__).parents[3]


STORE = {"type": "rclone", "settings": {"type": "local"}, "remote": "{tmp}", "path": "{tmp}/mnt"}


TOOLS = ROOT / "build" / "bundle" / "tools"


@needs_root
@pytest.mark.skipif("nfs" in Path("/proc/filesystems").read_text(), reason="this kernel has NFS")
def test_a_kernel_without_the_file_system_is_named(harness: Harness) -> None:
    """The node's administrator reads what is missing; no directory is left mounted."""
    failure = harness.run("mount_storage", {"storages": [NFS]}).failure
    assert failure is not None
    assert (failure.kind, failure.fault) == ("permanent", "platform")
    assert "the node's kernel has no nfs" in failure.message
    assert "nfsv4" in str(failure.hint)
    assert mounted(harness) == []


@needs_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
@pytest.mark.parametrize("storage", [NFS, LOCAL, STORE], ids=["nfs", "local", "rclone"])
def test_a_container_that_may_not_mount_is_told_what_it_lacks(
    harness: Harness, storage: Mapping[str, Any]
) -> None:
    """Root without CAP_SYS_ADMIN, as root is in most containers, reads that name."""
    (harness.tmp / "source").mkdir()
    if storage is STORE and not (TOOLS / "rclone").exists():
        pytest.skip("needs bundle/rclone.sh")
    code = """
import json, sys
from tests.modules.conftest import Harness
from pathlib import Path
harness = Harness.__new__(Harness)
harness.tmp, harness.log = Path(sys.argv[1]), []
harness.pai_dir = harness.tmp / "pai"
args, env = {"storages": [json.loads(sys.argv[2])]}, {"PAIRUN_TOOLS": sys.argv[3]}
failure = harness.run("mount_storage", args, env).failure
print(failure.kind, failure.message, failure.hint)
"""
    argv = ["setpriv", "--bounding-set=-sys_admin", sys.executable, "-c", code]
    done = subprocess.run(
        [*argv, str(harness.tmp), json.dumps(storage), str(TOOLS)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("permanent this container may not mount"), done.stderr
    assert "CAP_SYS_ADMIN" in done.stdout


def refused(
    harness: Harness, storage: Mapping[str, Any], *numbers: int | None
) -> tuple[Failure, list[str]]:
    """The failure when the kernel answers with these errors, and the options that it got.

    A number of None stands for no answer.
    """
    errors = [OSError(n, os.strerror(n)) if n else TimedOut("no answer") for n in numbers]
    world = harness.world(answers={"mount": in_turn(*errors)})
    module: Any = harness.make("mount_storage", {"storages": [storage]})
    with pytest.raises(Failure) as raised:
        module.apply(world.ctx)
    options = [call.arguments["data"] for call in world.calls if call.method == "mount"]
    assert not [text for text in options if "pass=" in str(text)]
    return raised.value, [reveal(text) for text in options]


SMB = {
    "type": "samba",
    "server": "127.0.0.1",
    "share": "team/in",
    "username": "u,v",
    "password": Secret("p,w"),
    "path": "{tmp}/mnt",
}


KERNEL: list[tuple[int | None, str, str]] = [
    (13, "permanent", "the server refuses"),
    (2, "permanent", "the server has no such"),
    (111, "transient", "nothing listens there"),
    (113, "transient", "there is no route to it"),
    (110, "transient", "it does not answer"),
    (22, "permanent", "the kernel refuses the options"),
    (19, "permanent", "the node's kernel has no"),
    (None, "timeout", "does not answer"),
    (12, "permanent", "cannot allocate memory"),
]


@pytest.mark.parametrize("storage", [NFS, SMB], ids=["nfs", "samba"])
@pytest.mark.parametrize(("number", "kind", "says"), KERNEL)
def test_what_the_kernel_says_is_said_in_words(
    harness: Harness, storage: Mapping[str, Any], number: int | None, kind: str, says: str
) -> None:
    """Every number has its kind and a sentence with the storage in it."""
    failure, _ = refused(harness, storage, number)
    assert failure.kind == kind
    assert says in failure.message
    assert "127.0.0.1" in failure.message
    assert "p,w" not in f"{failure.message} {failure.hint}"


def test_older_servers_are_asked_in_older_versions(harness: Harness) -> None:
    """NFS 4.2, 4.1, 4.0; a version that is named is the only one."""
    failure, options = refused(harness, NFS, 93, 93, 93)
    assert "does not speak the protocol's version" in failure.message
    assert [d.partition(",")[0] for d in options] == ["vers=4.2", "vers=4.1", "vers=4.0"]
    _, options = refused(harness, {**NFS, "options": ["vers=4.1"]}, 13)
    assert "vers=4.2" not in options[0]


def test_the_kernel_is_told_an_address_and_no_comma_ends_a_value(harness: Harness) -> None:
    """What the helper programs would have done: the name is looked up, commas are doubled."""
    _, options = refused(harness, SMB, 13)
    assert options == [
        r"ip=127.0.0.1,unc=\\127.0.0.1\team,prefixpath=in,vers=3.0,user=u,,v,pass=p,,w"
    ]
    azure = {"type": "azurefile", "server": "127.0.0.1", "account": "acc", "share": "s",
             "key": Secret("k=="), "path": "{tmp}/mnt"}  # fmt: skip
    _, options = refused(harness, azure, 13)
    assert "dir_mode=0777,file_mode=0777,serverino,user=acc,pass=k==" in options[0]
    _, options = refused(harness, {**NFS, "options": ["soft"]}, 13)
    assert options == ["vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1,soft"]


def test_a_name_that_nobody_knows_is_said(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong name stays wrong; a name service that is down may come back; one that hangs is left."""

    def answer(number: int) -> Failure:
        def fail(*_: object, **__: object) -> None:
            raise socket.gaierror(number, "said")

        monkeypatch.setattr(socket, "getaddrinfo", fail)
        return refused(harness, {**NFS, "server": "files"})[0]

    assert isinstance(answer(socket.EAI_NONAME), NoSuchHost)
    assert answer(socket.EAI_NONAME).message == "files: no such host (said)"
    assert answer(socket.EAI_AGAIN).kind == "transient"

    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(60))
    began = time.monotonic()
    with pytest.raises(TimedOut, match="looking up files: no answer within"):
        boundedcall.lookup("files", 0.2)
    assert time.monotonic() - began < 30


def test_nothing_is_left_when_a_server_hangs_while_it_is_mounted(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mount that is there, but was not seen to answer, is taken away again."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    (harness.tmp / "mnt").mkdir()
    monkeypatch.setattr(os, "statvfs", lambda _: time.sleep(60))
    context: Context = harness.context()
    target = str(harness.tmp / "mnt")
    with pytest.raises(TimedOut):
        context.mount("none", target, "tmpfs", timeout_s=0.3)
    with pytest.raises(TimedOut):
        context.mount("none", target, "tmpfs", subdir="a", timeout_s=0.3)
    assert mounted(harness) == []
    assert list(harness.pai_dir.iterdir()) == []


@needs_root
def test_a_sub_directory_of_a_mount_is_all_that_shows(harness: Harness) -> None:
    """The rest of the file system has no path in the container."""
    (harness.tmp / "mnt").mkdir()
    target = harness.tmp / "mnt"
    harness.context().mount("none", str(target), "tmpfs", subdir="a/b", read_only=False)
    (target / "x").write_text("1")
    assert mounted(harness) == ["/mnt"]
    assert mounts.mounts()[-1].root == "/a/b"
    assert target.stat().st_mode & 0o777 == 0o777


def test_options_that_are_too_long_are_refused(harness: Harness) -> None:
    """The kernel would cut them, and a password with them."""
    with pytest.raises(Permanent, match="longer than the kernel accepts"):
        harness.context().mount("a", "/nowhere", "nfs", data="x" * 5000)
