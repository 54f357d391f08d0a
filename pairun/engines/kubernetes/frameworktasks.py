"""The instances of a Framework, whose controller deletes each Pod as soon as the Pod has ended.

After that, only the Framework's status has the result (frameworkcontroller v1, ``TaskStatus`` and
``TaskAttemptCompletionStatus`` in its ``pkg/apis/frameworkcontroller/v1/types.go``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from pairun.engines.kubernetes.endwords import one_line
from pairun.engines.kubernetes.podstates import PodState, read_pod
from pairun.kube.frameworkpods import completion_of, ended_pod, init_names, tasks_of

Object = Mapping[str, Any]


def framework_instances(framework: Object, pods: Iterable[PodState]) -> tuple[PodState, ...]:
    """The newest attempt of every task: from the status if it has ended, else from its Pod.

    Args:
        framework: the Framework object; its task statuses may be compressed.
        pods: the Pods that the API server still has.
    """
    inits = init_names(framework)
    job_retries = _retries(framework.get("status") or {})
    by_uid = {each.uid: each for each in pods}
    instances = []
    for role, task in tasks_of(framework):
        attempt = task.get("attemptStatus") or {}
        pod = by_uid.pop(str(attempt.get("podUID")), None)
        state = _ended_task(role, task, attempt, inits) or pod
        if state is not None:
            container_restarts = pod.restarts if pod else 0
            restarts = container_restarts + _retries(task) + job_retries
            instances.append(attrs.evolve(state, restarts=restarts, gone=pod is None or pod.gone))
    known = {(each.role, each.index) for each in instances}
    # Pods that are not yet in the status
    instances += [each for each in by_uid.values() if (each.role, each.index) not in known]
    return tuple(sorted(instances, key=lambda each: (each.role, each.index)))


def decisive_instance(framework: Object, instances: Iterable[PodState]) -> PodState | None:
    """The instance that ended the Framework's last attempt; None if no instance did."""
    completion = completion_of(framework)
    trigger = completion.get("trigger") or {}
    wanted = (trigger.get("taskRoleName"), trigger.get("taskIndex"))
    return next((each for each in instances if (each.role, each.index) == wanted), None)


def completion_words(completion: Object) -> str:
    """Why a task or Framework ended, if its containers do not say so.

    Omits the diagnostics of a failed Pod: they only repeat the containers' messages as JSON.
    """
    diagnostics = str(completion.get("diagnostics") or "").partition(": PodPattern ")[0]
    words = (completion.get("phrase"), diagnostics.partition("\n")[0][:300])
    return one_line(": ".join(str(w).strip() for w in words if w))


def _ended_task(role: str, task: Object, attempt: Object, inits: frozenset[str]) -> PodState | None:
    """The state of a task whose last attempt has ended; None while it runs."""
    completion = attempt.get("completionStatus")
    if not isinstance(completion, dict):
        return None
    state = read_pod(ended_pod(role, task, attempt, completion, inits))
    if "pod" not in completion:
        # FrameworkController stopped it, or its Pod was deleted.
        is_stopped = completion.get("code") in _STOPS
        phase = "stopped" if is_stopped else state.phase
        return attrs.evolve(state, phase=phase, reason=completion_words(completion))
    return attrs.evolve(state, reason=state.reason or _failure_words(state, completion))


_STOPS = (-210, -220)
"""``StopFrameworkRequested`` and ``FrameworkAttemptCompletion`` (its ``completion.go``)."""


def _failure_words(state: PodState, completion: Object) -> str:
    return completion_words(completion) if state.phase == "failed" else ""


def _retries(status: Object) -> int:
    return int((status.get("retryPolicyStatus") or {}).get("totalRetriedCount") or 0)


def log_folder(framework: Object, instance: PodState) -> str:
    """The folder on the node with the logs of an instance; empty if there is none.

    Args:
        framework: the Framework object, whose Pods mount the folder as the volume ``host-log``.
        instance: one of its instances.
    """
    for role in (framework.get("spec") or {}).get("taskRoles") or ():
        spec = ((role.get("task") or {}).get("pod") or {}).get("spec") or {}
        paths = [_host_path(v) for v in spec.get("volumes") or () if v.get("name") == _LOG_VOLUME]
        if role.get("name") != instance.role or not any(paths):
            continue
        mounts = [m for c in spec.get("containers") or () for m in c.get("volumeMounts") or ()]
        folders = [str(m.get("subPath") or "") for m in mounts if m.get("name") == _LOG_VOLUME]
        return one_line("/".join(filter(None, (*paths[:1], *folders[:1], instance.uid))))
    return ""


_LOG_VOLUME = "host-log"


def _host_path(volume: Object) -> str:
    return str((volume.get("hostPath") or {}).get("path") or "")
