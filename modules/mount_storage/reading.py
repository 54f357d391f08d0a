"""The storages of a task: from its arguments, and from the file of storage_config."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping

from pairun.module import Context, Permanent, parse_json

from .fields import CONTROL, PLACES, Value, shared_mount_points, storage_problems
from .storage import Storage

Fields = Mapping[str, Value]


def read_file(ctx: Context, path: str) -> list[dict[str, Value]] | None:
    """The storages in a file of storage_config, with variables filled in; None if it is missing.

    Raises:
        Permanent: the file is unusable, or a variable is not set.
    """
    data = ctx.read_file(path)
    if data is None:
        return None
    try:
        storages = [
            {n: _expanded(ctx, n, v) for n, v in fields.items()} for fields in parse_json(data)
        ]
        problems = [
            s
            for i, fields in enumerate(storages, 1)
            for s in storage_problems(fields, f"storage {i}")
        ]
    except (ValueError, TypeError, AttributeError):
        problems = ["it is not a file of storage_config"]
    if problems:
        raise Permanent(f"{path}: {problems[0]}", fault="platform")
    return storages


def named_storages(storages: Iterable[Fields], user: str | None, job: str | None) -> list[Storage]:
    """Storages with the names of the user and the job filled in, outer mount points first.

    Args:
        storages: fields by name.
        user: replaces %USER.
        job: replaces %JOB.

    Raises:
        Permanent: a name is unknown, or two storages have one mount point.
    """
    names = {"USER": user, "JOB": job}
    filled = [{n: _with_names(n, v, names) for n, v in fields.items()} for fields in storages]
    for problem in shared_mount_points(filled):
        raise Permanent(problem.partition(": ")[2], fault="user")
    mounted = [Storage(fields, posixpath.normpath(str(fields["path"]))) for fields in filled]
    return sorted(mounted, key=lambda s: (s.path.count("/"), s.path))


def _with_names(name: str, value: Value, names: Mapping[str, str | None]) -> Value:
    """A value with %USER and %JOB, in any letter case, replaced."""
    if name not in PLACES or not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        word = match[1].upper()
        known = names[word]
        if not known or "/" in known or known in (".", "..") or CONTROL.search(known):
            reason = "is not known here" if not known else f"cannot name a directory: {known!r}"
            raise Permanent(f"%{word} in '{name}' {reason}", fault="platform")
        return known

    return re.sub("%(user|job)", fill, value, flags=re.IGNORECASE)


def _expanded(ctx: Context, name: str, value: Value) -> Value:
    """A value with those variables expanded that OpenPAI's administrators leave to the shell."""
    if name not in PLACES or not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        variable = match[1] or match[2]
        if variable not in ctx.env:
            raise Permanent(f"the variable {variable} in '{name}' is not set", fault="platform")
        return ctx.env[variable]

    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", fill, value)
