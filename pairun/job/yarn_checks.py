"""Reports the errors of a job for OpenPAI on YARN, and its settings that protocol v2 lacks."""

from __future__ import annotations

import re

from pairun.errors import Problems
from pairun.job.protocol import IDENTIFIER_PATTERN, NAME_PATTERN, Schema
from pairun.playbook.document.checking import Format, violations
from pairun.playbook.document.reading import Node, elements, text

_TEXT: Schema = {"type": "string"}
_NEEDED: Schema = {"type": "string", "minLength": 1}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_FROM_ONE: Schema = {"type": "integer", "minimum": 1}
_FROM_ONE_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 1}

_PORT: Schema = {
    "type": "object",
    "properties": {"label": _NEEDED, "beginAt": _COUNT, "portNumber": _COUNT},
    "required": ["label"],
    "additionalProperties": False,
}
_ROLE: Schema = {
    "type": "object",
    "properties": {
        "name": _NEEDED,
        "taskNumber": _FROM_ONE,
        "cpuNumber": _COUNT,
        "memoryMB": _COUNT,
        "shmMB": _COUNT,
        "gpuNumber": _COUNT,
        "portList": {"type": "array", "items": _PORT},
        "command": _NEEDED,
        "minFailedTaskCount": _FROM_ONE_OR_NULL,
        "minSucceededTaskCount": _FROM_ONE_OR_NULL,
    },
    "required": ["name", "command"],
    "additionalProperties": False,
}
_SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "jobName": _NEEDED,
        "image": _NEEDED,
        "authFile": _TEXT,
        "dataDir": _TEXT,
        "outputDir": _TEXT,
        "codeDir": _TEXT,
        "virtualCluster": _TEXT,
        "taskRoles": {"type": "array", "items": _ROLE, "minItems": 1},
        "gpuType": _TEXT,
        "killAllOnCompletedTaskNumber": _COUNT,
        "retryCount": _COUNT,
        "jobEnvs": {
            "type": "object",
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        },
        "extras": {"type": "object"},
    },
    "required": ["jobName", "image", "taskRoles"],
    "additionalProperties": False,
}


_FILE_SYSTEM = re.compile(r"\$(?:PAI_DEFAULT_FS_URI\b|\{PAI_DEFAULT_FS_URI\})")


def check(document: Node, problems: Problems) -> None:
    """Report everything for which the old or the v2 REST server rejects the job."""
    problems.extend(violations(document, _SCHEMA, Format("PR502", "PR503", "PR504")))
    _check_names(document, problems)
    _check_numbers(document, problems)


def _check_names(document: Node, problems: Problems) -> None:
    name = document.get("jobName")
    if name is not None:
        _check_name(name, "the job", NAME_PATTERN, "'_' and '-'", problems)
    roles = elements(document, "taskRoles")
    for role in roles:
        _check_each(role.get("name"), "a role", problems)
        for port in elements(role, "portList"):
            _check_each(port.get("label"), "a port", problems)
        labels = [port.get("label") for port in elements(role, "portList")]
        _check_twice(labels, f"two ports of role '{text(role, 'name')}'", problems)
    _check_twice([role.get("name") for role in roles], "two roles", problems)


def _check_each(name: Node | None, what: str, problems: Problems) -> None:
    if name is not None:
        _check_name(name, what, IDENTIFIER_PATTERN, "'_', and no digit first", problems)


def _check_name(name: Node, what: str, pattern: str, others: str, problems: Problems) -> None:
    if not isinstance(name.value, str) or not name.value or re.search(pattern, name.value):
        return
    near = re.sub("[^A-Za-z0-9_-]" if "-" in others else "[^A-Za-z0-9_]", "_", name.value)
    near = f"_{near}" if "digit" in others and near[:1].isdigit() else near
    message = f"the name '{name.value}' of {what} is no longer valid: use letters, digits, {others}"
    hint = f"for example '{near}'; also update what uses the name"
    problems.error("PR731", message, name.place, hint)


def _check_twice(names: list[Node | None], what: str, problems: Problems) -> None:
    first: dict[str, Node] = {}
    for name in names:
        if name is None or not isinstance(name.value, str):
            continue
        if other := first.get(name.value):
            message = f"{what} are named '{name.value}'"
            problems.error("PR508", message, name.place, also=[("the first one", other.place)])
        first.setdefault(name.value, name)


def _check_numbers(document: Node, problems: Problems) -> None:
    for role in elements(document, "taskRoles"):
        tasks = number(role.get("taskNumber"), 1)
        for key in ("minFailedTaskCount", "minSucceededTaskCount"):
            least = role.get(key)
            if number(least, 0) > tasks:
                assert least is not None
                problems.error(
                    "PR503", f"'{key}' must be at most the role's {tasks} tasks", least.place
                )
        if text(role, "command") is not None and not (text(role, "command") or "").strip():
            problems.error("PR503", "'command' must not be empty", role.value["command"].place)


def number(node: Node | None, default: int) -> int:
    """A node's number; the default if it has none."""
    value = node.value if node else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return default
    return int(value) if abs(value) < 10**15 else default


def warn_of_losses(document: Node, problems: Problems) -> None:
    """Warn of settings that no longer have an effect, other than folders and variables."""
    message = "this is a job of OpenPAI on YARN, read as protocol v2"
    hint = "print the converted job with `pairun convert FILE`"
    problems.warning("PR738", message, (document.get("jobName") or document).place, hint)
    if (file := document.get("authFile")) is not None and file.value:
        message = "pairun does not read authFile: the image is pulled without a login"
        hint = (
            "give the image prerequisite auth: {username, password, registryuri}, "
            "with the password under secrets"
        )
        problems.warning("PR732", message, file.place, hint)
    if (kind := document.get("gpuType")) is not None and kind.value:
        message = "gpuType has no effect: the tasks may get any GPU"
        hint = "with the hived scheduler: extras.hivedScheduler.taskRoles.ROLE.skuType"
        problems.warning("PR732", message, kind.place, hint)
    limit = document.get("killAllOnCompletedTaskNumber")
    if number(limit, 0) > 0:
        assert limit is not None
        problems.warning(
            "PR732",
            "killAllOnCompletedTaskNumber becomes a completion policy: the job completes when the first task ends",
            limit.place,
            "set completion in the roles to change this",
        )
    for role in elements(document, "taskRoles"):
        for port in elements(role, "portList"):
            if (start := port.get("beginAt")) is not None and start.value != 0:
                message = "beginAt has no effect: the cluster chooses the ports"
                hint = f"read them from $PAI_CONTAINER_HOST_{text(port, 'label')}_PORT_LIST"
                problems.warning("PR732", message, start.place, hint)
        if (command := role.get("command")) is not None:
            warn_of_file_system(command, problems)


def warn_of_file_system(node: Node, problems: Problems) -> None:
    """Warn of the variable that only OpenPAI on YARN set."""
    if isinstance(node.value, str) and _FILE_SYSTEM.search(node.value):
        message = (
            "nothing sets $PAI_DEFAULT_FS_URI any more, and the command fails with "
            "'unbound variable'"
        )
        hint = "write the file system's address itself, or add it to jobEnvs"
        problems.warning("PR732", message, node.place, hint)
