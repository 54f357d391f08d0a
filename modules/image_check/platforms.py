"""The platforms that images are built for, in Go's words (GOOS, GOARCH)."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

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


def platform_of(described: object) -> Platform | None:
    """The platform that a descriptor or an image's configuration names."""
    parts = described if isinstance(described, dict) else {}
    named = [parts.get(k) for k in ("os", "architecture", "variant")]
    names = [n if isinstance(n, str) else "" for n in named]
    return parse_platform("/".join(names)) if names[0] and names[1] else None
