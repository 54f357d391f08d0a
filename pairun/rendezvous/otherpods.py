"""The state of other instances' Pods at the API server, for an init phase that waits for one.

PID 1 has no token, so it cannot ask. If a right is missing or the server does not respond, the
state is unknown: the caller then waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pairun.base.foreignjson import parse_record
from pairun.kube.gang import GangPods, read_gang
from pairun.kube.labels import INDEX_LABEL, INDEXED, JOB_LABEL, ROLE_LABEL
from pairun.kube.paths import object_path
from pairun.kube.pods import init_succeeded
from pairun.kube.statuses import MAX_STATUS_BYTES, task_statuses
from pairun.module import Failure

if TYPE_CHECKING:
    from pairun.net.apiserver import ApiServer

_READ_S = 5.0
_MAX_PODS_BYTES = 8 * 1024 * 1024
_OVER = ("Failed", "Succeeded")
_VERSION = "frameworkcontroller.microsoft.com/v1"


class PodQuery(NamedTuple):
    """How to find the Pod of one instance.

    Attributes:
        namespace: of the job.
        name: of the Pod, if it follows from the job's; else None.
        labels: otherwise a selector for the instance's Pods.
    """

    namespace: str
    name: str | None
    labels: str = ""


def pod_query(env: Mapping[str, str], role: str, index: int) -> PodQuery:
    """How to find the Pod of an instance of this Pod's job.

    Args:
        env: the environment of the init container.
        role: the instance's role.
        index: its number in the role.

    Raises:
        ValueError: neither labels nor a name identify the Pod.
    """
    namespace, job = env["FC_FRAMEWORK_NAMESPACE"], env["FC_FRAMEWORK_NAME"]
    if env.get("PAIRUN_BARRIER") != "pods":
        return PodQuery(namespace, f"{job}-{role}-{index}")
    if (found := read_gang(env)) is not None:
        return _query_in_gang(found[0], namespace, role, index, env)
    # Kubernetes gives the index to the containers and, since 1.28, as a label to a Job's Pods.
    label = INDEXED if "JOB_COMPLETION_INDEX" in env else INDEX_LABEL
    return PodQuery(namespace, None, f"{JOB_LABEL}={job},{ROLE_LABEL}={role},{label}={index}")


def _query_in_gang(
    gang: GangPods, namespace: str, role: str, index: int, env: Mapping[str, str]
) -> PodQuery:
    name = gang.pod_name_of(role, index, env["FC_TASKROLE_NAME"], env.get("FC_POD_NAME", ""))
    labels = None if name else gang.selector_of(role, index)
    if name is None and labels is None:
        raise ValueError(f"no label identifies the Pod of {role}-{index} from others")
    return PodQuery(namespace, name, labels or "")


class OtherPods:
    """The Pods of this job.

    Args:
        env: the environment of the init container.
        api: the API server; None for that of this Pod's cluster, to which it connects only if
            needed.
    """

    def __init__(self, env: Mapping[str, str], api: ApiServer | None = None) -> None:
        self._env = env
        self._api = api

    def has_ended(self, role: str, index: int) -> bool:
        """Whether an instance has ended, and has no other Pod."""
        pods = self._pods(role, index)
        if pods:
            return all(_phase(pod) in _OVER for pod in pods)
        return pods is not None and self._task_is_completed(role, index)

    def is_past_init(self, role: str, index: int) -> bool:
        """Whether an instance's init phase has ended: it publishes no more verdicts."""
        pods = self._pods(role, index)
        if pods:
            return all(_phase(pod) in _OVER or init_succeeded(pod) for pod in pods)
        return pods is not None and self._task_is_completed(role, index)

    def _pods(self, role: str, index: int) -> list[Any] | None:
        """The Pods of an instance; None if unknown."""
        try:
            query = pod_query(self._env, role, index)
        except ValueError:
            return None
        path = object_path("v1", "pods", query.namespace, query.name or "")
        answer = self._read(path, {} if query.name else {"labelSelector": query.labels})
        if answer is None:
            return None
        items = answer.get("items") if query.name is None else [answer] if answer else []
        pods = items if isinstance(items, list) else []
        return [pod for pod in pods if isinstance(pod, dict)]

    def _task_is_completed(self, role: str, index: int) -> bool:
        """Whether FrameworkController records the end of a task, whose Pod it deletes.

        A task that it retries is not ``Completed``.
        """
        namespace, job = self._env["FC_FRAMEWORK_NAMESPACE"], self._env["FC_FRAMEWORK_NAME"]
        if self._env.get("PAIRUN_BARRIER") == "pods":
            return False
        path = object_path(_VERSION, "frameworks", namespace, job)
        try:
            roles = task_statuses(self._read(path, {}, MAX_STATUS_BYTES) or {})
        except ValueError:
            return False
        return any(
            each["name"] == role and task.get("index") == index and task.get("state") == "Completed"
            for each in roles
            for task in each.get("taskStatuses") or ()
        )

    def _read(
        self, path: str, query: Mapping[str, str], max_bytes: int = _MAX_PODS_BYTES
    ) -> dict[str, Any] | None:
        """An object; empty if it does not exist, None if unknown."""
        from pairun.net.apiserver import ApiServer

        try:
            self._api = self._api or ApiServer.in_pod(self._env)
            data = self._api.ask(path, query=query, timeout_s=_READ_S, max_bytes=max_bytes)
        except (Failure, OSError):
            return None
        return parse_record(data) if data is not None else {}


def _phase(pod: Mapping[str, Any]) -> Any:
    return (pod.get("status") or {}).get("phase")
