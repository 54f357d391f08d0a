"""The peers that pairun is compared with, in a virtual environment of their own."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys

from benchmarks.measure import ROOT, NotMeasured

LOCK = ROOT / "requirements-bench.lock"
FOLDER = ROOT / "build" / "bench-peers"
_STAMP = FOLDER / "made-from"
_ASK = """
from importlib.metadata import version
print(version("ansible-core"), version("pyinfra"))
"""


def program(name: str) -> str:
    """The path of a program of the environment."""
    return str(FOLDER / "venv" / "bin" / name)


def prepare() -> tuple[str, str]:
    """Make the environment unless it is there; made again when the lock or the Python changes.

    Returns:
        The versions of ansible-core and pyinfra.

    Raises:
        NotMeasured: the peers cannot be installed.
    """
    wanted = f"{hashlib.sha256(LOCK.read_bytes()).hexdigest()} {sys.version}"
    if not _STAMP.exists() or _STAMP.read_text() != wanted:
        _make()
        _STAMP.write_text(wanted)
    ansible, pyinfra = _run(program("python"), "-c", _ASK).split()
    return ansible, pyinfra


def _make() -> None:
    print(f"installing the peers into {FOLDER.relative_to(ROOT)}", file=sys.stderr, flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    _run(sys.executable, "-m", "venv", str(FOLDER / "venv"))
    # A mirror's warnings are no news: what counts is the hashes.
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1"]
    hashed = ["--require-hashes", "--only-binary", ":all:", "-r", str(LOCK)]
    _run(program("python"), "-m", "pip", "install", *quiet, *hashed)


def _run(*argv: str) -> str:
    # Only what is locked: no other index's packages, no other environment's.
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    try:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    except OSError as e:
        raise NotMeasured(f"the peers cannot be started: {e}") from e
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise NotMeasured(f"the peers cannot be installed: {last}")
    return done.stdout
