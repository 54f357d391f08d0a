"""What is known of the bundle without one: what it lacks, and how init finds it."""

from __future__ import annotations

import fnmatch
import pathlib
import sys

import pytest

from pairun.contract.linting import ABSENT
from pairun.errors import PairunError
from pairun.volume.bundle import find_bundle, find_own_authorities

ROOT = pathlib.Path(__file__).parents[2]


def test_what_is_left_out_is_known() -> None:
    """What lint warns of is what the program has not."""
    text = (ROOT / "bundle" / "left_out.txt").read_text()
    patterns = [word for line in text.splitlines() for word in line.partition("#")[0].split()]
    public = {n for n in sys.stdlib_module_names if not n.startswith("_")}
    assert {n for n in public if any(fnmatch.fnmatchcase(n, p) for p in patterns)} == ABSENT


def test_the_variable_wins(tmp_path: pathlib.Path) -> None:
    """PAIRUN_BUNDLE names the bundle; empty, it says that there is none."""
    program = tmp_path / "runtime"
    program.write_text("")
    program.chmod(0o755)
    assert find_bundle({"PAIRUN_BUNDLE": str(program)}) == str(program)
    assert find_bundle({"PAIRUN_BUNDLE": ""}) is None


def test_no_program(tmp_path: pathlib.Path) -> None:
    """A variable that names no program is an error, before a container fails by it."""
    plain = tmp_path / "plain"
    plain.write_text("")
    for path in (plain, tmp_path / "absent", tmp_path):
        with pytest.raises(PairunError, match="no such program"):
            find_bundle({"PAIRUN_BUNDLE": str(path)})


def test_authorities(tmp_path: pathlib.Path) -> None:
    """What init trusts is what it was told to trust; a file that is not there does not count."""
    file = tmp_path / "ca.pem"
    file.write_text("x")
    assert find_own_authorities({"SSL_CERT_FILE": str(file)}) == str(file)
    assert find_own_authorities({"SSL_CERT_FILE": str(tmp_path / "no")}) != str(tmp_path / "no")
