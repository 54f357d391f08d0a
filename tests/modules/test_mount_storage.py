"""The module mount_storage."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pairun.base import system
from pairun.host import addresses, mounts
from pairun.host.context import HostContext
from pairun.module import Context, Failure, Permanent, Secret, TimedOut
from tests.modules.conftest import Harness

ROOT = Path(__file__).parents[2]
NFS = {"type": "nfs", "server": "127.0.0.1", "export": "/data", "path": "{tmp}/mnt"}
LOCAL = {"type": "local", "source": "{tmp}/source", "path": "{tmp}/mnt"}
S3 = {"type": "s3", "bucket": "team", "access_key": "k", "secret_key": "s", "path": "{tmp}/mnt"}
STORE = {"type": "rclone", "settings": {"type": "local"}, "remote": "{tmp}", "path": "{tmp}/mnt"}
TOOLS = ROOT / "build" / "bundle" / "tools"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@pytest.fixture(autouse=True)
def unmounted(tmp_path: Path) -> Iterator[None]:
    """Whatever a test mounts is gone after it."""
    yield
    for mount in reversed(mounts.mounts()):
        if mount.target.startswith(str(tmp_path)):
            system.unmount(mount.target, mounts.MNT_DETACH)


def mounted(harness: Harness) -> list[str]:
    """What is mounted below the test's directory."""
    below = [m.target for m in mounts.mounts() if m.target.startswith(str(harness.tmp))]
    return [t.removeprefix(str(harness.tmp)) for t in below]


# --- what cannot work is said before anything runs ------------------------------------------------

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"type": "ntfs", "path": "/x"}, "'type' must be one of nfs, samba"),
    ({"path": "/x"}, "'type' must be one of"),
    ({"type": "nfs", "path": "/x"}, "'server' is missing"),
    ({"type": "local", "source": "/x"}, "'path' is missing"),
    ({**NFS, "password": "x"}, "a storage of type nfs has no 'password'"),
    ({**NFS, "path": "mnt"}, "'path' must be an absolute path"),
    ({**NFS, "path": "/"}, "'path' must be an absolute path below /"),
    ({**NFS, "path": "/mnt/../etc"}, "without '..'"),
    ({**NFS, "subdir": "../other"}, "'subdir' must not lead out"),
    ({**NFS, "subdir": Secret("x")}, "'subdir' shows in the mount table"),
    ({**NFS, "server": "host:/x,soft"}, "'server' must be a host's name or address alone"),
    ({**NFS, "options": "soft"}, "'options' must be a list"),
    ({**NFS, "options": ["soft,addr=1.2.3.4"]}, "without a comma"),
    ({**NFS, "options": ["addr=1.2.3.4"]}, "the option 'addr' is not yours to set"),
    ({**NFS, "read_only": "yes"}, "'read_only' must be true or false"),
    ({**NFS, "export": "/a\nb"}, "'export' has a line end"),
    ({"type": "local", "source": "data", "path": "/x"}, "'source' must be an absolute path"),
    ({"type": "samba", "server": "h", "share": "s", "password": "a\nb", "path": "/x"},
     "'password' has a line end"),
    ({**S3, "secret_key": " x"}, "cannot hold 'secret_key'"),
    ({**S3, "secret_key": Secret('"x')}, "cannot hold 'secret_key'"),
    ({**S3, "secret_key": "a%(b)s"}, "cannot hold 'secret_key'"),
    ({"type": "hdfs", "namenode": "nn", "path": "/x"}, "'namenode' must be host:port"),
    ({"type": "azureblob", "container": "c", "account": "a", "path": "/x"},
     "'key' is missing: account and key, or sas_url"),
    ({"type": "rclone", "settings": {"user": "x"}, "path": "/x"}, "'type' is missing"),
    ({"type": "rclone", "settings": {"type": "sftp", "x]\n[y": "z"}, "path": "/x"},
     "is no name of a setting"),
]  # fmt: skip


