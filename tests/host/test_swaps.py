"""Effects on the shared volume stay in the directory that was opened, whatever takes its place."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, ItemsView, Iterator, Mapping
from pathlib import Path

import pytest

from pairun.host.context import HostContext
from pairun.volume.door import Door
from tests.webserver import Answer, Asked, WebServer


class Swapped:
    """A folder of the volume that becomes a link to a folder outside, in the middle of something."""

    def __init__(self, tmp: Path) -> None:
        self.outside = tmp / "outside"
        self.outside.mkdir()
        (self.outside / "mine").write_text("mine")
        self.folder = tmp / "pai" / "folder"
        self.folder.mkdir(parents=True)
        self.moved = tmp / "pai" / "moved"

    def swap(self) -> None:
        """Put the link there, once."""
        if not self.folder.is_symlink():
            self.folder.rename(self.moved)
            self.folder.symlink_to(self.outside)


@pytest.fixture
def swapped(tmp_path: Path) -> Swapped:
    """The folder, still a folder."""
    return Swapped(tmp_path)


@pytest.fixture
def serve(swapped: Swapped) -> Iterator[str]:
    """A server that swaps the folder before it answers."""

    def reply(_: Asked) -> Answer:
        swapped.swap()
        return Answer(200, {"ETag": '"e"'}, b"body")

    server = WebServer(reply)
    yield f"{server.url}/file"
    server.close()


class Swapping(Mapping[str, bytes]):
    """Further files of an archive; whoever reads them finds the folder swapped."""

    def __init__(self, swap: Callable[[], None]) -> None:
        self._swap = swap
        self._files = {"extra": b"x"}

    def items(self) -> ItemsView[str, bytes]:
        """The files."""
        self._swap()
        return self._files.items()

    def __getitem__(self, name: str) -> bytes:
        return self._files[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def test_a_download_stays_where_it_began(tmp_path: Path, swapped: Swapped, serve: str) -> None:
    """The file, its part and its note are written to the directory that was opened."""
    ctx = HostContext({}, str(tmp_path / "pai"))
    assert ctx.fetch_file(serve, f"{swapped.folder}/file").size == 4
    assert os.listdir(swapped.outside) == ["mine"]
    assert os.listdir(swapped.moved) == ["file"]


def test_an_archive_is_unpacked_where_it_began(tmp_path: Path, swapped: Swapped) -> None:
    """The directory appears in the directory that was opened."""
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        member = tarfile.TarInfo("file")
        member.size = 1
        tar.addfile(member, io.BytesIO(b"x"))
    ctx = HostContext({}, str(tmp_path / "pai"))
    extra = Swapping(swapped.swap)
    path = f"{swapped.folder}/tree"
    ctx.unpack(str(tmp_path / "a.tar"), path, max_bytes=10, max_members=9, extra=extra)
    assert os.listdir(swapped.outside) == ["mine"]
    assert sorted(os.listdir(swapped.moved / "tree")) == ["extra", "file"]


def test_an_archive_that_is_a_link_is_not_read(tmp_path: Path, swapped: Swapped) -> None:
    """An archive on the volume is opened through the door."""
    (swapped.folder / "a.tar").symlink_to(swapped.outside / "mine")
    ctx = HostContext({}, str(tmp_path / "pai"))
    with pytest.raises(Exception, match="symbolic link"):
        ctx.unpack(f"{swapped.folder}/a.tar", str(tmp_path / "out"), max_bytes=9, max_members=9)


def test_what_moves_into_the_volume_stays_in_it(tmp_path: Path, swapped: Swapped) -> None:
    """A file from elsewhere goes into the open directory; a link on the way is refused."""
    (tmp_path / "new").write_text("new")
    ctx = HostContext({}, str(tmp_path / "pai"))
    swapped.swap()
    with pytest.raises(Exception, match="symbolic link"):
        ctx.rename(str(tmp_path / "new"), f"{swapped.folder}/new")
    ctx.rename(str(tmp_path / "new"), f"{swapped.moved}/new")
    assert os.listdir(swapped.moved) == ["new"]


def test_a_place_is_removed_where_it_was_opened(tmp_path: Path, swapped: Swapped) -> None:
    """A swap between opening and removing costs nothing outside."""
    (swapped.folder / "mine").write_text("ours")
    with Door(str(tmp_path / "pai")).holding(f"{swapped.folder}/mine") as (folder, name):
        swapped.swap()
        folder.remove(name)
    assert os.listdir(swapped.outside) == ["mine"]
    assert os.listdir(swapped.moved) == []


MOUNTS = """
import os, sys
from pairun.host.context import HostContext
root, outside = sys.argv[1:]
ctx = HostContext({}, root)
def attempt(*args, **more):
    try:
        ctx.mount(*args, **more)
    except OSError as e:
        print("refused:", os.strerror(e.errno), e.filename)
    else:
        print("mounted")
attempt(outside, f"{root}/link/d", None)
attempt(outside, f"{root}/link", None)
attempt(f"{root}/link", f"{root}/data", None)
attempt("none", f"{root}/link", "tmpfs")
attempt(outside, f"{root}/data", None, read_only=True)
print(sorted(os.listdir(f"{root}/data")), os.access(f"{root}/data/mine", os.W_OK))
ctx.unmount(f"{root}/data")
attempt(outside, f"{root}/data", None, subdir="mine/x")
attempt("none", f"{root}/data", "tmpfs", subdir="a/b")
print(os.listdir(f"{root}/data"), [m.root for m in ctx.mounts() if m.target == f"{root}/data"])
ctx.unmount(f"{root}/data")
print([m.target for m in ctx.mounts() if m.target.startswith(root)], sorted(os.listdir(root)))
"""


def test_a_mount_on_the_volume_goes_through_no_link(tmp_path: Path) -> None:
    """Target and source are opened name by name; what is mounted is whole, read-only and undone."""
    root, outside = tmp_path / "pai", tmp_path / "outside"
    (outside / "d").mkdir(parents=True)
    (outside / "mine").touch()
    (root / "data").mkdir(parents=True)
    (root / "link").symlink_to(outside)
    unshare = ["unshare", "--mount", "--map-root-user"]
    if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this kernel lets us make no mounts")
    done = subprocess.run(
        [*unshare, sys.executable, "-c", MOUNTS, str(root), str(outside)],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    refused = "refused: Too many levels of symbolic links"
    assert done.stdout.splitlines() == [
        f"{refused} {root}/link/d",
        f"{refused} {root}/link",
        f"{refused} {root}/link",
        f"{refused} {root}/link",
        "mounted",
        "['d', 'mine'] False",
        "refused: Not a directory mine/x",
        "mounted",
        "[] ['/a/b']",
        "[] ['data', 'link']",
    ], done.stdout + done.stderr
