"""The contexts: real files, real processes, real sockets, and the empty Pod."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pairun.host import files as hostfiles
from pairun.host.context import HostContext
from pairun.module import (
    Failure,
    Permanent,
    Secret,
    TimedOut,
    Transient,
)

ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


@pytest.fixture
def ctx(tmp_path: Path) -> HostContext:
    """This machine, with a volume below the test's directory."""
    (tmp_path / "pai").mkdir()
    return HostContext(ENV, str(tmp_path / "pai"))


# --- files ---------------------------------------------------------------------------------------


def test_a_reader_never_sees_half_a_file(ctx: HostContext, tmp_path: Path) -> None:
    """While a file is replaced again and again, every read is one of the two contents."""
    path = tmp_path / "f"
    contents = [b"a" * 300_000, b"b" * 200_000]
    ctx.write_file(str(path), contents[0])
    stop = threading.Event()
    seen = set()

    def read() -> None:
        while not stop.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(40):
        ctx.write_file(str(path), contents[turn % 2])
    stop.set()
    reader.join()
    assert seen <= set(contents)
    assert [p.name for p in tmp_path.iterdir() if p.name != "pai"] == ["f"]


def test_the_mode_holds_whatever_the_umask(ctx: HostContext, tmp_path: Path) -> None:
    """Files and directories get exactly the mode that was asked for."""
    old = os.umask(0o077)
    try:
        ctx.write_file(str(tmp_path / "f"), b"", 0o666)
        ctx.make_dir(str(tmp_path / "d" / "e"), 0o1777)
    finally:
        os.umask(old)
    found = ctx.stat(str(tmp_path / "f"))
    assert found is not None
    assert found.mode == 0o666
    made = ctx.stat(str(tmp_path / "d" / "e"))
    assert made is not None
    assert made.mode == 0o1777


def test_a_link_at_the_target_is_replaced(ctx: HostContext, tmp_path: Path) -> None:
    """Writing through a link does not happen."""
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    ctx.write_file(str(tmp_path / "link"), b"new")
    assert (tmp_path / "precious").read_text() == "mine"
    assert (tmp_path / "link").read_text() == "new"


