"""The objects that pairun adds to a manifest: a service account with a role, and the gang's key."""

from __future__ import annotations

import base64
import secrets
from typing import Any

from pairun.inject.emitting import as_block, as_json
from pairun.inject.splices import Splices
from pairun.inject.tree import Mapping, Part, Sequence, Tree

Object = dict[str, Any]
MARK = "pairun/beside"
"""The label of an object that an injection added; its value is the workload's name."""
KEY_BYTES = 32

_FIRST_LINE = "--- # made by pairun inject"
_JOINED_LINE = "---  # made by pairun inject"
"""Added after a text without a final newline, so that a removal can restore it."""
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
    meta = _metadata(name, namespace)
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    if events:
        rules.append({"apiGroups": [""], "resources": ["events"], "verbs": ["create"]})
        rules.append({"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]})
    subject: Object = {"kind": "ServiceAccount", "name": account or name}
    if namespace:
        subject["namespace"] = namespace
    made: list[Object] = []
    if account is None:
        # Only the init container gets a token, through its own volume.
        made.append(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": meta,
                "automountServiceAccountToken": False,
            }
        )
    return [
        *made,
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": meta, "rules": rules},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
            "subjects": [subject],
        },
    ]


def key_object(name: str, namespace: str | None, key: str | None) -> Object:
    """The Secret with the key by which the Pods of a gang authenticate each other.

    Args:
        name: of the Secret.
        namespace: of the workload.
        key: the key of an earlier injection, in base64; None creates one.
    """
    made = key or base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(name, namespace),
        "type": "Opaque",
        "stringData": {"key": made},
    }


def _metadata(name: str, namespace: str | None) -> Object:
    made: Object = {"name": name}
    if namespace:
        made["namespace"] = namespace
    return {**made, "labels": {MARK: name}}


Keys = dict[tuple[str | None, str], str]
"""Keys of gangs, by the namespaces and names of their Secrets."""


def keys_in(tree: Tree) -> Keys:
    """The keys of an earlier injection."""
    keys: Keys = {}
    for part in _objects(tree):
        data = part.plain()
        if data.get("kind") == "Secret" and _is_ours(part):
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
    first = _FIRST_LINE if text.endswith("\n") else newline + _JOINED_LINE
    for number, made in enumerate(objects):
        lines = [_FIRST_LINE if number else first, *as_block(made, "")]
        splices.append(newline.join(lines) + newline)


def remove_beside(splices: Splices, tree: Tree) -> None:
    """Remove the objects that `add_beside` added."""
    text = tree.text
    for number, root in enumerate(tree.documents):
        if not isinstance(root, Mapping):
            continue
        if _is_ours(root):
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
        ours = [item for item in entry.value.items if _is_ours(item)]
        if ours and text.startswith(_LIST) and len(entry.value.items) == len(ours) + 1:
            splices.cut(0, len(_LIST))
            splices.cut(text.rindex(", ", 0, ours[0].start + 1), len(text))
        else:
            splices.remove_items(entry.value, ours)


def without_beside(tree: Tree) -> list[Any]:
    """The documents as plain data, without what `add_beside` added."""
    out = []
    for root in tree.documents:
        if _is_ours(root):
            continue
        items = root.get("items") if isinstance(root, Mapping) else None
        data = root.plain()
        if isinstance(items, Sequence):
            data["items"] = [item.plain() for item in items.items if not _is_ours(item)]
            if tree.text.startswith(_LIST):
                data = data["items"][0]
        out.append(data)
    return out


def _objects(tree: Tree) -> list[Mapping]:
    out: list[Mapping] = []
    for root in tree.documents:
        if isinstance(root, Mapping):
            out.append(root)
            items = root.get("items")
            parts = items.items if isinstance(items, Sequence) else []
            out += [item for item in parts if isinstance(item, Mapping)]
    return out


def _is_ours(part: Part) -> bool:
    metadata = part.get("metadata") if isinstance(part, Mapping) else None
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return isinstance(labels, Mapping) and labels.get(MARK) is not None
