"""Sees what every process under another one shows to the machine, and which files are open to others."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import NamedTuple, Self


class Sight(NamedTuple):
    """A place that held a secret.

    Attributes:
        kind: ``argv``, ``environ`` or ``file``.
        where: the command line, or the path.
    """

    kind: str
    where: str


class Watch:
    """Looks at processes and files again and again until it is left.

    Args:
        mark: the text to look for.
        root: the processes with this text in their environment are looked at.
        folders: where files are looked at.
    """

    def __init__(self, mark: str, root: str, folders: list[Path]) -> None:
        self._mark, self._root, self._folders = mark.encode(), root.encode(), folders
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.programs: set[str] = set()
        self.sights: set[Sight] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            for process in Path("/proc").glob("[0-9]*"):
                self._look_at_process(process)
            for folder in self._folders:
                # Folders may go while they are read: os.walk passes over them.
                for parent, _, names in os.walk(folder):
                    for name in names:
                        self._look_at_file(Path(parent, name))

    def _look_at_process(self, process: Path) -> None:
        try:
            environ = (process / "environ").read_bytes()
            if self._root not in environ:
                return
            argv = (process / "cmdline").read_bytes()
        except OSError:
            return
        if not argv:
            return  # it is ending, or about to become another program
        words = argv.replace(b"\0", b" ").decode(errors="replace").strip()
        self.programs.add(words.split(" ")[0])
        if self._mark in argv:
            self.sights.add(Sight("argv", words))
        if self._mark in environ:
            self.sights.add(Sight("environ", words))

    def _look_at_file(self, path: Path) -> None:
        """A file that others may read, whoever its folders keep out."""
        try:
            found = path.lstat()
            if (
                stat.S_ISREG(found.st_mode)
                and found.st_mode & 0o077
                and self._mark in path.read_bytes()
            ):
                self.sights.add(Sight("file", str(path)))
        except OSError:
            return