@pytest.mark.parametrize("deed", ["write", "make", "move", "remove"])
def test_links_on_the_volume_lead_nowhere(ctx: HostContext, tmp_path: Path, deed: str) -> None:
    """Below the shared volume nothing is changed behind a symbolic link."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    link = tmp_path / "pai" / "link"
    link.symlink_to(outside)
    deeds: dict[str, Callable[[], None]] = {
        "write": lambda: ctx.write_file(f"{link}/x", b""),
        "make": lambda: ctx.make_dir(f"{link}/d/e"),
        "move": lambda: ctx.rename(f"{link}/file", f"{tmp_path}/pai/file"),
        "remove": lambda: ctx.remove(f"{link}/file"),
    }
    with pytest.raises(Permanent, match="symbolic link"):
        deeds[deed]()
    assert [p.name for p in outside.iterdir()] == ["file"]
    ctx.remove(str(link))
    assert not link.is_symlink()
    assert (outside / "file").exists()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.ENOSPC, Transient),
        (errno.EDQUOT, Transient),
        (errno.EIO, Transient),
        (errno.EROFS, Permanent),
        (errno.EACCES, Permanent),
        (errno.EBUSY, Permanent),
        (errno.ENAMETOOLONG, Permanent),
    ],
)
def test_what_the_system_says_is_a_failure_in_words(
    ctx: HostContext,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    kind: type[Failure],
) -> None:
    """A full or read-only disk is a typed failure with the path; no half file stays."""
    path = tmp_path / "f"

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(kind, match=f"cannot write {path}"):
        ctx.write_file(str(path), b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["pai"]


def test_only_what_outlives_the_pod_is_made_durable(
    ctx: HostContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file beside the volume is on the disk before the task ends; the volume goes with the Pod."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    ctx.write_file(str(tmp_path / "pai" / "f"), b"x")
    assert not synced
    ctx.write_file(str(tmp_path / "f"), b"x")
    assert synced


def test_a_copy(tmp_path: Path) -> None:
    """It has every byte and the mode that was asked for, in the place of what was there."""
    source, target = tmp_path / "source", tmp_path / "target"
    data = os.urandom(600_000)
    source.write_bytes(data)
    target.symlink_to(source)
    hostfiles.copy(str(source), str(target), 0o755)
    assert not target.is_symlink()
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (data, 0o755)
    with pytest.raises(OSError, match="none"):
        hostfiles.copy(str(tmp_path / "none"), str(target), 0o755)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["source", "target"]


def test_paths_that_cannot_be_are_failures(ctx: HostContext, tmp_path: Path) -> None:
    """A missing directory, a NUL, a directory in the way: never a bare OSError."""
    (tmp_path / "d").mkdir()
    for path in (
        f"{tmp_path}/none/f",
        f"{tmp_path}/a\0b",
        f"{tmp_path}/d",
        f"{tmp_path}/{'x' * 300}",
    ):
        with pytest.raises(Permanent, match="cannot write"):
            ctx.write_file(path, b"x")
    with pytest.raises(Permanent, match="cannot move"):
        ctx.rename(f"{tmp_path}/none", f"{tmp_path}/f")
    with pytest.raises(Permanent, match="cannot look at"):
        ctx.stat("a\0b")


def test_reading_tells_absence_from_trouble(ctx: HostContext, tmp_path: Path) -> None:
    """What is not there is None; what is no file, or too large, is a failure at once."""
    (tmp_path / "f").write_text("12345")
    os.mkfifo(tmp_path / "pipe")
    assert ctx.read_file(f"{tmp_path}/f") == b"12345"
    assert ctx.read_file(f"{tmp_path}/none") is None
    assert ctx.read_file(f"{tmp_path}/f/g") is None
    assert ctx.list_dir(str(tmp_path)) == ["f", "pai", "pipe"]
    assert ctx.list_dir(f"{tmp_path}/none") is None
    assert ctx.list_dir(f"{tmp_path}/f") is None
    for path, says in (
        ("pipe", "not a regular file"),
        ("f", "larger than 4"),
        ("pai", "cannot read"),
    ):
        with pytest.raises(Permanent, match=says):
            ctx.read_file(f"{tmp_path}/{path}", max_bytes=4)


def test_stat_does_not_follow(ctx: HostContext, tmp_path: Path) -> None:
    """Every kind has its name, a link its own."""
    (tmp_path / "f").write_text("12345")
    (tmp_path / "link").symlink_to("f")
    os.mkfifo(tmp_path / "pipe")
    kinds = {}
    for name in ("f", "link", "pipe", "pai"):
        found = ctx.stat(f"{tmp_path}/{name}")
        assert found is not None
        kinds[name] = found.kind
    assert kinds == {"f": "file", "link": "link", "pipe": "other", "pai": "directory"}
    assert ctx.stat(f"{tmp_path}/f/g") is None


def test_a_tree_is_removed_and_links_are_not_followed(ctx: HostContext, tmp_path: Path) -> None:
    """Everything below the path is gone, everything a link points to is there."""
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    (tree / "a" / "b").mkdir(parents=True)
    outside.mkdir()
    (outside / "f").write_text("mine")
    (tree / "a" / "link").symlink_to(outside)
    (tree / "a" / "b" / "f").write_text("x")
    (tree / "a" / "dangling").symlink_to("nowhere")
    ctx.remove(str(tree))
    ctx.remove(str(tree))
    ctx.remove(f"{tmp_path}/no/such/path")
    assert not tree.exists()
    assert (outside / "f").exists()


def test_a_directory_too_deep_is_a_failure(ctx: HostContext, tmp_path: Path) -> None:
    """A tree made to break whoever removes it ends in words, not in a crash."""
    deep = tmp_path / "deep"
    deep.mkdir()
    here = os.open(deep, os.O_RDONLY)
    try:
        for _ in range(1000):
            os.mkdir("d", dir_fd=here)
            below = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
    finally:
        os.close(here)
    try:
        with pytest.raises(Permanent, match="too deeply"):
            ctx.remove(str(deep))
    finally:
        # pytest's own cleaning would fail on it
        subprocess.run(["rm", "-rf", str(deep)], check=True)


def test_a_bind_mount_known_only_to_mountinfo_stays(
    ctx: HostContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mount of the same file system has the same device; the table of mounts still shows it."""
    kept = tmp_path / "tree" / "a" / "mounted"
    kept.mkdir(parents=True)
    (kept / "data").write_text("mine")
    (tmp_path / "tree" / "b").mkdir()
    monkeypatch.setattr(hostfiles, "mount_points", lambda: frozenset({str(kept)}))
    ctx.remove(f"{tmp_path}/tree")
    assert (kept / "data").exists()
    assert not (tmp_path / "tree" / "b").exists()


