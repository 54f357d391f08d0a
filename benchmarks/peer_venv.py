"""The peers that pairun is compared with, in a virtual environment of their own."""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

from benchmarks.measure import ROOT, NotMeasured

LOCK = ROOT / "requirements-bench.lock"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "pairun"
"""Where the environment is kept between runs and checkouts."""

_ASK = """
from importlib.metadata import version
print(version("ansible-core"), version("pyinfra"))
"""


def program(name: str) -> str:
    """The path of a program of the environment."""
    return str(_folder() / "bin" / name)


@functools.cache
def _folder() -> pathlib.Path:
    """The environment's folder: another one for each lock and each Python."""
    made_from = f"{sys.version} {sys.base_prefix}".encode() + LOCK.read_bytes()
    return CACHE / f"bench-peers-{hashlib.sha256(made_from).hexdigest()[:16]}"


def prepare() -> tuple[str, str]:
    """Make the environment unless it is there.

    Returns:
        The versions of ansible-core and pyinfra.

    Raises:
        NotMeasured: the peers cannot be installed.
    """
    if not _complete().exists():
        _make()
        _complete().touch()
    ansible, pyinfra = _run(program("python"), "-c", _ASK).split()
    return ansible, pyinfra


def _complete() -> pathlib.Path:
    """A file that says that everything is installed."""
    return _folder() / "complete"


def _make() -> None:
    print(f"installing the peers into {_folder()}", file=sys.stderr, flush=True)
    shutil.rmtree(_folder(), ignore_errors=True)
    _run(sys.executable, "-m", "venv", str(_folder()))
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
