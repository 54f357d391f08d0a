"""The fields of a storage, and their checks."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

from pairun.module import Secret, reveal

Value = str | Secret | bool | list[str] | dict[str, str | Secret] | None
_COMMON = ("type", "path", "subdir", "read_only")
_FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "nfs": (("server",), ("export", "options")),
    "samba": (("server", "share"), ("username", "password", "domain", "options")),
    "azurefile": (("account", "share", "key"), ("server", "options")),
    "azureblob": (("container",), ("account", "key", "sas_url", "endpoint")),
    "s3": (("bucket",), ("access_key", "secret_key", "endpoint", "region", "provider")),
    "hdfs": (("namenode",), ("username", "folder")),
    "rclone": (("settings",), ("remote",)),
    "local": (("source",), ()),
}
_KINDS = {"options": (list, "a list"), "settings": (dict, "a mapping"),
          "read_only": (bool, "true or false")}  # fmt: skip
"""The types of the fields that are not text."""
PLACES = ("path", "subdir", "export", "share", "container", "bucket", "folder", "remote", "source")
"""Fields in which %USER and %JOB are replaced."""
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|[0-9A-Fa-f:]+(?:%[A-Za-z0-9]+)?")
_OURS = frozenset({"addr", "clientaddr", "ip", "unc", "prefixpath", "user", "username", "pass",
                   "password", "dom", "domain", "ro", "rw"})  # fmt: skip
"""Options that mount_storage itself sets."""


def storage_problems(storage: Mapping[str, Value], where: str) -> Iterator[str]:
    """The mistakes in a storage's fields.

    Args:
        where: names the storage; every sentence begins with it.
    """
    kind = storage.get("type")
    if kind not in _FIELDS:
        yield f"{where}: 'type' must be one of {', '.join(_FIELDS)}"
        return
    required, optional = _FIELDS[str(kind)]
    known = (*_COMMON, *required, *optional)
    for name in storage:
        if name not in known:
            yield f"{where}: a storage of type {kind} has no '{name}', it has {', '.join(known)}"
    for name in ("path", *required):
        if storage.get(name) in (None, ""):
            yield f"{where}: '{name}' is missing"
    storage = {n: v for n, v in storage.items() if n in known}
    wrong = list(_wrong_values(storage, where))
    yield from wrong
    if not wrong:
        yield from _wrong_words(storage, where)


def _wrong_values(storage: Mapping[str, Value], where: str) -> Iterator[str]:
    for name, value in storage.items():
        if value is None:
            continue
        if name in _KINDS:
            kind, words = _KINDS[name]
            if not isinstance(value, kind):
                yield f"{where}: '{name}' must be {words}"
        elif isinstance(value, Secret) and name in PLACES:
            yield f"{where}: '{name}' shows in the mount table, so it cannot be a secret"
        elif not isinstance(value, str | Secret):
            yield f"{where}: '{name}' must be text"
        elif CONTROL.search(reveal(value)):
            yield f"{where}: '{name}' holds a line end or another control character"


def _wrong_words(storage: Mapping[str, Value], where: str) -> Iterator[str]:
    text = {n: v for n, v in storage.items() if isinstance(v, str)}
    path = text.get("path") or "/x"
    if not path.startswith("/") or ".." in path.split("/") or not path.strip("/"):
        yield f"{where}: 'path' must be an absolute path below /, without '..'"
    if storage.get("type") == "local" and not (text.get("source") or "/").startswith("/"):
        yield f"{where}: 'source' must be an absolute path"
    for name in ("subdir", "share", "container", "bucket", "folder", "remote", "export"):
        if ".." in (text.get(name) or "").split("/"):
            yield f"{where}: '{name}' must not contain '..' that leads outside"
    server = text.get("server")
    if server and not _HOST.fullmatch(server):
        yield f"{where}: 'server' must be only a host's name or address"
    options = storage.get("options")
    for option in options if isinstance(options, list) else ():
        if "," in option or CONTROL.search(option) or not option:
            yield f"{where}: an option is one word, name or name=value, without a comma"
        elif option.partition("=")[0].lower() in _OURS:
            yield f"{where}: the option '{option.partition('=')[0]}' cannot be set: mount_storage sets it"
    namenode = text.get("namenode")
    if namenode and not re.fullmatch(r"[^/\s]+:[0-9]{1,5}", namenode):
        yield f"{where}: 'namenode' must be host:port"
    if storage.get("type") == "azureblob" and not storage.get("sas_url"):
        for name in ("account", "key"):
            if not storage.get(name):
                yield f"{where}: '{name}' is missing: account and key, or sas_url"
    settings = storage.get("settings")
    if isinstance(settings, dict) and not settings.get("type"):
        yield f"{where}: 'settings' lack 'type': they are a remote of rclone's configuration"
    yield from _unwritable(storage, where)


def _unwritable(storage: Mapping[str, Value], where: str) -> Iterator[str]:
    """Values that rclone's configuration cannot hold: rclone trims, unquotes and expands them."""
    if storage.get("type") not in ("azureblob", "s3", "hdfs", "rclone"):
        return
    settings = storage.get("settings")
    fields = {**storage, **(settings if isinstance(settings, dict) else {})}
    for name, value in fields.items():
        if not isinstance(value, str | Secret):
            continue
        text = reveal(value)
        if text != text.strip() or text[:1] in ('"', "`") or "%(" in text or CONTROL.search(text):
            yield (
                f"{where}: rclone's configuration file cannot hold '{name}': "
                "no space or quote at its ends, no line end and no '%('"
            )
    for name in settings if isinstance(settings, dict) else ():
        if not re.fullmatch("[a-z0-9_]+", name):
            yield f"{where}: '{name}' is not the name of a setting of rclone"


def shared_mount_points(storages: Iterable[Mapping[str, Value]]) -> Iterator[str]:
    """A sentence for each mount point of two storages."""
    seen: dict[str, Value] = {}
    for storage in storages:
        path = posixpath.normpath(str(storage.get("path")))
        if path in seen:
            yield f"'storages': two storages at one mount point: {path}"
        seen[path] = storage.get("type")
