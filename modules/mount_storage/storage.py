"""One storage, checked and with all names filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from pairun.module import Secret, reveal

from .fields import Value


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

    def export(self) -> str:
        """The export of nfs."""
        return "/" + self.text("export").strip("/")

    def source(self) -> str:
        """The source in the mount table; holds no secret."""
        if self.type == "nfs":
            host = self.server()
            return f"{f'[{host}]' if ':' in host else host}:{self.export()}"
        if self.type in ("samba", "azurefile"):
            return f"//{self.server()}/{self.share()}"
        if self.by_rclone:
            endpoint = urlsplit(self.text("endpoint") or self.text("namenode"))
            host = endpoint.netloc.rpartition("@")[2] or endpoint.path
            end = f"@{host}" if host else ""
            return f"{self._kind()}:{self.remote()}{end}"
        return self.text("source")

    def _kind(self) -> str:
        settings = self.fields.get("settings")
        kind = settings.get("type", "") if isinstance(settings, dict) else self.type
        return reveal(kind)

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
    settings = storage.fields.get("settings")
    values = [*storage.fields.values(), *(settings.values() if isinstance(settings, dict) else ())]
    yield from (v.reveal() for v in values if isinstance(v, Secret) and v.reveal())
    names = ("password", "key", "secret_key", "access_key", "sas_url")
    yield from (v for n in names if (v := storage.secret(n)))
