"""Recognises jobs of OpenPAI on YARN, so that only they load their conversion."""

from __future__ import annotations

from pairun.playbook.document.reading import Node


def is_yarn(document: Node) -> bool:
    """Whether a document is a job for OpenPAI on YARN."""
    return document.get("protocolVersion") is None and _has_yarn_keys(document)


def is_mixture(document: Node) -> bool:
    """Whether a document has keys of both formats, so that it is neither."""
    return document.get("protocolVersion") is not None and _has_yarn_keys(document)


def _has_yarn_keys(document: Node) -> bool:
    roles = document.get("taskRoles")
    return document.get("jobName") is not None or bool(roles and isinstance(roles.value, list))
