"""Reads the destination without running git on it."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from pairun.module import Context

_PACKED_REFS = 64 * 1024 * 1024
"""The maximum size of a clone's file that is read, in bytes."""


class ExistingClone(NamedTuple):
    """What the files of a clone show.

    Attributes:
        url: of the remote that was cloned.
        ref: the branch that is checked out, or empty.
        sha: the commit that is checked out.
        tag: whether it has the tag that the task names.
    """

    url: str
    ref: str
    sha: str
    tag: bool


class Destination(NamedTuple):
    """The state of the destination.

    Attributes:
        clone: the existing clone, or None.
        blocked: anything else there, for people, or None.
        latest: the commit of the branch on the server, or None.
        unasked: why `latest` is unknown, or None.
    """

    clone: ExistingClone | None
    blocked: str | None
    latest: str | None = None
    unasked: str | None = None


def read_clone(ctx: Context, folder: str, remote: str, branch: str | None) -> ExistingClone | None:
    """Read the files of a clone (gitrepository-layout(5)); git never runs on untrusted files.

    Args:
        folder: of git's own files.
        remote: the name of the remote that was cloned.
        branch: the branch or tag of the task.
    """

    def text(name: str) -> str:
        return _text(ctx, os.path.join(folder, name))

    packed = _packed(ctx, folder)
    head = text("HEAD").strip()
    ref = head.removeprefix("ref: ") if head.startswith("ref: ") else ""
    if ref and (".." in ref or not ref.startswith("refs/")):
        return None
    sha = (text(ref).strip() or packed.get(ref, "")) if ref else head
    if not re.fullmatch("[0-9a-f]{40,64}", sha):
        return None
    tag = f"refs/tags/{branch}"
    is_tag = bool(branch and not ref and ".." not in tag and (text(tag) or tag in packed))
    return ExistingClone(_url_of(remote, text("config")), ref, sha, is_tag)


def _text(ctx: Context, path: str) -> str:
    """The text of a file; empty if it is none. A link could lead anywhere."""
    stat = ctx.stat(path)
    if stat is None or stat.kind != "file":
        return ""
    return (ctx.read_file(path, _PACKED_REFS) or b"").decode("utf-8", "replace")


def _packed(ctx: Context, folder: str) -> dict[str, str]:
    """The commit of each packed reference."""
    text = _text(ctx, os.path.join(folder, "packed-refs"))
    return {line[2]: line[1] for line in re.finditer(r"(?m)^([0-9a-f]{40,64}) (\S+)$", text)}


def _url_of(remote: str, config: str) -> str:
    """The address of a remote in a git configuration, or empty."""
    section = ""
    for line in map(str.strip, config.splitlines()):
        if line.startswith("["):
            section = line
        elif section == f'[remote "{remote}"]' and (url := re.match(r"url\s*=\s*(.*)", line)):
            return url[1].strip('"')
    return ""


def local_commits(ctx: Context, folder: str) -> set[str]:
    """The commits of the branches and stashes of a clone."""
    packed = _packed(ctx, folder).items()
    shas = {sha for ref, sha in packed if ref.startswith("refs/heads/") or ref == "refs/stash"}
    places = [os.path.join(folder, "refs", name) for name in ("heads", "stash")]
    while places:
        place = places.pop()
        stat = ctx.stat(place)
        if stat is not None and stat.kind == "directory":
            places += [os.path.join(place, name) for name in ctx.list_dir(place) or []]
        else:
            shas.add(_text(ctx, place).strip())
    return {sha for sha in shas if re.fullmatch("[0-9a-f]{40,64}", sha)}


def working_tree(ctx: Context, path: str) -> set[tuple[str, str]]:
    """Every path of a working tree, with its type and an x if it is executable."""
    words = ["-name", ".git", "-prune", "-o", "-printf", "%P %y %m\\0"]
    out = ctx.query(["find", path, *words]).stdout.decode("utf-8", "replace")
    paths = set()
    for entry in filter(None, out.split("\0")):
        name, kind, mode = entry.rsplit(" ", 2)
        runs = kind == "f" and int(mode, 8) & 0o100
        paths.add((name, kind + ("x" if runs else "")))
    return paths
