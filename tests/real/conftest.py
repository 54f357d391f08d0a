"""Real servers: the laboratory beside the checkout starts them, once per test run.

A machine without it skips these tests; with CI set a skip is a failure (tests/conftest.py).
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("PAIRUN_SHARED") or Path(__file__).parents[3] / "shared")
LAB = SHARED / "lab" / "lab"

Lab = Callable[..., str]


@pytest.fixture(scope="session")
def lab() -> Lab:
    """Run a command of the laboratory and return what it prints."""
    if not LAB.exists():
        pytest.skip(f"needs the laboratory of real servers at {LAB.parent}")
    if os.geteuid() != 0:
        pytest.skip("the laboratory of real servers needs root")

    def run(*argv: str) -> str:
        done = subprocess.run([str(LAB), *argv], capture_output=True, text=True, check=False)
        if done.returncode and "lab install" in done.stderr:
            pytest.skip(f"lab {shlex.join(argv)}: {done.stderr.strip()}")
        assert done.returncode == 0, f"lab {shlex.join(argv)}: {done.stderr}"
        return done.stdout

    return run


def _served(lab: Lab, up: tuple[str, ...], down: tuple[str, ...]) -> Iterator[Mapping[str, str]]:
    """What servers offer, as variables; they go down with the test run."""
    exported = lab(*up)
    lines = re.findall(r"^export ([A-Z0-9_]+)=(.*)$", exported, re.MULTILINE)
    yield {name: "".join(shlex.split(value)) for name, value in lines}
    lab(*down)


@pytest.fixture(scope="session")
def git_server(lab: Lab) -> Iterator[Mapping[str, str]]:
    """Git over HTTP: LAB_GIT_URL, LAB_GIT_AUTH_URL, LAB_GIT_LIMITED_URL, LAB_GIT_REPOS and so on."""
    yield from _served(lab, ("git", "up"), ("git", "down"))


@pytest.fixture(scope="session")
def registries(lab: Lab) -> Iterator[Mapping[str, str]]:
    """Registries: LAB_REGISTRY, LAB_REGISTRY_BASIC, _TLS, _TLS_CA, _TOKEN, _LIMITED, LAB_USER and so on."""
    yield from _served(lab, ("registry", "up", "all"), ("registry", "down"))
