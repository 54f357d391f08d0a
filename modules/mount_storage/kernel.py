"""Mounts directories and network file systems by mount(2) alone."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from pairun.module import Context, Permanent, Secret, TimedOut

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
    _mount(ctx, storage, target, None, [None])


def mount_remote(ctx: Context, storage: Storage, target: str) -> None:
    """Mount a network file system; NFS with the newest version of the server.

    Raises:
        Failure: it cannot be mounted.
    """
    address = ctx.lookup(storage.server())
    if storage.type == "nfs":
        options = [_nfs_options(storage, address, version) for version in _NFS_VERSIONS]
        _mount(ctx, storage, target, "nfs", options)
    else:
        _mount(ctx, storage, target, "cifs", [Secret(_cifs_options(storage, address))])


def _mount(
    ctx: Context,
    storage: Storage,
    target: str,
    kind: str | None,
    options: Sequence[str | Secret | None],
) -> None:
    """Mount with the first options whose version of the protocol the server speaks."""
    for number, data in enumerate(options, 1):
        try:
            ctx.mount(storage.source(), target, kind, data=data, subdir=storage.subdir,
                      read_only=storage.read_only, timeout_s=_MOUNT_S)  # fmt: skip
        except TimedOut:
            hint = "it hangs, or a firewall or network policy drops the traffic to it"
            message = f"the server of {storage} does not answer"
            raise TimedOut(message, fault="platform", hint=hint) from None
        except OSError as e:
            if e.errno not in OTHER_VERSION or number == len(options):
                raise mount_refused(ctx, storage, e) from e
        else:
            return


def _nfs_options(storage: Storage, address: str, version: str) -> str:
    """Options of nfs(5) for the kernel, which resolves no names and negotiates nothing."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    own = "0.0.0.0" if family == socket.AF_INET else "::"
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 2049))
            own = probe.getsockname()[0]
    except OSError:
        pass  # without a route, mount(2) reports the error
    given = storage.options()
    version_given = any(o.partition("=")[0] in ("vers", "nfsvers") for o in given)
    words = [] if version_given else [f"vers={version}"]
    return ",".join([*words, f"addr={address}", f"clientaddr={own}", *given])


def _cifs_options(storage: Storage, address: str) -> str:
    """Options of mount.cifs(8) for the kernel, with every comma in a value doubled."""
    share, _, prefix = storage.share().partition("/")
    azure = storage.type == "azurefile"
    user = storage.secret("account" if azure else "username")
    given = [o.partition("=")[0] for o in storage.options()]
    unc = _doubled(rf"\\{storage.server()}\{share}")
    words = [f"ip={address}", f"unc={unc}"]
    if prefix:
        words.append(f"prefixpath={_doubled(prefix)}")
    if "vers" not in given:
        words.append("vers=3.0")
    if azure:
        words += [w for w in ("dir_mode=0777", "file_mode=0777", "serverino")
                  if w.partition("=")[0] not in given]  # fmt: skip
    words += storage.options()
    if not user:
        words.append("sec=none")
    else:
        words.append(f"user={_doubled(user)}")
        if domain := storage.secret("domain"):
            words.append(f"domain={_doubled(domain)}")
        # Last: nothing may follow a comma at its end.
        password = storage.secret("key" if azure else "password")
        words.append(f"pass={_doubled(password)}")
    return ",".join(words)


def _doubled(value: str) -> str:
    return value.replace(",", ",,")
