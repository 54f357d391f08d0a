"""The platforms that images are built for, in Go's words (GOOS, GOARCH)."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from pairun.module import Permanent, Transient

from .reference import is_digest

_ALIASES = {
    "x86_64": "amd64", "i386": "386", "i686": "386", "aarch64": "arm64", "armv7l": "arm/v7",
    "armv6l": "arm/v6", "armhf": "arm/v7", "loongarch64": "loong64",
}  # fmt: skip
# Other names that container engines accept for such a machine.
_ALSO_RUNS = {"amd64": "386", "arm64": "arm"}
KNOWN_PLATFORM = re.compile(
    "(linux|windows|darwin|freebsd)/(386|amd64|arm(64)?|loong64|mips(64)?(le)?|ppc64(le)?|riscv64|"
    r"s390x)(/v[0-9]{1,2}(\.[0-9])?)?"
)


class Platform(NamedTuple):
    """The platform of an image, in Go's words; the variant is empty if none is given."""

    os: str
    architecture: str
    variant: str

    def __str__(self) -> str:
        return "/".join(filter(None, self))

    def runs(self, image: Platform) -> bool:
        """Whether it runs such an image; if both have a variant, the image's may be older."""
        if self.os != image.os:
            return False
        if self.architecture != image.architecture:
            return _ALSO_RUNS.get(self.architecture) == image.architecture
        own, offered = (re.findall("[0-9]{1,9}", p.variant) for p in (self, image))
        return not own or list(map(int, offered)) <= list(map(int, own))


def parse_platform(text: str) -> Platform:
    """Parse ``OS/ARCHITECTURE[/VARIANT]``; ``node`` is the machine this runs on."""
    if text == "node":
        text = f"linux/{os.uname().machine}"
    system, _, rest = text.lower().partition("/")
    architecture, _, variant = rest.partition("/")
    architecture, _, implied = _ALIASES.get(architecture, architecture).partition("/")
    return Platform(system, architecture, variant or implied)


def platform_of(described: Mapping[str, Any]) -> Platform | None:
    """The platform that a descriptor or an image's configuration names."""
    named = [described.get(k) for k in ("os", "architecture", "variant")]
    names = [n if isinstance(n, str) else "" for n in named]
    return parse_platform("/".join(names)) if names[0] and names[1] else None


def platforms_in(listed: Iterable[Any]) -> Iterable[tuple[Platform | None, Any]]:
    """The platform and the digest of each descriptor of an index (OCI image index, "manifests").

    Builders mark their attestations as unknown; a variant may name no platform.
    """
    for variant in listed:
        descriptor = variant if isinstance(variant, dict) else {}
        platform = descriptor.get("platform")
        parsed = platform_of(platform if isinstance(platform, dict) else {})
        if parsed is None or parsed.os != "unknown":
            yield parsed, descriptor.get("digest")


def variants_for(listed: Iterable[Any], architectures: Collection[str]) -> dict[str, str]:
    """Platform to digest of the variants that run on nodes of some architectures.

    Args:
        listed: the descriptors of an index.
        architectures: in Go's words; empty for those of all Linux nodes.

    Raises:
        Permanent: an architecture has no variant.
        Transient: there is no variant at all.
    """
    digests: dict[str, str] = {}
    for platform, digest in platforms_in(listed):
        if is_digest(digest) and (platform is None or platform.os == "linux"):
            digests.setdefault(str(platform or "linux"), digest)
    if not digests:
        raise Transient("the image has no variant for Linux")
    chosen: dict[str, str] = {} if architectures else digests
    for architecture in architectures:
        fit = {p: d for p, d in digests.items() if p == "linux" or p.split("/")[1] == architecture}
        if not fit:
            message = f"it is not built for linux/{architecture}, only for {', '.join(digests)}"
            hint = "build it for that platform too, or choose another image or other nodes"
            raise Permanent(message, fault="user", hint=hint)
        chosen |= fit
    return chosen
