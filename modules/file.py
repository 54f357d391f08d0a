"""Write or remove a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from pairun.module import (
    Context,
    FileStat,
    Mode,
    Permanent,
    Result,
    Secret,
    StateModule,
    Verdict,
    arg,
    define,
    no_change,
    reveal,
    will_change,
)

_SHOWN_BYTES = 1024 * 1024


class _State(NamedTuple):
    """The state of the path; with its content only if it is small or may be the right one."""

    stat: FileStat | None
    content: bytes | None


@define
class File(StateModule):
    """Make sure that a file has a content and a mode, or that a path does not exist.

    It creates missing parent directories. It replaces a symbolic link at the path and never
    follows it.
    """

    privileges = "may write to the directory"
    example = "file: {path: /etc/motd, content: 'Hello', mode: '0644'}"

    path: str = arg("The absolute path of the file.")
    content: str | Secret | None = arg("The whole content of the file.", default=None)
    mode: Mode = arg("The permissions of the file.", default=Mode(0o644))
    absent: bool = arg("Remove the path and all below it.", default=False)

    def require(self) -> Iterator[str]:
        """There is a content or absence, and the path is absolute and unambiguous."""
        if self.absent == (self.content is not None):
            yield "give 'content', or 'absent: true'"
        if not os.path.isabs(self.path) or "\0" in self.path:
            yield f"'path' must be absolute, not {self.path!r}"
        elif os.path.normpath(self.path) in ("/", "//"):
            yield "'path' must not be the root directory"

    def writes(self) -> list[str]:
        """The file, unless it is removed."""
        return [] if self.absent else [self.path]

    def probe(self, ctx: Context) -> _State:
        """Read the path."""
        stat = ctx.stat(self.path)
        if self.absent or stat is None or stat.kind != "file":
            return _State(stat, None)
        limit = max(_SHOWN_BYTES, len(self._data()))
        return _State(stat, ctx.read_file(self.path, limit) if stat.size <= limit else None)

    def plan(self, state: _State) -> Verdict:
        """Compare existence, content and mode."""
        stat, data = state.stat, self._data()
        if self.absent:
            if stat is None:
                return no_change("it does not exist")
            return will_change(f"remove the {_word(stat)}", _word(stat), "nothing")
        if stat is None:
            return will_change("write the file", "nothing", f"{len(data)} bytes")
        if stat.kind != "file":
            return will_change(f"replace the {_word(stat)}", _word(stat), f"{len(data)} bytes")
        if state.content != data:
            return will_change("write the file", *self._shown(stat, state.content, data))
        if stat.mode != self.mode:
            return will_change("set the mode", f"{stat.mode:04o}", f"{self.mode:04o}")
        return no_change("content and mode match")

    def apply(self, ctx: Context) -> Result | None:
        """Write or remove it."""
        if self.absent:
            ctx.remove(self.path)
            return None
        stat = ctx.stat(self.path)
        if stat is not None and stat.kind == "directory":
            message = f"{self.path} is a directory; a file does not replace it"
            hint = "remove it in a task before, with 'absent: true'"
            raise Permanent(message, fault="user", hint=hint)
        ctx.make_dir(os.path.dirname(self.path))
        ctx.write_file(self.path, self._data(), self.mode)
        return None

    def _data(self) -> bytes:
        return reveal(self.content or "").encode("utf-8", "surrogateescape")

    def _shown(self, stat: FileStat, content: bytes | None, data: bytes) -> tuple[str, str]:
        """The first line that differs; the sizes if no line may be shown."""
        if content is None or isinstance(self.content, Secret):
            return f"{stat.size} bytes", f"{len(data)} bytes"
        lines = zip_longest(content.splitlines(keepends=True), data.splitlines(keepends=True))
        for number, (old, new) in enumerate(lines, 1):
            if old != new:
                return _line(number, old), _line(number, new)
        return f"{stat.size} bytes", f"{len(data)} bytes"


def _word(stat: FileStat) -> str:
    return {"link": "symbolic link", "other": "special file"}.get(stat.kind, stat.kind)


def _line(number: int, line: bytes | None) -> str:
    if line is None:
        return f"no line {number}"
    text = line.decode("utf-8", "replace")
    return f"line {number}: {text[:80] + '…' if len(text) > 80 else text!r}"
