"""What an injected Pod's init container reads from its variables: command, gang, their layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pairun.base.foreignjson import parse_json
from pairun.base.paths import DEFAULT_PAI_DIR, GANG_FILE, runtime_file
from pairun.errors import PairunError, Place, Problem, Source
from pairun.inject.variables import COMMAND, RESTARTS, STYLES
from pairun.kube.gang import VARIABLE, GangPods, gang_sizes, read_gang
from pairun.playbook.document.reading import Node, node_of

_OBJECT = ("FC_FRAMEWORK_NAMESPACE", "FC_FRAMEWORK_NAME")
_SSH = "ssh"
"""The plugin, and its task."""

COMMAND_FILE = "the container's command"
"""The name of `command_layer`'s layer in messages."""


def command_layer(env: Mapping[str, str]) -> Node | None:
    """The runtime playbook's changes for the container's own command; None if it has none.

    Args:
        env: of the init container.

    Raises:
        PairunError: the variable is not a list of words.
    """
    text = env.get(COMMAND)
    if not text:
        return None
    try:
        argv = parse_json(text)
    except ValueError:
        argv = None
    if not isinstance(argv, list) or not argv or not all(isinstance(a, str) for a in argv):
        raise PairunError(Problem("PR704", f"{COMMAND} is not a JSON list of words"))
    place = Place(Source(COMMAND_FILE, "engine", ""), 0, 0)
    operations: list[dict[str, Any]] = [
        {"patch": "user_command", "args": {"script": None, "argv": argv}}
    ]
    if env.get(RESTARTS):
        operations.append(_meeting_again(env))
    if styles := env.get(STYLES):
        operations.append(
            {
                "before": "user_command",
                "id": "gang_environment",
                "name": "The gang's variables are exported",
                "gang_environment": {"styles": styles.split(",")},
            }
        )
    return node_of({"runtime": operations}, place)


def _meeting_again(env: Mapping[str, str]) -> dict[str, Any]:
    """The task that runs the barrier again after the container restarts."""
    variables = {n: v for n, v in env.items() if n.startswith(VARIABLE) or n in _OBJECT}
    # A review does not know the Pod's labels.
    if all(variables.get(name) for name in _OBJECT) and (place := gang_in(env)) is not None:
        _, role, number = place
        variables |= {"FC_TASKROLE_NAME": role, "FC_TASK_INDEX": str(number)}
    variables["PAIRUN_FRAMEWORK_FILE"] = runtime_file(DEFAULT_PAI_DIR, GANG_FILE)
    return {
        # ssh needs the addresses that the barrier updates.
        "before": _SSH if _has_plugin(env, _SSH) else "user_command",
        "id": "barrier_again",
        "name": "After a restart of this container, every task of the job runs",
        "barrier": {"backend": "pods", "ready": "running"},
        "environment": variables,
        "exit_codes": {"timeout": 251, "permanent": 252},
    }


def _has_plugin(env: Mapping[str, str], name: str) -> bool:
    """Whether the Pod's settings, written by an injection, name a plugin."""
    try:
        plugins = parse_json(env.get("RUNTIME_CONFIG", "")).get("runtimePlugin", [])
        return any(plugin.get("plugin") == name for plugin in plugins)
    except (ValueError, AttributeError, TypeError):
        return False


def gang_in(env: Mapping[str, str]) -> tuple[GangPods, str, int] | None:
    """This Pod's gang, its role and its number; None if it has no gang.

    Raises:
        PairunError: the gang's description is invalid.
    """
    try:
        return read_gang(env)
    except ValueError as e:
        raise _unusable(e) from e


def sizes_in(env: Mapping[str, str]) -> tuple[Mapping[str, int], str] | None:
    """The sizes of the gang's roles, and this Pod's role; None if it has no gang.

    Raises:
        PairunError: the gang's description is invalid.
    """
    try:
        return gang_sizes(env)
    except ValueError as e:
        raise _unusable(e) from e


def _unusable(error: ValueError) -> PairunError:
    hint = "inject the manifest again with this version"
    return PairunError(Problem("PR704", str(error), hint=hint))
