"""A container and a job with as many variables as the kernel lets a program start with."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest

MANY = 100_000


def _run(driver: list[str], volume: Any, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["prlimit", "--stack=67108864:67108864", *driver, str(volume.root)], env={**os.environ, **env},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_of_the_container(volume: Any, driver: list[str]) -> None:
    """The command gets every one, and its exit code stays."""
    volume.args(shell="sh")  # bash takes half a minute to read them
    volume.command("echo counted $(env | grep -c ^MANY_); exit 5")
    done = _run(driver, volume, {f"MANY_{n}": "x" for n in range(MANY)})
    assert done.returncode == 5, done.stdout[-2000:]
    assert f"counted {MANY}" in done.stdout


def test_of_the_job(volume: Any, driver: list[str]) -> None:
    """The same for those that init wrote."""
    volume.env(**{f"MANY_{n}": "it's" for n in range(MANY)})
    volume.args(shell="sh")  # bash takes half a minute to read them
    volume.command("echo counted $(env | grep -c ^MANY_); exit 5")
    done = _run(driver, volume, {})
    assert done.returncode == 5, done.stdout[-2000:]
    assert f"counted {MANY}" in done.stdout


@pytest.mark.parametrize("length", [140_000, 3_000_000])
def test_more_than_a_program_may_have(volume: Any, driver: list[str], length: int) -> None:
    """Nothing starts, and the error names the reason (execve(2), E2BIG)."""
    volume.env(LONG="x" * length)
    volume.command("exit 5")
    done = _run(driver, volume, {})
    assert done.returncode != 5
    assert "error[PR70" in done.stdout
    assert "Traceback" not in done.stdout
