"""The door to the shared volume: whatever stands there, it stays inside and never waits."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.base import folder as folders
from pairun.base import system
from pairun.base.paths import PLAIN_FILES
from pairun.volume.door import Door, NotMounted


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty volume."""
    folder = tmp_path / "pai"
    folder.mkdir()
    return folder


@pytest.fixture
def door(root: Path) -> Door:
    """The door to it."""
    return Door(str(root))


def mounted(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    """Let these be mount points."""
    monkeypatch.setattr(folders, "mount_points", lambda: frozenset(map(str, paths)))


# --- what the platform mounts --------------------------------------------------------------------


def configmap(folder: Path, name: str, text: str) -> None:
    """What kubelet makes of a Secret or ConfigMap."""
    (folder / "..2024").mkdir(parents=True)
    (folder / "..2024" / name).write_text(text)
    (folder / "..data").symlink_to("..2024")
    (folder / name).symlink_to(f"..data/{name}")


def test_a_mounted_secret(root: Path, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links that kubelet makes are followed where the platform mounted them, and only there."""
    configmap(root / "secrets", "secrets.yaml", "a: b")
    path = f"{root}/secrets/secrets.yaml"
    mounted(monkeypatch)
    with pytest.raises(NotMounted):
        door.read(path)
    assert door.stat(path) is None
    assert not door.is_from_platform(path)
    mounted(monkeypatch, root / "secrets")
    assert door.read(path) == b"a: b"
    assert door.is_file(path)
    assert door.is_from_platform(path)
    assert "..data" in door.names(f"{root}/secrets")


def test_the_mount_table_of_nothing(
    root: Path, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is missing is looked for and removed without reading the table of mounts."""

    def mount_points() -> frozenset[str]:
        raise AssertionError("it was read")

    monkeypatch.setattr(folders, "mount_points", mount_points)
    with pytest.raises(FileNotFoundError):
        door.read(f"{root}/secrets/secrets.yaml")
    door.remove()


@pytest.mark.parametrize(
    "target",
    [
        "../plain",
        "..data/../../plain",
        "/etc/passwd",
        "loop",
        "../secrets/../plain",
        "a/../../plain",
    ],
)
def test_a_link_that_leaves_the_mount(
    root: Path, door: Door, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """Below a mount point no link leads out of it, nor round and round."""
    configmap(root / "secrets", "secrets.yaml", "a: b")
    (root / "secrets/a").mkdir()
    (root / "plain").write_text("precious")
    (root / "secrets" / "loop").symlink_to(target)
    mounted(monkeypatch, root / "secrets")
    with pytest.raises(OSError, match=r"not followed|too many") as e:
        door.read(f"{root}/secrets/loop")
    assert e.value.filename == f"{root}/secrets/loop"


def test_a_link_that_appears_after_the_check_is_not_followed(
    root: Path, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the links led to when they were checked is opened through no link."""
    configmap(root / "secrets", "secrets.yaml", "a: b")
    mounted(monkeypatch, root / "secrets")
    real_path = os.path.realpath
    file = root / "secrets/..2024/secrets.yaml"

    def swapping(path: str) -> str:
        real = real_path(path)
        if real == str(file):
            file.unlink()
            file.symlink_to("/etc/passwd")
        return real

    monkeypatch.setattr(os.path, "realpath", swapping)
    with pytest.raises(OSError, match="symbolic link"):
        door.read(f"{root}/secrets/secrets.yaml")


def test_links_are_not_followed_elsewhere(
    root: Path, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log directory is a mount, too, but the user's command writes there."""
    (root / "logs").mkdir()
    (root / "logs/file").write_text("x")
    (root / "logs/link").symlink_to("file")
    mounted(monkeypatch, root / "logs")
    with pytest.raises(OSError, match="symbolic link"):
        door.read(f"{root}/logs/link")


def test_plain_files_of_an_engine(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the engine says so, regular files of our own count without a mount; links never."""
    mounted(monkeypatch)
    monkeypatch.setenv(PLAIN_FILES, "1")
    door = Door(str(root))
    (root / "secrets").mkdir()
    path = root / "secrets/secrets.yaml"
    path.write_text("a: b")
    assert door.read(str(path)) == b"a: b"
    path.rename(root / "elsewhere")
    path.symlink_to("../elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        door.read(str(path))
    if os.geteuid() == 0:
        path.unlink()
        path.write_text("planted")
        os.chown(path, 65534, -1)
        with pytest.raises(NotMounted):
            door.read(str(path))


MOUNTS = """
import os, sys
from pairun.volume.door import Door
root = sys.argv[1]
door = Door(root)
print(door.is_from_platform(f"{root}/secrets/secrets.yaml"), door.read(f"{root}/secrets/secrets.yaml"))
door.remove(f"{root}/secrets")
print(sorted(os.listdir(f"{root}/secrets")))
"""


def test_a_real_mount(root: Path, tmp_path: Path) -> None:
    """With real mounts, as the kernel lists them, the same holds."""
    configmap(tmp_path / "secret volume", "secrets.yaml", "a: b")
    (root / "secrets").mkdir()
    code = 'mount --bind "$1" "$2/secrets" && exec "$0" -c "$3" "$2"'
    argv = ["unshare", "--mount", "--map-root-user", "sh", "-c", code]
    volume = str(tmp_path / "secret volume")
    if subprocess.run([*argv[:3], "true"], check=False, capture_output=True).returncode:
        pytest.skip("this kernel lets us make no mounts")
    done = subprocess.run(
        [*argv, sys.executable, volume, str(root), MOUNTS], capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        "True b'a: b'",
        "['..2024', '..data', 'secrets.yaml']",
    ], done.stderr


def test_the_mount_table_of_strange_names() -> None:
    """Octal escapes of the table are undone."""
    assert system.unescaped(rb"/a\040b\134c") == b"/a b\\c"


# --- whatever stands there -----------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "secrets", "logs"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TARGETS = st.sampled_from(
    ["..", "../..", "../../outside", "a", "b/a", "../a", ".", "/", "{outside}", "{outside}/file"]
)
ENTRIES = st.lists(
    st.tuples(PATHS, st.sampled_from(["folder", "file", "link", "fifo", "socket"]), TARGETS),
    max_size=8,
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["read", "write", "append", "folder", "names", "remove", "mode", "rename"]),
        PATHS,
        PATHS,
    ),
    min_size=1,
    max_size=6,
)


def _plant(root: Path, outside: Path, entries: list[tuple[str, str, str]]) -> None:
    for path, kind, target in entries:
        place = root / path
        with contextlib.suppress(OSError):
            # A loop of links is an error of resolve(), and no place to plant anything.
            if Path(os.path.realpath(place.parent)).is_relative_to(root):
                place.parent.mkdir(parents=True, exist_ok=True)
                if kind == "folder":
                    place.mkdir()
                elif kind == "file":
                    # Exclusively: opening a FIFO waits, and a link leads outside.
                    with place.open("xb") as file:
                        file.write(b"inside")
                elif kind == "link":
                    place.symlink_to(target.format(outside=outside))
                else:
                    node = {"fifo": stat.S_IFIFO, "socket": stat.S_IFSOCK}[kind]
                    os.mknod(place, node | 0o600)


def _do(door: Door, step: tuple[str, str, str]) -> None:
    verb, path, other = step[0], f"{door.root}/{step[1]}", f"{door.root}/{step[2]}"
    with contextlib.suppress(OSError):
        if verb == "read":
            assert door.read(path) in (b"inside", b"")
        elif verb == "write":
            door.write(path, b"inside")
        elif verb == "append":
            os.close(door.open_append(path))
        elif verb == "folder":
            door.make_folder(path)
        elif verb == "names":
            assert "file" not in door.names(path)
        elif verb == "remove":
            door.remove(path)
        elif verb == "mode":
            door.set_mode(path, 0o777)
        else:
            door.rename(path, other)


@given(entries=ENTRIES, steps=STEPS, mount=st.none() | PATHS)
def test_it_never_leaves_the_volume(
    tmp_path_factory: pytest.TempPathFactory,
    entries: list[tuple[str, str, str]],
    steps: list[tuple[str, str, str]],
    mount: str | None,
) -> None:
    """In any tree of links, FIFOs and sockets no step reads, changes or waits outside of it."""
    base = tmp_path_factory.mktemp("tree")
    root, outside = base / "pai", base / "outside"
    root.mkdir()
    outside.mkdir(0o700)
    (outside / "file").write_bytes(b"precious")
    _plant(root, outside, entries)
    door = Door(str(root))
    with pytest.MonkeyPatch.context() as patch:
        mounted(patch, *([root / mount] if mount else []))
        for step in steps:
            _do(door, step)
    assert [p.name for p in outside.iterdir()] == ["file"]
    assert (outside / "file").read_bytes() == b"precious"
    assert stat.S_IMODE(outside.stat().st_mode) == 0o700
    assert sorted(p.name for p in base.iterdir()) == ["outside", "pai"]