@pytest.mark.parametrize(("storage", "says"), WRONG, ids=[says for _, says in WRONG])
def test_a_storage_that_cannot_be_is_refused_with_the_reason(
    harness: Harness, storage: dict[str, Any], says: str
) -> None:
    """Every wrong field is named, with the storage's number, and no secret is shown."""
    sentences = [p.message for p in harness.problems("mount_storage", {"storages": [storage]})]
    assert any(says in s for s in sentences), sentences
    assert all(s.startswith("'storages' 1: ") for s in sentences)


def test_two_storages_at_one_mount_point_are_an_error(harness: Harness) -> None:
    """It is found before anything is mounted, however the path is written."""
    storages = [NFS, {**LOCAL, "path": "{tmp}//mnt/"}]
    problems = harness.problems("mount_storage", {"storages": storages})
    assert "two storages at one mount point" in problems[0].message


def test_only_the_run_can_tell(harness: Harness) -> None:
    """A review of the empty Pod says so."""
    assert harness.review(harness.make("mount_storage", {"storages": [NFS]})) == "unknown"


def test_without_storages_there_is_nothing_to_do(harness: Harness) -> None:
    """The task is skipped with the reason."""
    skip = harness.run("mount_storage", {}).skip
    assert skip is not None
    assert "no storage is named" in skip.because


# --- directories, which need no server ------------------------------------------------------------

TABLE: list[dict[str, Any]] = [
    {"what": "a directory appears elsewhere", "args": {"storages": [LOCAL]},
     "files": {"{tmp}/source/a": "1"}, "verdict": "will_change",
     "because": "mount local {tmp}/source at {tmp}/mnt", "leaves": {"{tmp}/mnt/a": "1"}},
    {"what": "an empty mount point may be there", "args": {"storages": [LOCAL]},
     "files": {"{tmp}/source/a": "1", "{tmp}/mnt": None}, "leaves": {"{tmp}/mnt/a": "1"}},
    {"what": "a sub-directory is made, names filled in",
     "args": {"storages": [{**LOCAL, "subdir": "home/%User/%JOB"}], "user": "al", "job": "al~j"},
     "files": {"{tmp}/source/a": "1", "{tmp}/source/home/al/al~j/b": "2"},
     "leaves": {"{tmp}/mnt/b": "2", "{tmp}/mnt/a": None}},
    {"what": "a path with spaces", "args": {"storages": [{**LOCAL, "path": "{tmp}/m n/\\x"}]},
     "files": {"{tmp}/source/a": "1"}, "leaves": {"{tmp}/m n/\\x/a": "1"}},
    {"what": "an inner one after its outer one",
     "args": {"storages": [{**LOCAL, "source": "{tmp}/two", "path": "{tmp}/mnt/in"}, LOCAL]},
     "files": {"{tmp}/source/in": None, "{tmp}/two/b": "2"},
     "leaves": {"{tmp}/mnt/in/b": "2"}},
    {"what": "a mount point that is not empty", "args": {"storages": [LOCAL]},
     "files": {"{tmp}/source/a": "1", "{tmp}/mnt/b": "2"}, "failure": "permanent", "fault": "user",
     "says": "the mount point {tmp}/mnt is not empty: 'b' is in it",
     "leaves": {"{tmp}/mnt/b": "2"}},
    {"what": "a mount point that is a file", "args": {"storages": [LOCAL]},
     "files": {"{tmp}/source/a": "1", "{tmp}/mnt": "2"}, "failure": "permanent",
     "says": "{tmp}/mnt is no directory"},
    {"what": "an inner mount point that the outer one has filled",
     "args": {"storages": [LOCAL, {**LOCAL, "source": "{tmp}/two", "path": "{tmp}/mnt/in"}]},
     "files": {"{tmp}/source/in/x": "1", "{tmp}/two/b": "2"}, "failure": "permanent",
     "says": "{tmp}/mnt/in is not empty", "leaves": {"{tmp}/mnt/in/x": None}},
    {"what": "no such directory", "args": {"storages": [LOCAL]}, "failure": "permanent",
     "says": "there is no directory {tmp}/source"},
    {"what": "a name that is not known",
     "args": {"storages": [{**LOCAL, "subdir": "%user"}]}, "failure": "permanent",
     "says": "%USER in 'subdir' is not known here"},
    {"what": "a name that leads elsewhere",
     "args": {"storages": [{**LOCAL, "subdir": "%user"}], "user": "../x"}, "failure": "permanent",
     "says": "is no name of a directory"},
    {"what": "nothing to unmount", "args": {"storages": [LOCAL], "state": "absent"},
     "files": {"{tmp}/source/a": "1"}, "verdict": "no_change"},
    {"what": "a file of storages that nobody left", "args": {"file": "{tmp}/none.json"},
     "failure": "permanent", "says": "storage_config leaves it"},
    {"what": "a file that is something else", "args": {"file": "{tmp}/f"},
     "files": {"{tmp}/f": "[1]"}, "failure": "permanent", "says": "not what storage_config leaves"},
]  # fmt: skip


