"""Mount storages: file servers by the kernel, object stores by rclone, directories."""

from __future__ import annotations

import errno
import json
import os
import posixpath
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal, NamedTuple
from urllib.parse import urlsplit

from pairun.module import (
    Context,
    Duration,
    Failure,
    Mount,
    Permanent,
    Result,
    Secret,
    Skip,
    StateModule,
    TimedOut,
    Transient,
    Verdict,
    arg,
    define,
    no_change,
    reveal,
    will_change,
)

Value = str | Secret | bool | list[str] | dict[str, str | Secret] | None

# --- what a storage may say ------------------------------------------------------------------------

_COMMON = ("type", "path", "subdir", "read_only")
# Required fields, then optional ones.
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
_LISTS = frozenset({"options"})
_MAPPINGS = frozenset({"settings"})
_FLAGS = frozenset({"read_only"})
_PLACES = ("path", "subdir", "export", "share", "container", "bucket", "folder", "remote", "source")
"""Fields in which %USER and %JOB stand for names."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|[0-9A-Fa-f:]+(?:%[A-Za-z0-9]+)?")
# What mount_storage itself says to the kernel.
_OURS = frozenset({"addr", "clientaddr", "ip", "unc", "prefixpath", "user", "username", "pass",
                   "password", "dom", "domain", "ro", "rw"})  # fmt: skip


def _problems(storage: Mapping[str, Value], where: str) -> Iterator[str]:
    """What is wrong with a storage, in sentences that begin with where it stands."""
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
        if name in _LISTS or name in _MAPPINGS or name in _FLAGS:
            kind = list if name in _LISTS else dict if name in _MAPPINGS else bool
            words = {list: "a list", dict: "a mapping", bool: "true or false"}[kind]
            if not isinstance(value, kind):
                yield f"{where}: '{name}' must be {words}"
        elif isinstance(value, Secret) and name in _PLACES:
            yield f"{where}: '{name}' shows in the mount table, so it cannot be a secret"
        elif not isinstance(value, str | Secret):
            yield f"{where}: '{name}' must be text"
        elif _CONTROL.search(reveal(value)):
            yield f"{where}: '{name}' has a line end or another control character in it"


def _wrong_words(storage: Mapping[str, Value], where: str) -> Iterator[str]:
    text = {n: v for n, v in storage.items() if isinstance(v, str)}
    path = text.get("path") or "/x"
    if not path.startswith("/") or ".." in path.split("/") or not path.strip("/"):
        yield f"{where}: 'path' must be an absolute path below /, without '..'"
    if storage.get("type") == "local" and not (text.get("source") or "/").startswith("/"):
        yield f"{where}: 'source' must be an absolute path"
    for name in ("subdir", "share", "container", "bucket", "folder", "remote", "export"):
        if ".." in (text.get(name) or "").split("/"):
            yield f"{where}: '{name}' must not lead out by '..'"
    server = text.get("server")
    if server and not _HOST.fullmatch(server):
        yield f"{where}: 'server' must be a host's name or address alone"
    options = storage.get("options")
    for option in options if isinstance(options, list) else ():
        if "," in option or _CONTROL.search(option) or not option:
            yield f"{where}: an option is one word, name or name=value, without a comma"
        elif option.partition("=")[0].lower() in _OURS:
            yield f"{where}: the option '{option.partition('=')[0]}' is not yours to set: it is made"
    namenode = text.get("namenode")
    if namenode and not re.fullmatch(r"[^/\s]+:[0-9]{1,5}", namenode):
        yield f"{where}: 'namenode' must be host:port"
    if storage.get("type") == "azureblob" and not storage.get("sas_url"):
        for name in ("account", "key"):
            if not storage.get(name):
                yield f"{where}: '{name}' is missing: account and key, or sas_url"
    settings = storage.get("settings")
    if isinstance(settings, dict) and not settings.get("type"):
        yield f"{where}: 'settings' are those of a remote in rclone's configuration: 'type' is missing"
    yield from _unwritable(storage, where)


def _unwritable(storage: Mapping[str, Value], where: str) -> Iterator[str]:
    """Values that rclone's configuration file cannot hold: it trims, unquotes and expands."""
    if storage.get("type") not in ("azureblob", "s3", "hdfs", "rclone"):
        return
    settings = storage.get("settings")
    fields = {**storage, **(settings if isinstance(settings, dict) else {})}
    for name, value in fields.items():
        if not isinstance(value, str | Secret):
            continue
        text = reveal(value)
        if text != text.strip() or text[:1] in ('"', "`") or "%(" in text or _CONTROL.search(text):
            yield (
                f"{where}: rclone's configuration file cannot hold '{name}': "
                "no space or quote at its ends, no line end and no '%('"
            )
    for name in settings if isinstance(settings, dict) else ():
        if not re.fullmatch("[a-z0-9_]+", name):
            yield f"{where}: '{name}' is no name of a setting of rclone"


