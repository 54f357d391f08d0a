"""Runs one case in a forked process with limits of CPU time and memory, and judges it."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

CPU_S = 5
MEMORY_BYTES = 300 * 1024 * 1024
"""Of address space: a process that has less uses less memory than that."""

WALL_S = 120.0
"""A case that waits for something longer is stopped; a busy machine makes none so slow."""

_UNFORESEEN = (b"Traceback (most recent call last)", b"pairun itself failed")
_CRASHED = 99


class Verdict(NamedTuple):
    """What became of a case.

    Attributes:
        broken: the promise that it broke, or empty.
        output: what was printed.
    """

    broken: str
    output: str


def judge(run: Callable[[Path], int], codes: Collection[int], cpu_s: int = CPU_S) -> Verdict:
    """Run a case; this process must have one thread, and little memory.

    Args:
        run: gets an empty folder, which is also the working directory, and returns an exit code.
        codes: the documented exit codes.
        cpu_s: how much CPU time it may take.
    """
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        work = Path(folder, "work")
        work.mkdir()
        printed = Path(folder, "printed")
        pid = os.fork()
        if pid == 0:
            _be_the_case(run, work, printed, cpu_s)
        status = _ended(pid)
        output = _beginning(printed)
    return Verdict(_broken(status, output, codes, cpu_s), output.decode("utf-8", "replace"))


def _beginning(printed: Path) -> bytes:
    """The first MiB of what a case printed; some print gigabytes."""
    if not printed.exists():
        return b""
    with printed.open("rb") as file:
        return file.read(1 << 20)


def _broken(status: int | None, output: bytes, codes: Collection[int], cpu_s: int) -> str:
    if status is None:
        return f"it waits for more than {WALL_S:g} s"
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number in (signal.SIGXCPU, signal.SIGKILL):
            return f"it takes more than {cpu_s} s of CPU time"
        return f"it died of {signal.Signals(number).name}"
    code = os.WEXITSTATUS(status)
    # A log may quote the word itself.
    if re.search(rb"^(pairun itself failed.*)?MemoryError", output, re.MULTILINE):
        return f"it takes more than {MEMORY_BYTES >> 20} MB"
    if code == _CRASHED or any(word in output for word in _UNFORESEEN):
        return "it failed with a traceback"
    return "" if code in codes else f"its exit code {code} is not documented"


def _be_the_case(run: Callable[[Path], int], work: Path, printed: Path, cpu_s: int) -> None:
    code = _CRASHED
    try:
        output = os.open(printed, os.O_WRONLY | os.O_CREAT, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(work)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            code = run(work)
        except SystemExit as e:
            code = e.code if isinstance(e.code, int) else 1
        except BaseException:  # noqa: BLE001 - the finding, whatever it is
            traceback.print_exc()
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
    finally:
        os._exit(code)


def _ended(pid: int) -> int | None:
    """The status of a process once it has ended; None where it had to be stopped."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        in_time = bool(poll.poll(WALL_S * 1000))
        if not in_time:
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
    finally:
        os.close(descriptor)
    return status if in_time else None
