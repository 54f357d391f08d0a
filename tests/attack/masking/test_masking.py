"""Masking that breaks fails closed: no secret is shown, and the job is as it would be without it."""

from __future__ import annotations

import json
import pathlib
import random
import subprocess
from typing import Any

import pytest

SECRET = "hunter2-is-a-long-secret"
HALVES = ("hunter2-is-a", "long-secret")

NO_VAULT = """
def broken(self, *a, **k): raise MemoryError()
m.Vault.data = m.Vault.text = m.Vault.record = broken
"""
ALWAYS = """
import pairun.secrets.masking as masking
def broken(self, data): raise MemoryError()
masking.MaskedStream.feed = broken
"""
ONCE_BEFORE = """
import pairun.secrets.masking as masking
real, calls = masking.MaskedStream.feed, []
def feed(self, data):
    if b"secret" in data and not calls:
        calls.append(1)
        raise MemoryError()
    return real(self, data)
masking.MaskedStream.feed = feed
"""
ONCE_IN_A_FILE = """
import pairun.runtime.sinks as sinks
real, calls = sinks.Raw.take, []
def take(self, data):
    if b"*" in bytes(data) and not calls:
        calls.append(1)
        raise RuntimeError("no")
    return real(self, data)
sinks.Raw.take = take
"""
HANGS = """
import time, pairun.secrets.masking as masking, pairun.runtime.logs as logs
logs.wait_for.__defaults__ = (None, 1.0)
masking.MaskedStream.feed = lambda self, data: time.sleep(600)
"""
NO_SCANNER = """
import pairun.secrets.scanner as scanner
def broken(*a): raise MemoryError()
scanner.PythonScanner.spans = broken
"""
NO_WORDS = """
import pairun.runtime.logs as logs
def broken(self, text): raise MemoryError()
logs.Logs._complain = broken
"""


def _secrets(volume: Any, *texts: str) -> None:
    content = {"schema": 2, "redact": list(texts), "values": {}}
    (volume.files / "secrets.json").write_text(json.dumps(content))


def _folder(volume: Any) -> pathlib.Path:
    folder: pathlib.Path = volume.root / "logs" / "local"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _everything(volume: Any, running: Any) -> str:
    """What the streams and every file of the log directory hold."""
    files = (path for path in _folder(volume).rglob("*") if path.is_file())
    return "\n".join([*running.lines, *(path.read_text(errors="replace") for path in files)])


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param(NO_VAULT, id="vault"), pytest.param(ALWAYS, id="filter"),
        pytest.param(ONCE_BEFORE, id="once"), pytest.param(ONCE_IN_A_FILE, id="file"),
        pytest.param(ALWAYS + NO_WORDS, id="filter and words", marks=pytest.mark.slow),
        pytest.param(HANGS, id="hangs", marks=pytest.mark.slow),
        pytest.param(NO_SCANNER, id="scanner", marks=pytest.mark.slow),
        pytest.param(NO_VAULT + ALWAYS, id="all", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_broken(volume: Any, start: Any, succeeded: Any, patch: str) -> None:
    """Whatever part of the masking breaks, the exit code and exit handlers stay, secrets do not show."""
    _folder(volume)
    _secrets(volume, SECRET)
    done = volume.root / "handled"
    volume.tasks(tasks=succeeded, handlers={"failed": False}, run={"handlers": f"touch {done}"})
    first, second = HALVES
    # the secret arrives in two pieces
    volume.command(
        f"echo {SECRET}; printf '{first}-'; sleep 0.3; echo {second} >&1; echo {SECRET} >&2; exit 5"
    )
    running = start(TEST_PATCH=patch)
    assert running.end() == 5, running.lines
    assert done.exists()
    text = _everything(volume, running)
    assert "Traceback" not in text
    for part in (SECRET, *HALVES):
        assert part not in text, text


@pytest.mark.parametrize("patch", [ALWAYS, NO_SCANNER, ALWAYS + NO_WORDS])
def test_a_broken_filter_blocks_no_writer(volume: Any, start: Any, patch: str) -> None:
    """A command that prints more than a pipe holds ends although nothing can be masked."""
    _folder(volume)
    _secrets(volume, SECRET)
    volume.command(f"yes {SECRET} | head -c 3000000; exit 5")
    running = start(TEST_PATCH=patch)
    assert running.end() == 5
    assert SECRET not in _everything(volume, running)


def _sets() -> dict[str, list[str]]:
    many = random.Random(1)
    return {
        "many": [f"{many.getrandbits(128):032x}" for _ in range(300)],
        "long": ["x" * 9 + "y" * 300_000],
        "prefixes": ["a" * n for n in range(4, 300)],
        "nested": ["abcd" * n for n in range(1, 100)],
        "escapes": ["\x1b[0m\x1b[31m", "\n\n\n\n", "    ", "\r\n\r\n", "----"],
        "binary": ["\udcff\udcfe\udcfd\udcfc", "ä" * 50, "\0\0\0\0"],
        "mask": ["******", "****", "[pairun]", "pairun"],
        "words": ["exit", "echo", "true", "line", "1234", "0000"],
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", list(_sets()))
def test_pathological_secrets(volume: Any, start: Any, name: str) -> None:
    """Many, long, nested or odd secrets cost neither the exit code nor the end of the job."""
    _folder(volume)
    secrets = _sets()[name]
    _secrets(volume, *secrets)
    printed = volume.root / "printed"
    printed.write_bytes(("\n".join(secrets[:40]) + "\n").encode("utf-8", "surrogateescape"))
    volume.command(f"cat {printed}; seq 1 20000; exit 5")
    running = start()
    assert running.end() == 5
    text = _everything(volume, running)
    assert "Traceback" not in text
    if name in ("many", "long", "nested"):
        assert not [secret for secret in secrets if secret in text]


def test_a_secrets_file_that_is_broken(volume: Any, start: Any) -> None:
    """Where the secrets cannot be read no command starts: nothing could mask its output."""
    for content in (b"", b"{", b"[]", b'{"schema": 2, "redact": [7], "values": {}}', b"\xff" * 9):
        (volume.files / "secrets.json").write_bytes(content)
        volume.command("echo ran")
        running = start()
        assert running.end() == 1
        assert running.got("error[PR702]")
        assert not running.got("ran")


def test_no_memory_to_read_the_secrets(volume: Any, driver: list[str]) -> None:
    """Where memory ends while PID 1 starts, it says so, and starts nothing."""
    _secrets(volume, SECRET)
    volume.command("echo ran")
    patch = "def broken(*a): raise MemoryError()\nm.read_command = broken"
    done = subprocess.run(
        [*driver, str(volume.root)], env={"TEST_PATCH": patch, "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout.startswith(
        "error[PR706]: the runtime phase cannot be started: there is not enough memory"
    )
