"""Reads the plugins of an invalid job as far as possible, to report all problems at once."""

from __future__ import annotations

from collections.abc import Iterator

from pairun.errors import PairunError, Problems
from pairun.formats.stored import framework_in
from pairun.formats.yarn_looks import is_mixture, is_yarn
from pairun.job.entries import read_plugins, read_prerequisites
from pairun.job.hiding import hide_secrets, leaves
from pairun.job.model import fc_name
from pairun.playbook.document.nodes import entries
from pairun.playbook.document.reading import Node, decode, node_of, read_text
from pairun.playbook.document.scalars import Dialect
from pairun.playbook.inputs import PluginUse


def job_document(data: bytes, path: str, dialect: Dialect) -> Node | None:
    """The document of a job file of protocol v2 with an invalid job; None if it is not one.

    Args:
        data: the file's bytes.
        path: its name.
        dialect: how the cluster's REST server reads it.
    """
    try:
        if framework_in(data, path) is not None:
            return None
        document = read_text(decode(data, path, "job"), dialect)
    except PairunError:
        return None
    if not isinstance(document.value, dict) or is_mixture(document) or is_yarn(document):
        return None
    hide_secrets(document)
    return document


def role_names(document: Node) -> list[str]:
    """The raw names of a job's roles."""
    return [name for name, _ in entries(document, "taskRoles")]


def plugin_uses(document: Node) -> list[PluginUse]:
    """Every plugin that any role may use, with parameters as written."""
    reported = Problems()  # the check of the job reports them
    uses = [
        PluginUse(
            plugin=entry.plugin,
            base_id=entry.name,
            parameters=_without(entry.node, "type", "plugin", "failurePolicy"),
            failure_policy=entry.failure_policy,
            place=entry.node.place,
        )
        for entry in read_prerequisites(document, reported)
        if entry.plugin is not None
    ]
    names = frozenset(n for raw in role_names(document) for n in (raw, fc_name(raw)))
    uses += [
        PluginUse(
            plugin=item.plugin,
            base_id=item.plugin,
            parameters=item.parameters or node_of({}, item.node.place),
            failure_policy=item.failure_policy,
            place=item.node.place,
        )
        for item in read_plugins(document, names, reported)
    ]
    return uses


def _without(node: Node, *keys: str) -> Node:
    return Node({k: v for k, v in node.items() if k not in keys}, node.place, node.key)


def texts(node: Node) -> Iterator[str]:
    """The texts of a tree."""
    yield from (leaf.value for leaf in leaves(node) if isinstance(leaf.value, str))
