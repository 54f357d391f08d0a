"""Finds the secrets in a job's text, and hides them in every excerpt of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pairun.errors import Problems, did_you_mean, nearest
from pairun.job.protocol import JOB_SCHEMA
from pairun.playbook.document.reading import Node, elements
from pairun.playbook.document.scalars import js_text
from pairun.secrets.forms import MASK
from pairun.secrets.vault import Vault

_LOGIN = ("username", "password", "registryuri")
_SECRETS = "secrets"
_BLOCK = re.compile(r"(^secrets:)[\s\S]*?(^[A-Za-z0-9_])", re.MULTILINE)


def hide_secrets(node: Node) -> None:
    """Hide secrets and logins in every excerpt, whatever the job's layout or misspellings."""
    for entry in elements(node, "prerequisites"):
        if (auth := entry.get("auth")) is not None:
            _hide_login(auth)
    for key, child in node.items():
        if key == _SECRETS or (
            key not in JOB_SCHEMA["properties"] and nearest(key, (_SECRETS,)) is not None
        ):
            _hide_block(node, child)


def _hide_login(auth: Node) -> None:
    fields = list(auth.items()) or [("password", auth)]
    for key, field in fields:
        # treat an unknown key as a password, unless it is almost one of the others
        if (nearest(key, _LOGIN) or "password") != "password":
            continue
        for leaf in leaves(field):
            text = "" if leaf.value is None else js_text(leaf.value)
            if "<%" not in text:
                leaf.place.source.hide(leaf.place.line, leaf.place.line)
                leaf.place.source.conceal([text])


def _hide_block(node: Node, secrets: Node) -> None:
    source = secrets.place.source
    first = secrets.head.line
    keys = [c.key for _, c in node.items() if c.key and c.key.source is source]
    later = [key.line for key in keys if key.line > first]
    end = min(later) - 1 if later else len(source.lines)
    values = list(leaves(secrets))
    source.hide(first, max([end, first, *(leaf.place.line for leaf in values)]))
    texts = [js_text(leaf.value) for leaf in values if not isinstance(leaf.value, bool | None)]
    for each in {source, node.place.source}:
        each.conceal(texts)


def leaves(node: Node) -> Iterator[Node]:
    """The scalars of a tree."""
    if isinstance(node.value, dict | list):
        for child in (*node.elements(), *(c for _, c in node.items())):
            yield from leaves(child)
    else:
        yield node


def hide_lines(node: Node, vault: Vault) -> None:
    """Hide in every excerpt the lines of a job in which a vault finds a secret.

    An excerpt may cut a secret in two, and the text of a value may differ from the value.
    """
    source = node.place.source
    texts = [leaf for leaf in leaves(node) if isinstance(leaf.value, str)]
    # If all together have no match, neither has any of them: most jobs need only one search.
    together = "\n".join((source.text, *(leaf.value for leaf in texts)))
    if vault.text(together) == together:
        return
    for number, line in enumerate(source.lines, 1):
        # The text of a line that is already hidden is empty.
        if source.line(number) and vault.text(line) != line:
            source.hide(number, number)
    for leaf in texts:
        first, more = leaf.place.line, leaf.value.count("\n")
        if (more or leaf.place.source.line(first)) and vault.text(leaf.value) != leaf.value:
            leaf.place.source.hide(first, first + more)


def check_logins(node: Node, problems: Problems) -> None:
    """Warn of unknown keys in an image's login; OpenPAI's REST server accepts and ignores them."""
    for entry in elements(node, "prerequisites"):
        auth = entry.get("auth")
        for key, field in auth.items() if auth else ():
            if key not in _LOGIN:
                message = f"unknown key '{key}' in the login of an image has no effect"
                problems.warning("PR916", message, field.head, did_you_mean(key, _LOGIN))


def mask_secrets(text: str) -> str:
    """A job's text as OpenPAI's REST server stores it.

    It masks only a block that starts with ``secrets:`` in the first column, up to the next line
    that starts with a word; in JSON, secrets stay readable.
    """
    return _BLOCK.sub(rf'\1 "{MASK}"\n\2', text + "\nZ", count=1)[:-2]
