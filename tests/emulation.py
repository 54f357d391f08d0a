"""Programs for arm64 on another machine: the kernel starts them through QEMU."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
from collections.abc import Iterator

import pytest

_BINFMT = pathlib.Path("/proc/sys/fs/binfmt_misc")
_QEMU = "/usr/bin/qemu-aarch64-static"
_AARCH64 = (
    r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:"
    r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
)
"""How a program for arm64 begins, and which bits of that count (elf(5))."""


@contextlib.contextmanager
def arm64_programs() -> Iterator[None]:
    """Start programs for arm64 through QEMU, in containers and namespaces too.

    The kernel's table is one for the machine (binfmt_misc.rst): an entry that is there already is used,
    and ours is removed at the end.
    """
    if os.uname().machine == "aarch64" or (_BINFMT / "qemu-aarch64").exists():
        yield
        return
    if not pathlib.Path(_QEMU).exists():
        pytest.skip("the package qemu-user-static is not installed")
    if not (_BINFMT / "register").exists():
        mounted = subprocess.run(
            ["mount", "-t", "binfmt_misc", "none", _BINFMT], capture_output=True
        )
        if mounted.returncode != 0:
            pytest.skip(f"binfmt_misc cannot be mounted: {mounted.stderr.decode().strip()}")
    entry = _BINFMT / "pairun-aarch64"
    if entry.exists():  # of a run that was killed
        entry.write_text("-1")
    (_BINFMT / "register").write_text(f":{entry.name}:M::{_AARCH64}:{_QEMU}:PF")
    yield
    entry.write_text("-1")
