"""The options of a network file system, in the kernel's format."""

from __future__ import annotations

import socket

from .storage import Storage


def nfs_options(storage: Storage, address: str, version: str) -> str:
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
    return ",".join(
        [
            *([] if version_given else [f"vers={version}"]),
            f"addr={address}",
            f"clientaddr={own}",
            *given,
        ]
    )


def cifs_options(storage: Storage, address: str) -> str:
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
