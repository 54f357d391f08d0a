"""Reads a job file as a `Job`, and reports all of its errors at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from pairun.errors import PairunError, Problems
from pairun.job.checks.document import (
    REFERENCES,
    check_deployments,
    check_extras,
    check_ports,
    check_references,
    check_role_names,
    check_schema,
)
from pairun.job.entries import check_requirements, read_plugins, read_prerequisites
from pairun.job.hiding import check_logins, hide_secrets, leaves
from pairun.job.jsyaml import JS, JS4
from pairun.job.model import Job, Prerequisite, Resources, Role, fc_name, scalar_text
from pairun.job.stored import framework_in, is_mixture, is_yarn, job_source, load_input, user_of
from pairun.job.templates import check_layer_tags, check_tags
from pairun.playbook.document.reading import (
    Node,
    decode,
    elements,
    entries,
    node_of,
    read_text,
    text,
    whole,
)
from pairun.playbook.document.scalars import Dialect, Scalar, js_text
from pairun.secrets.forms import MASK


def load_job(
    path: str, *, user: str = "user", dialect: Dialect = JS
) -> tuple[Job | None, Problems]:
    """Read a job file of either protocol, or a Framework object that contains one.

    Args:
        path: the file; ``-`` for standard input.
        user: the submitting user; a Framework overrides it.
        dialect: how the cluster's REST server reads job files.

    Returns:
        The job, or None if a problem is an error; and all problems.
    """
    try:
        data = load_input(path)
    except PairunError as e:
        return _nothing(e)
    return read_input(data, path, user=user, dialect=dialect)


def read_input(
    data: bytes, path: str, *, user: str = "user", dialect: Dialect = JS
) -> tuple[Job | None, Problems]:
    """Read a job from the bytes of a file, as `load_job` does."""
    try:
        framework = framework_in(data, path)
        if framework is None:
            node = read_text(decode(data, path, "job"), dialect)
            return read_job(node, user=user, dialect=dialect)
        return _read_stored(framework, path, dialect)
    except PairunError as e:
        return _nothing(e)


def _read_stored(
    framework: Mapping[str, Any], path: str, dialect: Dialect
) -> tuple[Job | None, Problems]:
    node = read_text(job_source(framework, path), dialect)
    job, problems = read_job(node, user=user_of(framework), stored=True, dialect=dialect)
    masked = node.get("secrets")
    if masked is not None and _is_masked(node):
        message = "the values of the job's secrets are unknown: OpenPAI stores them separately"
        hint = "every tag of $secrets stays as it is; the original job file has the values"
        problems.warning("PR737", message, masked.place, hint)
        job = job and attrs.evolve(job, secrets_unknown=True)
    return job, problems


def _nothing(error: PairunError) -> tuple[None, Problems]:
    problems = Problems(error.problems)
    return None, problems


def read_job(
    node: Node,
    *,
    user: str = "user",
    stored: bool = False,
    secrets: Node | None = None,
    dialect: Dialect = JS,
) -> tuple[Job | None, Problems]:
    """Make a job from its document.

    Args:
        user: the user who submits the job.
        stored: the text comes from a Framework, where secrets may be masked.
        secrets: the job's secrets, if they are stored separately.
        dialect: the dialect in which the document was read.

    Returns:
        The job, or None if a problem is an error; and all problems.
    """
    problems = Problems()
    if is_mixture(node):
        return None, _mixture(node, problems)
    written = node.place.source.text
    if is_yarn(node):
        from pairun.job.writing import as_yaml
        from pairun.job.yarn import convert

        converted = convert(node, problems)
        if converted is None:
            return None, problems
        node, written = converted, as_yaml(converted.plain())
    if _is_masked(node) and stored:
        # A stored job has passed the REST server's checks; only its mask would not.
        children = {k: v for k, v in node.items() if k != "secrets"}
        node = Node(children, node.place, node.key)
    if secrets is not None and secrets.value is not None and isinstance(node.value, dict):
        node = Node({**node.value, "secrets": secrets}, node.place, node.key)
    hide_secrets(node)
    check_dialects(node, dialect, problems)
    check_schema(node, problems, stored=stored)
    check_extras(node, problems)
    if not isinstance(node.value, dict):
        return None, problems
    prerequisites = read_prerequisites(node, problems)
    check_requirements(prerequisites, problems)
    check_logins(node, problems)
    check_tags(node, _deployment(node), problems)
    check_layer_tags(node.at(("extras", "pairun")), problems)
    check_references(node, prerequisites, problems)
    check_ports(node, problems)
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
    by_name = {(p.type, p.name): p for p in prerequisites}
    job = Job(
        name=text(node, "name") or "",
        user=user,
        virtual_cluster=scalar_text(virtual_cluster) or "default",
        roles=tuple(_role(n, r, by_name) for n, r in entries(node, "taskRoles")),
        prerequisites=prerequisites,
        parameters=node.get("parameters"),
        secrets=node.get("secrets"),
        extras=extras,
        plugins=plugins,
        deployment=_deployment(node),
        retry_count=int(retry_count.value) if retry_count else 0,
        gang=not (gang is not None and gang.value is False),
        node=node,
        text=written,
    )
    return job, problems


def _mixture(node: Node, problems: Problems) -> Problems:
    version = node.value["protocolVersion"]
    old = node.get("jobName") or node.value["taskRoles"]
    what = "'jobName'" if node.get("jobName") else "a list of 'taskRoles'"
    problems.error(
        "PR730",
        f"'protocolVersion' is of the job protocol v2, and {what} of OpenPAI on YARN: "
        "the file is neither",
        old.head,
        "v2 has 'name', and maps names of roles to roles; without 'protocolVersion' the file is "
        "read as one of YARN's",
        also=[("of v2", version.head)],
    )
    return problems


def _is_masked(node: Node) -> bool:
    secrets = node.get("secrets")
    return secrets is not None and secrets.value == MASK


def _deployment(node: Node) -> Node | None:
    chosen = node.at(("defaults", "deployment"))
    deployments = elements(node, "deployments")
    return next((d for d in deployments if chosen and text(d, "name") == chosen.value), None)


def _role(raw: str, node: Node, prerequisites: Mapping[tuple[str, str], Prerequisite]) -> Role:
    chosen = {
        type_: prerequisites.get((type_, text(node, key) or ""))
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
        # Zero or null means the default, as in the REST server.
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


_NUMBER = re.compile(r"[-+.]?[0-9][0-9A-Za-z_.:+-]*")


def check_dialects(node: Node, dialect: Dialect, problems: Problems) -> None:
    """Warn of each plain scalar of a job that js-yaml 3 and 4 read differently.

    Args:
        node: the job's document.
        dialect: the dialect in which it was read.
    """
    other = JS if dialect is JS4 else JS4
    for leaf in leaves(node):
        # `Source.line` hides secrets. A leaf of plain data has no line in the text.
        own = leaf.place.source.lines[leaf.place.line - 1 : leaf.place.line]
        text = _text_at(leaf, own[0]) if own else ""
        if not text or not _same(leaf.value, mine := dialect.resolve(text)):
            continue
        if _same(mine, theirs := other.resolve(text)):
            continue
        message = f"{other.name} reads this secret differently; {dialect.name} was used"
        if _text_at(leaf, leaf.place.source.line(leaf.place.line)) == text:
            read = f"{text} was read as {_shown(mine)} ({dialect.name})"
            message = f"{read}; {other.name} reads {_shown(theirs)}"
        problems.warning("PR924", message, leaf.place, "quote it, or write it plainly")


def _text_at(leaf: Node, line: str) -> str:
    """The unquoted number or time in a line at the position of a value."""
    token = _NUMBER.match(line[leaf.place.column - 1 :])
    return token[0] if token else ""


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def _shown(value: Scalar) -> str:
    return f"the text {value}" if isinstance(value, str) else js_text(value)
