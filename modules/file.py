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
    """What stands at the path; the content only where it is small or may be the one asked for."""

    stat: FileStat | None
    content: bytes | None


@define
class File(StateModule):
    """Make sure that a file has a content and a mode, or that a path does not exist.

    Directories above it are made. A symbolic link at the path is replaced, never followed.
    """

    privileges = "may write to the directory"
    example = "file: {path: /etc/motd, content: 'Hello', mode: '0644'}"

    path: str = arg("Where the file stands; an absolute path.")
    content: str | Secret | None = arg("The whole content of the file.", default=None)
    mode: Mode = arg("The permissions of the file.", default=Mode(0o644))
    absent: bool = arg("Remove the path and all below it.", default=False)

    def require(self) -> Iterator[str]:
        """A content or absence, at a path that means the same everywhere."""
        if self.absent == (self.content is not None):
            yield "give 'content', or 'absent: true'"
        if not os.path.isabs(self.path) or "\0" in self.path:
            yield f"'path' must be absolute, not {self.path!r}"
        elif os.path.normpath(self.path) in ("/", "//"):
            yield "'path' must not be the root directory"

    def probe(self, ctx: Context) -> _State:
        """What stands there."""
        found = ctx.stat(self.path)
        if self.absent or found is None or found.kind != "file":
            return _State(found, None)
        limit = max(_SHOWN_BYTES, len(self._wanted()))
        return _State(found, ctx.read_file(self.path, limit) if found.size <= limit else None)

    def plan(self, state: _State) -> Verdict:
        """Compare existence, content and mode."""
        found, wanted = state.stat, self._wanted()
        if self.absent:
            if found is None:
                return no_change("it does not exist")
            return will_change(f"remove the {_word(found)}", _word(found), "nothing")
        if found is None:
            return will_change("write the file", "nothing", f"{len(wanted)} bytes")
        if found.kind != "file":
            return will_change(f"replace the {_word(found)}", _word(found), f"{len(wanted)} bytes")
        if state.content != wanted:
            return will_change("write the file", *self._shown(found, state.content, wanted))
        if found.mode != self.mode:
            return will_change("set the mode", f"{found.mode:04o}", f"{self.mode:04o}")
        return no_change("content and mode are as asked")

    def apply(self, ctx: Context) -> Result | None:
        """Write or remove it."""
        if self.absent:
            ctx.remove(self.path)
            return None
        found = ctx.stat(self.path)
        if found is not None and found.kind == "directory":
            raise Permanent(
                f"{self.path} is a directory; a file does not replace it",
                fault="user",
                hint="remove it in a task before, with 'absent: true'",
            )
        ctx.make_dir(os.path.dirname(self.path))
        ctx.write_file(self.path, self._wanted(), self.mode)
        return None

    def _wanted(self) -> bytes:
        return reveal(self.content or "").encode("utf-8", "surrogateescape")

    def _shown(self, found: FileStat, content: bytes | None, wanted: bytes) -> tuple[str, str]:
        """The first line that differs, or the sizes where a line must or could not be shown."""
        if content is None or isinstance(self.content, Secret):
            return f"{found.size} bytes", f"{len(wanted)} bytes"
        lines = zip_longest(content.splitlines(keepends=True), wanted.splitlines(keepends=True))
        for number, (old, new) in enumerate(lines, 1):
            if old != new:
                return _line(number, old), _line(number, new)
        return f"{found.size} bytes", f"{len(wanted)} bytes"


def _word(found: FileStat) -> str:
    return {"link": "symbolic link", "other": "special file"}.get(found.kind, found.kind)


def _line(number: int, line: bytes | None) -> str:
    if line is None:
        return f"no line {number}"
    text = line.decode("utf-8", "replace")
    return f"line {number}: {text[:80] + '…' if len(text) > 80 else text!r}"
