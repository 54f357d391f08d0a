"""Job file to `Job`: everything that is wrong with it is reported at once."""

from __future__ import annotations

from collections.abc import Iterator

from pairun.errors import PairunError, Problems
from pairun.job.entries import check_requirements, read_plugins, read_prerequisites
from pairun.job.model import Job, Prerequisite, Resources, Role, fc_name
from pairun.job.nodes import elements, entries, text, whole
from pairun.job.references import (
    REFERENCES,
    check_deployments,
    check_references,
    check_role_names,
)
from pairun.job.templates import check_tags
from pairun.job.validation import check_schema
from pairun.playbook.reading import Node, decode, load_bytes, node_of, read_text
from pairun.playbook.scalars import js_text

MASK = "******"
"""What OpenPAI's REST server stores in place of a job's secrets."""


def load_job(path: str, *, user: str = "user") -> tuple[Job | None, Problems]:
    """Read a job file.

    Args:
        path: the file; ``-`` for standard input.
        user: who submits the job.

    Returns:
        The job, or None when a problem is an error; and every problem found.
    """
    try:
        node = read_text(decode(load_bytes(path), path, "job"), "js")
    except PairunError as e:
        problems = Problems()
        problems.extend(e.problems)
        return None, problems
    return read_job(node, user=user)


def read_job(
    node: Node, *, user: str = "user", stored: bool = False, secrets: Node | None = None
) -> tuple[Job | None, Problems]:
    """Make a job from its document, read in the ``js`` dialect.

    Args:
        node: the document.
        user: who submits the job.
        stored: the text comes from a Framework, where secrets may stand masked.
        secrets: the job's secrets, from where they are stored apart from it.

    Returns:
        The job, or None when a problem is an error; and every problem found.
    """
    problems = Problems()
    if _is_masked(node) and stored:
        # A stored job has passed the REST server; only the mask is not what it accepts.
        children = {k: v for k, v in node.items() if k != "secrets"}
        node = Node(children, node.place, node.key)
    if secrets is not None and secrets.value is not None and isinstance(node.value, dict):
        node = Node({**node.value, "secrets": secrets}, node.place, node.key)
    _hide_secrets(node)
    check_schema(node, problems)
    if not isinstance(node.value, dict):
        return None, problems
    prerequisites = read_prerequisites(node, problems)
    check_requirements(prerequisites, problems)
    check_tags(node, _deployment(node), problems)
    check_references(node, prerequisites, problems)
    check_role_names(node, problems)
    check_deployments(node, problems)
    names = frozenset(n for raw, _ in entries(node, "taskRoles") for n in (raw, fc_name(raw)))
    plugins = read_plugins(node, names, problems)
    if problems.errors:
        return None, problems
    extras = node.get("extras")
    gang = extras.get("gangAllocation") if extras else None
    virtual_cluster = node.at(("defaults", "virtualCluster"))
    retry_count = node.get("jobRetryCount")
    job = Job(
        name=text(node, "name") or "",
        user=user,
        virtual_cluster=_plain_text(virtual_cluster) or "default",
        roles=tuple(_role(n, r, prerequisites) for n, r in entries(node, "taskRoles")),
        prerequisites=prerequisites,
        parameters=node.get("parameters"),
        secrets=node.get("secrets"),
        extras=extras,
        plugins=plugins,
        deployment=_deployment(node),
        retry_count=int(retry_count.value) if retry_count else 0,
        gang=not (gang is not None and gang.value is False),
        node=node,
    )
    return job, problems


def _is_masked(node: Node) -> bool:
    secrets = node.get("secrets")
    return secrets is not None and secrets.value == MASK


def _hide_secrets(node: Node) -> None:
    """Keep secrets out of every excerpt of the source, however the job is laid out."""
    for entry in elements(node, "prerequisites"):
        password = entry.at(("auth", "password"))
        if password is not None and "<%" not in str(password.value):
            password.place.source.hide(password.place.line, password.place.line)
    secrets = node.get("secrets")
    if secrets is None:
        return
    source = secrets.place.source
    first = (secrets.key or secrets.place).line
    keys = [c.key for _, c in node.items() if c.key and c.key.source is source]
    later = [key.line for key in keys if key.line > first]
    end = min(later) - 1 if later else source.text.count("\n") + 1
    source.hide(first, max([end, first, *_lines(secrets)]))


def _lines(node: Node) -> Iterator[int]:
    yield node.place.line
    for child in (*node.elements(), *(c for _, c in node.items())):
        yield from _lines(child)


def _deployment(node: Node) -> Node | None:
    wanted = node.at(("defaults", "deployment"))
    entries = elements(node, "deployments")
    return next((e for e in entries if wanted and text(e, "name") == wanted.value), None)


def _role(raw: str, node: Node, prerequisites: tuple[Prerequisite, ...]) -> Role:
    chosen = {
        type_: next(
            (p for p in prerequisites if p.type == type_ and p.name == text(node, key)), None
        )
        for key, type_ in REFERENCES.items()
    }
    image = chosen["dockerimage"]
    assert image is not None
    instances = whole(node, "instances") or 1
    retry_count = node.get("taskRetryCount")
    return Role(
        name=raw,
        fc_name=fc_name(raw),
        instances=instances,
        # A zero or null means the default, as in the REST server.
        min_failed=whole(node, "completion", "minFailedInstances") or 1,
        min_succeeded=whole(node, "completion", "minSucceededInstances") or instances,
        retry_count=int(retry_count.value) if retry_count else None,
        resources=_resources(node),
        image=image,
        script=chosen["script"],
        data=chosen["data"],
        output=chosen["output"],
        prerequisites=tuple(p.value for p in elements(node, "prerequisites")),
        commands=tuple(elements(node, "commands")),
        node=node,
    )


def _resources(node: Node) -> Resources:
    asked = node.get("resourcePerInstance") or node_of({}, node.place)
    ports = {label: int(count.value) for label, count in entries(asked, "ports")}
    infiniband = node.at(("extraContainerOptions", "infiniband"))
    shm = node.at(("extraContainerOptions", "shmMB"))
    return Resources(
        cpu=whole(asked, "cpu") or 0,
        memory_mb=whole(asked, "memoryMB") or 0,
        gpu=whole(asked, "gpu") or 0,
        shm_mb=int(shm.value) if shm else None,
        infiniband=bool(infiniband and infiniband.value),
        ports={**ports, **{label: 1 for label in ("ssh", "http") if label not in ports}},
    )


def _plain_text(node: Node | None) -> str | None:
    if node is None or node.value is None or isinstance(node.value, dict | list):
        return None
    return js_text(node.value)
