"""The storages of a task, checked and with all names filled in."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple
from urllib.parse import urlsplit

from pairun.module import Context, Permanent, Secret, parse_json, reveal

from .fields import CONTROL, PLACES, Value, shared_mount_points, storage_problems


class Storage(NamedTuple):
    """One storage.

    Attributes:
        fields: by name, checked.
        path: the mount point.
    """

    fields: Mapping[str, Value]
    path: str

    @property
    def type(self) -> str:
        """The type, such as ``nfs``."""
        return str(self.fields["type"])

    @property
    def read_only(self) -> bool:
        """Whether it is mounted read-only."""
        return bool(self.fields.get("read_only"))

    @property
    def subdir(self) -> str:
        """The mounted directory in it; empty for the whole storage."""
        return self.text("subdir").strip("/")

    @property
    def by_rclone(self) -> bool:
        """Whether rclone mounts it, and not the kernel."""
        return self.type in ("azureblob", "s3", "hdfs", "rclone")

    def text(self, name: str) -> str:
        """A field that is not secret; empty if it is missing."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    def secret(self, name: str) -> str:
        """A field that may be secret; empty if it is missing."""
        value = self.fields.get(name)
        return reveal(value) if isinstance(value, str | Secret) else ""

    def options(self) -> list[str]:
        """The mount options of the user."""
        value = self.fields.get("options")
        return value if isinstance(value, list) else []

    def server(self) -> str:
        """The host of the server."""
        if self.type == "azurefile":
            return self.text("server") or f"{self.text('account')}.file.core.windows.net"
        return self.text("server")

    def share(self) -> str:
        """The share of samba or azurefile, with / between its parts."""
        return self.text("share").replace("\\", "/").strip("/")

    def source(self) -> str:
        """The source in the mount table; holds no secret."""
        if self.type == "nfs":
            host = self.server()
            export = self.text("export").strip("/")
            return f"{f'[{host}]' if ':' in host else host}:/{export}"
        if self.type in ("samba", "azurefile"):
            return f"//{self.server()}/{self.share()}"
        if self.by_rclone:
            endpoint = urlsplit(self.text("endpoint") or self.text("namenode"))
            host = endpoint.netloc.rpartition("@")[2] or endpoint.path
            end = f"@{host}" if host else ""
            return f"{reveal(self.settings().get('type', self.type))}:{self.remote()}{end}"
        return self.text("source")

    def settings(self) -> Mapping[str, str | Secret]:
        """The user's settings of a remote of rclone; empty for other types."""
        value = self.fields.get("settings")
        return value if isinstance(value, dict) else {}

    def root(self) -> str:
        """The bucket, or the directory in its place."""
        for name in ("container", "bucket", "folder"):
            if folder := self.text(name).strip("/"):
                return folder
        # A leading slash counts: over sftp, a path without one is in the home directory.
        return self.text("remote").rstrip("/")

    def remote(self) -> str:
        """The path for rclone; in an object store, a sub-directory is a part of the name."""
        return "/".join(filter(None, (self.root(), self.subdir)))

    def __str__(self) -> str:
        inner = f"/{self.subdir}" if self.subdir and not self.by_rclone else ""
        return f"{self.type} {self.source().rstrip('/')}{inner}"


def secret_values(storage: Storage) -> Iterator[str]:
    """The values of a storage that no message may show."""
    values = [*storage.fields.values(), *storage.settings().values()]
    yield from (v.reveal() for v in values if isinstance(v, Secret) and v.reveal())
    names = ("password", "key", "secret_key", "access_key", "sas_url")
    yield from (v for n in names if (v := storage.secret(n)))


def read_file(ctx: Context, path: str) -> list[dict[str, Value]] | None:
    """The storages in a file of storage_config, with variables filled in; None if it is missing.

    Raises:
        Permanent: the file is unusable, or a variable is not set.
    """
    data = ctx.read_file(path)
    if data is None:
        return None

    def fill(name: str, match: re.Match[str]) -> str:
        variable = match[1] or match[2]
        if variable not in ctx.env:
            raise Permanent(f"the variable {variable} in '{name}' is not set", fault="platform")
        return ctx.env[variable]

    try:
        # OpenPAI's administrators leave variables to the shell.
        pattern = r"\$(?:\{(\w+)\}|(\w+))"
        storages = [_filled(fields, pattern, fill) for fields in parse_json(data)]
        problems = [
            p for i, s in enumerate(storages, 1) for p in storage_problems(s, f"storage {i}")
        ]
    except (ValueError, TypeError, AttributeError):
        problems = ["it is not a file of storage_config"]
    if problems:
        raise Permanent(f"{path}: {problems[0]}", fault="platform")
    return storages


def named_storages(
    storages: Iterable[Mapping[str, Value]], user: str | None, job: str | None
) -> list[Storage]:
    """Storages with the names of the user and the job filled in, outer mount points first.

    Args:
        storages: fields by name.
        user: replaces %USER.
        job: replaces %JOB.

    Raises:
        Permanent: a name is unknown, or two storages have one mount point.
    """

    def fill(name: str, match: re.Match[str]) -> str:
        word = match[1].upper()
        known = user if word == "USER" else job
        if not known or "/" in known or known in (".", "..") or CONTROL.search(known):
            reason = "is not known here" if not known else f"cannot name a directory: {known!r}"
            raise Permanent(f"%{word} in '{name}' {reason}", fault="platform")
        return known

    filled = [_filled(fields, "%(user|job)", fill) for fields in storages]
    for problem in shared_mount_points(filled):
        raise Permanent(problem.partition(": ")[2], fault="user")
    mounted = [Storage(fields, posixpath.normpath(str(fields["path"]))) for fields in filled]
    return sorted(mounted, key=lambda s: (s.path.count("/"), s.path))


def _filled(
    fields: Mapping[str, Value], pattern: str, fill: Callable[[str, re.Match[str]], str]
) -> dict[str, Value]:
    """The fields of a storage with the parts that match replaced where names may be."""
    return {
        name: re.sub(pattern, partial(fill, name), value, flags=re.IGNORECASE)
        if name in PLACES and isinstance(value, str)
        else value
        for name, value in fields.items()
    }
