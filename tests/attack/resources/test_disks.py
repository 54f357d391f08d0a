"""Full and read-only disks: logs and messages may be lost, the command and its exit code never."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

PAGE = 4096


def _fill(disk: pathlib.Path, free: int) -> None:
    """Leave only some free bytes on a disk."""
    space = os.statvfs(disk)
    taken = max(0, space.f_bavail * space.f_frsize - free)
    with (disk / "filler").open("wb") as filler:
        os.posix_fallocate(filler.fileno(), 0, taken or 1)


@pytest.mark.parametrize(
    "pages", [0, 1, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 4, 6, 9))]
)
def test_full_volume(
    volume: Any, disk: pathlib.Path, start: Any, secret: str, succeeded: Any, pages: int
) -> None:
    """On a full volume the command, the exit handlers and the exit code are as ever."""
    (disk / "logs" / "local").mkdir(parents=True, exist_ok=True)
    volume.tasks(tasks=succeeded, handlers={"failed": False})
    volume.command(f"echo printed {secret}; seq 1 2000; exit 5")
    _fill(disk, pages * PAGE)
    running = start()
    assert running.end() == 5
    assert running.got("printed ******")
    assert running.got("2000")
    assert running.got("handlers ran")
    text = "\n".join(running.lines)
    assert "Traceback" not in text
    assert "pairun's own" not in text
    assert secret not in text
    journal = disk / "logs" / "local" / "journal.jsonl"
    lines = journal.read_text().splitlines() if journal.exists() else []
    # a disk that fills in the middle of a record tears that one record
    assert sum(not _is_json(line) for line in lines) <= 1


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def test_message_that_does_not_fit(volume: Any, driver: list[str], tmp_path: pathlib.Path) -> None:
    """A termination message that does not fit whole leaves what the file held."""
    message = tmp_path / "termination-log"
    message.write_text("of an earlier attempt")
    volume.command("exit 5")
    done = subprocess.run(
        ["prlimit", "--fsize=10", *driver, str(volume.root)],
        env={**os.environ, "PAIRUN_TERMINATION_LOG": str(message), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 5
    assert f"the termination message cannot be written to {message}: File too large" in done.stdout
    assert message.read_text() == "of an earlier attempt"


@pytest.mark.parametrize("what", ["volume", "everything"])
def test_read_only(
    volume: Any, in_namespace: Any, driver: list[str], secret: str, what: str
) -> None:
    """On a read-only volume, in a read-only container, the command runs and its output is masked."""
    volume.command(f"echo printed {secret}; exit 5")
    places = {"volume": "/mnt", "everything": "/mnt / /tmp /dev /run"}[what]
    script = (
        f"mount --bind {volume.root} /mnt\nfor p in {places}; do\n"
        "mount --bind $p $p; mount -o remount,ro,bind $p; done 2>/dev/null\n"
        'exec "$@"'
    )
    running = in_namespace("sh", "-c", script, "sh", *driver, "/mnt", PYTHONDONTWRITEBYTECODE="1")
    assert running.end() == 5, running.lines
    assert running.got("printed ******")
    text = "\n".join(running.lines)
    assert "Traceback" not in text
    assert "pairun's own" not in text
    assert secret not in text


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.002, 0.5, 0.975, 0.98, 0.985, 0.99, 0.995, 0.999, 1.0])
def test_init_on_a_full_volume(tmp_path: pathlib.Path, share: float) -> None:
    """Init on a volume with too little space says why with an id, and leaves no half file."""
    if os.getuid() != 0:
        pytest.skip("only root may mount a disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "disk", str(disk)], check=True)
    volume = disk / "pai"
    try:
        done = _init(volume)
        assert done.returncode == 0, done.stdout
        sizes = _sizes(volume)
        taken = os.statvfs(disk)
        needed = (taken.f_blocks - taken.f_bavail) * taken.f_frsize
        shutil.rmtree(volume)
        _fill(disk, int(needed * share))
        done = _init(volume)
        assert "Traceback" not in done.stdout
        assert "pairun itself failed" not in done.stdout
        if done.returncode == 0:
            assert _sizes(volume) == sizes
        else:
            assert "error[PR" in done.stdout
            assert "No space left on device" in done.stdout
        assert _sizes(volume).items() <= sizes.items()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def _sizes(disk: pathlib.Path) -> dict[str, int]:
    """The files on the volume, without logs, which may be cut, and their sizes."""
    files = (path for path in disk.rglob("*") if path.is_file())
    sizes = {str(path.relative_to(disk)): path.stat().st_size for path in files}
    return {name: size for name, size in sizes.items() if not name.startswith("logs/")}


def _init(disk: pathlib.Path) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ, "PAIRUN_PAI_DIR": str(disk), "INIT_CONFIG": "initPlugins: []",
        "RUNTIME_CONFIG": "commands: [exit 5]",
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", "pairun", "init"],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120,
    )  # fmt: skip
