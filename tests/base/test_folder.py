"""A folder that others may write to: whatever is in it, nothing outside changes, and nothing waits."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pairun.base import folder as folders
from pairun.base.folder import Folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty directory."""
    path = tmp_path / "pai"
    path.mkdir()
    return path


@pytest.fixture
def folder(root: Path) -> Folder:
    """Its files."""
    return Folder(str(root))


def test_a_file_is_written_and_read(root: Path, folder: Folder) -> None:
    """A file has its content and exactly its mode, whatever the umask says."""
    old = os.umask(0o077)
    try:
        folder.make_folder(f"{root}/a/b", 0o1777)
        folder.write(f"{root}/a/b/file", b"data", 0o664)
    finally:
        os.umask(old)
    assert folder.read(f"{root}/a/b/file") == b"data"
    modes = [stat.S_IMODE((root / p).stat().st_mode) for p in ("a", "a/b", "a/b/file")]
    assert modes == [0o755, 0o1777, 0o664]
    assert folder.names(f"{root}/a/b") == ["file"]


def test_a_folder_that_exists_stays_as_it_is(root: Path, folder: Folder) -> None:
    """Making a folder again changes nothing."""
    (root / "a").mkdir(0o700)
    folder.make_folder(f"{root}/a", 0o777)
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o700


def test_the_bound(root: Path, folder: Folder) -> None:
    """A file of exactly the bound is read, a longer one is refused."""
    (root / "file").write_bytes(b"x" * 10)
    assert folder.read(f"{root}/file", 10) == b"x" * 10
    assert folder.read_end(f"{root}/file", 3) == b"xxx"
    with pytest.raises(OSError, match="larger than 9 bytes"):
        folder.read(f"{root}/file", 9)


def test_a_write_that_fails_leaves_what_was_there(root: Path, folder: Folder) -> None:
    """The old file stays whole, and no temporary one is left."""
    folder.write(f"{root}/file", b"old")
    with pytest.raises(ZeroDivisionError), folder.replacing(f"{root}/file") as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert {p.name: p.read_bytes() for p in root.iterdir()} == {"file": b"old"}


def test_appending(root: Path, folder: Folder) -> None:
    """A file that is appended to is made where it is missing."""
    for _ in range(2):
        fd = folder.open_append(f"{root}/log", 0o600)
        os.write(fd, b"line\n")
        os.close(fd)
    assert (root / "log").read_bytes() == b"line\nline\n"


def test_a_file_is_copied_in(root: Path, folder: Folder, tmp_path: Path) -> None:
    """What a file outside holds comes in, with the mode that is asked for."""
    (tmp_path / "program").write_bytes(b"p" * 1_000_000)
    folder.copy_in(str(tmp_path / "program"), f"{root}/runtime", 0o755)
    assert (root / "runtime").read_bytes() == b"p" * 1_000_000
    assert stat.S_IMODE((root / "runtime").stat().st_mode) == 0o755