@needs_root
@pytest.mark.parametrize("row", TABLE, ids=[r["what"] for r in TABLE])
def test_table(harness: Harness, row: dict[str, Any]) -> None:
    """Each row does as it says, and a second run changes nothing."""
    outcome = harness.table("mount_storage", row)
    if outcome.failure is not None:
        assert mounted(harness) == []


@needs_root
def test_what_was_mounted_is_unmounted_in_reverse_order(harness: Harness) -> None:
    """An inner storage goes before its outer one, and what was mounted from elsewhere stays."""
    for name in ("source", "two"):
        (harness.tmp / name).mkdir()
    both = {"storages": [LOCAL, {**LOCAL, "source": "{tmp}/two", "path": "{tmp}/mnt/in"}]}
    harness.run("mount_storage", both)
    assert mounted(harness) == ["/mnt", "/mnt/in"]
    other = {"storages": [{**LOCAL, "source": "{tmp}/two"}], "state": "absent"}
    assert harness.run("mount_storage", other).result is None
    outcome = harness.run("mount_storage", {**both, "state": "absent"})
    assert outcome.failure is None
    assert mounted(harness) == []


@needs_root
def test_a_file_that_is_open_does_not_hold_a_mount(harness: Harness) -> None:
    """The mount is out of sight at once; who has a file open may finish."""
    (harness.tmp / "source").mkdir()
    harness.run("mount_storage", {"storages": [LOCAL]})
    with (harness.tmp / "mnt" / "a").open("w") as file:
        harness.run("mount_storage", {"storages": [LOCAL], "state": "absent"})
        assert mounted(harness) == []
        file.write("late")
    assert (harness.tmp / "source" / "a").read_text() == "late"


@needs_root
def test_read_only_is_read_only(harness: Harness) -> None:
    """Nothing can be written, and asking for both at once is an error."""
    (harness.tmp / "source").mkdir()
    harness.run("mount_storage", {"storages": [{**LOCAL, "read_only": True}]})
    with pytest.raises(OSError, match="Read-only"):
        (harness.tmp / "mnt" / "a").write_text("x")
    assert harness.run("mount_storage", {"storages": [{**LOCAL, "read_only": True}]}).result is None
    failure = harness.run("mount_storage", {"storages": [LOCAL]}).failure
    assert failure is not None
    assert "already mounted read-only" in failure.message


