"""The watch over the door itself: it sees what others open, in whatever way, and not what is theirs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doors import DoorWatch


def run(tmp_path: Path, code: str) -> str:
    """Run a program as pairun's; what the watch reports."""
    volume = tmp_path / "pai"
    volume.mkdir()
    (volume / "file").write_text("x")
    (volume / "folder").mkdir()
    (tmp_path / "link").symlink_to(volume)
    watch = DoorWatch(volume, tmp_path / "report")
    prelude = f"import os, shutil, pairun\nv = {str(volume)!r}\n"
    env = {"PATH": os.environ["PATH"], **watch.env}
    subprocess.run([sys.executable, "-c", prelude + code], env=env, cwd=tmp_path, check=True)
    return watch.violations()


MACHINE = "from pairun.base.machine import MACHINE; open('other', 'w'); MACHINE"
"""The files of the machine, which are not for the volume."""


@pytest.mark.parametrize(
    "code",
    [
        "open(f'{v}/file')",
        "open('pai/file', 'a')",
        "open(os.fsencode(v) + b'/file')",
        "open('link/file')",
        "os.chdir(v); open('file')",
        "os.open('file', os.O_RDONLY, dir_fd=os.open(v, os.O_PATH))",
        "open(f'/proc/self/fd/{os.open(v, os.O_PATH)}/file')",
        "os.mkdir(f'{v}/new')",
        "os.makedirs(f'{v}/a/b')",
        "os.rename(f'{v}/file', 'taken')",
        "os.replace('link/file', f'{v}/other')",
        "os.remove(f'{v}/file')",
        "os.listdir(v)",
        "list(os.scandir(f'{v}/folder'))",
        "os.truncate(f'{v}/file', 0)",
        "os.symlink('x', f'{v}/l')",
        "os.link('/proc/self/exe' if False else f'{v}/file', f'{v}/hard')",
        "os.chmod(f'{v}/file', 0o600)",
        "shutil.rmtree(f'{v}/folder')",
        "import pathlib; pathlib.Path(v, 'file').read_text()",
        f"{MACHINE}.read(f'{{v}}/file')",
        f"{MACHINE}.names(v)",
        f"{MACHINE}.write('link/file', b'')",
        f"{MACHINE}.make_folder(f'{{v}}/new')",
        f"{MACHINE}.rename('other', f'{{v}}/other')",
        f"{MACHINE}.remove(f'{{v}}/file')",
    ],
)
def test_what_is_opened_beside_the_door(tmp_path: Path, code: str) -> None:
    """Each of these is reported, with the place in the program."""
    report = run(tmp_path, code)
    assert report
    assert "<string>:" in report


@pytest.mark.parametrize(
    "code",
    [
        "open('other', 'w')",
        "os.mkdir('new')",
        "os.listdir('.')",
        (
            "from pairun.volume.door import Door\n"
            "d = Door(v); d.make_folder(f'{v}/a/b'); d.write(f'{v}/a/b/c', b'x')\n"
            "assert d.read(f'{v}/a/b/c') == b'x'; d.rename(f'{v}/a', f'{v}/z'); d.remove(f'{v}/z')\n"
            "os.close(d.open_append(f'{v}/log')); d.set_mode(f'{v}/log', 0o600); d.names(f'{v}/folder')"
        ),
        (
            "from pairun.host.context import HostContext\n"
            "c = HostContext({}, v); c.write_file(f'{v}/new', b'x'); c.read_file(f'{v}/new')"
        ),
    ],
)
def test_what_goes_through_the_door(tmp_path: Path, code: str) -> None:
    """The door itself, a module's context, and paths elsewhere are no violations."""
    assert run(tmp_path, code) == ""