def _shared(storages: Iterable[Mapping[str, Value]]) -> Iterator[str]:
    """Two storages at one mount point."""
    seen: dict[str, Value] = {}
    for storage in storages:
        path = posixpath.normpath(str(storage.get("path")))
        if path in seen:
            yield f"'storages': two storages at one mount point: {path}"
        seen[path] = storage.get("type")


# --- from a storage to what the kernel or rclone is told -------------------------------------------


class _Wanted(NamedTuple):
    """A storage, checked, with its names in."""

    storage: Mapping[str, Value]
    path: str

    @property
    def type(self) -> str:
        return str(self.storage["type"])

    @property
    def read_only(self) -> bool:
        return bool(self.storage.get("read_only"))

    @property
    def subdir(self) -> str:
        return self.text("subdir").strip("/")

    @property
    def by_rclone(self) -> bool:
        return self.type in ("azureblob", "s3", "hdfs", "rclone")

    def text(self, name: str) -> str:
        value = self.storage.get(name)
        return value if isinstance(value, str) else ""

    def secret(self, name: str) -> str:
        value = self.storage.get(name)
        return reveal(value) if isinstance(value, str | Secret) else ""

    def options(self) -> list[str]:
        value = self.storage.get("options")
        return value if isinstance(value, list) else []

    def server(self) -> str:
        if self.type == "azurefile":
            return self.text("server") or f"{self.text('account')}.file.core.windows.net"
        return self.text("server")

    def share(self) -> str:
        return self.text("share").replace("\\", "/").strip("/")

    def export(self) -> str:
        return "/" + self.text("export").strip("/")

    def source(self) -> str:
        """What the mount table shows; nothing secret."""
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
        settings = self.storage.get("settings")
        kind = settings.get("type", "") if isinstance(settings, dict) else self.type
        return reveal(kind)

    def root(self) -> str:
        """The bucket, or the directory that stands for it."""
        for name in ("container", "bucket", "folder"):
            if found := self.text(name).strip("/"):
                return found
        # Of some remotes, as over sftp, what begins with a slash does not lie in one's home.
        return self.text("remote").rstrip("/")

    def remote(self) -> str:
        """Object stores know no directories: a sub-directory is a part of the name."""
        return "/".join(filter(None, (self.root(), self.subdir)))

    def __str__(self) -> str:
        inner = f"/{self.subdir}" if self.subdir and not self.by_rclone else ""
        return f"{self.type} {self.source().rstrip('/')}{inner}"


def _nfs_data(wanted: _Wanted, address: str, version: str) -> str:
    """Options of nfs(5) as the kernel takes them: it resolves no names and negotiates nothing."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    own = "0.0.0.0" if family == socket.AF_INET else "::"
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 2049))
            own = probe.getsockname()[0]
    except OSError:
        pass  # without a way there, mounting says it better
    given = wanted.options()
    version_given = any(o.partition("=")[0] in ("vers", "nfsvers") for o in given)
    return ",".join(
        [
            *([] if version_given else [f"vers={version}"]),
            f"addr={address}",
            f"clientaddr={own}",
            *given,
        ]
    )


def _cifs_data(wanted: _Wanted, address: str) -> str:
    """Options of mount.cifs(8) as the kernel takes them: a comma in a value is written twice."""
    share, _, prefix = wanted.share().partition("/")
    azure = wanted.type == "azurefile"
    user = wanted.secret("account" if azure else "username")
    given = [o.partition("=")[0] for o in wanted.options()]
    unc = _doubled(rf"\\{wanted.server()}\{share}")
    words = [f"ip={address}", f"unc={unc}"]
    if prefix:
        words.append(f"prefixpath={_doubled(prefix)}")
    if "vers" not in given:
        words.append("vers=3.0")
    if azure:
        words += [w for w in ("dir_mode=0777", "file_mode=0777", "serverino")
                  if w.partition("=")[0] not in given]  # fmt: skip
    words += wanted.options()
    if not user:
        words.append("sec=none")
    else:
        words.append(f"user={_doubled(user)}")
        if domain := wanted.secret("domain"):
            words.append(f"domain={_doubled(domain)}")
        # Last: behind a comma at its end nothing may follow.
        password = wanted.secret("key" if azure else "password")
        words.append(f"pass={_doubled(password)}")
    return ",".join(words)


def _doubled(value: str) -> str:
    return value.replace(",", ",,")


def _rclone_settings(wanted: _Wanted) -> dict[str, str]:
    """The section of rclone's configuration file."""
    own = wanted.storage.get("settings")
    if isinstance(own, dict):
        return {name: reveal(value) for name, value in own.items()}
    names = {
        "azureblob": {"account": "account", "key": "key", "sas_url": "sas_url",
                      "endpoint": "endpoint"},
        "s3": {"access_key_id": "access_key", "secret_access_key": "secret_key",
               "endpoint": "endpoint", "region": "region", "provider": "provider"},
        "hdfs": {"namenode": "namenode", "username": "username"},
    }[wanted.type]  # fmt: skip
    found = {ours: wanted.secret(given) for ours, given in names.items()}
    if wanted.type == "s3":
        found["provider"] = found["provider"] or ("Other" if found["endpoint"] else "AWS")
    if wanted.type == "hdfs":
        # It asks for one. Who mounts is root, and Hadoop's own client would say so.
        found["username"] = found["username"] or "root"
    return {"type": wanted.type, **{n: v for n, v in found.items() if v}}