def test_a_real_mount_stays(tmp_path: Path) -> None:
    """What lies on another file system is neither removed nor an error."""
    (tmp_path / "tree" / "a b").mkdir(parents=True)
    (tmp_path / "tree" / "f").write_text("x")
    script = (
        f"mount -t tmpfs none '{tmp_path}/tree/a b' && touch '{tmp_path}/tree/a b/data' && "
        f"{sys.executable} -c 'from pairun.host.files import remove; "
        f'remove("{tmp_path}/tree")\' && test -e "{tmp_path}/tree/a b/data"'
    )
    root = Path(__file__).parents[2]
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*unshare, "true"], check=False).returncode
    ):
        pytest.skip("this machine allows no mount namespace")
    done = subprocess.run(
        [*unshare, "sh", "-c", script],
        cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, check=False, capture_output=True,
    )  # fmt: skip
    if b"mount:" in done.stderr:
        pytest.skip("this machine allows no mount")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "tree" / "f").exists()


# --- commands ------------------------------------------------------------------------------------


def test_a_command_inherits_the_output(ctx: HostContext, capfd: pytest.CaptureFixture[str]) -> None:
    """What it prints goes where ours goes, after what was logged before."""
    ctx.log("first\nline")
    done = ctx.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert done == (3, b"", b"")
    assert capfd.readouterr() == ("first line\nout\n", "err\n")


def test_a_capture_takes_both_outputs(ctx: HostContext, capfd: pytest.CaptureFixture[str]) -> None:
    """With capture nothing is printed, however much there is on both sides."""
    script = "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; cat"
    done = ctx.run(["sh", "-c", script], stdin=b"in" * 100_000, capture=True)
    assert (done.code, len(done.stdout), len(done.stderr)) == (0, 500_000, 300_000)
    assert capfd.readouterr() == ("", "")


def test_the_environment_is_the_tasks(tmp_path: Path) -> None:
    """A command sees the task's variables and its own, secrets as they are, and no others."""
    ctx = HostContext({**ENV, "A": "1", "B": "2"}, str(tmp_path))
    done = ctx.run(["env"], env={"B": "3", "C": Secret("s3cret")}, capture=True)
    lines = done.stdout.decode().splitlines()
    assert {"A=1", "B=3", "C=s3cret"} <= set(lines)
    assert not [line for line in lines if line.startswith("HOME=")]
    assert ctx.query(["sh", "-c", "echo $B; pwd"], cwd=str(tmp_path)).stdout.decode() == (
        f"2\n{tmp_path}\n"
    )


def test_a_signal_is_a_negative_code(ctx: HostContext) -> None:
    """A command that a signal ended says which."""
    assert ctx.run(["sh", "-c", "kill -TERM $$"]).code == -15


def test_which_looks_in_the_tasks_path(ctx: HostContext, tmp_path: Path) -> None:
    """The task's PATH counts, not ours."""
    assert ctx.which("sh") is not None
    assert HostContext({"PATH": str(tmp_path)}, "/x").which("sh") is None
    with pytest.raises(Permanent):
        HostContext({"PATH": str(tmp_path)}, "/x").run(["sh", "-c", "true"])


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        (None, 0, "does not exist here"),
        ("#!/bin/sh\n", 0o644, "may not be executed"),
        ("#!/no/such/interpreter\n", 0o755, "the interpreter"),
        ("\x7fELF nonsense", 0o755, "no program that this machine can execute"),
    ],
)
def test_what_cannot_be_executed_is_permanent(
    ctx: HostContext, tmp_path: Path, content: str | None, mode: int, says: str
) -> None:
    """Missing, not executable, no interpreter, wrong format: each has its sentence."""
    path = tmp_path / "program"
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    with pytest.raises(Permanent, match=says) as raised:
        ctx.run([str(path)])
    assert raised.value.fault == "user"
    assert raised.value.hint


def test_arguments_too_long_and_a_missing_directory_are_permanent(ctx: HostContext) -> None:
    """The limit of one argument, and the place to run in, have their sentences too."""
    with pytest.raises(Permanent, match="too long"):
        ctx.run(["true", "x" * 200_000])
    with pytest.raises(Permanent, match="no such directory"):
        ctx.run(["true"], cwd="/no/such/place")


def test_a_secret_in_an_argument_is_a_bug(ctx: HostContext) -> None:
    """Argument lists are public: a secret among them is refused before anything starts."""
    with pytest.raises(TypeError, match="secret"):
        ctx.run(["echo", Secret("hunter2")])  # type: ignore[list-item]


