"""Finds the program that the user's command names, and says why there is none."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence

from pairun.errors import Problem

NOT_EXECUTABLE = 126
NOT_FOUND = 127
"""The exit codes of a command that cannot be started; those of every POSIX shell (2.8.2)."""


class Unstartable(Exception):
    """A command that cannot be started.

    Args:
        code: the exit code that says so.
        problem: why, for people.
    """

    def __init__(self, code: int, problem: Problem) -> None:
        super().__init__(problem.message)
        self.code = code
        self.problem = problem


def find_shell(env: Mapping[str, str], shells: Sequence[str]) -> str:
    """The first of some shells that is there.

    Raises:
        Unstartable: none is.
    """
    path = env.get("PATH", os.defpath)
    for shell in shells:
        if found := next(filter(_may_run, _candidates(shell, path)), None):
            return found
    raise Unstartable(
        NOT_FOUND,
        Problem(
            "PR704",
            f"there is no {' and no '.join(shells)} in PATH ({path}), "
            f"and the user's command is a shell script",
            hint="use an image that has one, set PATH to where it is, or give the command as argv",
        ),
    )


def find_program(env: Mapping[str, str], name: str) -> str:
    """The path of a program, as execvp(3) finds it.

    Raises:
        Unstartable: there is none that can be executed.
    """
    search = env.get("PATH", os.defpath)
    found = [p for p in _candidates(name, search) if os.path.lexists(p)]
    if usable := next(filter(_may_run, found), None):
        return usable
    if found:
        raise not_startable(found[0], _why(found[0]))
    where = "" if "/" in name else f" in PATH ({search})"
    raise Unstartable(
        NOT_FOUND, Problem("PR704", f"the command's program {name} is not there{where}")
    )


def not_startable(path: str, why: str) -> Unstartable:
    """What is said of a program that is there and cannot be started."""
    return Unstartable(
        NOT_EXECUTABLE, Problem("PR704", f"the command cannot be started: {path}: {why}")
    )


def why_not(error: OSError) -> str:
    """Why a program that is there was not started, in words."""
    if error.errno == errno.ENOENT:
        return "what it needs to be read is not there: the program of its first line, or its loader"
    if error.errno == errno.ENOEXEC:
        return (
            "it is a program of another machine, or a script without a first line that says of what"
        )
    return error.strerror or str(error)


def _candidates(name: str, search: str) -> list[str]:
    if "/" in name:
        return [name]
    # An empty entry is the working directory (POSIX, 8.3).
    return [os.path.join(folder or ".", name) for folder in search.split(os.pathsep)]


def _may_run(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _why(path: str) -> str:
    if os.path.isdir(path):
        return "it is a directory"
    if not os.path.exists(path):
        return "it is a link to nothing"
    if not os.path.isfile(path):
        return "it is no regular file"
    return "it may not be executed"
