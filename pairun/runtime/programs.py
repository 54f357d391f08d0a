"""Finds the program of the user's command, and explains why it cannot be started."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence

from pairun.errors import Problem

NOT_EXECUTABLE = 126
NOT_FOUND = 127
"""The exit codes of a command that cannot be started, as in POSIX shells (2.8.2)."""


class Unstartable(Exception):
    """A command that cannot be started.

    Args:
        code: the exit code: `NOT_EXECUTABLE` or `NOT_FOUND`.
        problem: why, for people.
    """

    def __init__(self, code: int, problem: Problem) -> None:
        super().__init__(problem.message)
        self.code = code
        self.problem = problem


def find_shell(env: Mapping[str, str], shells: Sequence[str]) -> str:
    """Find the first of these shells that the image contains.

    Raises:
        Unstartable: the image contains none of them.
    """
    path = env.get("PATH", os.defpath)
    for shell in shells:
        if shell_path := next(filter(_is_executable, _candidates(shell, path)), None):
            return shell_path
    raise Unstartable(
        NOT_FOUND,
        Problem(
            "PR704",
            f"there is no {' and no '.join(shells)} in PATH ({path}), "
            f"and the user's command is a shell script",
            hint="use an image with a shell, set PATH, or give the command as argv",
        ),
    )


def find_program(env: Mapping[str, str], name: str) -> str:
    """Find a program as execvp(3) does.

    Raises:
        Unstartable: there is no executable one.
    """
    search = env.get("PATH", os.defpath)
    existing = [p for p in _candidates(name, search) if os.path.lexists(p)]
    if executable := next(filter(_is_executable, existing), None):
        return executable
    if existing:
        raise not_startable(existing[0], _why_not_executable(existing[0]))
    where = "" if "/" in name else f" in PATH ({search})"
    raise Unstartable(
        NOT_FOUND, Problem("PR704", f"the command's program {name} does not exist{where}")
    )


def not_startable(path: str, why: str) -> Unstartable:
    """The error for a program that exists but cannot be started."""
    return Unstartable(
        NOT_EXECUTABLE, Problem("PR704", f"the command cannot be started: {path}: {why}")
    )


def too_low_limit(what: str, error: OSError | MemoryError) -> Problem:
    """The problem for a process of pairun that a limit of the container prevents.

    Args:
        what: the action that failed, for people.
        error: the reason.
    """
    why = error.strerror if isinstance(error, OSError) else "there is not enough memory"
    hint = "raise the container's limits of processes, file descriptors and memory"
    return Problem("PR706", f"{what}: {why or error}", hint=hint)


def why_not_started(error: OSError) -> str:
    """Why an existing program was not started, for people (execve(2), ERRORS)."""
    if error.errno == errno.ENOENT:
        return "the interpreter of its first line, or its loader, does not exist"
    if error.errno == errno.ENOEXEC:
        return "it is built for another machine, or is a script without an interpreter line (#!)"
    return error.strerror or str(error)


def _candidates(name: str, search: str) -> list[str]:
    if "/" in name:
        return [name]
    # An empty entry means the working directory (POSIX, 8.3).
    return [os.path.join(folder or ".", name) for folder in search.split(os.pathsep)]


def _is_executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _why_not_executable(path: str) -> str:
    if os.path.isdir(path):
        return "it is a directory"
    if not os.path.exists(path):
        return "it is a broken link"
    if not os.path.isfile(path):
        return "it is not a regular file"
    return "it is not executable"
