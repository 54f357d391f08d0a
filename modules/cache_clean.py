"""Empty folders of caches on the node."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from pairun.module import (
    Context,
    Permanent,
    Result,
    StateModule,
    Verdict,
    arg,
    define,
    format_size,
    no_change,
    will_change,
)


@define
class CacheClean(StateModule):
    """Empty the folders of a directory of the node whose names match a pattern.

    It neither matches nor follows links, and keeps mounts inside. The folders remain, empty and
    owned by init's user.
    """

    phases = ("init",)
    privileges = "root; a directory of the node, mounted into the init container"
    example = "cache_clean: {root: /host-mnt, folders: ['blobfusecache-*']}"

    root: str = arg("The directory; nothing outside it changes.")
    folders: list[str] = arg("Patterns of names of folders in it: *, ? and [...], no slash.")

    def require(self) -> Iterator[str]:
        """The path is absolute, and every pattern names something."""
        if not os.path.isabs(self.root) or os.path.normpath(self.root) in ("/", "//"):
            yield f"'root' must be an absolute path below /, not {self.root!r}"
        for pattern in self.folders:
            if "/" in pattern or "\0" in pattern or pattern in (".", ".."):
                yield f"'folders' has names without a slash, not {pattern!r}"
            elif not re.sub(r"[*?]|\[[^]]*\]", "", pattern):
                yield f"'folders' must name more than {pattern!r}, which matches any name"

    def probe(self, ctx: Context) -> dict[str, int] | None:
        """The folders that match and are not empty, with their modes; None without the root."""
        if (names := ctx.list_dir(self.root)) is None:
            return None
        full: dict[str, int] = {}
        for name in names:
            path = os.path.join(self.root, name)
            if not any(fnmatchcase(name, p) for p in self.folders):
                continue
            there = ctx.stat(path)
            if there is not None and there.kind == "directory" and ctx.list_dir(path):
                full[name] = there.mode
        return full

    def plan(self, state: dict[str, int] | None) -> Verdict:
        """Empty the folders that are not empty."""
        if state is None:
            return no_change(f"{self.root} does not exist")
        if not state:
            return no_change("every folder that matches is empty")
        return will_change(f"empty {', '.join(state)}")

    def apply(self, ctx: Context) -> Result:
        """Remove each folder with its content, and make it again."""
        there = ctx.stat(self.root)
        if there is not None and there.kind == "link":
            raise Permanent(
                f"{self.root} is a symbolic link", fault="platform", hint="name its target"
            )
        before = ctx.free_bytes(self.root)
        full = self.probe(ctx) or {}
        for name, mode in full.items():
            path = os.path.join(self.root, name)
            # As a whole, by its name in the root: other writers of the root cannot redirect the
            # removal.
            ctx.remove(path)
            ctx.make_dir(path, mode)
        freed = format_size(max(0, ctx.free_bytes(self.root) - before))
        return Result(message=f"emptied {', '.join(full) or 'nothing'}; {freed} are free again")
