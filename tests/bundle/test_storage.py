"""Storages in images that have nothing to mount with: the bundle's system calls and its tools."""

from __future__ import annotations

import pathlib
import shutil
from typing import Protocol

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TOOLS = ROOT / "build" / "bundle" / "tools"
IMAGES = ("debian", "busybox", "musl")

TASKS = """\
runtime:
  - before: user_command
    id: storages
    name: Storages are mounted
    mount_storage: &storages
      user: al
      storages:
        - {type: local, source: SOURCE, path: /mnt/local, subdir: homes/%USER}
        - {type: rclone, settings: {type: local}, remote: STORE, path: /mnt/store, subdir: a/b}
    on_exit:
      - id: gone
        name: Storages are unmounted
        event: always
        mount_storage: {<<: *storages, state: absent}
"""
NFS = """\
runtime:
  - before: user_command
    id: storages
    name: Storages are mounted
    mount_storage:
      storages: [{type: nfs, server: localhost, export: /data, path: /mnt/nfs}]
"""
MAY_MOUNT = (
    "--device=/dev/fuse", "--cap-add=SYS_ADMIN",
    "--security-opt=apparmor=unconfined", "--security-opt=seccomp=unconfined",
)  # fmt: skip


class _Volume(Protocol):
    path: pathlib.Path
    folder: pathlib.Path

    def prepare(self, *commands: str, runtime: str = "", uid: int = 0) -> None: ...


class _Running(Protocol):
    lines: list[str]
    text: str

    def end(self) -> int: ...


class _Pod(Protocol):
    volume: _Volume

    def start(self, image: str, *args: str, options: tuple[str, ...] = ()) -> _Running: ...


@pytest.mark.parametrize("image", IMAGES)
def test_storages_are_mounted_in_any_image(pod: _Pod, image: str) -> None:
    """By the kernel and by rclone, whose store here is a directory; both go at the job's end."""
    if not pathlib.Path("/dev/fuse").exists() or not (TOOLS / "rclone").exists():
        pytest.skip("needs /dev/fuse and bundle/rclone.sh")
    logs = pod.volume.path / "logs"
    source, store = logs / "source", logs / "store"
    runtime = TASKS.replace("SOURCE", str(source)).replace("STORE", str(store))
    pod.volume.prepare(
        "echo kept >/mnt/local/file",
        "echo stored >/mnt/store/file; cat /mnt/store/file",
        runtime=runtime,
    )
    source.mkdir()
    store.mkdir()
    tools = pod.volume.path / "tools"
    if not tools.exists():
        tools.mkdir()
        for name in ("rclone", "fusermount"):
            shutil.copy(TOOLS / name, tools)
    running = pod.start(image, options=MAY_MOUNT)
    assert running.end() == 0, running.text
    assert "stored" in running.lines
    assert (source / "homes" / "al" / "file").read_text() == "kept\n"
    ended = [line for line in running.lines if line.startswith("changed  gone:")]
    assert len(ended) == 1, running.text
    assert (store / "a" / "b" / "file").read_text() == "stored\n"


@pytest.mark.parametrize("image", IMAGES)
def test_a_container_without_the_right_is_told(pod: _Pod, image: str) -> None:
    """The usual container: root, and no right to mount; names are looked up in every image."""
    pod.volume.prepare(runtime=NFS)
    running = pod.start(image)
    assert running.end() != 0
    assert "this container may not mount nfs localhost:/data at /mnt/nfs" in running.text
    assert "CAP_SYS_ADMIN" in running.text


@pytest.mark.skipif(
    "nfs" in pathlib.Path("/proc/filesystems").read_text(), reason="this kernel has NFS"
)
def test_a_kernel_without_the_file_system_is_named(pod: _Pod) -> None:
    """With every right, the system call itself tells."""
    pod.volume.prepare(runtime=NFS)
    running = pod.start("busybox", options=MAY_MOUNT)
    assert running.end() != 0
    assert "the node's kernel has no nfs" in running.text
