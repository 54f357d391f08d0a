"""An object store, mounted by rclone."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator

from pairun.module import (
    Context,
    Failure,
    NoSuchHost,
    Permanent,
    Secret,
    TimedOut,
    Transient,
    parse_record,
    reveal,
)

from .refusals import not_privileged
from .storage import Storage, secret_values

_CHECK_S = 60.0
_WRITE_BACK_POLL_S = 0.25
_RCLONE_REFUSED = re.compile(
    "AccessDenied|SignatureDoesNotMatch|InvalidAccessKeyId|AuthenticationFailed|Authentication"
    "|AuthorizationFailure|Forbidden|[Pp]ermission denied|StatusCode=40[13]|status code: 40[13]"
)
_RCLONE_MISSING = re.compile("NoSuchBucket|ContainerNotFound|directory not found|StatusCode=404")
_RCLONE_NO_HOST = re.compile(r"lookup ([\w.-]{1,253})(?: on [^:\s]+(?::\d+)?)?: no such host")
"""Go's net.DNSError with IsNotFound; for a silent name server it prints another message."""
_RCLONE_UNREACHABLE = re.compile(
    "connection refused|no route|unreachable|timeout|timed out|deadline exceeded"
    "|connection reset|EOF|server misbehaving|status code: 5|StatusCode=5"
)
_RCLONE_SETTINGS = re.compile(
    "no authentication method|failed to parse credentials|illegal base64|not specified"
    "|didn't find backend"
)
_RCLONE_TIME = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d (?:[A-Z]+ *: )?")
"""The start of a line in rclone's log."""

_SETTINGS = {
    "azureblob": {name: name for name in ("account", "key", "sas_url", "endpoint")},
    "s3": {"access_key_id": "access_key", "secret_access_key": "secret_key",
           **{name: name for name in ("endpoint", "region", "provider")}},
    "hdfs": {name: name for name in ("namenode", "username")},
}  # fmt: skip
"""rclone's settings for each type of storage, and the fields with their values."""

_FUSE_REFUSED = re.compile("fusermount.*(Operation not permitted|Permission denied)|fuse: device")


