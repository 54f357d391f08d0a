"""Converts jobs of OpenPAI on YARN to jobs of protocol v2.

The conversion follows OpenPAI's own (its REST server had one from 0.13 to 0.18): the folders become
prerequisites and ``PAI_DATA_DIR``, ``PAI_OUTPUT_DIR``, ``PAI_CODE_DIR``; the variables of
``jobEnvs`` become parameters and are exported before the command. Settings that OpenPAI's
conversion dropped silently cause a warning.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

from pairun.errors import Problems
from pairun.job.protocol import IDENTIFIER_PATTERN
from pairun.job.yarn_checks import check, number, warn_of_file_system, warn_of_losses
from pairun.playbook.document.reading import Node, elements, entries, text, whole
from pairun.playbook.document.scalars import js_text

NOT_CARRIED = ("PR732", "PR733")
"""The ids of warnings about differences between the converted job and the old one."""

_FOLDERS = {
    "dataDir": ("data", "PAI_DATA_DIR", "$data.uri[0]"),
    "outputDir": ("output", "PAI_OUTPUT_DIR", "$output.uri"),
    "codeDir": ("script", "PAI_CODE_DIR", "$script.uri"),
}
_UNQUOTABLE = re.compile(r'["\\`\x00-\x1f]|<%')
_SWITCHES = {
    "isDebug": "let the command sleep instead: a failed container is not kept",
    "paiAzRDMA": "roles ask for InfiniBand: extraContainerOptions: {infiniband: true}",
}
_SHM_MB, _CPU, _MEMORY_MB = 64, 1, 100


def convert(document: Node, problems: Problems) -> Node | None:
    """Convert a job to a document of protocol v2.

    Returns:
        The document, each value with its original place; None if there are errors.
    """
    check(document, problems)
    exports = list(_folder_exports(document, problems)) + list(_env_exports(document, problems))
    warn_of_losses(document, problems)
    return None if problems.errors else _converted(document, exports)


def _folder_exports(document: Node, problems: Problems) -> Iterator[Node]:
    for key, (_, variable, tag) in _FOLDERS.items():
        folder = document.get(key)
        if folder is None or not isinstance(folder.value, str) or not folder.value:
            continue
        if _UNQUOTABLE.search(folder.value):
            message = (
                f"'{key}' holds a quote, a backslash, a control character or '<%', "
                "which cannot be exported as it is"
            )
            problems.error("PR734", message, folder.place)
        lost = "copies it into" if key == "codeDir" else "mounts it in"
        message = f"{key} is in ${variable} only: nothing {lost} the container"
        hint = "fetch it in the command, or use a storage of the cluster"
        problems.warning("PR733", message, folder.place, hint)
        warn_of_file_system(folder, problems)
        yield Node(f'export {variable}="<% {tag} %>"', folder.place, folder.key)


def _env_exports(document: Node, problems: Problems) -> Iterator[Node]:
    for name, value in entries(document, "jobEnvs"):
        if hint := _SWITCHES.get(name):
            problems.warning("PR732", f"'{name}' no longer has an effect", value.key, hint)
        if isinstance(value.value, dict | list) or value.value is None:
            continue  # the schema check reports it
        if not re.search(IDENTIFIER_PATTERN, name):
            message = f"'{name}' is not a name of a shell variable, so it becomes a parameter only"
            problems.warning(
                "PR732", message, value.key, f"its value is <% $parameters.{name} %> in a command"
            )
            continue
        written = js_text(value.value)
        shell = f"'<% $parameters.{name} %>'"
        if "'" in written:
            # Quote the value itself: the value of a tag would end the quotes; `<''%` is no tag.
            shell = shlex.quote(written).replace("<%", "<''%")
        yield Node(f"export {name}={shell}", value.place, value.key)


def _converted(document: Node, exports: list[Node]) -> Node:
    made: dict[str, Node] = {}
    place = document.place
    made["protocolVersion"] = Node(2, place)
    made["name"] = document.value["jobName"]
    made["type"] = Node("job", place)
    if retries := number(document.get("retryCount"), 0):
        made["jobRetryCount"] = _like(document.value["retryCount"], retries)
    made["prerequisites"] = Node(list(_prerequisites(document)), place)
    if dict(entries(document, "jobEnvs")):
        made["parameters"] = document.value["jobEnvs"]
    made["taskRoles"] = _like(
        document.value["taskRoles"],
        {
            str(text(role, "name")): _role(document, role, exports)
            for role in elements(document, "taskRoles")
        },
    )
    cluster = document.get("virtualCluster")
    if cluster is not None and cluster.value:
        made["defaults"] = Node({"virtualCluster": cluster}, cluster.place, cluster.key)
    if dict(entries(document, "extras")):
        made["extras"] = document.value["extras"]
    return Node(made, place)


def _prerequisites(document: Node) -> Iterator[Node]:
    image = document.value["image"]
    yield _entry("image", "dockerimage", image, image)
    for key, (type_, _, _) in _FOLDERS.items():
        folder = document.get(key)
        if folder is not None and folder.value:
            uri = Node([folder], folder.place) if type_ == "data" else folder
            yield _entry(type_, type_, uri, folder)


def _entry(name: str, type_: str, uri: Node, origin: Node) -> Node:
    place = origin.head
    return Node({"name": Node(name, place), "type": Node(type_, place), "uri": uri}, place)


def _role(document: Node, role: Node, exports: list[Node]) -> Node:
    name = role.value["name"]
    made: dict[str, Node] = {
        "instances": _or(role, "taskNumber", 1),
        "completion": _completion(document, role),
        "dockerImage": Node("image", role.place),
    }
    for key, (type_, _, _) in _FOLDERS.items():
        if (folder := document.get(key)) is not None and folder.value:
            made[type_] = Node(type_, folder.place)
    made["extraContainerOptions"] = Node({"shmMB": _or(role, "shmMB", _SHM_MB)}, role.place)
    asked = {
        "cpu": _or(role, "cpuNumber", _CPU),
        "memoryMB": _or(role, "memoryMB", _MEMORY_MB),
        "gpu": _or(role, "gpuNumber", 0),
    }
    if ports := elements(role, "portList"):
        asked["ports"] = _like(
            role.value["portList"],
            {
                str(text(p, "label")): Node(count.value, count.place, p.value["label"].place)
                for p in ports
                for count in [_or(p, "portNumber", 1)]
            },
        )
    made["resourcePerInstance"] = Node(asked, role.place)
    made["commands"] = _like(role.value["command"], [*exports, role.value["command"]])
    return Node(made, role.place, name.place)


def _completion(document: Node, role: Node) -> Node:
    """The completion policy: null meant "never" for failures, "all complete" for successes."""
    first_ends = number(document.get("killAllOnCompletedTaskNumber"), 0) > 0
    failed, succeeded = role.get("minFailedTaskCount"), role.get("minSucceededTaskCount")
    never = failed is not None and failed.value is None and not first_ends
    made = {
        "minFailedInstances": _or(role, "minFailedTaskCount", -1 if never else 1),
        "minSucceededInstances": _or(role, "minSucceededTaskCount", 1 if first_ends else -1),
    }
    return Node(made, (failed or succeeded or role).place)


def _or(node: Node, key: str, default: int) -> Node:
    """The number under a key; the default if it is missing or null."""
    child = node.get(key)
    value = None if child is None else whole(node, key)
    return Node(default, (child or node).place) if value is None else _like(child, value)


def _like(origin: Node | None, value: Any) -> Node:
    """Another value at the same place."""
    assert origin is not None
    return Node(value, origin.place, origin.key)
