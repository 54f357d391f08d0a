"""The Pods of a Framework's ended tasks, rebuilt from its status: the controller deletes them.

Source: frameworkcontroller v1, ``TaskStatus`` and ``TaskAttemptCompletionStatus`` in its
``pkg/apis/frameworkcontroller/v1/types.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pairun.kube.statuses import task_statuses

Object = Mapping[str, Any]

INIT = "init"
"""The name of pairun's init container."""


def tasks_of(framework: Object) -> Iterable[tuple[str, Object]]:
    """The role and the status of every task; none if the status is malformed."""
    try:
        roles = task_statuses(framework)
    except ValueError:
        # The Pods are still useful; the barrier reports what is wrong with such a status.
        return []
    return [(str(role["name"]), task) for role in roles for task in role["taskStatuses"] or ()]


def completion_of(framework: Object) -> Object:
    """How the Framework's last attempt ended; empty while it runs."""
    attempt = (framework.get("status") or {}).get("attemptStatus") or {}
    completion = attempt.get("completionStatus")
    return completion if isinstance(completion, dict) else {}


def init_names(framework: Object) -> frozenset[str]:
    """The names of init containers; pairun's own name if the Framework has no specification."""
    roles = (framework.get("spec") or {}).get("taskRoles") or ()
    specs = [((r.get("task") or {}).get("pod") or {}).get("spec") or {} for r in roles]
    names = {c.get("name") for spec in specs for c in spec.get("initContainers") or ()}
    return frozenset(names or {INIT})


def ended_pod(
    role: str, task: Object, attempt: Object, completion: Object, inits: frozenset[str]
) -> Object:
    """The Pod of a task at its end.

    Args:
        role: the task's role.
        task: its status.
        attempt: the status of its last attempt.
        completion: how that attempt ended.
        inits: the names of init containers.
    """
    pod = completion.get("pod") or {}
    ended = {"finishedAt": attempt.get("completionTime")}
    statuses: dict[bool, list[Object]] = {True: [], False: []}
    for container in pod.get("containers") or ():
        terminated = {k: container[k] for k in ("reason", "message") if container.get(k)}
        terminated |= {"exitCode": container.get("code"), **ended}
        name = container.get("name")
        status = {"name": name, "state": {"terminated": terminated}}
        statuses[name in inits].append(status)
    if any(s["state"]["terminated"]["exitCode"] for s in statuses[True]):
        # For a container that never started, the status has code 0.
        statuses[False] = []
    return {
        "metadata": {
            "name": attempt.get("podName"),
            "uid": attempt.get("podUID"),
            "creationTimestamp": attempt.get("startTime"),
            "labels": {"FC_TASKROLE_NAME": role, "FC_TASK_INDEX": str(task["index"])},
            "ownerReferences": [{"kind": "ConfigMap"}],
        },
        "spec": {"nodeName": attempt.get("podNodeName")},
        "status": {
            "phase": "Failed" if completion.get("code") else "Succeeded",
            "initContainerStatuses": statuses[True],
            "containerStatuses": statuses[False],
            **{k: pod[k] for k in ("reason", "message") if pod.get(k)},
        },
    }
