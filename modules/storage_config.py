"""Read what a cluster keeps of its users' storages, for mount_storage."""

from __future__ import annotations

import base64
import json
import posixpath
import re
from collections.abc import Mapping
from typing import Any

from pairun.module import (
    Context,
    Permanent,
    Result,
    StateModule,
    Verdict,
    arg,
    define,
    differing_files,
    no_change,
    parse_json,
    will_change,
)

_CONFIGS = "storage-config"
_SERVERS = "storage-server"
_GRANT = "grant the service account 'get' on the secrets storage-config and storage-server there"

Record = Mapping[str, Any]


@define
class StorageConfig(StateModule):
    """Write the storages that the job may use to a file that only root can read.

    It reads two Secrets of the cluster: ``storage-config`` has what each storage mounts,
    ``storage-server`` the addresses of its servers.
    """

    phases = ("init",)
    privileges = "get on the secrets storage-config and storage-server"
    example = """storage_config: {names: [data], allowed: '["data"]', path: /tmp/storages.json}"""

    path: str = arg("The file.")
    names: list[str] = arg("The storages; without any, the default ones.", factory=list)
    allowed: str | None = arg(
        "The names that the job may use, as a JSON list; the platform's STORAGE_CONFIGS.",
        default=None,
    )
    namespace: str = arg("The namespace of the Secrets.", default="pai-storage")

    def probe(self, ctx: Context) -> tuple[bytes, bool]:
        """The content that the file must have, and whether it has it.

        Raises:
            Permanent: a storage is forbidden, missing or invalid.
        """
        allowed = self._allowed()
        configs = self._secret(ctx, _CONFIGS)
        servers = self._secret(ctx, _SERVERS)
        storages = [
            _entry(mount, servers, name)
            for name in self._chosen(configs, allowed)
            for mount in _listed(configs[name], "mountInfos", name)
        ]
        # Other tasks, and the command's plan, may contain secrets that only this task has read.
        ctx.hide([v for s in storages for n, v in s.items() if n in ("password", "key")])
        paths = [posixpath.normpath(str(s["path"])) for s in storages]
        for path in paths:
            if paths.count(path) > 1:
                raise Permanent(f"two storages at one mount point: {path}", fault="user")
        data = json.dumps(storages).encode()
        return data, not differing_files(ctx, "", {self.path: (data, 0o600)})

    def _allowed(self) -> list[str]:
        try:
            allowed = parse_json(self.allowed or "[]", strict=True)
        except ValueError:
            allowed = None
        if not isinstance(allowed, list):
            raise Permanent("'allowed' is not a JSON list of names", fault="platform")
        return [str(n) for n in allowed]

    def _chosen(self, configs: Mapping[str, Record], allowed: list[str]) -> list[str]:
        for name in self.names:
            if name not in allowed:
                hint = f"allowed: {', '.join(sorted(allowed)) or 'none'}"
                raise Permanent(f"this job may not use the storage {name}", fault="user", hint=hint)
            if name not in configs:
                raise Permanent(f"there is no storage {name} in {_CONFIGS}", fault="platform")
        if self.names:
            return list(dict.fromkeys(self.names))
        default = [n for n in configs if n in allowed and configs[n].get("default") is True]
        if not default:
            raise Permanent("no storage is given, and there is no default", fault="user")
        return default

    def _secret(self, ctx: Context, name: str) -> dict[str, Record]:
        """The records in a Secret; each value is a JSON document."""
        path = f"/api/v1/namespaces/{self.namespace}/secrets/{name}"
        body = ctx.ask_api(path, max_bytes=4 * 1024 * 1024)
        if body is None:
            message = f"there is no secret {name} in the namespace {self.namespace}"
            raise Permanent(message, fault="platform", hint=_GRANT)
        try:
            data = parse_json(body).get("data") or {}
            records = {
                n: parse_json(base64.b64decode(text), strict=True) for n, text in data.items()
            }
        except (ValueError, TypeError, AttributeError):
            records = {"": None}
        if not all(isinstance(v, dict) for v in records.values()):
            # Quote nothing of it: it contains passwords.
            raise Permanent(f"the secret {name} is not JSON", fault="platform")
        return records

    def plan(self, state: tuple[bytes, bool]) -> Verdict:
        """Compare the file."""
        return no_change("it is there") if state[1] else will_change(f"write {self.path}")

    def apply(self, ctx: Context) -> Result:
        """Write the file, readable only by this user."""
        data, _ = self.probe(ctx)
        ctx.make_dir(posixpath.dirname(self.path), 0o700)
        ctx.write_file(self.path, data, 0o600)
        return Result(message=f"{len(parse_json(data))} to mount")


def _listed(record: Record, key: str, name: str) -> list[Record]:
    entries = record.get(key)
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise Permanent(f"the storage {name} in {_CONFIGS} has no list {key}", fault="platform")
    return entries


def _entry(mount: Record, servers: Mapping[str, Record], name: str) -> dict[str, Any]:
    """One mount of a storage, in the form for mount_storage."""
    called = str(mount.get("server"))
    server = servers.get(called)
    if server is None:
        message = f"the storage {name} names the server {called}, which is not in {_SERVERS}"
        raise Permanent(message, fault="platform")
    kind = str(server.get("type")).lower()
    if kind not in _KINDS:
        message = f"the server {called} is of the type {kind}, which cannot be mounted"
        raise Permanent(message, fault="platform")
    try:
        own = _fields(kind, server)
        path = mount["mountPoint"]
    except KeyError as e:
        message = f"{e.args[0]!r} is missing in the storage {name} or its server {called}"
        raise Permanent(message, fault="platform") from e
    return {
        "type": kind,
        "path": path,
        "subdir": str(mount.get("path") or "").strip("/"),
        "read_only": str(mount.get("permission", "")).lower() in ("ro", "r", "read", "readonly"),
        **{n: v for n, v in own.items() if v not in (None, "")},
    }


def _fields(kind: str, server: Record) -> dict[str, Any]:
    """What a server's record says of a storage.

    Raises:
        KeyError: a required value is missing.
    """
    required, optional = _KINDS[kind]
    fields = {name: server[key] for name, key in required.items()}
    fields |= {name: server.get(key) for name, key in optional.items()}
    if kind == "samba":
        fields["share"] = str(fields["share"]).strip("/")
    elif kind == "hdfs":
        fields["namenode"] = f"{fields['namenode']}:{server.get('port') or 8020}"
    elif kind == "azurefile":
        if server.get("proxy"):
            message = "a proxy in front of azurefile is not supported"
            hint = "let the node reach the file share's port 445"
            raise Permanent(message, fault="platform", hint=hint)
        # OpenPAI's "data store" is the server's address.
        fields["server"] = re.sub(r"^(https?:)?//|/.*$", "", str(fields["server"] or ""))
    return fields


_KINDS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "nfs": ({"server": "address", "export": "rootPath"}, {}),
    "samba": ({"server": "address", "share": "rootPath"},
              {"username": "userName", "password": "password", "domain": "domain"}),
    "azurefile": ({"share": "fileShare", "account": "accountName", "key": "key"},
                  {"server": "dataStore"}),
    "azureblob": ({"container": "containerName", "account": "accountName", "key": "key"}, {}),
    "hdfs": ({"namenode": "namenode"}, {}),
}  # fmt: skip
"""Of each type of storage, the required and the optional fields: ours to the record's."""
