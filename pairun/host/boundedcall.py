"""Runs a call in a child process, which is killed after a time limit.

A system call that waits for a dead file server cannot be interrupted in another way.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Any

from pairun.base.signals import fork_program
from pairun.module import TimedOut, Transient, format_duration

_DEAD_WAIT_S = 1.0
"""How long to wait for a killed child; the kernel may hold it while a file server is dead."""


def in_child(act: Callable[[], Any], what: str, limit_s: float) -> Any:
    """Call a function in a child process; returns its result, which is plain data.

    Args:
        act: the function.
        what: the action, for messages.
        limit_s: seconds until the child is killed.

    Raises:
        OSError: as the function raised it.
        TimedOut: the child was killed after ``limit_s``.
        Transient: the child was killed by something else.
    """
    end = time.monotonic() + limit_s
    read, write = os.pipe()
    pid = fork_program()
    if pid == 0:
        _child(act, write)
    os.close(write)
    try:
        answer = _read(read, end)
        if answer is None:
            os.kill(pid, signal.SIGKILL)
    finally:
        os.close(read)
        _reap(pid)
    if answer is None:
        raise TimedOut(f"{what}: no answer within {format_duration(limit_s)}")
    if not answer:
        raise Transient(f"{what}: the process that waited for it was killed")
    report = json.loads(answer)
    if "errno" in report:
        raise OSError(report["errno"], os.strerror(report["errno"]), report["filename"])
    return report["value"]


def _child(act: Callable[[], Any], write: int) -> None:
    """Run the function in the child; never returns."""
    code = 1
    try:
        try:
            report = {"value": act()}
        except OSError as e:
            report = {"errno": e.errno or errno.EIO, "filename": e.filename}
        os.write(write, json.dumps(report).encode())
        code = 0
    finally:
        os._exit(code)


def _read(fd: int, end: float) -> bytes | None:
    """Everything that the child writes; None if it exceeds the time limit."""
    answer = b""
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            return None
        piece = os.read(fd, 65536)
        if not piece:
            return answer
        answer += piece


def _reap(pid: int) -> None:
    """Wait for the child, for a limited time: the kernel may hold a killed child."""
    end = time.monotonic() + _DEAD_WAIT_S
    while os.waitpid(pid, os.WNOHANG)[0] == 0 and time.monotonic() < end:
        time.sleep(0.002)
