"""What becomes of logs before a person gets them: each returns a function of the logs' folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping

Collect = Callable[[str], None]


def in_turn(*steps: Collect) -> Collect:
    """Do several, one after the other."""

    def collect(logs: str) -> None:
        for step in steps:
            step(logs)

    return collect


def without(*names: str) -> Collect:
    """Lose files or folders."""

    def collect(logs: str) -> None:
        for name in names:
            path = os.path.join(logs, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)

    return collect


def renamed(names: Mapping[str, str]) -> Collect:
    """Give files other names, also in other folders."""

    def collect(logs: str) -> None:
        for name, new in names.items():
            os.makedirs(os.path.dirname(os.path.join(logs, new)), exist_ok=True)
            os.rename(os.path.join(logs, name), os.path.join(logs, new))

    return collect


def cut(name: str, *, head: int = 0, tail: int = 0) -> Collect:
    """Lose the first and the last lines of a file."""

    def collect(logs: str) -> None:
        path = os.path.join(logs, name)
        with open(path, "rb") as f:
            lines = f.readlines()
        with open(path, "wb") as f:
            f.writelines(lines[head : len(lines) - tail])

    return collect


def last_lines(n: int) -> Collect:
    """Keep the last lines of each file, as ``kubectl logs --tail`` does."""

    def collect(logs: str) -> None:
        for name in os.listdir(logs):
            with open(os.path.join(logs, name), "rb") as f:
                lines = f.readlines()
            with open(os.path.join(logs, name), "wb") as f:
                f.writelines(lines[-n:])

    return collect


def under_headers(name: str, header: str = "==> {} <==\n") -> Collect:
    """Put all files into one, each under a header with its name, by default that of ``tail``."""

    def collect(logs: str) -> None:
        text = b""
        for log in sorted(os.listdir(logs)):
            with open(os.path.join(logs, log), "rb") as f:
                text += header.format(log).encode() + f.read() + b"\n"
            os.remove(os.path.join(logs, log))
        with open(os.path.join(logs, name), "wb") as f:
            f.write(text)

    return collect
