"""Reads a plain Pod's commands and plugins as a job of one role with one instance."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from typing import Any

from pairun.errors import Problem, Problems, Source
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.job.model import RUNTIME_PLUGIN, Job
from pairun.job.protocol import IDENTIFIER_PATTERN
from pairun.kube.cluster import ClusterInstance, ClusterRole, JobCluster
from pairun.openpai.initconfig import FORMAT
from pairun.openpai.podconfig import read_setting
from pairun.playbook.document.checking import violations
from pairun.playbook.document.reading import Node, node_of

ROLE = "main"
"""The name of the one role."""

PLAIN_POD_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "commands and plugins of a plain Pod",
    "type": "object",
    "required": ["commands"],
    "additionalProperties": False,
    "properties": {
        "commands": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "runtimePlugin": {"type": ["array", "null"], "items": {"type": "object"}},
        "image": {"type": "string", "minLength": 1},
        "parameters": {"type": "object"},
        "ports": {
            "type": "object",
            "propertyNames": {"pattern": IDENTIFIER_PATTERN},
            "additionalProperties": {
                "type": "array",
                "items": {"type": "integer", "minimum": 1, "maximum": 65535},
            },
        },
        "extras": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"pairun": {"type": "object"}},
        },
    },
}
_PORTS = "ports"  # for a plain Pod these are port numbers, not a request for ports


def read_plain_job(
    source: Source,
    *,
    name: str = "pod",
    user: str = "user",
    secrets: Node | None = None,
    gang: Mapping[str, int] | None = None,
) -> tuple[Job | None, Problems]:
    """Make a job of a plain Pod's commands and plugins.

    Args:
        source: the text of ``RUNTIME_CONFIG`` or of ``runtime_plugin.yaml``.
        name: the Pod's name.
        user: the Pod's user.
        secrets: the Pod's secrets.
        gang: the roles of the Pod's gang, with their numbers of instances.

    Returns:
        The job, or None if a problem is an error; and all problems.

    Raises:
        PairunError: the text is not YAML.
    """
    node = read_setting(source, tuple(PLAIN_POD_SCHEMA["properties"]), JS)
    problems = Problems(violations(node, PLAIN_POD_SCHEMA, FORMAT, whole=source.file))
    if problems.errors:
        return None, problems
    job, job_problems = read_job(_document(node, name, gang), user=user, secrets=secrets)
    problems.extend(job_problems)
    return job, problems


def no_commands() -> Source:
    """A text for a review of the init phase alone."""
    return Source("no commands", "job", "commands: ['']")


def without_server_warnings(problems: list[Problem]) -> list[Problem]:
    """The problems that apply to a plain Pod, which uses no REST server of OpenPAI."""
    return [p for p in problems if p.id != "PR909"]


def _document(node: Node, name: str, gang: Mapping[str, int] | None) -> Node:
    """The same data as a job of the protocol; the Pod's values keep their places."""
    place = node.place
    given = {key: child for key, child in node.items() if child.value is not None}
    resources = {"cpu": 0, "memoryMB": 0, "gpu": 0}
    roles = Node({}, place, place)
    for role_name, instances in (gang or {ROLE: 1}).items():
        role = node_of({"dockerImage": "image", "resourcePerInstance": resources}, place)
        role.value |= {"commands": given["commands"], "instances": node_of(instances, place)}
        roles.value[role_name] = role
    image = node_of({"type": "dockerimage", "name": "image", "uri": ""}, place)
    extras = node_of({"gangAllocation": gang is not None}, place)
    extras.value |= given["extras"].value if "extras" in given else {}
    if "image" in given:
        image.value["uri"] = given["image"]
    if "runtimePlugin" in given:
        extras.value[RUNTIME_PLUGIN] = given["runtimePlugin"]
    if "ports" in given:
        extras.value[_PORTS] = given["ports"]
    document = node_of({"protocolVersion": 2, "name": name, "type": "job"}, place)
    document.value |= {
        "prerequisites": Node([image], place, place),
        "taskRoles": roles,
        "extras": extras,
        **{key: given[key] for key in ("parameters",) if key in given},
    }
    return document


def pod_name(env: Mapping[str, str]) -> str:
    """The Pod's name in a form that is valid for a job."""
    name = env.get("POD_NAME") or env.get("FC_POD_NAME") or env.get("HOSTNAME") or "pod"
    return re.sub("[^A-Za-z0-9_-]", "-", name)[:255]


def plain_cluster(job: Job, env: Mapping[str, str]) -> JobCluster:
    """The cluster of one Pod.

    Args:
        env: ``PAIRUN_HOST_IP`` or ``POD_IP`` is its address; default: the address of its host name.
    """
    ports = job.extras.get(_PORTS) if job.extras else None
    numbers = {label: tuple(list_.plain()) for label, list_ in (ports.items() if ports else ())}
    instance = ClusterInstance(
        index=0,
        pod_uid=env.get("POD_UID") or env.get("FC_POD_UID") or None,
        host_ip=env.get("PAIRUN_HOST_IP") or env.get("POD_IP") or _own_address(),
        ports=numbers,
    )
    role = ClusterRole(name=ROLE, fc_name=ROLE, instances=(instance,))
    return JobCluster(roles=(role,), own_role=ROLE, own_index=0)


def _own_address() -> str | None:
    try:
        # A Pod's /etc/hosts contains its name.
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return None
