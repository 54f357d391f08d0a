"""The meaning of mount(2)'s errors for a storage."""

from __future__ import annotations

import errno
import os
import re

from pairun.module import Context, Failure, Permanent, Transient

from .storage import Storage

_UNREACHABLE = {
    errno.ECONNREFUSED: "nothing listens there",
    errno.EHOSTDOWN: "it is down",
    errno.EHOSTUNREACH: "there is no route to it",
    errno.ENETUNREACH: "there is no route to its network",
    errno.ETIMEDOUT: "it does not answer",
    errno.ECONNRESET: "it broke the connection",
    errno.ECONNABORTED: "it broke the connection",
    errno.EIO: "it does not answer properly",
    errno.EAGAIN: "it does not answer properly",
    errno.EINPROGRESS: "it does not answer",
}
OTHER_VERSION = (errno.EPROTONOSUPPORT, errno.EOPNOTSUPP, errno.EPROTO)
_KERNELS = {"nfs": "nfs", "samba": "cifs", "azurefile": "cifs", "local": "bind mounts"}
_MODULES = {"nfs": "nfs and nfsv4", "samba": "cifs", "azurefile": "cifs"}
PRIVILEGE_HINT = (
    "mounting needs root and CAP_SYS_ADMIN in the user's container, and a seccomp and AppArmor "
    "profile that allow it: let the platform grant them, or mount the storage itself"
)


def _lacks_privilege(ctx: Context) -> bool:
    """Whether this process lacks CAP_SYS_ADMIN (number 21 of capabilities(7))."""
    match = re.search(
        rb"^CapEff:\s*([0-9a-f]+)", ctx.read_file("/proc/self/status") or b"", re.MULTILINE
    )
    return match is not None and not int(match[1], 16) >> 21 & 1


def mount_refused(ctx: Context, storage: Storage, error: OSError) -> Failure:
    """The failure for an error number of the kernel or the server."""
    code, at = error.errno or errno.EIO, f"{storage} at {storage.path}"
    if code == errno.EPERM and _lacks_privilege(ctx):
        return Permanent(
            f"this container may not mount {at}", fault="platform", hint=PRIVILEGE_HINT
        )
    if storage.subdir and error.filename == storage.subdir:
        return _subdir_refused(storage, code)
    if code == errno.ENODEV:
        hint = f"the node's kernel needs the module {_MODULES.get(storage.type, '')}: modprobe it"
        return Permanent(
            f"the node's kernel has no {_KERNELS[storage.type]}: {at}", fault="platform", hint=hint
        )
    if storage.type == "local":
        return Permanent(f"cannot mount {at}: {error_text(code)}", fault="user")
    if code in _UNREACHABLE:
        message = f"the server of {at} cannot be reached: {_UNREACHABLE[code]}"
        return Transient(message, fault="platform", hint="check for a firewall or network policy")
    if code in (errno.EACCES, errno.EPERM, errno.EKEYREJECTED, errno.ENOKEY):
        hint = (
            "check the user name, the password, and their rights to this share"
            if storage.type != "nfs"
            else "check the server's list of exports: it may exclude this host"
        )
        hint += "; a container's AppArmor profile that forbids mounting causes the same error"
        return Permanent(f"the server refuses {at}: {error_text(code)}", fault="user", hint=hint)
    if code in (errno.ENOENT, errno.ENXIO, errno.ENOTDIR):
        what = "export" if storage.type == "nfs" else "share"
        return Permanent(f"the server has no such {what}: {at}", fault="user")
    if code in OTHER_VERSION:
        hint = "try options: ['vers=…']"
        return Permanent(
            f"the server does not speak the protocol's version: {at}", fault="platform", hint=hint
        )
    if code == errno.EINVAL:
        hint = "check the options and names: this kernel does not accept one of them"
        return Permanent(f"the kernel refuses the options of {at}", fault="user", hint=hint)
    return Permanent(f"cannot mount {at}: {error_text(code)}")


def _subdir_refused(storage: Storage, code: int) -> Failure:
    where = f"the sub-directory of {storage}"
    if code == errno.EROFS:
        message = f"{where} does not exist, and a read-only mount cannot create it"
        return Permanent(message, fault="user")
    if code in (errno.ELOOP, errno.ENOTDIR):
        return Permanent(f"{where} is not a directory, or a link is in its path", fault="user")
    return Permanent(f"{where} cannot be created or entered: {error_text(code)}", fault="user")


def error_text(code: int) -> str:
    """The system's text of an error number, in lower case."""
    text = os.strerror(code)
    return text[:1].lower() + text[1:]
