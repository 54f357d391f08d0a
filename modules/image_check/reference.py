"""The names of images, parsed as container engines parse them."""

from __future__ import annotations

import re
from typing import NamedTuple, TypeGuard

HUB = "docker.io"
HUB_NAMES = ("docker.io", "index.docker.io", "registry-1.docker.io")
_HUB_API = "https://registry-1.docker.io"


class Reference(NamedTuple):
    """An image's name, in parts; a ``plain`` one is requested without TLS.

    The registry is ``docker.io`` for Docker Hub, where the path includes ``library/``.
    """

    registry: str
    path: str
    tag: str | None
    digest: str | None
    plain: bool = False

    def __str__(self) -> str:
        name = f"{self.registry}/{self.path}"
        name += f":{self.tag}" if self.tag else ""
        return name + (f"@{self.digest}" if self.digest else "")

    @property
    def api(self) -> str:
        """The address of the registry's API."""
        if self.registry == HUB:
            return _HUB_API
        return f"{'http' if self.plain else 'https'}://{self.registry}"


_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])")
_COMPONENT = re.compile("[a-z0-9]+(?:(?:[.]|__?|-+)[a-z0-9]+)*")
_TAG = re.compile("[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST_SIZES = {"sha256": 64, "sha384": 96, "sha512": 128}
_LOCAL = re.compile(r"localhost|127(?:\.[0-9]{1,3}){3}|\[::1\]")


def parse_reference(text: str) -> Reference:
    """Parse an image's name by the grammar of the distribution project's ``reference`` package.

    Surrounding space and a leading ``http://`` or ``https://`` are accepted.

    Raises:
        ValueError: it is invalid; the sentence shows the wrong part.
    """
    rest = text.strip()
    if not rest:
        raise ValueError("the image has no name")
    scheme = re.match("(https?)://", rest, re.IGNORECASE)
    rest = rest[scheme.end() :] if scheme else rest
    if re.fullmatch("[0-9a-f]{64}", rest):
        raise ValueError(f"{rest!r} is an image's id, not a repository")
    first, slash, _ = rest.partition("/")
    if slash and "@" in first:
        # Show no part of the text: any of it may be a password.
        raise ValueError("a user or password precedes the registry's name: put them into 'auth'")
    name, has_digest, digest = rest.partition("@")
    if has_digest:
        check_digest(digest)
    first, slash, after = name.partition("/")
    # A first part with a dot, a colon or an upper-case letter cannot be a repository at the Hub.
    is_host = slash and (re.search("[.:A-Z]", first) or first == "localhost")
    registry, repository = (first, after) if is_host else (HUB, name)
    if registry.lower() in HUB_NAMES:
        registry = HUB
    host = host_of(registry)
    path, has_tag, tag = repository.partition(":")
    if has_tag and not _TAG.fullmatch(tag):
        raise ValueError(
            f"{tag!r} is not a tag: letters, digits, '_', '.', '-', at most 128, not '.' or '-' first"
        )
    _check_path(path)
    if registry == HUB and "/" not in path:
        path = f"library/{path}"
    if len(path) > 255:
        raise ValueError(f"the repository has {len(path)} characters, more than 255")
    plain = scheme[1].lower() == "http" if scheme else bool(_LOCAL.fullmatch(host.lower()))
    return Reference(
        registry,
        path,
        tag if has_tag else None if has_digest else "latest",
        digest if has_digest else None,
        plain and registry != HUB,
    )


def check_digest(digest: str) -> None:
    """Check a digest's algorithm and length.

    Raises:
        ValueError: it is not a digest.
    """
    algorithm, _, value = digest.partition(":")
    size = _DIGEST_SIZES.get(algorithm)
    if size is None:
        raise ValueError(f"{digest!r} is not a digest: it begins with sha256:, sha384: or sha512:")
    if not re.fullmatch("[0-9a-f]*", value) or len(value) != size:
        raise ValueError(
            f"{digest!r} is not a digest: {size} of the digits 0-9a-f follow {algorithm}:"
        )


def is_digest(value: object) -> TypeGuard[str]:
    """Whether a value in a document is a digest."""
    try:
        check_digest(value if isinstance(value, str) else "")
    except ValueError:
        return False
    return True


def host_of(registry: str) -> str:
    """The host of a registry, without its port."""
    host = _HOST.match(registry)
    port = registry[host.end() :] if host else ""
    if not host or not re.fullmatch("(?::[0-9]{1,5})?", port) or int(port[1:] or 0) > 65535:
        raise ValueError(f"{registry!r} is not a registry: give a host, optionally with a port")
    return host[0]


def _check_path(path: str) -> None:
    if not path:
        raise ValueError("the name of the repository is missing")
    for component in path.split("/"):
        if not _COMPONENT.fullmatch(component):
            raise ValueError(
                f"{component!r} in the repository's name is wrong: lower-case letters and digits, "
                "with single '.', one or two '_', or '-' between them"
            )
