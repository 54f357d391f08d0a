"""The paths of objects at an API server (Kubernetes API concepts, "Resource URIs")."""

from __future__ import annotations

from typing import NamedTuple


def object_path(version: str, plural: str, namespace: str, name: str = "", part: str = "") -> str:
    """The path of a collection in a namespace, of one object, or of its subresource."""
    # Imported here: every module's process imports this file.
    from urllib.parse import quote

    parts = ("namespaces", namespace, plural, *filter(None, (name, part)))
    root = "apis" if "/" in version else "api"
    return f"/{root}/{version}/{'/'.join(quote(p, safe='') for p in parts)}"


class Resource(NamedTuple):
    """What a path of the API names (Kubernetes API concepts, "Resource URIs").

    Attributes:
        group: the API group; empty for the core group.
        name: the plural, with a subresource as in a Role: ``pods/log``.
        namespace: the namespace; empty for none.
        is_one: whether it names one object, not a collection.
    """

    group: str
    name: str
    namespace: str
    is_one: bool


def resource_of(path: str) -> Resource:
    """Read the path of a request."""
    parts = path.strip("/").split("/")
    has_group = parts[0] == "apis" and len(parts) > 1
    rest = parts[3:] if has_group else parts[2:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    name = "/".join((*rest[:1], *rest[2:3])) or parts[-1]
    return Resource(parts[1] if has_group else "", name, namespace, len(rest) > 1)