# --- refusals in words -----------------------------------------------------------------------------

_UNREACHABLE = {
    errno.ECONNREFUSED: "nothing listens there",
    errno.EHOSTDOWN: "it is down",
    errno.EHOSTUNREACH: "there is no way to it",
    errno.ENETUNREACH: "there is no way to its network",
    errno.ETIMEDOUT: "it does not answer",
    errno.ECONNRESET: "it broke the connection",
    errno.ECONNABORTED: "it broke the connection",
    errno.EIO: "it does not answer properly",
    errno.EAGAIN: "it does not answer properly",
    errno.EINPROGRESS: "it does not answer",
}
_VERSIONS = (errno.EPROTONOSUPPORT, errno.EOPNOTSUPP, errno.EPROTO)
_KERNELS = {"nfs": "nfs", "samba": "cifs", "azurefile": "cifs", "local": "bind mounts"}
_MODULES = {"nfs": "nfs and nfsv4", "samba": "cifs", "azurefile": "cifs"}
_PRIVILEGE = (
    "mounting needs root and CAP_SYS_ADMIN in the user's container, and a seccomp and AppArmor "
    "profile that allow it: the platform grants them, or mounts the storage itself"
)


def _lacks_privilege(ctx: Context) -> bool:
    """Whether this process lacks CAP_SYS_ADMIN (number 21 of capabilities(7))."""
    found = re.search(
        rb"^CapEff:\s*([0-9a-f]+)", ctx.read_file("/proc/self/status") or b"", re.MULTILINE
    )
    return found is not None and not int(found[1], 16) >> 21 & 1


def _refused(ctx: Context, wanted: _Wanted, error: OSError) -> Failure:
    """What the kernel's or the server's number means for this storage."""
    code, at = error.errno or errno.EIO, f"{wanted} at {wanted.path}"
    if code == errno.EPERM and _lacks_privilege(ctx):
        return Permanent(f"this container may not mount {at}", fault="platform", hint=_PRIVILEGE)
    if wanted.subdir and error.filename == wanted.subdir:
        return _subdir_refused(wanted, code)
    if code == errno.ENODEV:
        hint = f"the node's kernel needs the module {_MODULES.get(wanted.type, '')}: modprobe it"
        return Permanent(
            f"the node's kernel has no {_KERNELS[wanted.type]}: {at}", fault="platform", hint=hint
        )
    if wanted.type == "local":
        return Permanent(f"cannot mount {at}: {_said(code)}", fault="user")
    if code in _UNREACHABLE:
        said = f"the server of {at} cannot be reached: {_UNREACHABLE[code]}"
        return Transient(said, fault="platform", hint="a firewall or network policy may be between")
    if code in (errno.EACCES, errno.EPERM, errno.EKEYREJECTED, errno.ENOKEY):
        hint = (
            "user name or password are wrong, or have no right to this share"
            if wanted.type != "nfs"
            else "the server exports it to other hosts than this one"
        )
        hint += "; a container's AppArmor profile that forbids mounting says the same"
        return Permanent(f"the server refuses {at}: {_said(code)}", fault="user", hint=hint)
    if code in (errno.ENOENT, errno.ENXIO, errno.ENOTDIR):
        what = "export" if wanted.type == "nfs" else "share"
        return Permanent(f"the server has no such {what}: {at}", fault="user")
    if code in _VERSIONS:
        hint = "try options: ['vers=…']"
        return Permanent(
            f"the server does not speak the protocol's version: {at}", fault="platform", hint=hint
        )
    if code == errno.EINVAL:
        hint = "an option, or what stands in a name, is not what this kernel takes"
        return Permanent(f"the kernel refuses the options of {at}", fault="user", hint=hint)
    return Permanent(f"cannot mount {at}: {_said(code)}")


