"""Containers as bare as they come: nobody's, read-only, without /tmp, /proc or a shell."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import sys
from typing import Any

import pytest

AS_NOBODY = [
    shutil.which("setpriv") or "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
]

SOURCE = pathlib.Path(__file__).parents[2]

PLACES = {
    "a read-only root": "mount -o remount,ro,bind / 2>/dev/null || mount --bind -o ro / /",
    # The checkout may lie below /tmp, and must not be hidden with it.
    "no /tmp": f"mkdir /mnt/source; mount --bind {SOURCE} /mnt/source; mount -t tmpfs none /tmp; "
    f"mkdir -p {SOURCE}; mount --bind /mnt/source {SOURCE}; mount -o remount,bind,ro /tmp",
    "no /proc": "mount -t tmpfs -o ro,size=4k none /proc",
    "hidden processes": "mount -t proc -o remount,hidepid=2 proc /proc",
}


@pytest.fixture
def bare(volume: Any, in_namespace: Any) -> Any:
    """Starts the phase in a namespace after some shell commands, as root or as nobody."""
    volume.root.chmod(0o755)
    for path in volume.files.iterdir():
        path.chmod(0o644)
    driver = volume.root / "driver.py"
    driver.write_text("import sys, pairun.runtime.main as m; sys.exit(m.main('/mnt', m.Vault()))")

    def begin(place: str, *, nobody: bool, **env: str) -> Any:
        # The volume lies below /tmp and would be hidden with it; and a test's directories are closed.
        lines = ["set -e", f"mount --bind {volume.root} /mnt", place]
        prefix = AS_NOBODY if nobody and os.getuid() == 0 else []
        run = ["exec", *prefix, sys.executable, "-P", "/mnt/driver.py"]
        lines.append(" ".join(run))
        return in_namespace("sh", "-c", "\n".join(lines), **{"PYTHONPATH": str(SOURCE), **env})

    return begin


@pytest.mark.parametrize("nobody", [False, True])
@pytest.mark.parametrize("place", PLACES.values(), ids=list(PLACES))
def test_it_works_there(volume: Any, bare: Any, place: str, nobody: bool) -> None:
    """Signals arrive, the exit code is the command's, and what it leaves behind is ended."""
    volume.command(
        "setsid sh -c 'echo left; exec sleep 60' &\n"
        "trap 'echo got SIGUSR1' USR1; trap 'exit 7' TERM\n"
        "echo ready; while :; do sleep 0.05; done"
    )
    running = bare(place, nobody=nobody)
    running.line("ready")
    running.signal(signal.SIGUSR1)
    running.line("got SIGUSR1")
    running.signal(signal.SIGTERM)
    assert running.end() == 7, running.lines
    assert running.got("[pairun] received SIGTERM from outside this container")


@pytest.mark.parametrize("nobody", [False, True])
def test_a_program_without_a_shell(volume: Any, bare: Any, nobody: bool) -> None:
    """A command that is a program runs in an image that has no shell, and needs no script."""
    program = shutil.which("printf")
    assert program is not None
    volume.args(argv=[program, "checked\\n"])
    hide = "mkdir -p /mnt/empty; export PATH=/mnt/empty"
    running = bare(hide, nobody=nobody)
    assert running.end() == 0, running.lines
    assert "checked" in running.lines


# --- the command as a program ---


def test_program_by_its_name(volume: Any, start: Any) -> None:
    """The program is looked for in the command's PATH, and gets its arguments as they are."""
    volume.args(argv=["printf", "%s|", "a b", "$HOME", "*"])
    running = start()
    assert running.end() == 0
    assert any("a b|$HOME|*|" in line for line in running.lines)


def test_program_in_the_image_path(volume: Any, start: Any, tmp_path: pathlib.Path) -> None:
    """What a task exported as PATH counts, and the first that can be executed is taken."""
    for name, mode in (("first", 0o644), ("second", 0o755)):
        (tmp_path / name).mkdir()
        tool = tmp_path / name / "tool"
        tool.write_text(f"#!/bin/sh\necho {name}\n")
        tool.chmod(mode)
    volume.env(PATH=f"{tmp_path}/first:{tmp_path}/second")
    volume.args(argv=["tool"])
    running = start()
    assert running.end() == 0
    assert running.got("second")


def _make(path: pathlib.Path, what: str) -> None:
    if what == "directory":
        path.mkdir()
    elif what == "not executable":
        path.write_text("#!/bin/sh\n")
    elif what == "of another machine":
        path.write_bytes(b"\x7fELF of another machine")
    elif what == "without its interpreter":
        path.write_text("#!/no/such/interpreter\n")
    elif what == "a link to nothing":
        path.symlink_to("nowhere")
    if what in ("of another machine", "without its interpreter"):
        path.chmod(0o755)


@pytest.mark.parametrize(
    ("what", "code", "words"),
    [
        ("missing", 127, "does not exist"),
        ("directory", 126, "it is a directory"),
        ("not executable", 126, "it is not executable"),
        ("of another machine", 126, "it is built for another machine"),
        ("without its interpreter", 126, "the interpreter of its first line"),
        ("a link to nothing", 126, "it is a broken link"),
    ],
)
@pytest.mark.parametrize("named", ["by path", "by name"])
def test_a_program_that_cannot_start(
    volume: Any, in_namespace: Any, tmp_path: pathlib.Path,
    what: str, code: int, words: str, named: str,
) -> None:  # fmt: skip
    """127 when the program is not there, 126 when it cannot be executed, and a sentence why."""
    (tmp_path / "bin").mkdir()
    _make(tmp_path / "bin" / "tool", what)
    volume.env(PATH=f"{tmp_path}/bin")
    volume.args(argv=["tool" if named == "by name" else f"{tmp_path}/bin/tool"])
    running = in_namespace()
    assert running.end() == code
    assert any(words in line for line in running.lines)