@needs_root
def test_a_directory_of_what_is_read_only_is_no_error_at_the_second_look(harness: Harness) -> None:
    """It was never writable; the mount is the one that is wanted."""
    (harness.tmp / "disk" / "in").mkdir(parents=True)
    disk = {**LOCAL, "source": "{tmp}/disk", "path": "{tmp}/ro", "read_only": True}
    inner = {**LOCAL, "source": "{tmp}/ro/in"}
    harness.run("mount_storage", {"storages": [disk]})
    harness.run("mount_storage", {"storages": [inner]})
    assert mounted(harness) == ["/ro", "/mnt"]


@needs_root
def test_what_was_refused_is_not_unmounted(harness: Harness) -> None:
    """The platform's mount for writing stays where the task asks for a read-only one."""
    (harness.tmp / "source").mkdir()
    harness.run("mount_storage", {"storages": [LOCAL]})
    storages = [{**LOCAL, "read_only": True}]
    failure = harness.run("mount_storage", {"storages": storages}).failure
    assert failure is not None
    assert "already mounted for writing" in failure.message
    assert harness.run("mount_storage", {"storages": storages, "state": "absent"}).result is None
    assert mounted(harness) == ["/mnt"]


@needs_root
def test_a_mount_from_elsewhere_stays(harness: Harness) -> None:
    """What is there is named, and nothing is mounted, also not the storages before it."""
    for name in ("source", "two"):
        (harness.tmp / name).mkdir()
    harness.run("mount_storage", {"storages": [LOCAL]})
    storages = [
        {**LOCAL, "path": "{tmp}/first"},
        {**LOCAL, "source": "{tmp}/two"},
    ]
    failure = harness.run("mount_storage", {"storages": storages}).failure
    assert failure is not None
    assert failure.kind == "permanent"
    assert "is already mounted from elsewhere" in failure.message
    assert mounted(harness) == ["/mnt"]


@needs_root
def test_a_link_in_a_sub_directory_is_not_followed(harness: Harness) -> None:
    """A storage that many write to cannot lead a job's mount out of it."""
    (harness.tmp / "source").mkdir()
    (harness.tmp / "source" / "home").symlink_to("/etc")
    failure = harness.run("mount_storage", {"storages": [{**LOCAL, "subdir": "home/x"}]}).failure
    assert failure is not None
    assert "a link stands on the way" in failure.message
    assert mounted(harness) == []
    assert not Path("/etc/x").exists()


@needs_root
def test_two_paths_to_one_directory_are_one_mount_point(harness: Harness) -> None:
    """A link in a path is seen through."""
    for name in ("source", "two", "mnt"):
        (harness.tmp / name).mkdir()
    (harness.tmp / "link").symlink_to(harness.tmp / "mnt")
    storages = [LOCAL, {**LOCAL, "source": "{tmp}/two", "path": "{tmp}/link"}]
    failure = harness.run("mount_storage", {"storages": storages}).failure
    assert failure is not None
    assert "two storages at one mount point" in failure.message
    assert mounted(harness) == []


@needs_root
def test_the_storages_of_a_file_are_mounted(harness: Harness) -> None:
    """They are those that storage_config left, and names are filled in here."""
    (harness.tmp / "source" / "al").mkdir(parents=True)
    (harness.tmp / "source" / "al" / "a").write_text("1")
    storage = {"type": "local", "source": f"{harness.tmp}/source", "path": f"{harness.tmp}/mnt"}
    (harness.tmp / "file").write_text(json.dumps([{**storage, "subdir": "%USER"}]))
    harness.run("mount_storage", {"file": "{tmp}/file", "user": "al"})
    assert (harness.tmp / "mnt" / "a").read_text() == "1"


@needs_root
def test_variables_in_a_file_are_filled_in(harness: Harness) -> None:
    """As the shell did that once mounted them; one that is not set is named."""
    (harness.tmp / "source" / "al").mkdir(parents=True)
    storage = {"type": "local", "source": f"{harness.tmp}/source/${{PAI_USER_NAME}}",
               "path": f"{harness.tmp}/$WHERE"}  # fmt: skip
    (harness.tmp / "file").write_text(json.dumps([storage]))
    failure = harness.run("mount_storage", {"file": "{tmp}/file"}, {"WHERE": "mnt"}).failure
    assert failure is not None
    assert "the variable PAI_USER_NAME in 'source' is not set" in failure.message
    env = {"WHERE": "mnt", "PAI_USER_NAME": "al"}
    harness.run("mount_storage", {"file": "{tmp}/file"}, env)
    assert mounted(harness) == ["/mnt"]