def test_moving_and_removing(root: Path, folder: Folder, tmp_path: Path) -> None:
    """Links are moved and removed themselves; what they point to stays."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    folder.make_folder(f"{root}/a/b")
    folder.link(str(outside), f"{root}/a/link")
    folder.rename(f"{root}/a/link", f"{root}/a/b/link")
    folder.remove(f"{root}/a")
    folder.remove(f"{root}/a")
    folder.remove(f"{root}/b/c")
    assert list(root.iterdir()) == []
    assert (outside / "file").exists()


def test_errors_name_the_whole_path(root: Path, folder: Folder) -> None:
    """An error names the path that people know, and what stands in the way."""
    os.mkfifo(root / "fifo")
    (root / "link").symlink_to("fifo")
    with pytest.raises(OSError, match="it is not a regular file") as e:
        folder.read(f"{root}/fifo")
    assert e.value.filename == f"{root}/fifo"
    with pytest.raises(OSError, match="'link' is a symbolic link, which is not followed") as e:
        folder.write(f"{root}/link/file", b"")
    assert e.value.filename == f"{root}/link/file"
    with pytest.raises(FileNotFoundError) as missing:
        folder.read(f"{root}/a/b")
    assert missing.value.filename == f"{root}/a/b"


@pytest.mark.parametrize("path", ["/etc/passwd", "{}/../x", "{}", "{}/", "{}x/y", "{}/a/../../x"])
def test_a_path_that_is_not_below_the_root(root: Path, folder: Folder, path: str) -> None:
    """Only names below the root are opened, however they are written."""
    with pytest.raises(OSError, match="is not below"):
        folder.read(path.format(root))


def test_a_root_that_is_a_link(root: Path, tmp_path: Path) -> None:
    """The root itself is not followed either."""
    (tmp_path / "link").symlink_to(root)
    with pytest.raises(OSError, match="symbolic link"):
        Folder(str(tmp_path / "link")).write(f"{tmp_path}/link/file", b"")
    assert list(root.iterdir()) == []


def test_a_device(folder: Folder, root: Path) -> None:
    """A device is refused without being opened."""
    if os.geteuid() != 0:
        pytest.skip("only root makes devices")
    try:
        os.mknod(root / "device", stat.S_IFCHR | 0o666, os.makedev(5, 0))
    except PermissionError:
        pytest.skip("this container makes no devices")
    with pytest.raises(OSError, match="not a regular file"):
        folder.read(f"{root}/device")


def test_a_mount_is_not_removed(
    root: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mount point stays, and so does what leads to it."""
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/kept").touch()
    (root / "a/gone").touch()
    monkeypatch.setattr(folders, "mount_points", lambda: frozenset({f"{root}/a/b"}))
    folder.remove(f"{root}/a")
    assert [str(p.relative_to(root)) for p in sorted(root.rglob("*"))] == ["a", "a/b", "a/b/kept"]


def test_the_root_is_listed_and_never_removed(root: Path, folder: Folder) -> None:
    folder.write(f"{root}/file", b"")
    assert folder.names(str(root)) == ["file"]
    folder.remove(f"{root}/none")
    with pytest.raises(OSError, match="is not below"):
        folder.remove(str(root))
    assert root.is_dir()


@pytest.fixture
def opened(root: Path) -> Iterator[Folder]:
    """The directory, open; a link to another directory has taken its place."""
    fd = os.open(root, os.O_RDONLY)
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "mine").touch()
    root.rename(root.parent / "moved")
    root.symlink_to(outside)
    yield Folder(str(root), fd)
    os.close(fd)


def test_an_open_folder_takes_names(root: Path, opened: Folder) -> None:
    """Names are relative to the open directory, and all changes stay in it."""
    os.close(opened.open_new("new"))
    with pytest.raises(FileExistsError):
        opened.open_new("new")
    opened.make_folder("a/b")
    opened.write("a/b/file", b"x")
    opened.hard_link("a/b/file", "again")
    opened.rename("new", "a/new")
    os.close(opened.open_new_folder("private"))
    with pytest.raises(FileExistsError):
        opened.open_new_folder("private")
    assert opened.names(str(root)) == ["a", "again", "private"]
    opened.set_mode("again", 0o600)
    found = opened.stat("a/b/file")
    assert found is not None
    assert (found.st_nlink, stat.S_IMODE(found.st_mode)) == (2, 0o600)
    opened.remove("a", "again", "private")
    assert os.listdir(root.parent / "moved") == []
    assert os.listdir(root.parent / "outside") == ["mine"]


@pytest.mark.parametrize("name", ["../mine", "/etc/passwd", "a/../../x", "..", ".", "", "a\0b"])
def test_an_open_folder_has_no_way_out(opened: Folder, name: str) -> None:
    for action in (opened.read, opened.remove, opened.open_new, opened.open_append):
        with pytest.raises(OSError, match=r"is not below|contains a NUL"):
            action(name)
    with pytest.raises(OSError, match=r"is not below|contains a NUL"):
        opened.rename("a", name)


def test_a_hard_link_to_a_link_is_one_to_the_link(root: Path, folder: Folder) -> None:
    (root.parent / "precious").touch()
    folder.link("../precious", f"{root}/link")
    folder.hard_link(f"{root}/link", f"{root}/second")
    assert (root / "second").is_symlink()
    assert (root.parent / "precious").stat().st_nlink == 1
