"""The objects that pairun adds to a manifest: a service account with a role, and the gang's key."""

from __future__ import annotations

import base64
import secrets
from typing import Any

from pairun.inject.emitting import as_block, as_json
from pairun.inject.splices import Splices, last_scalar
from pairun.inject.templates import mapping_at
from pairun.inject.tree import Mapping, Part, Sequence, Tree, mappings_in
from pairun.kube.owners import Object

MARK = "pairun/beside"
"""The label of an object that an injection added; its value is the workload's name."""
_KEY_BYTES = 32

_FIRST_LINE = "--- # made by pairun inject"
_JOINED_LINE = "---  # made by pairun inject"
"""Added after a text without a final newline, so that a removal can restore it."""
_REST_LINE = "--- # the manifest"
"""After objects at the front: a text that ends inside a block scalar would grow by a line end."""
_LIST = '{"apiVersion": "v1", "kind": "List", "items": ['
_RBAC = "rbac.authorization.k8s.io"


def account_objects(
    name: str, namespace: str | None, account: str | None, *, events: bool = False
) -> list[Object]:
    """A Role that allows reading Pods, bound to an account.

    Args:
        name: of the new objects.
        namespace: of the workload; None if it names none.
        account: the Pods' own account; None creates one.
        events: the Role may also create Events, and read which workload owns a Job.
    """
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    if events:
        rules.append({"apiGroups": [""], "resources": ["events"], "verbs": ["create"]})
        rules.append({"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]})
    subject: Object = {"kind": "ServiceAccount", "name": account or name}
    if namespace:
        subject["namespace"] = namespace
    role = {"apiGroup": _RBAC, "kind": "Role", "name": name}
    # Only the init container gets a token, through its own volume.
    own: Object = {"automountServiceAccountToken": False}
    made = [_object("v1", "ServiceAccount", name, namespace, own)] if account is None else []
    return [
        *made,
        _object(f"{_RBAC}/v1", "Role", name, namespace, {"rules": rules}),
        _object(
            f"{_RBAC}/v1", "RoleBinding", name, namespace, {"roleRef": role, "subjects": [subject]}
        ),
    ]


def key_object(name: str, namespace: str | None, key: str | None) -> Object:
    """The Secret with the key by which the Pods of a gang authenticate each other."""
    made = key or base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()
    return _object("v1", "Secret", name, namespace, {"type": "Opaque", "stringData": {"key": made}})


def _object(version: str, kind: str, name: str, namespace: str | None, fields: Object) -> Object:
    metadata: Object = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    metadata["labels"] = {MARK: name}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


Keys = dict[tuple[str | None, str], str]
"""Keys of gangs, by the namespaces and names of their Secrets."""


def keys_in(tree: Tree) -> Keys:
    """The keys of an earlier injection."""
    keys: Keys = {}
    for part in _objects(tree):
        data = part.plain()
        if data.get("kind") == "Secret" and is_added(part):
            key = str((data.get("stringData") or {}).get("key", ""))
            keys[data["metadata"].get("namespace"), data["metadata"]["name"]] = key
    return keys


def add_beside(splices: Splices, tree: Tree, objects: list[Object]) -> None:
    """Add objects to the end of a manifest."""
    if not objects:
        return
    text = tree.text
    root = tree.documents[0]
    items = root.own("items") if isinstance(root, Mapping) else None
    is_function = isinstance(root, Mapping) and root.plain().get("kind") == "ResourceList"
    if items and isinstance(items.value, Sequence) and (tree.is_json or is_function):
        for made in objects:
            splices.add_item(items.value, made)
        return
    if tree.is_json:
        splices.insert(0, _LIST)
        splices.append("".join(f", {as_json(made)}" for made in objects) + "]}\n")
        return
    newline = "\r\n" if "\r\n" in text else "\n"
    last = last_scalar(tree.documents[-1])
    if last is not None and last.is_block and not text.endswith("\n"):
        lines = [line for made in objects for line in (_FIRST_LINE, *as_block(made, ""))]
        splices.insert(0, newline.join([*lines, _REST_LINE]) + newline)
        return
    first = _FIRST_LINE if text.endswith("\n") else newline + _JOINED_LINE
    for number, made in enumerate(objects):
        lines = [_FIRST_LINE if number else first, *as_block(made, "")]
        splices.append(newline.join(lines) + newline)


def remove_beside(splices: Splices, tree: Tree) -> None:
    """Remove the objects that `add_beside` added."""
    text = tree.text
    if text.startswith(_FIRST_LINE) and (at := text.find(f"\n{_REST_LINE}")) >= 0:
        splices.cut(0, text.index("\n", at + 1) + 1)
        return
    for number, root in enumerate(tree.documents):
        if not isinstance(root, Mapping):
            continue
        if is_added(root):
            start = text.rfind("---", 0, root.start)
            if text.startswith(_JOINED_LINE, start):
                start -= 2 if text[start - 2 : start] == "\r\n" else 1
            following = tree.documents[number + 1 : number + 2]
            end = text.rfind("---", 0, following[0].start) if following else len(text)
            splices.cut(max(start, 0), end)
            continue
        entry = root.own("items")
        if entry is None or not isinstance(entry.value, Sequence):
            continue
        ours = [item for item in entry.value.items if is_added(item)]
        if ours and text.startswith(_LIST) and len(entry.value.items) == len(ours) + 1:
            splices.cut(0, len(_LIST))
            splices.cut(text.rindex(", ", 0, ours[0].start + 1), len(text))
        else:
            splices.remove_items(entry.value, ours)


def without_beside(tree: Tree) -> list[Any]:
    """The documents as plain data, without what `add_beside` added."""
    out = []
    for root in tree.documents:
        if is_added(root):
            continue
        items = root.get("items") if isinstance(root, Mapping) else None
        data = root.plain()
        if isinstance(items, Sequence):
            data["items"] = [item.plain() for item in items.items if not is_added(item)]
            if tree.text.startswith(_LIST):
                data = data["items"][0]
        out.append(data)
    return out


def _objects(tree: Tree) -> list[Mapping]:
    out: list[Mapping] = []
    for root in tree.documents:
        if isinstance(root, Mapping):
            out += [root, *mappings_in(root.get("items"))]
    return out


def is_added(part: Part) -> bool:
    """Whether `add_beside` added an object."""
    metadata = part.get("metadata") if isinstance(part, Mapping) else None
    return metadata is not None and MARK in mapping_at({"": metadata.plain()}, ("", "labels"))