# --- this kernel, and containers with fewer rights -------------------------------------------------


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


# --- a server that is not there, or does not answer ------------------------------------------------


class Told(HostContext):
    """This machine, with a kernel that says what a test wants, and remembers what it was told."""

    def __init__(self, harness: Harness, says: list[int | None]) -> None:
        env = {"PATH": os.environ["PATH"]}
        super().__init__(env, str(harness.pai_dir), emit_log=harness.log.append)
        self._says = says
        self.data: list[str] = []

    def mount(
        self,
        source: str,
        target: str,
        kind: str | None,
        *,
        data: str | Secret | None = None,
        subdir: str = "",
        read_only: bool = False,
        timeout_s: float = 60.0,
    ) -> None:
        del source, target, kind, subdir, read_only, timeout_s
        assert data is not None
        assert isinstance(data, Secret) or "pass=" not in data
        self.data.append(data.reveal() if isinstance(data, Secret) else data)
        number = self._says.pop(0)
        if number is None:
            raise TimedOut("no answer")
        if number:
            raise OSError(number, os.strerror(number))


def told(harness: Harness, storage: Mapping[str, Any], *says: int | None) -> tuple[Failure, Told]:
    """What becomes of a storage when the kernel says that."""
    module: Any = harness.make("mount_storage", {"storages": [storage]})
    context = Told(harness, list(says))
    with pytest.raises(Failure) as raised:
        module.apply(context)
    return raised.value, context


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
    (113, "transient", "there is no way to it"),
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
    failure, _ = told(harness, storage, number)
    assert failure.kind == kind
    assert says in failure.message
    assert "127.0.0.1" in failure.message
    assert "p,w" not in f"{failure.message} {failure.hint}"


def test_older_servers_are_asked_in_older_versions(harness: Harness) -> None:
    """NFS 4.2, 4.1, 4.0; a version that is named is the only one."""
    failure, context = told(harness, NFS, 93, 93, 93)
    assert "does not speak the protocol's version" in failure.message
    assert [d.partition(",")[0] for d in context.data] == ["vers=4.2", "vers=4.1", "vers=4.0"]
    _, context = told(harness, {**NFS, "options": ["vers=4.1"]}, 13)
    assert "vers=4.2" not in context.data[0]


def test_the_kernel_is_told_an_address_and_no_comma_ends_a_value(harness: Harness) -> None:
    """What the helper programs would have done: the name is looked up, commas are doubled."""
    _, context = told(harness, SMB, 13)
    assert context.data == [
        r"ip=127.0.0.1,unc=\\127.0.0.1\team,prefixpath=in,vers=3.0,user=u,,v,pass=p,,w"
    ]
    azure = {"type": "azurefile", "server": "127.0.0.1", "account": "acc", "share": "s",
             "key": Secret("k=="), "path": "{tmp}/mnt"}  # fmt: skip
    _, context = told(harness, azure, 13)
    assert "dir_mode=0777,file_mode=0777,serverino,user=acc,pass=k==" in context.data[0]
    _, context = told(harness, {**NFS, "options": ["soft"]}, 13)
    assert context.data == ["vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1,soft"]


