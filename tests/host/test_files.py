"""Files: real ones, read in bounds, replaced as a whole, removed without following a link."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pairun.base import folder
from pairun.host.context import HostContext
from pairun.module import (
    Failure,
    Permanent,
    Transient,
)


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
    monkeypatch.setattr(folder, "mount_points", lambda: frozenset({str(kept)}))
    ctx.remove(f"{tmp_path}/tree")
    assert (kept / "data").exists()
    assert not (tmp_path / "tree" / "b").exists()


def test_a_real_mount_stays(tmp_path: Path) -> None:
    """What lies on another file system is neither removed nor an error."""
    (tmp_path / "tree" / "a b").mkdir(parents=True)
    (tmp_path / "tree" / "f").write_text("x")
    script = (
        f"mount -t tmpfs none '{tmp_path}/tree/a b' && touch '{tmp_path}/tree/a b/data' && "
        f"{sys.executable} -c 'from pairun.base.machine import MACHINE; "
        f'MACHINE.remove("{tmp_path}/tree")\' && test -e "{tmp_path}/tree/a b/data"'
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


def test_set_mode_follows_no_link(ctx: HostContext, tmp_path: Path) -> None:
    """What a link points to keeps its mode; a file that may not be read can be set all the same."""
    (tmp_path / "f").write_text("x")
    (tmp_path / "f").chmod(0o000)
    (tmp_path / "l").symlink_to("f")
    with pytest.raises(Permanent, match="symbolic link"):
        ctx.set_mode(str(tmp_path / "l"), 0o644)
    ctx.set_mode(str(tmp_path / "f"), 0o640)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640


def test_a_digest_is_renewed_when_the_file_changes(ctx: HostContext, tmp_path: Path) -> None:
    """What was read before counts only while nobody touched the file."""
    path = tmp_path / "f"
    assert ctx.digest(str(path)) is None
    path.write_text("one")
    first = ctx.digest(str(path))
    assert ctx.digest(str(path)) == first
    path.write_text("two")
    assert ctx.digest(str(path)) != first
    with pytest.raises(Permanent, match="not a regular file"):
        ctx.digest(str(tmp_path))