class RcloneMount:
    """An object store that rclone mounts.

    Only its configuration file contains secrets; only this user may read it.
    """

    def __init__(self, ctx: Context, storage: Storage, target: str) -> None:
        self._ctx, self._storage, self._target = ctx, storage, target
        self._home = posixpath.join(ctx.pai_dir, "storage")
        name = posixpath.join(self._home, target.strip("/").replace("_", "__").replace("/", "_"))
        self._config, self._log, self._cache = (f"{name}.{end}" for end in ("conf", "log", "cache"))

    def mount(self) -> None:
        """Check that the store answers, then mount it."""
        ctx, storage = self._ctx, self._storage
        if ctx.stat("/dev/fuse") is None:
            hint = "ask the platform for the device /dev/fuse in the user's container, and the rights to use it"
            message = f"there is no /dev/fuse in this container to mount {storage}"
            raise Permanent(message, fault="platform", hint=hint)
        program = self._program()
        ctx.make_dir(self._home, 0o700)
        lines = ["[storage]", *(f"{n} = {v}" for n, v in _rclone_settings(storage).items())]
        ctx.write_file(self._config, ("\n".join(lines) + "\n").encode(), 0o600)
        ctx.remove(self._log)
        self._check(program)
        argv = [
            program, "mount", f"storage:{storage.remote()}", self._target, "--config", self._config,
            "--daemon", "--daemon-wait", "30s", "--allow-other", "--devname", storage.source(),
            "--cache-dir", self._cache, "--vfs-cache-mode", "writes", "--vfs-write-back", "1s",
            "--log-file", self._log, *(["--read-only"] if storage.read_only else []),
        ]  # fmt: skip
        # rclone waits for the whole time even if the daemon has already failed.
        done = ctx.run(argv, env=self._environment(), capture=True, until=self._has_failed)
        if not any(m.target == self._target for m in ctx.mounts()) or done.code != 0:
            output = done.stderr + (ctx.read_file(self._log) or b"")
            raise _rclone_failed(storage, output.decode(errors="replace"))
        try:
            ctx.free_bytes(self._target)
        except (OSError, TimedOut) as e:
            ctx.unmount(self._target)
            raise Transient(f"{storage} was mounted, but does not answer") from e

    def _has_failed(self) -> bool:
        return b"Fatal error" in (self._ctx.read_file(self._log) or b"")

    def _program(self) -> str:
        ctx = self._ctx
        for folder in self._tools():
            if ctx.stat(path := posixpath.join(folder, "rclone")) is not None:
                return path
        if (installed := ctx.which("rclone")) is not None:
            return installed
        hint = "use a pairun image that was built with rclone, or install rclone and fuse"
        raise Permanent(f"there is no rclone to mount {self._storage}", fault="platform", hint=hint)

    def _tools(self) -> list[str]:
        named = self._ctx.env.get("PAIRUN_TOOLS")
        return [posixpath.join(self._ctx.pai_dir, "tools"), *([named] if named else [])]

    def _environment(self) -> dict[str, str | Secret | None]:
        """Our tools first in PATH, and no variables that change rclone's settings."""
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
        """List the store, because a mount alone sends no request."""
        storage = self._storage
        code, errors = self._list(program, storage.remote())
        if code == 3 and storage.subdir:
            # A subdirectory without objects does not exist, but the bucket must exist.
            code, errors = self._list(program, storage.root())
        if code != 0:
            raise _rclone_failed(storage, errors)

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
            # rclone gives up after 10 s of silence, so the list is long.
            return 0, ""
        return done.code, done.stderr.decode(errors="replace")

    def wait_until_written(self) -> list[str]:
        """Wait within the time limit until rclone has uploaded everything.

        Returns:
            The files that are not uploaded.

        For each file rclone keeps a state file in its cache, which shows whether the file is
        "dirty".
        """
        ctx = self._ctx
        while dirty := list(self._dirty(posixpath.join(self._cache, "vfsMeta"))):
            left = ctx.remaining_s()
            if left is not None and left < 3:
                return dirty
            ctx.sleep(_WRITE_BACK_POLL_S)
        return []

    def forget(self, *, copies: bool) -> None:
        """Remove the configuration file with the keys, and the cached files too with ``copies``."""
        for path in (self._config, self._cache) if copies else (self._config,):
            self._ctx.remove(path)

    def _dirty(self, folder: str) -> Iterator[str]:
        for name in self._ctx.list_dir(folder) or ():
            path = posixpath.join(folder, name)
            stat = self._ctx.stat(path)
            if stat is not None and stat.kind == "directory":
                yield from self._dirty(path)
            elif stat is not None and _is_dirty(self._ctx.read_file(path)):
                yield name


def _rclone_settings(storage: Storage) -> dict[str, str]:
    """The settings in a section of rclone's configuration file."""
    if storage.type == "rclone":
        return {name: reveal(value) for name, value in storage.settings().items()}
    settings = {name: storage.secret(given) for name, given in _SETTINGS[storage.type].items()}
    # rclone requires a user for hdfs; Hadoop's own client would send root, who mounts.
    defaults = {"provider": "Other" if settings.get("endpoint") else "AWS", "username": "root"}
    settings = {name: value or defaults.get(name, "") for name, value in settings.items()}
    return {"type": storage.type, **{n: v for n, v in settings.items() if v}}


def _rclone_failed(storage: Storage, output: str) -> Failure:
    """The failure for rclone's output, without secrets."""
    at = f"{storage} at {storage.path}"
    if _FUSE_REFUSED.search(output):
        return not_privileged(at)
    if _RCLONE_REFUSED.search(output):
        hint = "check the key, and its rights"
        return Permanent(f"the server refuses {at}", fault="user", hint=hint)
    if _RCLONE_MISSING.search(output):
        return Permanent(f"the server has no such bucket or directory: {at}", fault="user")
    if missing := _RCLONE_NO_HOST.search(output):
        return NoSuchHost(f"{missing[1]}: no such host")
    if _RCLONE_UNREACHABLE.search(output):
        return Transient(f"the server of {at} cannot be reached", fault="platform")
    for value in sorted(secret_values(storage), key=len, reverse=True):
        output = output.replace(value, "******")
    last = output.strip().splitlines()[-1:] or ["no output"]
    words = f"rclone cannot mount {at}: {_RCLONE_TIME.sub('', last[0])[:300]}"
    if _RCLONE_SETTINGS.search(output):
        return Permanent(words, fault="user", hint="correct the storage's fields or settings")
    return Transient(words)


def _is_dirty(data: bytes | None) -> bool:
    item = parse_record(data or b"{}")
    return item is None or bool(item.get("Dirty"))  # None: rclone is writing it
