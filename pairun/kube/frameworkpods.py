"""The instances of a Framework, whose controller deletes each Pod as soon as the Pod has ended.

After that, only the Framework's status has the result. Source: frameworkcontroller v1, ``TaskStatus`` and ``TaskAttemptCompletionStatus`` in its
``pkg/apis/frameworkcontroller/v1/types.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from pairun.kube.endwords import INIT, one_line
from pairun.kube.podstates import PodState, read_pod
from pairun.kube.statuses import task_statuses

_Object = Mapping[str, Any]


def tasks_of(framework: _Object) -> Iterable[tuple[str, _Object]]:
    """The role and the status of every task; none if the status is malformed."""
    try:
        roles = task_statuses(framework)
    except ValueError:
        # The Pods are still useful; the barrier reports what is wrong with such a status.
        return []
    return [(str(role["name"]), task) for role in roles for task in role["taskStatuses"] or ()]


def completion_of(framework: _Object) -> _Object:
    """How the Framework's last attempt ended; empty while it runs."""
    attempt = (framework.get("status") or {}).get("attemptStatus") or {}
    completion = attempt.get("completionStatus")
    return completion if isinstance(completion, dict) else {}


def init_names(framework: _Object) -> frozenset[str]:
    """The names of init containers; pairun's own name if the Framework has no specification."""
    roles = (framework.get("spec") or {}).get("taskRoles") or ()
    specs = [((r.get("task") or {}).get("pod") or {}).get("spec") or {} for r in roles]
    names = {c.get("name") for spec in specs for c in spec.get("initContainers") or ()}
    return frozenset(names or {INIT})


def trigger_of(framework: _Object) -> tuple[Any, Any]:
    """Role and number of the task that ended the Framework's last attempt; None for none."""
    trigger = completion_of(framework).get("trigger") or {}
    return trigger.get("taskRoleName"), trigger.get("taskIndex")


def retries_of(status: _Object) -> int:
    """How often the controller has retried a Framework or a task, by its status."""
    return int((status.get("retryPolicyStatus") or {}).get("totalRetriedCount") or 0)


def ended_pod(role: str, task: _Object, inits: frozenset[str]) -> _Object | None:
    """The Pod of a task at its end; None while it runs."""
    attempt = task.get("attemptStatus") or {}
    completion = attempt.get("completionStatus")
    if not isinstance(completion, dict):
        return None
    pod = completion.get("pod") or {}
    ended = {"finishedAt": attempt.get("completionTime")}
    statuses: dict[bool, list[_Object]] = {True: [], False: []}
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


def framework_instances(framework: _Object, pods: Iterable[PodState]) -> tuple[PodState, ...]:
    """The newest attempt of every task: from the status if it has ended, else from its Pod."""
    inits = init_names(framework)
    job_retries = retries_of(framework.get("status") or {})
    by_uid = {each.uid: each for each in pods}
    instances = []
    for role, task in tasks_of(framework):
        attempt = task.get("attemptStatus") or {}
        pod = by_uid.pop(str(attempt.get("podUID")), None)
        ended = ended_pod(role, task, inits)
        state = pod if ended is None else _ended_task(ended, attempt["completionStatus"])
        if state is not None:
            container_restarts = pod.restarts if pod else 0
            restarts = container_restarts + retries_of(task) + job_retries
            instances.append(attrs.evolve(state, restarts=restarts, gone=pod is None or pod.gone))
    known = {(each.role, each.index) for each in instances}
    # Pods that are not yet in the status
    instances += [each for each in by_uid.values() if (each.role, each.index) not in known]
    return tuple(sorted(instances, key=lambda each: (each.role, each.index)))


def decisive_instance(framework: _Object, instances: Iterable[PodState]) -> PodState | None:
    """The instance that ended the Framework's last attempt; None if no instance did."""
    trigger = trigger_of(framework)
    return next((each for each in instances if (each.role, each.index) == trigger), None)


def completion_words(completion: _Object) -> str:
    """Why a task or Framework ended, if its containers do not say so.

    Omits the diagnostics of a failed Pod: they only repeat the containers' messages as JSON.
    """
    diagnostics = str(completion.get("diagnostics") or "").partition(": PodPattern ")[0]
    words = (completion.get("phrase"), diagnostics.partition("\n")[0][:300])
    return one_line(": ".join(str(w).strip() for w in words if w))


def _ended_task(pod: _Object, completion: _Object) -> PodState:
    """The state of a task whose last attempt has ended."""
    state = read_pod(pod)
    if "pod" not in completion:
        # FrameworkController stopped it, or its Pod was deleted.
        is_stopped = completion.get("code") in _STOPS
        phase = "stopped" if is_stopped else state.phase
        return attrs.evolve(state, phase=phase, reason=completion_words(completion))
    failed = completion_words(completion) if state.phase == "failed" else ""
    return attrs.evolve(state, reason=state.reason or failed)


_STOPS = (-210, -220)
"""``StopFrameworkRequested`` and ``FrameworkAttemptCompletion`` (its ``completion.go``)."""


def log_folder(framework: _Object, instance: PodState) -> str:
    """The folder on the node with the logs of an instance; empty if there is none.

    Args:
        framework: the Framework object, whose Pods mount the folder as the volume ``host-log``.
    """
    for role in (framework.get("spec") or {}).get("taskRoles") or ():
        spec = ((role.get("task") or {}).get("pod") or {}).get("spec") or {}
        volumes = [v for v in spec.get("volumes") or () if v.get("name") == _LOG_VOLUME]
        paths = [str((v.get("hostPath") or {}).get("path") or "") for v in volumes]
        if role.get("name") != instance.role or not any(paths):
            continue
        mounts = [m for c in spec.get("containers") or () for m in c.get("volumeMounts") or ()]
        folders = [str(m.get("subPath") or "") for m in mounts if m.get("name") == _LOG_VOLUME]
        return one_line("/".join(filter(None, (*paths[:1], *folders[:1], instance.uid))))
    return ""


_LOG_VOLUME = "host-log"