@pytest.mark.parametrize("capture", [True, False])
def test_the_deadline_holds(tmp_path: Path, capture: bool) -> None:
    """A command that ignores TERM and one that sleeps are ended when the time is up."""
    start = time.monotonic()
    ctx = HostContext(ENV, str(tmp_path), start + 0.2)
    with pytest.raises(TimedOut):
        ctx.run(["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"], capture=capture)
    assert time.monotonic() - start < 5
    with pytest.raises(TimedOut):
        ctx.sleep(60)
    assert (ctx.remaining_s() or 0) < 0


def test_a_background_process_does_not_hold_the_capture(ctx: HostContext) -> None:
    """What a command leaves behind may keep its output open; nobody waits for it."""
    start = time.monotonic()
    done = ctx.query(["sh", "-c", "sleep 6 & echo done"])
    assert done.stdout == b"done\n"
    assert time.monotonic() - start < 4


def test_an_endless_capture_is_stopped(ctx: HostContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that prints for ever does not take the memory."""
    monkeypatch.setattr("pairun.host.commands.MAX_CAPTURE", 1 << 20)
    with pytest.raises(Permanent, match="too much"):
        ctx.query(["yes"])


# --- ports ---------------------------------------------------------------------------------------


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def test_a_free_port_is_free_again_and_again(ctx: HostContext) -> None:
    """Asking leaves nothing behind that the next one would find."""
    port = free_port()
    assert [ctx.port_taken(port) for _ in range(3)] == [None] * 3


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
@pytest.mark.parametrize("reuse", [0, 1])
def test_a_listener_is_found_and_named(
    ctx: HostContext, family: socket.AddressFamily, reuse: int
) -> None:
    """A listener on one address only, with or without SO_REUSEADDR, of either family."""
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
        try:
            listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        except OSError:
            pytest.skip("this machine has no such address")
        listener.listen()
        said = ctx.port_taken(listener.getsockname()[1])
    assert said is not None
    assert said.startswith(f"a TCP socket listens on it (pid {os.getpid()}, ")


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_udp_socket_is_found(ctx: HostContext, family: socket.AddressFamily) -> None:
    """UDP has no listeners; whoever is bound holds the port."""
    with socket.socket(family, socket.SOCK_DGRAM) as bound:
        try:
            bound.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        except OSError:
            pytest.skip("this machine has no such address")
        said = ctx.port_taken(bound.getsockname()[1])
    assert said == f"a UDP socket is bound to it (pid {os.getpid()}, {comm()})"


def test_a_bound_socket_that_does_not_listen_is_found(ctx: HostContext) -> None:
    """A port that someone took and does not serve yet is taken."""
    with socket.socket() as bound:
        bound.bind(("", 0))
        assert ctx.port_taken(bound.getsockname()[1]) == "in use (TCP)"


def comm() -> str:
    """This process's name as /proc has it."""
    return Path("/proc/self/comm").read_text().strip()


@pytest.mark.parametrize("reuse", [0, 1])
def test_a_finished_connection_holds_nothing(ctx: HostContext, reuse: int) -> None:
    """A port in TIME_WAIT, of a server with or without SO_REUSEADDR, is not taken."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        served, _ = listener.accept()
        # The side that closes first keeps the finished connection.
        served.close()
        assert client.recv(1) == b""
        client.close()
    state = [
        line.split()[3]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[1].endswith(f":{port:04X}")
    ]
    assert state == ["06"]
    assert ctx.port_taken(port) is None


def test_errors_are_seen_while_a_command_runs(ctx: HostContext, tmp_path: Path) -> None:
    """A watcher of a captured command is given what it says before it ends."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    seen: list[bytes] = []

    def watch(data: bytes) -> None:
        seen.append(data)
        if data == b"first\n":
            fifo.write_text("go")

    script = f"echo first >&2; cat {fifo}; printf last >&2"
    done = ctx.run(["sh", "-c", script], capture=True, watch=watch)
    assert seen == [b"first\n", b"last"]
    assert done == (0, b"go", b"first\nlast")


def test_a_variable_is_taken_away_by_none(ctx: HostContext) -> None:
    """A command and a question can do without a variable of the task."""
    env: dict[str, str | Secret | None] = {"LANG": None, "A": Secret("a")}
    show = ["sh", "-c", 'echo "${LANG-gone} $A"']
    assert ctx.query(show, env=env).stdout == b"gone a\n"
    assert ctx.run(show, env=env, capture=True).stdout == b"gone a\n"


def test_a_question_has_a_limit_of_its_own(ctx: HostContext) -> None:
    """A question that is not answered in its time is given up."""
    began = time.monotonic()
    with pytest.raises(TimedOut):
        ctx.query(["sleep", "60"], timeout_s=0.2)
    assert time.monotonic() - began < 10
