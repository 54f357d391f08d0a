"""The changes that each way to start a Pod makes to the playbooks (layer ``engine``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pairun.base.foreignjson import parse_json
from pairun.base.paths import DEFAULT_PAI_DIR, GANG_FILE, runtime_file
from pairun.errors import PairunError, Place, Source
from pairun.playbook.document.reading import Node, decode, load_bytes, node_of, read_text

BARRIER = "PAIRUN_BARRIER"
"""The variable with the barrier's backend."""

GANG_RESTARTS = "PAIRUN_GANG_RESTARTS"
"""Set if a failed container restarts in its Pod: the barrier runs again in the runtime phase."""

STYLES = "PAIRUN_GANG_ENVIRONMENT"
"""The variable with the styles of the gang's variables, separated by commas."""

RECORD = "PAIRUN_INJECTED"
"""The variable of an injected init container with the data that a removal needs."""

COMMAND_FILE = "the container's command"
"""The name of `command_layer`'s layer in messages."""

_OBJECT = ("FC_FRAMEWORK_NAMESPACE", "FC_FRAMEWORK_NAME")
_SSH = "ssh"
"""The plugin, and its task."""

_Gang = TypeVar("_Gang")


def engine_layer(file: str, name: str) -> Node:
    """The operations of one way to start; their place is the layer: users cannot open its file.

    Args:
        file: the description, in this module's folder.
        name: the layer's name in reviews.
    """
    data = load_bytes(os.path.join(os.path.dirname(__file__), file))
    node = read_text(decode(data, name, "engine"))
    return node_of(node.plain(), Place(node.place.source, 0, 0))


def barrier_layer(env: Mapping[str, str]) -> Node | None:
    """The barrier's backend that an engine sets in the Pod's environment; None if it sets none."""
    backend = env.get(BARRIER)
    if not backend:
        return None
    operations = [{"patch": "barrier", "args": {"backend": backend}}]
    return node_of({"init": operations}, Place(Source(BARRIER, "engine", ""), 0, 0))


def command_layer(env: Mapping[str, str], argv: Sequence[str] = ()) -> Node | None:
    """The runtime playbook's changes of an injected Pod; None if there are none.

    Args:
        argv: the container's own command, for a review; PID 1 finds it in its own arguments.
    """
    place = Place(Source(COMMAND_FILE, "engine", ""), 0, 0)
    operations: list[dict[str, Any]] = []
    if argv:
        args = {"script": None, "argv": list(argv)}
        operations.append({"patch": "user_command", "args": args})
    if env.get(GANG_RESTARTS):
        operations.append(_meeting_again(env))
    if styles := env.get(STYLES):
        operations.append({
            "before": "user_command",
            "id": "gang_environment",
            "name": "The gang's variables are exported",
            "gang_environment": {"styles": styles.split(",")},
        })  # fmt: skip
    return node_of({"runtime": operations}, place) if operations else None


def _meeting_again(env: Mapping[str, str]) -> dict[str, Any]:
    """The task that runs the barrier again after the container restarts."""
    from pairun.kube.gang import GANG_VARIABLE, read_gang  # only injected Pods need it

    variables = {n: v for n, v in env.items() if n.startswith(GANG_VARIABLE) or n in _OBJECT}
    # A review does not know the Pod's labels.
    if all(variables.get(name) for name in _OBJECT) and (gang := of_gang(read_gang, env)):
        _, role, number = gang
        variables |= {"FC_TASKROLE_NAME": role, "FC_TASK_INDEX": str(number)}
    variables["PAIRUN_FRAMEWORK_FILE"] = runtime_file(DEFAULT_PAI_DIR, GANG_FILE)
    return {
        # ssh needs the addresses that the barrier updates.
        "before": _SSH if _has_plugin(env, _SSH) else "user_command",
        "id": "barrier_again",
        "name": "After a restart of this container, every instance of the job runs",
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


def of_gang(read: Callable[[Mapping[str, str]], _Gang], env: Mapping[str, str]) -> _Gang:
    """What `read_gang` or `gang_sizes` reads of an injected Pod's gang.

    Raises:
        PairunError: the gang's description is invalid.
    """
    try:
        return read(env)
    except ValueError as e:
        hint = "inject the manifest again with this version"
        raise PairunError.of("PR704", str(e), hint=hint) from e


def merged(low: Node | None, high: Node | None) -> Node | None:
    """Merge two layers of the engine into one; the higher one's operations come last."""
    if low is None or high is None or not isinstance(low.value, dict):
        return high if low is None else low
    both = dict(low.value)
    for phase, operations in high.items():
        below = both.get(phase)
        added = [*(below.elements() if below else ()), *operations.elements()]
        both[phase] = Node(added, operations.place, operations.key)
    return Node(both, low.place, low.key)
