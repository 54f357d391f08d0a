"""Runs commands on this machine: an argv list, a time limit, and the exact exit status.

A command runs in the process group of its attempt, so the executor's signal reaches it and all
processes that it started.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

from pairun.module import Completed, Failure, Permanent, Secret, TimedOut, Transient

MAX_CAPTURE = 64 * 1024 * 1024
_POLL_S = 0.05
_ASK_S = 0.5
_DRAIN_S = 0.5
_END_S = 0.5
"""Seconds between TERM and KILL of a command."""


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    remaining: Callable[[], float | None],
    stdin: bytes | None = None,
    cwd: str | None = None,
    capture: bool = False,
    watch: Callable[[bytes], None] | None = None,
    pass_fds: Sequence[int] = (),
    until: Callable[[], bool] | None = None,
) -> Completed:
    """Run a command and wait for its end.

    Args:
        argv: program and arguments; the program is looked up in ``PATH`` of ``env``.
        env: the whole environment.
        stdin: its input; ``/dev/null`` by default.
        capture: capture its output; by default it inherits ours.
        watch: called with each piece of captured standard error as it arrives.
        until: called twice a second; when it returns true, the command is stopped.

    Raises:
        Permanent: it cannot be executed, or prints more than `MAX_CAPTURE` bytes while captured.
        TimedOut: the time limit is exceeded, and the command is stopped.
    """
    if isinstance(argv, str) or any(isinstance(word, Secret) for word in argv):
        raise TypeError(
            "a command is a list of plain texts; every user of the machine could read a secret"
        )
    with contextlib.ExitStack() as stack:
        source: IO[bytes] | int = subprocess.DEVNULL
        if stdin is not None:
            # A file in memory: no thread must feed it, and it needs no disk.
            source = stack.enter_context(open(os.memfd_create("pairun-stdin"), "w+b"))
            source.write(stdin)
            source.seek(0)
        output = subprocess.PIPE if capture else None
        process = _start(
            argv, env, cwd=cwd, stdin=source, stdout=output, stderr=output, pass_fds=tuple(pass_fds)
        )
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                stack.enter_context(pipe)
        try:
            captured = _wait(process, remaining, argv[0], watch, until)
        except BaseException:
            _end(process)
            raise
    return Completed(process.returncode, *captured)


def _wait(
    process: subprocess.Popen[bytes],
    remaining: Callable[[], float | None],
    name: str,
    watch: Callable[[bytes], None] | None,
    until: Callable[[], bool] | None,
) -> tuple[bytes, bytes]:
    """Wait for a command to exit; returns its captured standard output and error.

    Does not wait for its background processes, which may hold its output open for hours.
    """
    captured: dict[object, bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
    watchers = {process.stderr: watch} if watch is not None else {}
    with selectors.DefaultSelector() as selector, _end_as_fd(process) as end_fd:
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                selector.register(pipe, selectors.EVENT_READ)
        if end_fd is not None:
            selector.register(end_fd, selectors.EVENT_READ)
        while process.poll() is None:
            left = remaining()
            if left is not None and left <= 0:
                raise TimedOut(f"{name} exceeded its time limit")
            if until is not None and until():
                _end(process)
                break
            ticks = (left, _POLL_S if end_fd is None else None, _ASK_S if until else None)
            limit = min((t for t in ticks if t is not None), default=None)
            _collect(selector, captured, limit, watchers)
        if end_fd is not None:
            selector.unregister(end_fd)
        stop = time.monotonic() + _DRAIN_S
        while (
            selector.get_map()
            and time.monotonic() < stop
            and _collect(selector, captured, 0, watchers)
        ):
            pass
    if any(len(data) > MAX_CAPTURE for data in captured.values()):
        raise _too_much(name)
    return bytes(captured[process.stdout]), bytes(captured.get(process.stderr, b""))


@contextlib.contextmanager
def _end_as_fd(process: subprocess.Popen[bytes]) -> Iterator[int | None]:
    """A descriptor that becomes readable when the process ends; None on an old kernel."""
    try:
        fd = os.pidfd_open(process.pid)
    except OSError:
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)


def _collect(
    selector: selectors.BaseSelector,
    captured: dict[object, bytearray],
    timeout: float | None,
    watchers: Mapping[Any, Callable[[bytes], None]],
) -> bool:
    """Read what is available; returns whether there was any."""
    any_read = False
    for key, _ in selector.select(timeout):
        if key.fileobj not in captured:
            continue
        data = os.read(key.fd, 65536)
        any_read = True
        captured[key.fileobj] += data
        if data and key.fileobj in watchers:
            watchers[key.fileobj](data)
        if not data:
            selector.unregister(key.fileobj)
        if len(captured[key.fileobj]) > MAX_CAPTURE:
            raise _too_much("the command")
    return any_read


def _too_much(name: str) -> Failure:
    message = f"{name} printed more than {MAX_CAPTURE >> 20} MiB, which is too much for a value"
    return Permanent(message, fault="user", hint="write it to a file")


class Conversation:
    """A command that runs in parallel to the module; see `pairun.module.Talk`.

    Args:
        argv: program and arguments; the program is looked up in ``PATH`` of ``env``.
        env: the whole environment.

    Raises:
        Permanent: it cannot be executed.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        pipe = subprocess.PIPE
        self._process = _start(argv, env, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        for end in (self._input, self._output):
            os.set_blocking(end.fileno(), False)

    def take(self) -> bytes:
        """Its output since the last call; does not wait."""
        output = b""
        with contextlib.suppress(BlockingIOError, ValueError):
            while data := os.read(self._output.fileno(), 65536):
                output += data
        return output

    def say(self, data: bytes) -> None:
        """Write to its input; data that do not fit into the pipe are lost."""
        with contextlib.suppress(OSError, ValueError):
            os.write(self._input.fileno(), data)

    def code(self) -> int | None:
        """Its exit status, or None while it runs."""
        return self._process.poll()

    def end(self) -> None:
        """Stop it if it runs."""
        if self._process.poll() is None:
            _end(self._process)
        self._input.close()
        self._output.close()


def _start(
    argv: Sequence[str], env: Mapping[str, str], cwd: str | None = None, **how: Any
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(list(argv), env=dict(env), cwd=cwd, bufsize=0, **how)
    except (OSError, ValueError) as e:
        raise _not_started(e, argv[0], cwd) from e


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop the command; its child processes are stopped with the attempt's group."""
    for send in (process.terminate, process.kill):
        send()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)
            return


def _not_started(error: OSError | ValueError, name: str, cwd: str | None) -> Failure:
    """The failure for a command that cannot be started."""
    code = error.errno if isinstance(error, OSError) else None
    if code in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
        return Transient(f"cannot start {name}: {os.strerror(code)}")
    if cwd is not None and not os.path.isdir(cwd):
        return Permanent(f"cannot run {name} in {cwd}: there is no such directory", fault="user")
    known = {
        errno.ENOENT: (
            f"the program {name} does not exist here",
            "install it in the image, or correct its name",
        ),
        errno.EACCES: (f"the program {name} is not executable", "make it executable (chmod +x)"),
        errno.ENOEXEC: (
            f"this machine cannot execute {name}",
            "add a `#!` line to a script, or use a program for this architecture",
        ),
        errno.E2BIG: (
            f"the arguments and the environment of {name} are too long",
            "pass long texts in a file",
        ),
    }
    if code == errno.ENOENT and os.path.sep in name and os.path.exists(name):
        return Permanent(
            f"the program {name} exists, but its interpreter does not",
            fault="user",
            hint="check the first line of the script, or the C library of the program",
        )
    message, hint = known.get(code or 0, (f"cannot execute {name}: {error}", None))
    return Permanent(message, fault="user", hint=hint)