def test_a_name_that_nobody_knows_is_said(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong name stays wrong; a name service that is down may come back; one that hangs is left."""

    def answer(number: int) -> Failure:
        def fail(*_: object, **__: object) -> None:
            raise socket.gaierror(number, "said")

        monkeypatch.setattr(socket, "getaddrinfo", fail)
        return told(harness, {**NFS, "server": "files"})[0]

    assert isinstance(answer(socket.EAI_NONAME), Permanent)
    assert "there is no host files" in answer(socket.EAI_NONAME).message
    assert answer(socket.EAI_AGAIN).kind == "transient"

    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(60))
    began = time.monotonic()
    with pytest.raises(TimedOut, match="looking up files: no answer within"):
        addresses.lookup("files", 0.2)
    assert time.monotonic() - began < 30


@needs_root
def test_a_mount_that_does_not_answer_is_a_timeout(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question is asked by a child, which is killed; the attempt goes on and says what hangs."""
    (harness.tmp / "source").mkdir()
    harness.run("mount_storage", {"storages": [LOCAL]})
    monkeypatch.setattr(os, "statvfs", lambda _: time.sleep(60))
    failure = harness.run("mount_storage", {"storages": [LOCAL], "answer_within": "200ms"}).failure
    assert failure is not None
    assert failure.kind == "timeout"
    assert "does not answer within 0.2s" in failure.message


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
    with pytest.raises(Permanent, match="longer than the kernel takes"):
        harness.context().mount("a", "/nowhere", "nfs", data="x" * 5000)


# --- object stores, without one --------------------------------------------------------------------

FAKE = """#!/bin/sh
if [ "$1" = lsf ]; then echo "$RESULT" >&2; exit 1; fi
"""
SAID = [
    ("AccessDenied: no secret-s", "permanent", "the server refuses"),
    ("directory not found", "permanent", "no such bucket"),
    ("dial tcp: connection refused", "transient", "cannot be reached"),
    ("2026/11/20 18:04:57 ERROR : no authentication method configured", "permanent",
     "{tmp}/mnt: no authentication method"),
    ("something with secret-s", "transient", "something with ******"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "kind", "says"), SAID)
def test_what_rclone_says_is_said_in_words(
    harness: Harness, line: str, kind: str, says: str
) -> None:
    """Its message is classed, secrets in it are left out, and no key stays behind."""
    if not Path("/dev/fuse").exists():
        pytest.skip("this machine has no /dev/fuse")
    tools = harness.tmp / "tools"
    tools.mkdir()
    (tools / "rclone").write_text(FAKE.replace("$RESULT", line))
    (tools / "rclone").chmod(0o755)
    storage = {**S3, "secret_key": Secret("secret-s")}
    env = {"PAIRUN_TOOLS": str(tools)}
    failure = harness.run("mount_storage", {"storages": [storage]}, env).failure
    assert failure is not None
    assert failure.kind == kind
    assert says.replace("{tmp}", str(harness.tmp)) in failure.message
    assert "secret-s" not in failure.message
    assert [p.name for p in (harness.pai_dir / "storage").iterdir() if p.suffix == ".conf"] == []


def test_without_rclone_it_is_said_where_it_comes_from(harness: Harness) -> None:
    """Neither pairun's image nor the user's has it."""
    if not Path("/dev/fuse").exists():
        pytest.skip("this machine has no /dev/fuse")
    env = {"PATH": "/nonexistent"}
    failure = harness.run("mount_storage", {"storages": [S3]}, env).failure
    assert failure is not None
    assert failure.kind == "permanent"
    assert "there is no rclone to mount s3 s3:team" in failure.message


def test_a_container_without_the_device_is_told(harness: Harness) -> None:
    """/dev/fuse is the platform's to give."""

    class NoDevice(HostContext):
        def stat(self, path: str) -> Any:
            return None if path == "/dev/fuse" else super().stat(path)

    module: Any = harness.make("mount_storage", {"storages": [S3]})
    with contextlib.suppress(KeyError), pytest.raises(Permanent, match="no /dev/fuse") as raised:
        module.apply(NoDevice({}, str(harness.pai_dir)))
    assert raised.value.fault == "platform"
