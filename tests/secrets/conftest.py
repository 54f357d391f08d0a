"""Both scanners: the one in Python, and the one in C that the bundle has."""

from __future__ import annotations

import importlib.util
import pathlib
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from typing import Any

import pytest

from pairun.secrets import scanner as scanners
from pairun.secrets.scanner import PythonScanner

SOURCE = pathlib.Path(__file__).parents[2] / "bundle" / "_scan.c"
HEADERS = pathlib.Path(sysconfig.get_paths()["include"])


def build(folder: pathlib.Path, *flags: str) -> pathlib.Path:
    """Compile the scanner that the bundle has linked in, as a module of this Python."""
    if shutil.which("gcc") is None or not (HEADERS / "Python.h").exists():
        pytest.skip("this needs gcc and the headers of this Python")
    path = folder / "_pairun_scan.so"
    warnings = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-cast-function-type"]
    subprocess.run(
        ["gcc", *flags, *warnings, "-Wno-missing-field-initializers", "-Werror", "-shared", "-fPIC",
         f"-I{HEADERS}", str(SOURCE), "-o", str(path)],
        check=True,
    )  # fmt: skip
    return path


def load(path: str | pathlib.Path) -> Any:
    """The class in a compiled module."""
    spec = importlib.util.spec_from_file_location("_pairun_scan", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Scanner


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The scanner in C."""
    return load(build(tmp_path_factory.mktemp("scan"), "-O2"))


@pytest.fixture(scope="module", params=["python", "c"])
def scanner(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A test runs with the scanner in Python and with the one in C."""
    chosen = PythonScanner if request.param == "python" else request.getfixturevalue("compiled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanners, "PythonScanner", chosen)
        yield chosen
