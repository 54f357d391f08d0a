"""What init writes to a Pod's volume, for a job without ssh or storage, in bytes."""

from __future__ import annotations

import os
import pathlib
import sysconfig
from collections.abc import Iterator

from benchmarks.init_phase import prepared
from benchmarks.measure import NotMeasured, Row, fixed
from pairun.volume.bundle import find_bundle

GOAL_MB = 19.7
"""What it was before the volume was measured at all."""


def rows() -> Iterator[Row]:
    """The bytes beside those of the Python without which there would be no second phase.

    Raises:
        NotMeasured: there is no bundle.
    """
    if not find_bundle(os.environ):
        raise NotMeasured("the volume: there is no bundle; `make bundle` builds it")
    with prepared(plugins=()) as pod:
        before = _size(pod.volume)
        pod.run()
        written = _size(pod.volume) - before
    yield Row(
        "init writes to the volume", "MB", fixed(written / 1e6), GOAL_MB,
        "a Python with its library", fixed(_python_size() / 1e6),
        f"without the program {(written - _program_size()) / 1000:.0f} kB",
    )  # fmt: skip


def _program_size() -> int:
    bundle = find_bundle(os.environ)
    assert bundle is not None
    return os.path.getsize(bundle)


def _python_size() -> int:
    """The program, and the standard library as it lies on a disk, without tests and packages."""
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    left_out = {"site-packages", "dist-packages", "test", "tests", "idlelib", "__pycache__"}
    sizes = (
        (pathlib.Path(folder) / name).stat().st_size
        for folder, _, names in os.walk(library)
        if not left_out & {*pathlib.Path(folder).parts}
        for name in names
    )
    return sum(sizes) + os.path.getsize(os.path.realpath(f"/proc/{os.getpid()}/exe"))


def _size(folder: pathlib.Path) -> int:
    return sum(p.lstat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