def _subdir_refused(wanted: _Wanted, code: int) -> Failure:
    where = f"the sub-directory of {wanted}"
    if code == errno.EROFS:
        said = f"{where} does not exist, and what is mounted read-only cannot be given one"
        return Permanent(said, fault="user")
    if code in (errno.ELOOP, errno.ENOTDIR):
        return Permanent(f"{where} is no directory, or a link stands on the way", fault="user")
    return Permanent(f"{where} cannot be made or entered: {_said(code)}", fault="user")


def _said(code: int) -> str:
    text = os.strerror(code)
    return text[:1].lower() + text[1:]


_RCLONE_REFUSED = re.compile(
    "AccessDenied|SignatureDoesNotMatch|InvalidAccessKeyId|AuthenticationFailed|Authentication"
    "|AuthorizationFailure|Forbidden|[Pp]ermission denied|StatusCode=40[13]|status code: 40[13]"
)
_RCLONE_MISSING = re.compile("NoSuchBucket|ContainerNotFound|directory not found|StatusCode=404")
_RCLONE_UNREACHABLE = re.compile(
    "no such host|connection refused|no route|unreachable|timeout|timed out|deadline exceeded"
    "|connection reset|EOF|server misbehaving|status code: 5|StatusCode=5"
)
_RCLONE_SETTINGS = re.compile(
    "no authentication method|failed to parse credentials|illegal base64|not specified"
    "|didn't find backend"
)
# It begins a line with the time, and the level or the storage.
_RCLONE_TIME = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d (?:[A-Z]+ *: )?")
_FUSE_REFUSED = re.compile("fusermount.*(Operation not permitted|Permission denied)|fuse: device")


def _rclone_failed(wanted: _Wanted, said: str) -> Failure:
    """What rclone said, in a sentence; what it says of secrets is left out."""
    at = f"{wanted} at {wanted.path}"
    if _FUSE_REFUSED.search(said):
        return Permanent(f"this container may not mount {at}", fault="platform", hint=_PRIVILEGE)
    if _RCLONE_REFUSED.search(said):
        hint = "the key is wrong, or has no right to it"
        return Permanent(f"the server refuses {at}", fault="user", hint=hint)
    if _RCLONE_MISSING.search(said):
        return Permanent(f"the server has no such bucket or directory: {at}", fault="user")
    if _RCLONE_UNREACHABLE.search(said):
        return Transient(f"the server of {at} cannot be reached", fault="platform")
    for value in sorted(_secrets(wanted), key=len, reverse=True):
        said = said.replace(value, "******")
    last = said.strip().splitlines()[-1:] or ["it said nothing"]
    words = f"rclone cannot mount {at}: {_RCLONE_TIME.sub('', last[0])[:300]}"
    if _RCLONE_SETTINGS.search(said):
        return Permanent(words, fault="user", hint="correct the storage's fields or settings")
    return Transient(words)


def _secrets(wanted: _Wanted) -> Iterator[str]:
    settings = wanted.storage.get("settings")
    values = [*wanted.storage.values(), *(settings.values() if isinstance(settings, dict) else ())]
    yield from (v.reveal() for v in values if isinstance(v, Secret) and v.reveal())
    names = ("password", "key", "secret_key", "access_key", "sas_url")
    yield from (v for n in names if (v := wanted.secret(n)))


# --- the module ------------------------------------------------------------------------------------

_NFS_VERSIONS = ("4.2", "4.1", "4.0")
_ANSWER_S = 10.0
_MOUNT_S = 60.0
_CHECK_S = 60.0
_WRITE_BACK_POLL_S = 0.25
_NOT_MINE = "choose another mount point, or leave it to the platform"


class _Seen(NamedTuple):
    """A storage and what stands at its mount point; ``dead`` is a mount whose server has gone."""

    wanted: _Wanted
    target: str
    mounted: bool
    dead: bool = False


