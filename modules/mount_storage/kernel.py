"""Mounts directories and network file systems by mount(2) alone."""

from __future__ import annotations

from pairun.module import Context, Failure, Permanent, Secret, TimedOut

from .options import cifs_options, nfs_options
from .refusals import OTHER_VERSION, mount_refused
from .storage import Storage

_NFS_VERSIONS = ("4.2", "4.1", "4.0")
_MOUNT_S = 60.0


def mount_directory(ctx: Context, storage: Storage, target: str) -> None:
    """Mount a directory of this container a second time.

    Raises:
        Failure: it cannot be mounted.
    """
    source = storage.text("source")
    stat = ctx.stat(ctx.real_path(source))
    if stat is None or stat.kind != "directory":
        raise Permanent(f"there is no directory {source} to mount", fault="user")
    try:
        _mount(ctx, storage, source, target, None, None)
    except OSError as e:
        raise mount_refused(ctx, storage, e) from e


def mount_remote(ctx: Context, storage: Storage, target: str) -> None:
    """Mount a network file system; NFS with the newest version of the server.

    Raises:
        Failure: it cannot be mounted.
    """
    address = ctx.lookup(storage.server())
    try:
        if storage.type != "nfs":
            options = Secret(cifs_options(storage, address))
            _mount(ctx, storage, storage.source(), target, "cifs", options)
            return
        for version in _NFS_VERSIONS:
            try:
                options_text = nfs_options(storage, address, version)
                _mount(ctx, storage, storage.source(), target, "nfs", options_text)
            except OSError as e:
                if e.errno not in OTHER_VERSION or version == _NFS_VERSIONS[-1]:
                    raise
            else:
                return
    except OSError as e:
        raise mount_refused(ctx, storage, e) from e


def _mount(
    ctx: Context,
    storage: Storage,
    source: str,
    target: str,
    kind: str | None,
    options: str | Secret | None,
) -> None:
    try:
        ctx.mount(source, target, kind, data=options, subdir=storage.subdir,
                  read_only=storage.read_only, timeout_s=_MOUNT_S)  # fmt: skip
    except TimedOut:
        raise _no_answer(storage) from None


def _no_answer(storage: Storage) -> Failure:
    hint = "it hangs, or a firewall or network policy drops the traffic to it"
    return TimedOut(f"the server of {storage} does not answer", fault="platform", hint=hint)
