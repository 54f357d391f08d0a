"""Errors of the operating system as failures: kind, fault and hint."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from pairun.module import Failure, Fault, Permanent, Transient

_TRANSIENT: dict[int, tuple[Fault, str | None]] = {
    errno.ENOSPC: ("unknown", "free space on that file system, or write elsewhere"),
    errno.EDQUOT: ("unknown", "free space within the quota, or write elsewhere"),
    errno.EIO: ("platform", None),
    errno.ESTALE: ("platform", None),
    errno.ETIMEDOUT: ("platform", None),
    errno.EHOSTDOWN: ("platform", None),
    errno.ENOMEM: ("unknown", None),
    errno.EMFILE: ("unknown", None),
    errno.ENFILE: ("platform", None),
    errno.EAGAIN: ("platform", None),
}
"""Errors that may be temporary, with fault and hint. All others are permanent."""

_HINTS = {
    errno.EROFS: "choose another path: this file system is read-only",
    errno.EACCES: "choose a path that this user may write to",
    errno.EPERM: "choose a path that this user may write to",
    errno.EBUSY: "choose a path below it: it is a mount point",
}


def failure(error: OSError | ValueError, doing: str) -> Failure:
    """The failure for an error of the operating system.

    Args:
        error: the error; a `ValueError` means a path with a NUL in it.
        doing: the action, with the path: ``write /x``.
    """
    code = error.errno if isinstance(error, OSError) else None
    reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    sentence = f"cannot {doing}: {reason[:1].lower()}{reason[1:]}"
    if code in _TRANSIENT:
        fault, hint = _TRANSIENT[code]
        return Transient(sentence, fault=fault, hint=hint)
    return Permanent(sentence, fault="user", hint=_HINTS.get(code or 0))


@contextlib.contextmanager
def os_failures(doing: str) -> Iterator[None]:
    """Turn an error of the operating system into a `Failure`.

    Args:
        doing: the action, with the path: ``write /x``.
    """
    try:
        yield
    except (OSError, ValueError) as e:
        raise failure(e, doing) from e


@contextlib.contextmanager
def removing(path: str) -> Iterator[None]:
    """Turn an error of a removal into a `Failure`.

    Args:
        path: the path to remove; the failure is temporary if another process keeps writing into it.
    """
    with os_failures(f"remove {path}"):
        try:
            yield
        except OSError as e:
            if e.errno == errno.ENOTEMPTY:
                raise Transient(f"cannot remove {path}: a process keeps writing into it") from e
            raise
