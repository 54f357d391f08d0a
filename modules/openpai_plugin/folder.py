"""A plugin's folder on the volume, with the files that its scripts need."""

from __future__ import annotations

import os

from pairun.module import Context, Permanent

_MAX_ENTRIES = 1000
_SKIPPED = "__pycache__"


def copy_folder(ctx: Context, source: str, target: str) -> None:
    """Copy files and folders; every file becomes executable, as in the image of OpenPAI's runtime.

    Raises:
        Permanent: there is something other than files and folders, or too much.
    """
    waiting, copied = [""], 0
    while waiting:
        inner = waiting.pop()
        ctx.make_dir(os.path.join(target, inner))
        for name in ctx.list_dir(os.path.join(source, inner)) or ():
            if name == _SKIPPED:
                continue
            copied += 1
            path = os.path.join(source, inner, name)
            there = ctx.stat(path)
            if copied > _MAX_ENTRIES:
                raise Permanent(
                    f"{source} has more than {_MAX_ENTRIES} files and folders", fault="platform"
                )
            if there is None or there.kind not in ("file", "directory"):
                raise Permanent(
                    f"{path} is neither a file nor a folder", fault="platform", hint="remove it"
                )
            if there.kind == "directory":
                waiting.append(os.path.join(inner, name))
            else:
                data = ctx.read_file(path) or b""
                ctx.write_file(
                    os.path.join(target, inner, name), data, (there.mode & 0o755) | 0o111
                )
