"""Sizes: for people, and as Kubernetes writes quantities."""

from __future__ import annotations


def format_size(count: int) -> str:
    """A number of bytes for people: ``512 bytes``, ``1.5 MiB``."""
    if count < 1024:
        return f"{count} byte" + ("s" if count != 1 else "")
    size, units = count / 1024, ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while size >= 999.5 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.3g} {units[0]}"


QUANTITY = r"^[0-9]+(\.[0-9]+)?([eE][0-9]+|[EPTGMk]i?|Ki|m)?$"
"""A Kubernetes quantity, such as ``500m``, ``2`` or ``16Gi``."""

_SUFFIXES = {
    "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
}  # fmt: skip


def quantity(text: object) -> float | None:
    """The number that a Kubernetes quantity represents; None for anything else.

    https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
    """
    word = str(text)
    suffix = next((s for s in sorted(_SUFFIXES, key=len, reverse=True) if word.endswith(s)), "")
    try:
        return float(word.removesuffix(suffix)) * _SUFFIXES.get(suffix, 1)
    except ValueError:
        return None