@define
class MountStorage(StateModule):
    """Mount storages, without a helper program of the image.

    A storage is a mapping with ``type``, ``path`` (the mount point) and, as you like, ``subdir`` (a
    directory in it, made where it is missing) and ``read_only``. What else it has depends on its
    type: nfs (server, export, options), samba (server, share, username, password, domain,
    options), azurefile (account, key, share, server, options), azureblob (container, account, key
    or sas_url, endpoint), s3 (bucket, access_key, secret_key, endpoint, region, provider), hdfs
    (namenode, username, folder), rclone (settings of any remote, remote), local (source).
    """

    phases = ("runtime",)
    privileges = "root and CAP_SYS_ADMIN; for object stores /dev/fuse too"
    example = """\
mount_storage:
  storages:
    - {type: nfs, server: files.example.com, export: /data, path: /mnt/data}"""
    tools: ClassVar[tuple[str, ...]] = ("rclone", "fusermount")

    storages: list[dict[str, Value]] = arg("The storages, in any order.", factory=list)
    file: str | None = arg("A file with further ones, as storage_config leaves it.", default=None)
    state: Literal["present", "absent"] = arg(
        "Whether they shall be mounted; what was mounted from elsewhere stays.", default="present"
    )
    user: str | None = arg("What %USER stands for.", default=None)
    job: str | None = arg("What %JOB stands for.", default=None)
    answer_within: Duration = arg(
        "How long a mounted storage may take to answer.", default=Duration(_ANSWER_S)
    )

    def require(self) -> Iterator[str]:
        """Every storage by itself, then the mount points of all."""
        for number, storage in enumerate(self.storages):
            yield from _problems(storage, f"'storages' {number + 1}")
        yield from _shared(s for s in self.storages if isinstance(s.get("path"), str))

    # --- looking

    def probe(self, ctx: Context) -> tuple[_Seen, ...]:
        """Look at every mount point; nothing is mounted when one of them cannot be used.

        Raises:
            Skip: there is no storage.
            Permanent: a mount point is taken, not empty or no directory.
            TimedOut: what is mounted does not answer.
        """
        wanted = self._wanted(ctx)
        if not wanted:
            raise Skip("no storage is named")
        table = ctx.mounts()
        seen: list[_Seen] = []
        for storage in wanted:
            seen.append(self._look(ctx, storage, table, seen))
        targets = [s.target for s in seen]
        for s in seen:
            if targets.count(s.target) > 1:
                said = f"two storages at one mount point: {s.target}, by a link in its path"
                raise Permanent(said, fault="user")
        return tuple(seen)

    def _wanted(self, ctx: Context) -> list[_Wanted]:
        """Every storage with its names filled in, outer mount points first."""
        storages = [*self.storages, *self._from_file(ctx)]
        filled = [{n: self._named(n, v) for n, v in s.items()} for s in storages]
        found = [_Wanted(s, posixpath.normpath(str(s["path"]))) for s in filled]
        for sentence in _shared(filled):
            raise Permanent(sentence.partition(": ")[2], fault="user")
        return sorted(found, key=lambda w: (w.path.count("/"), w.path))

    def _from_file(self, ctx: Context) -> list[dict[str, Value]]:
        if self.file is None:
            return []
        data = ctx.read_file(self.file)
        if data is None:
            if self.state == "absent":
                return []
            raise Permanent(f"there is no {self.file}: storage_config leaves it", fault="platform")
        try:
            found = [
                {n: _expanded(ctx, n, v) for n, v in storage.items()}
                for storage in json.loads(data)
            ]
            sentences = [s for i, x in enumerate(found) for s in _problems(x, f"storage {i + 1}")]
        except (ValueError, TypeError, AttributeError):
            sentences = ["it is not what storage_config leaves"]
        if sentences:
            raise Permanent(f"{self.file}: {sentences[0]}", fault="platform")
        return found

    def _named(self, name: str, value: Value) -> Value:
        """A place with %USER and %JOB, in any letter case, replaced."""
        if name not in _PLACES or not isinstance(value, str):
            return value

        def fill(match: re.Match[str]) -> str:
            word = match[1].upper()
            known = self.user if word == "USER" else self.job
            if not known or "/" in known or known in (".", "..") or _CONTROL.search(known):
                said = "is not known here" if not known else f"is no name of a directory: {known!r}"
                raise Permanent(f"%{word} in '{name}' {said}", fault="platform")
            return known

        return re.sub("%(user|job)", fill, value, flags=re.IGNORECASE)

    def _look(
        self, ctx: Context, wanted: _Wanted, table: list[Mount], before: list[_Seen]
    ) -> _Seen:
        try:
            target = ctx.real_path(wanted.path, timeout_s=self.answer_within)
        except TimedOut:
            raise self._silent(wanted, wanted.path) from None
        found = next((m for m in reversed(table) if m.target == target), None)
        if self.state == "absent":
            # One for writing is not the one that was to be read-only: it was there before.
            mine = (
                found is not None
                and found.read_only >= wanted.read_only
                and self._same(ctx, wanted, found, table)
            )
            return _Seen(wanted, target, mounted=mine)
        outer = any(not s.mounted and target.startswith(s.target + "/") for s in before)
        if found is None or outer:
            if not outer:
                self._check_free(ctx, wanted, target)
            return _Seen(wanted, target, mounted=False)
        if not self._same(ctx, wanted, found, table):
            inner = "" if found.root == "/" or found.kind.startswith("nfs") else found.root
            there = f"{found.kind} {found.source}{inner}"
            said = f"{wanted.path} is already mounted from elsewhere: {there}"
            raise Permanent(said, fault="user", hint=_NOT_MINE)
        # A directory of what is read-only cannot be otherwise.
        only_read = wanted.type == "local" and self._home(ctx, wanted, table)[1].read_only
        if (wanted.read_only or only_read) != found.read_only:
            how = "read-only" if found.read_only else "for writing"
            said = f"{wanted} is already mounted {how} at {wanted.path}"
            raise Permanent(said, fault="user", hint=_NOT_MINE)
        return self._answering(ctx, wanted, target)

    def _answering(self, ctx: Context, wanted: _Wanted, target: str) -> _Seen:
        try:
            ctx.free_bytes(target, timeout_s=self.answer_within)
        except TimedOut:
            raise self._silent(wanted, target) from None
        except OSError as e:
            # What rclone served, and rclone has gone.
            if wanted.by_rclone and e.errno in (errno.ENOTCONN, errno.ECONNABORTED):
                return _Seen(wanted, target, mounted=False, dead=True)
            said = f"{wanted} at {wanted.path} is mounted, but does not work: {_said(e.errno or 0)}"
            raise Transient(said, fault="platform") from e
        return _Seen(wanted, target, mounted=True)

    def _silent(self, wanted: _Wanted, target: str) -> Failure:
        said = f"{wanted}, mounted at {target}, does not answer within {self.answer_within:g}s"
        return TimedOut(said, fault="platform", hint="its server, or the way to it, hangs")

    def _home(self, ctx: Context, wanted: _Wanted, table: list[Mount]) -> tuple[str, Mount]:
        """The directory that is to appear a second time, and the mount in which it lies."""
        source = ctx.real_path(posixpath.join(wanted.text("source"), wanted.subdir))
        homes = (m for m in table if _below(m.target, source))
        return source, max(homes, key=lambda m: len(m.target))

    def _same(self, ctx: Context, wanted: _Wanted, found: Mount, table: list[Mount]) -> bool:
        """Whether a line of the mount table is this storage."""
        if wanted.type == "local":
            source, home = self._home(ctx, wanted, table)
            root = posixpath.join(home.root, posixpath.relpath(source, home.target))
            place = (found.source, found.kind, found.root)
            return place == (home.source, home.kind, posixpath.normpath(root))
        kinds = {"nfs": ("nfs", "nfs4"), "samba": ("cifs", "smb3"), "azurefile": ("cifs", "smb3")}
        if found.kind not in kinds.get(wanted.type, ("fuse.rclone",)):
            return False
        source = wanted.source().rstrip("/")
        if wanted.type == "nfs":
            # Its source is shown with the directory that is mounted.
            return found.source.rstrip("/") == posixpath.join(source, wanted.subdir).rstrip("/")
        # Where the share is itself a directory of one, that may stand in either of both.
        inner = "" if wanted.by_rclone else wanted.subdir
        above = wanted.share().partition("/")[2]
        roots = (inner, posixpath.join(above, inner).strip("/"))
        return found.source.rstrip("/") == source and found.root.strip("/") in roots

    def _check_free(self, ctx: Context, wanted: _Wanted, target: str) -> None:
        """Refuse a mount point that a mount would hide something of."""
        stat = ctx.stat(target)
        if stat is None:
            return
        if stat.kind != "directory":
            raise Permanent(f"the mount point {wanted.path} is no directory", fault="user")
        if there := ctx.list_dir(target):
            said = f"the mount point {wanted.path} is not empty: {there[0]!r} is in it"
            raise Permanent(said, fault="user", hint=_NOT_MINE)

    def plan(self, state: tuple[_Seen, ...]) -> Verdict:
        """Compare."""
        present = self.state == "present"
        todo = [s for s in state if s.mounted != present]
        if not todo:
            return no_change("all are mounted" if present else "none is mounted")
        names = ", ".join(f"{s.wanted} at {s.wanted.path}" for s in todo)
        return will_change(f"{'mount' if present else 'unmount'} {names}")

    # --- changing

    def apply(self, ctx: Context) -> Result:
        """Mount all or nothing, outer ones first; unmount in reverse order."""
        state = self.probe(ctx)
        if self.state == "absent":
            return self._unmount(ctx, [s for s in reversed(state) if s.mounted])
        done: list[_Seen] = []
        try:
            for seen in state:
                if not seen.mounted:
                    self._mount(ctx, seen)
                    done.append(seen)
        except Failure:
            self._unmount(ctx, list(reversed(done)))
            raise
        names = ", ".join(f"{s.wanted} at {s.wanted.path}" for s in done)
        return Result(message=f"mounted {names}")

    def _mount(self, ctx: Context, seen: _Seen) -> None:
        wanted, target = seen.wanted, seen.target
        if seen.dead:
            ctx.unmount(target)
        # Once more: an outer storage that is mounted by now may have something there.
        self._check_free(ctx, wanted, target)
        ctx.make_dir(target)
        if wanted.by_rclone:
            store = _Rclone(ctx, wanted, target)
            try:
                store.mount()
            except Failure:
                store.forget_keys()
                raise
        elif wanted.type == "local":
            self._mount_local(ctx, wanted, target)
        else:
            self._mount_remote(ctx, wanted, target)

    def _mount_local(self, ctx: Context, wanted: _Wanted, target: str) -> None:
        source = wanted.text("source")
        stat = ctx.stat(ctx.real_path(source))
        if stat is None or stat.kind != "directory":
            raise Permanent(f"there is no directory {source} to mount", fault="user")
        self._kernel(ctx, wanted, source, target, None, None)

    def _mount_remote(self, ctx: Context, wanted: _Wanted, target: str) -> None:
        address = ctx.lookup(wanted.server())
        if wanted.type != "nfs":
            data = Secret(_cifs_data(wanted, address))
            self._kernel(ctx, wanted, wanted.source(), target, "cifs", data)
            return
        for version in _NFS_VERSIONS:
            data_text = _nfs_data(wanted, address, version)
            try:
                ctx.mount(wanted.source(), target, "nfs", data=data_text, subdir=wanted.subdir,
                          read_only=wanted.read_only, timeout_s=_MOUNT_S)  # fmt: skip
            except OSError as e:
                if e.errno in _VERSIONS and version != _NFS_VERSIONS[-1]:
                    continue
                raise _refused(ctx, wanted, e) from e
            except TimedOut:
                raise self._no_answer(wanted) from None
            return

    def _kernel(
        self,
        ctx: Context,
        wanted: _Wanted,
        source: str,
        target: str,
        kind: str | None,
        data: Secret | None,
    ) -> None:
        try:
            ctx.mount(source, target, kind, data=data, subdir=wanted.subdir,
                      read_only=wanted.read_only, timeout_s=_MOUNT_S)  # fmt: skip
        except OSError as e:
            raise _refused(ctx, wanted, e) from e
        except TimedOut:
            raise self._no_answer(wanted) from None

    def _no_answer(self, wanted: _Wanted) -> Failure:
        hint = "it hangs, or a firewall or network policy drops what is sent to it"
        return TimedOut(f"the server of {wanted} does not answer", fault="platform", hint=hint)

    def _unmount(self, ctx: Context, mounted: list[_Seen]) -> Result:
        late: list[str] = []
        for seen in mounted:
            store = _Rclone(ctx, seen.wanted, seen.target) if seen.wanted.by_rclone else None
            unwritten = store.wait_until_written() if store else []
            try:
                ctx.unmount(seen.target)
            except OSError as e:
                raise _refused(ctx, seen.wanted, e) from e
            if store is not None:
                store.forget_keys()
                if not unwritten:
                    store.forget_copies()
            late += unwritten
        message = f"unmounted {', '.join(s.wanted.path for s in mounted)}"
        if late:
            names = ", ".join(late[:5]) + (" and more" if len(late) > 5 else "")
            message += f"; not written to the store: {names}"
            ctx.log(message)
        return Result(message=message)


