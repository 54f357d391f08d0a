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
_PRIVILEGE_HINT = (
    "mounting needs root and CAP_SYS_ADMIN in the user's container, and a seccomp and AppArmor "
    "profile that allow it: let the platform grant them, or mount the storage itself"
)


def not_privileged(at: str) -> Permanent:
    """The failure of a container that may not mount at all."""
    message = f"this container may not mount {at}"
    return Permanent(message, fault="platform", hint=_PRIVILEGE_HINT)


def _lacks_privilege(ctx: Context) -> bool:
    """Whether this process lacks CAP_SYS_ADMIN (number 21 of capabilities(7))."""
    match = re.search(
        rb"^CapEff:\s*([0-9a-f]+)", ctx.read_file("/proc/self/status") or b"", re.MULTILINE
    )
    return match is not None and not int(match[1], 16) >> 21 & 1


def mount_refused(ctx: Context, storage: Storage, error: OSError) -> Failure:
    """The failure for an error number of the kernel or the server."""
    code, at, kind = error.errno or errno.EIO, f"{storage} at {storage.path}", storage.type
    if code == errno.EPERM and _lacks_privilege(ctx):
        return not_privileged(at)
    if storage.subdir and error.filename == storage.subdir:
        return _subdir_refused(storage, code)
    if code == errno.ENODEV:
        message = f"the node's kernel has no {_KERNELS[kind]}: {at}"
        hint = f"the node's kernel needs the module {_MODULES.get(kind, '')}: modprobe it"
        return Permanent(message, fault="platform", hint=hint)
    if kind == "local":
        return Permanent(f"cannot mount {at}: {error_text(code)}", fault="user")
    if code in _UNREACHABLE:
        message = f"the server of {at} cannot be reached: {_UNREACHABLE[code]}"
        return Transient(message, fault="platform", hint="check for a firewall or network policy")
    if code in (errno.EACCES, errno.EPERM, errno.EKEYREJECTED, errno.ENOKEY):
        hint = "check the user name, the password, and their rights to this share"
        if kind == "nfs":
            hint = "check the server's list of exports: it may exclude this host"
        hint += "; a container's AppArmor profile that forbids mounting causes the same error"
        return Permanent(f"the server refuses {at}: {error_text(code)}", fault="user", hint=hint)
    if code in (errno.ENOENT, errno.ENXIO, errno.ENOTDIR):
        what = "export" if kind == "nfs" else "share"
        return Permanent(f"the server has no such {what}: {at}", fault="user")
    if code in OTHER_VERSION:
        message = f"the server does not speak the protocol's version: {at}"
        return Permanent(message, fault="platform", hint="try options: ['vers=…']")
    if code == errno.EINVAL:
        hint = "check the options and names: this kernel does not accept one of them"
        return Permanent(f"the kernel refuses the options of {at}", fault="user", hint=hint)
    return Permanent(f"cannot mount {at}: {error_text(code)}")


def _subdir_refused(storage: Storage, code: int) -> Failure:
    why = f"cannot be created or entered: {error_text(code)}"
    if code == errno.EROFS:
        why = "does not exist, and a read-only mount cannot create it"
    elif code in (errno.ELOOP, errno.ENOTDIR):
        why = "is not a directory, or a link is in its path"
    return Permanent(f"the sub-directory of {storage} {why}", fault="user")


def error_text(code: int) -> str:
    """The system's text of an error number, in lower case."""
    text = os.strerror(code)
    return text[:1].lower() + text[1:]
