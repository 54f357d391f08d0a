"""A small imitation of FrameworkController: makes the Pods of Frameworks, and writes their statuses.

It does what a job sees of the controller (https://github.com/microsoft/frameworkcontroller, v1.0.0):
the names, variables, annotations and labels of Pods, the status with their addresses and ends,
compressed where it is large, completion policies, retries as new attempts, and the stop. It deletes a
Pod as soon as the Pod has ended: from then on only the status has the result. Statuses are as the
original writes them; tests/engines/kubernetes/observed has some of its own. One that starts goes on
with the statuses that it finds. Unlike the original it has no delay between attempts, and knows no
rescaling.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import datetime
import gzip
import json
import queue
import threading
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Self

from pairun.kube.statuses import task_statuses
from tests.node.api import Api, ApiError, Object

GROUP = "frameworkcontroller.microsoft.com/v1"
COMPRESS_FROM = 700 * 1024
"""Bytes of JSON from which on the list of statuses is stored compressed."""

POD_DELETED, STOPPED, ATTEMPT_ENDED = -101, -210, -220
_PHRASES = {
    0: "Succeeded", 137: "ContainerSigKillReceived", 139: "ContainerSigSegvReceived",
    143: "ContainerSigTermReceived", 254: "ContainerImageNotExists",
    POD_DELETED: "PodExternalDeleted", STOPPED: "StopFrameworkRequested",
    ATTEMPT_ENDED: "FrameworkAttemptCompletion",
}  # fmt: skip
"""Of the codes that its configuration matches; others are ``ContainerUnrecognizedFailed``."""
_TRANSIENT = (POD_DELETED, 137, 143, 250, 251, 253)
"""Codes after which a fancy policy always tries again."""
_PERMANENT = (STOPPED, ATTEMPT_ENDED, 252, 254)
"""Codes after which a fancy policy never does."""
_WATCH_S = 2


class FrameworkController:
    """Plays FrameworkController in one namespace, in threads of its own.

    Args:
        api: the API server, as a user who may do everything in the namespace.
        namespace: where.
        compress_from: from how many bytes on statuses are stored compressed.
    """

    def __init__(self, api: Api, namespace: str, compress_from: int = COMPRESS_FROM) -> None:
        self._api = api
        self._namespace = namespace
        self._compress_from = compress_from
        self._core = f"/api/v1/namespaces/{namespace}"
        self._frameworks = f"/apis/{GROUP}/namespaces/{namespace}/frameworks"
        self._events: queue.Queue[tuple[str, Object] | None] = queue.Queue()
        self._pods: dict[str, Object] = {}
        self._known: dict[str, Object] = {}
        self._stop = threading.Event()
        self._failure: Exception | None = None
        self._threads = [
            threading.Thread(target=self._watch, args=("pod", f"{self._core}/pods")),
            threading.Thread(target=self._watch, args=("framework", self._frameworks)),
            threading.Thread(target=self._work),
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._events.put(None)
        for thread in self._threads:
            thread.join(timeout=_WATCH_S + 30)
        if self._failure is not None and exc[0] is None:
            raise self._failure

    # --- what happens -----------------------------------------------------------------------------

    def _watch(self, kind: str, path: str) -> None:
        """Put all that happens to a kind of object into the queue."""
        try:
            version = ""
            while not self._stop.is_set():
                if not version:
                    found = self._api.get(path)
                    version = found["metadata"]["resourceVersion"]
                    for each in found["items"]:
                        self._events.put((kind, {"type": "ADDED", "object": each}))
                try:
                    for event in self._api.watch(path, version, _WATCH_S):
                        version = event["object"]["metadata"]["resourceVersion"]
                        self._events.put((kind, event))
                except ApiError as e:
                    if e.status != 410:
                        raise
                    version = ""
        except Exception as e:  # noqa: BLE001 - told where the test ends
            self._fail(e)

    def _work(self) -> None:
        """Bring the Frameworks up to what has happened, until it is told to stop."""
        try:
            while (event := self._events.get()) is not None:
                self._note(*event)
                if self._events.empty():
                    for framework in list(self._known.values()):
                        self._sync(framework)
        except Exception as e:  # noqa: BLE001 - told where the test ends
            self._fail(e)

    def _fail(self, e: Exception) -> None:
        if not self._stop.is_set():
            self._failure = self._failure or e
            self._events.put(None)

    def _note(self, kind: str, event: Object) -> None:
        found = event["object"]
        uid, gone = found["metadata"]["uid"], event["type"] == "DELETED"
        if kind == "pod":
            self._pods[uid] = {**found, "gone": gone}
        elif gone:
            self._known.pop(uid, None)
        else:
            # The state is the one in memory: nobody else writes it. An earlier controller may have.
            status = self._known[uid]["status"] if uid in self._known else _stored(found)
            self._known[uid] = {**found, "status": status}

    # --- a Framework ------------------------------------------------------------------------------

    def _sync(self, framework: Object) -> None:
        """Do what is due for a Framework, and store its status when that changed."""
        if framework["metadata"].get("deletionTimestamp"):
            return
        before = copy.deepcopy(framework["status"])
        if framework["status"] is None:
            framework["status"] = {
                "startTime": _now(), "completionTime": None, "state": "AttemptCreationPending",
                "retryPolicyStatus": _no_retries(),
                "attemptStatus": _attempt(framework, 0),
            }  # fmt: skip
        status = framework["status"]
        if status["state"] != "Completed":
            self._advance(framework, status)
        if status != before:
            self._store(framework)

    def _advance(self, framework: Object, status: Object) -> None:
        attempt = status["attemptStatus"]
        if attempt["configMapUID"] is None:
            self._make_config_map(framework, attempt)
        stopping = framework["spec"].get("executionType") == "Stop"
        over = stopping or attempt["completionStatus"] is not None
        if over:
            _stop_tasks(framework, attempt)
        for role, task in _tasks(framework, attempt):
            if task["state"] == "Completed" or task["attemptStatus"]["completionStatus"]:
                continue
            self._mirror(framework, role, task)
            if task["state"] == "Completed" and attempt["completionStatus"] is None:
                attempt["completionStatus"] = _verdict(framework, attempt, role, task)
        if stopping and attempt["completionStatus"] is None:
            words = "User has requested to stop the Framework"
            attempt["completionStatus"] = _completion(STOPPED, words)
        if attempt["completionStatus"] is None:
            running = any(t["state"] == "AttemptRunning" for _, t in _tasks(framework, attempt))
            status["state"] = "AttemptRunning" if running else "AttemptPreparing"
            return
        _stop_tasks(framework, attempt)
        if self._ended(framework, attempt):
            self._complete(framework, status, attempt["completionStatus"]["code"])
        else:
            status["state"] = "AttemptDeleting"

    def _make_config_map(self, framework: Object, attempt: Object) -> None:
        made = self._api.create(f"{self._core}/configmaps", {
            "metadata": {"name": attempt["configMapName"],
                         "ownerReferences": [_owner(framework, "Framework", GROUP)]},
        })  # fmt: skip
        attempt["configMapUID"] = made["metadata"]["uid"]
        attempt["instanceUID"] = f"{attempt['id']}_{attempt['configMapUID']}"

    def _ended(self, framework: Object, attempt: Object) -> bool:
        """Delete what still runs of an attempt that is over; whether nothing does any more."""
        over = True
        for _, task in _tasks(framework, attempt):
            pod = self._pod_of(task)
            if pod is None and task["attemptStatus"]["podUID"]:
                over = False  # made, and not heard of
                continue
            if pod is None or pod["gone"]:
                if task["state"] != "Completed":
                    task |= {"completionTime": _now(), "state": "Completed"}
                continue
            self._delete(pod)
            over = False
        return over

    def _complete(self, framework: Object, status: Object, code: int) -> None:
        attempt = status["attemptStatus"]
        attempt["completionTime"] = _now()
        if _again(framework["spec"]["retryPolicy"], status["retryPolicyStatus"], code):
            self._api.delete(f"{self._core}/configmaps/{attempt['configMapName']}")
            status["state"] = "AttemptCreationPending"
            status["attemptStatus"] = _attempt(framework, attempt["id"] + 1)
        else:
            status |= {"completionTime": _now(), "state": "Completed"}

    def _store(self, framework: Object) -> None:
        """Write the status; a Framework that changed meanwhile is written at its next event."""
        shown = copy.deepcopy(framework)
        attempt = shown["status"]["attemptStatus"]
        roles = json.dumps(attempt["taskRoleStatuses"], separators=(",", ":")).encode()
        if len(roles) >= self._compress_from:
            attempt["taskRoleStatuses"] = None
            packed = base64.b64encode(gzip.compress(roles)).decode()
            attempt["taskRoleStatusesCompressed"] = packed
        path = f"{self._frameworks}/{framework['metadata']['name']}"
        while True:
            try:
                stored = self._api.call("PUT", path, shown)
            except ApiError as e:
                if e.status == 404:
                    return
                if e.status != 409:
                    raise
                newer = self._api.find(path)
                if newer is None or newer["metadata"]["uid"] != shown["metadata"]["uid"]:
                    return
                shown = {**newer, "status": shown["status"]}
                continue
            framework["metadata"] = stored["metadata"]
            framework["spec"] = stored["spec"]
            return

    # --- a task -----------------------------------------------------------------------------------

    def _mirror(self, framework: Object, role: Object, task: Object) -> None:
        """Make the Pod of a task that has none, else copy its state into the status."""
        attempt = task["attemptStatus"]
        if attempt["podUID"] is None:
            self._make_pod(framework, role, task)
            return
        pod = self._pod_of(task)
        if pod is None:
            return  # made, and not heard of
        seen = pod["status"]
        attempt |= {"podIP": seen.get("podIP"), "podHostIP": seen.get("hostIP"),
                    "podNodeName": pod["spec"].get("nodeName")}  # fmt: skip
        phase = seen.get("phase")
        if phase in ("Succeeded", "Failed"):
            done = _pod_completion(pod)
        elif pod["gone"]:
            done = _completion(POD_DELETED, "Pod was deleted by others")
        else:
            task["state"] = "AttemptPreparing"
            if phase == "Running":
                task["state"] = "AttemptRunning"
                attempt["runTime"] = attempt.get("runTime") or _now()
            return
        self._delete(pod)
        policy = role["task"].get("retryPolicy") or {}
        code = done["code"]
        if _again(policy, task["retryPolicyStatus"], code):
            task["state"] = "AttemptCreationPending"
            task["attemptStatus"] = _task_attempt(attempt["podName"], attempt["id"] + 1)
            self._make_pod(framework, role, task)
        else:
            _end(task, done)

    def _make_pod(self, framework: Object, role: Object, task: Object) -> None:
        """Make the Pod of a task's attempt; with one of its name still there, the next event tries."""
        status = framework["status"]["attemptStatus"]
        attempt = task["attemptStatus"]
        pod: Object = copy.deepcopy(role["task"]["pod"])
        values = {
            "FC_FRAMEWORK_NAMESPACE": self._namespace,
            "FC_FRAMEWORK_NAME": framework["metadata"]["name"],
            "FC_TASKROLE_NAME": role["name"],
            "FC_TASK_INDEX": str(task["index"]),
            "FC_CONFIGMAP_NAME": status["configMapName"],
            "FC_POD_NAME": attempt["podName"],
            "FC_FRAMEWORK_UID": framework["metadata"]["uid"],
            "FC_FRAMEWORK_ATTEMPT_ID": str(status["id"]),
            "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID": status["instanceUID"],
            "FC_CONFIGMAP_UID": status["configMapUID"],
            "FC_TASKROLE_UID": _uid(framework, role["name"]),
            "FC_TASK_UID": _uid(framework, role["name"], task["index"]),
            "FC_TASK_ATTEMPT_ID": str(attempt["id"]),
        }
        metadata = pod.setdefault("metadata", {})
        metadata |= {
            "name": attempt["podName"],
            "labels": {**metadata.get("labels", {}), **dict(list(values.items())[:3])},
            "annotations": {**metadata.get("annotations", {}), **values},
            "ownerReferences": [_owner(
                {"metadata": {"name": status["configMapName"], "uid": status["configMapUID"]}},
                "ConfigMap", "v1",
            )],
        }  # fmt: skip
        own = [{"name": name, "value": value} for name, value in values.items()]
        own += [
            {"name": "FC_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            {"name": "FC_TASK_ATTEMPT_INSTANCE_UID", "value": f"{attempt['id']}_$(FC_POD_UID)"},
        ]
        spec = pod["spec"]
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            container["env"] = own + list(container.get("env") or ())
            container.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
        try:
            made = self._api.create(f"{self._core}/pods", pod)
        except ApiError as e:
            if e.status != 409:
                raise
            return
        attempt |= {"podUID": made["metadata"]["uid"], "instanceUID":
                    f"{attempt['id']}_{made['metadata']['uid']}", "startTime": _now()}  # fmt: skip
        task["state"] = "AttemptPreparing"

    def _pod_of(self, task: Object) -> Object | None:
        return self._pods.get(task["attemptStatus"]["podUID"] or "")

    def _delete(self, pod: Object) -> None:
        if pod["gone"] or pod["metadata"].get("deletionTimestamp"):
            return
        uid = {"preconditions": {"uid": pod["metadata"]["uid"]}}
        with contextlib.suppress(ApiError):
            self._api.delete(f"{self._core}/pods/{pod['metadata']['name']}", uid)
        pod["metadata"]["deletionTimestamp"] = _now()


# --- statuses ---------------------------------------------------------------------------------------


def _stored(framework: Object) -> Object | None:
    """The status that an earlier controller left, inflated; None where there is none."""
    status: Object | None = framework.get("status")
    if status and (attempt := status.get("attemptStatus")):
        attempt["taskRoleStatuses"] = task_statuses(framework)
        attempt["taskRoleStatusesCompressed"] = None
    return status


def _attempt(framework: Object, number: int) -> Object:
    name = framework["metadata"]["name"]
    return {
        "id": number, "startTime": _now(), "completionTime": None, "instanceUID": None,
        "configMapName": f"{name}-attempt", "configMapUID": None, "completionStatus": None,
        "taskRoleStatuses": [
            {"name": role["name"], "podGracefulDeletionTimeoutSec":
                role["task"].get("podGracefulDeletionTimeoutSec"),
             "taskStatuses": [_task(f"{name}-{role['name']}-{i}", i) for i in range(role["taskNumber"])]}
            for role in framework["spec"]["taskRoles"]
        ],
        "taskRoleStatusesCompressed": None,
    }  # fmt: skip


def _task(pod: str, index: int) -> Object:
    return {
        "index": index, "startTime": _now(), "completionTime": None, "deletionPending": False,
        "state": "AttemptCreationPending",
        "retryPolicyStatus": _no_retries(),
        "attemptStatus": _task_attempt(pod, 0),
    }  # fmt: skip


def _task_attempt(pod: str, number: int) -> Object:
    return {
        "id": number, "startTime": None, "runTime": None, "completionTime": None,
        "instanceUID": None, "podName": pod, "podUID": None, "podIP": None, "podHostIP": None, "podNodeName": None,
        "completionStatus": None,
    }  # fmt: skip


def _tasks(framework: Object, attempt: Object) -> Iterator[tuple[Object, Object]]:
    """Each task with its role."""
    for role, told in zip(framework["spec"]["taskRoles"], attempt["taskRoleStatuses"], strict=True):
        for task in told["taskStatuses"]:
            yield role, task


def _no_retries() -> Object:
    return {"totalRetriedCount": 0, "accountableRetriedCount": 0, "retryDelaySec": None}


def _end(task: Object, completion: Object) -> None:
    task["attemptStatus"] |= {"completionTime": _now(), "completionStatus": completion}
    task |= {"completionTime": _now(), "state": "Completed"}


def _stop_tasks(framework: Object, attempt: Object) -> None:
    """Give every task that still runs the end that the attempt's end is for it."""
    for _, task in _tasks(framework, attempt):
        if task["attemptStatus"]["completionStatus"] is None:
            words = "Stop to complete current FrameworkAttempt"
            task["attemptStatus"] |= {
                "completionTime": _now(),
                "completionStatus": _completion(ATTEMPT_ENDED, words),
            }
            task["state"] = "AttemptDeletionPending"


def _completion(code: int, diagnostics: str) -> Object:
    attributes = [n for n, c in (("Transient", _TRANSIENT), ("Permanent", _PERMANENT)) if code in c]
    return {
        "code": code,
        "phrase": _PHRASES.get(code, "ContainerUnrecognizedFailed"),
        # The original writes null where its configuration names no attribute.
        "type": {
            "name": "Failed" if code else "Succeeded",
            "attributes": attributes or (None if code in _PHRASES and code else []),
        },
        "diagnostics": diagnostics,
    }


def _pod_completion(pod: Object) -> Object:
    """How a Pod ended: the code of the first container that failed, and the end of all of them."""
    status = pod["status"]
    both = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
    containers = []
    for container in both:
        state = container["state"].get("terminated") or {}
        containers.append(
            {"name": container["name"], "code": state.get("exitCode", 0)}
            | {key: state[key] for key in ("reason", "message", "signal") if key in state}
        )
    failed = [c for c in containers if c["code"]]
    code = failed[0]["code"] if failed else 0 if status["phase"] == "Succeeded" else 255
    words = "Pod succeeded"
    if code:
        known = code in _PHRASES
        matched = json.dumps({"containers": failed if known else containers})
        words = f"Pod failed: PodPattern {'matched' if known else 'unmatched'}: {matched}"
    shown = {key: status[key] for key in ("reason", "message") if key in status}
    return _completion(code, words) | {"pod": {**shown, "containers": containers}}


def _verdict(framework: Object, attempt: Object, role: Object, task: Object) -> Object | None:
    """The end of an attempt by the task that has just ended, or None while it goes on."""
    roles = zip(framework["spec"]["taskRoles"], attempt["taskRoleStatuses"], strict=True)
    tasks = next(status["taskStatuses"] for each, status in roles if each is role)
    policy = role.get("frameworkAttemptCompletionPolicy") or {}
    ends = _codes(tasks)
    failed = sum(1 for code in ends if code)
    done = task["attemptStatus"]["completionStatus"]
    reached = None
    for word, count, least in (
        ("Failed", failed, policy.get("minFailedTaskCount") or 1),
        ("Succeeded", len(ends) - failed, policy.get("minSucceededTaskCount") or role["taskNumber"]),
    ):  # fmt: skip
        if reached is None and 0 < least <= count and (word == "Failed") == bool(done["code"]):
            reached = (
                f"{word}TaskCount {count} has reached Min{word}TaskCount {least} in the TaskRole"
            )
    if reached is None:
        everything = [each for _, each in _tasks(framework, attempt)]
        if len(_codes(everything)) < len(everything):
            return None
        done = _completion(0, "Pod succeeded")
        reached = "All Tasks have completed"
    trigger = {"message": reached, "taskRoleName": role["name"], "taskIndex": task["index"]}
    return {k: v for k, v in done.items() if k != "pod"} | {"trigger": trigger}


def _codes(tasks: Sequence[Object]) -> list[int]:
    done = (t["attemptStatus"]["completionStatus"] for t in tasks if t["state"] == "Completed")
    return [completion["code"] for completion in done]


def _again(policy: Object, counts: Object, code: int) -> bool:
    """Whether a policy gives one more attempt, which is counted then."""
    fancy = policy.get("fancyRetryPolicy")
    free = fancy and code in _TRANSIENT
    if code == 0 or code in (STOPPED, ATTEMPT_ENDED) or (fancy and code in _PERMANENT):
        return False
    if not free and counts["accountableRetriedCount"] >= (policy.get("maxRetryCount") or 0):
        return False
    counts["totalRetriedCount"] += 1
    counts["accountableRetriedCount"] += not free
    return True


def _owner(owner: Object, kind: str, version: str) -> Object:
    return {"apiVersion": version, "kind": kind, "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": True,
            "blockOwnerDeletion": True}  # fmt: skip


def _uid(framework: Object, *parts: Any) -> str:
    name = "/".join(map(str, (framework["metadata"]["uid"], *parts)))
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