def _expanded(ctx: Context, name: str, value: Value) -> Value:
    """A place with the variables that OpenPAI's administrators may have left to the shell."""
    if name not in _PLACES or not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        variable = match[1] or match[2]
        if variable not in ctx.env:
            raise Permanent(f"the variable {variable} in '{name}' is not set", fault="platform")
        return ctx.env[variable]

    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", fill, value)


def _below(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class _Rclone:
    """An object store, mounted by rclone.

    Its configuration file is for this user alone, and is its only way to a secret.
    """

    def __init__(self, ctx: Context, wanted: _Wanted, target: str) -> None:
        self._ctx = ctx
        self._wanted = wanted
        self._target = target
        self._home = posixpath.join(ctx.pai_dir, "storage")
        self._name = target.strip("/").replace("_", "__").replace("/", "_")
        self._config = posixpath.join(self._home, f"{self._name}.conf")
        self._log = posixpath.join(self._home, f"{self._name}.log")
        self._cache = posixpath.join(self._home, f"{self._name}.cache")

    def mount(self) -> None:
        """Check that the store answers, then mount it."""
        ctx, wanted = self._ctx, self._wanted
        if ctx.stat("/dev/fuse") is None:
            hint = (
                "the platform gives the device /dev/fuse to the user's container, with its rights"
            )
            said = f"there is no /dev/fuse in this container to mount {wanted}"
            raise Permanent(said, fault="platform", hint=hint)
        program = self._program()
        ctx.make_dir(self._home, 0o700)
        lines = ["[storage]", *(f"{n} = {v}" for n, v in _rclone_settings(wanted).items())]
        ctx.write_file(self._config, ("\n".join(lines) + "\n").encode(), 0o600)
        ctx.remove(self._log)
        self._check(program)
        argv = [
            program, "mount", f"storage:{wanted.remote()}", self._target, "--config", self._config,
            "--daemon", "--daemon-wait", "30s", "--allow-other", "--devname", wanted.source(),
            "--cache-dir", self._cache, "--vfs-cache-mode", "writes", "--vfs-write-back", "1s",
            "--log-file", self._log, *(["--read-only"] if wanted.read_only else []),
        ]  # fmt: skip
        # It would wait for the whole time also when the daemon has long said that it cannot.
        done = ctx.run(argv, env=self._environment(), capture=True, until=self._has_failed)
        if not any(m.target == self._target for m in ctx.mounts()) or done.code != 0:
            told = done.stderr + (ctx.read_file(self._log) or b"")
            raise _rclone_failed(wanted, told.decode(errors="replace"))
        try:
            ctx.free_bytes(self._target)
        except (OSError, TimedOut) as e:
            ctx.unmount(self._target)
            raise Transient(f"{wanted} was mounted, but does not answer") from e

    def _has_failed(self) -> bool:
        return b"Fatal error" in (self._ctx.read_file(self._log) or b"")

    def _program(self) -> str:
        ctx = self._ctx
        for folder in self._tools():
            if ctx.stat(path := posixpath.join(folder, "rclone")) is not None:
                return path
        if (found := ctx.which("rclone")) is not None:
            return found
        hint = "pairun's image brings it where it was built with it; or install rclone and fuse"
        raise Permanent(f"there is no rclone to mount {self._wanted}", fault="platform", hint=hint)

    def _tools(self) -> list[str]:
        named = self._ctx.env.get("PAIRUN_TOOLS")
        return [posixpath.join(self._ctx.pai_dir, "tools"), *([named] if named else [])]

    def _environment(self) -> dict[str, str | Secret | None]:
        """Without what would change rclone's settings; its helper is looked for with ours."""
        ctx = self._ctx
        env: dict[str, str | Secret | None] = dict.fromkeys(
            n for n in ctx.env if n.startswith(("RCLONE_", "AWS_"))
        )
        env["PATH"] = ":".join([*self._tools(), ctx.env.get("PATH") or os.defpath])
        authorities = posixpath.join(ctx.pai_dir, "runtime.d", "ca-certificates.crt")
        if "SSL_CERT_FILE" not in ctx.env and ctx.stat(authorities) is not None:
            env["SSL_CERT_FILE"] = authorities
        return env

    def _check(self, program: str) -> None:
        """List the store: mounting alone asks it nothing."""
        wanted = self._wanted
        done = self._list(program, wanted.remote())
        if done[0] == 3 and wanted.subdir:
            # A sub-directory without objects does not exist; the bucket must.
            done = self._list(program, wanted.root())
        if done[0] != 0:
            raise _rclone_failed(wanted, done[1])

    def _list(self, program: str, remote: str) -> tuple[int, str]:
        argv = [
            program, "lsf", f"storage:{remote}", "--config", self._config, "--max-depth", "1",
            "--retries", "1", "--low-level-retries", "1", "--contimeout", "5s", "--timeout", "10s",
        ]  # fmt: skip
        try:
            done = self._ctx.query(argv, env=self._environment(), timeout_s=_CHECK_S)
        except TimedOut:
            if (left := self._ctx.remaining_s()) is not None and left <= 1:
                raise
            # Silence ends it after 10 s: it is a long list that is still coming.
            return 0, ""
        return done.code, done.stderr.decode(errors="replace")

    def wait_until_written(self) -> list[str]:
        """Wait, as long as there is time, for what rclone has still to upload.

        It keeps a file about each file in its cache, which says whether it is still "dirty".
        """
        ctx = self._ctx
        while dirty := list(self._dirty(posixpath.join(self._cache, "vfsMeta"))):
            left = ctx.remaining_s()
            if left is not None and left < 3:
                return dirty
            ctx.sleep(_WRITE_BACK_POLL_S)
        return []

    def forget_keys(self) -> None:
        """Remove the configuration file."""
        self._ctx.remove(self._config)

    def forget_copies(self) -> None:
        """Remove what files were read and written through."""
        self._ctx.remove(self._cache)

    def _dirty(self, folder: str) -> Iterator[str]:
        for name in self._ctx.list_dir(folder) or ():
            path = posixpath.join(folder, name)
            stat = self._ctx.stat(path)
            if stat is not None and stat.kind == "directory":
                yield from self._dirty(path)
            elif stat is not None and _is_dirty(self._ctx.read_file(path)):
                yield name


def _is_dirty(data: bytes | None) -> bool:
    try:
        found: Any = json.loads(data or b"{}")
    except ValueError:
        return True  # it is being written
    return bool(isinstance(found, dict) and found.get("Dirty"))
