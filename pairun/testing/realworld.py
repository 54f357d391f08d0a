"""A world in a temporary folder, with real effects."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, Self

from pairun.host.context import HostContext
from pairun.testing.script import Call, Script
from pairun.testing.world import World


class RealWorld(World):
    """This machine, with a folder for the test and a shared volume in it.

    Give the module paths below the folder. Use it in a ``with`` statement, or call `close`, which
    removes the temporary folder.

    Args:
        folder: an empty folder; a temporary one by default.
        env: variables in addition to ``PATH``, ``HOME`` and ``LANG``; ``{tmp}`` is the folder.
        answers: context method to its answer, which overrides this machine's; see `FakeWorld`.
        deadline_s: seconds until the attempt is stopped; None for no limit.
    """

    ctx: HostContext

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        answers: Mapping[str, Any] | None = None,
        deadline_s: float | None = None,
    ) -> None:
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="pairun-test-")
            folder = self._temporary.name
        self.folder = os.fspath(folder)
        self.pai_dir = os.path.join(self.folder, "pai")
        os.makedirs(self.pai_dir, exist_ok=True)
        self.log: list[str] = []
        self.script = Script(answers or {})
        self.ctx = self.context(env, deadline_s=deadline_s)

    def context(
        self, env: Mapping[str, str] | None = None, *, deadline_s: float | None = None
    ) -> HostContext:
        """Another context of this world, as for a further attempt; arguments as for the class."""
        base = {"PATH": os.environ["PATH"], "HOME": self.folder, "LANG": "C.UTF-8"}
        end = None if deadline_s is None else time.monotonic() + deadline_s
        made = self.script.context_class(HostContext, self._rest)
        env = {**base, **self.fill(env or {})}
        return made(env, self.pai_dir, end, emit_log=self._note)

    def close(self) -> None:
        """Remove the folder if this class made it."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def put(self, path: str, text: str | None) -> None:
        """Make a file, or a directory if the text is None; makes parents."""
        place = Path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir() if text is None else place.write_text(text)

    def text(self, path: str) -> str | None:
        """The text of a file; None if nothing exists."""
        return Path(path).read_text() if os.path.exists(path) else None

    def snapshot(self) -> Mapping[str, Hashable]:
        """Every path below the folder with its inode, time, mode and size."""
        root = Path(self.folder)
        stats = {str(path): path.lstat() for path in (root, *root.rglob("*"))}
        return {p: (s.st_ino, s.st_mtime_ns, s.st_mode, s.st_size) for p, s in stats.items()}

    def _note(self, line: str) -> None:
        self.log.append(line)

    @staticmethod
    def _rest(
        context: HostContext, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        return getattr(HostContext, call.method)(context, *args, **kwargs)
