"""The variants of an image for several platforms."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pairun.module import Permanent, Transient

from .platforms import platform_of
from .reference import check_digest


def variants_for(listed: Iterable[Any], architectures: Collection[str]) -> dict[str, str]:
    """Platform to digest of the variants that run on nodes of some architectures.

    Args:
        listed: the descriptors of an index (OCI image index specification, "manifests").
        architectures: in Go's words; empty for those of all Linux nodes.

    Raises:
        Permanent: an architecture has no variant.
        Transient: there is no variant at all.
    """
    digests: dict[str, str] = {}
    for variant in listed:
        digest = variant.get("digest") if isinstance(variant, dict) else None
        platform = platform_of(variant.get("platform") if isinstance(variant, dict) else 0)
        try:
            check_digest(digest if isinstance(digest, str) else "")
        except ValueError:
            continue
        # Builders mark their attestations as unknown; a variant may name no platform.
        if platform is None or platform.os == "linux":
            digests.setdefault(str(platform or "linux"), str(digest))
    if not digests:
        raise Transient("the image has no variant for Linux")
    for architecture in architectures:
        if not any(_is_for(platform, architecture) for platform in digests):
            raise Permanent(
                f"it is not built for linux/{architecture}, only for {', '.join(digests)}",
                fault="user",
                hint="build it for that platform too, or choose another image or other nodes",
            )
    return {p: d for p, d in digests.items() if not architectures or _is_any(p, architectures)}


def _is_any(platform: str, architectures: Iterable[str]) -> bool:
    return any(_is_for(platform, architecture) for architecture in architectures)


def _is_for(platform: str, architecture: str) -> bool:
    return platform == "linux" or platform.split("/")[1] == architecture
