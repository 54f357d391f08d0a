"""The state of one instance, read from its Pod: identity, phase, restarts, reason.

The fields are those of the Pod API (kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle). A
Pod is identified by pairun's labels, by FrameworkController's, or by the index of an Indexed Job.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from pairun.base.escapes import visible
from pairun.kube.endwords import APP, INIT, diagnosis, ended_with, one_line
from pairun.kube.pods import STUCK, conditions_of, is_scheduled, place_of, unscheduled

DELETED = "its Pod was deleted"
_NEVER = re.compile(r"preemption: 0/(\d+) nodes are available: \1 Preemption is not helpful")
"""No node would fit the Pod if others left: https://github.com/kubernetes/kubernetes, defaultpreemption."""
ENDED = frozenset({"succeeded", "failed", "stopped"})


@attrs.frozen(kw_only=True)
class PodState:
    """The state of an instance, from its newest Pod.

    Attributes:
        role: the role's name in the Pod's labels.
        index: its number in the role.
        node: the node; None before the Pod is scheduled.
        phase: ``pending``, ``unschedulable``, ``starting`` (images and volumes), ``stuck``, ``init``,
            ``running``, ``stopping``, ``succeeded``, ``failed``, ``stopped`` (because the job ended),
            ``lost``.
        reason: why, as text; may be empty.
        init_code: the exit code of init, or None.
        code: the exit code of the user's container, or None.
        restarts: restarts of its containers, plus earlier Pods.
        made: when the Pod was created (RFC 3339).
        ended: when it ended, or its command (RFC 3339), or empty.
        grace_s: the grace time, in seconds.
        evicted: whether the cluster ended the Pod: eviction, preemption, a taint.
        gone: whether the Pod and its log are deleted.
        diagnosis: why the command failed, by PID 1; may be empty.
    """

    role: str
    index: int
    pod: str
    uid: str
    node: str | None
    phase: str
    reason: str = ""
    init_code: int | None = None
    code: int | None = None
    restarts: int = 0
    made: str = ""
    ended: str = ""
    grace_s: int = 30
    evicted: bool = False
    gone: bool = False
    diagnosis: Mapping[str, str | float] = attrs.field(factory=dict)

    @property
    def label(self) -> str:
        """Role and number."""
        return f"{self.role}-{self.index}"

    @property
    def exit_code(self) -> int | None:
        """The exit code of the container that decided; None while it runs, or if none did."""
        if self.phase == "succeeded":
            return 0
        return self.init_code or self.code or 1 if self.phase == "failed" else None

    @property
    def has_cause(self) -> bool:
        """Whether it says why the Pod ended: a container's exit code, or an eviction."""
        return self.evicted or self.code is not None or bool(self.init_code)

    def seen_as(self, now: PodState) -> PodState:
        """The state of the same Pod in a later response, which may show less than this one.

        A container that has not restarted keeps its first exit code. The kubelet replaces the code
        of a container that it has lost with 137 (``ContainerStatusUnknown``).
        """
        if now.phase == self.phase == "stuck" and _no_image(now) and _no_image(self):
            # Between two tries the kubelet says only that it waits for the next one.
            return attrs.evolve(now, reason=max(self.reason, now.reason, key=len))
        if now.restarts > self.restarts or not self.has_cause:
            return now
        if self.evicted and self.code is None:
            # The exit code follows the eviction.
            return attrs.evolve(
                now, evicted=True, phase=self.phase, reason=self.reason, ended=self.ended
            )
        phase = self.phase if self.phase in ENDED else now.phase
        return attrs.evolve(self, phase=phase, reason=self.reason or now.reason, gone=now.gone)

    def deleted(self, *, is_plain: bool) -> PodState | None:
        """The last state of this Pod once it is deleted; None if its controller replaces it.

        Args:
            is_plain: whether it is a plain Pod, which nothing replaces.
        """
        if self.phase in ENDED:
            return attrs.evolve(self, gone=True)
        if self.has_cause:
            return attrs.evolve(
                self, gone=True, phase="failed" if self.init_code or self.code else "succeeded"
            )
        return attrs.evolve(self, gone=True, phase="failed", reason=DELETED) if is_plain else None


def _no_image(state: PodState) -> bool:
    return state.reason.startswith(("ErrImagePull", "ImagePullBackOff"))


def read_pod(pod: Mapping[str, Any]) -> PodState:
    """Read the state of an instance from its Pod."""
    meta, spec, status = pod.get("metadata") or {}, pod.get("spec") or {}, pod.get("status") or {}
    role, index = place_of(pod)
    init = _container(status.get("initContainerStatuses"), INIT)
    app = _container(status.get("containerStatuses"), APP)
    init_code, code = _code(init), _code(app)
    ends = [_ended(c).get("finishedAt") for c in (init, app)]
    eviction = _eviction(meta, status)
    phase, reason = _phase(meta, status, init, app)
    if eviction is not None:
        phase, (reason, *ends) = "failed", eviction
    return PodState(
        role=visible(role or "pod"),
        index=index or 0,
        pod=str(meta.get("name")),
        uid=str(meta.get("uid")),
        node=spec.get("nodeName"),
        phase=phase,
        reason=one_line(reason),
        init_code=init_code,
        code=code,
        restarts=sum(int(c.get("restartCount") or 0) for c in (init, app)),
        made=str(meta.get("creationTimestamp") or ""),
        ended=max((str(e) for e in ends if e), default="")
        if phase in ENDED or code is not None
        else "",
        grace_s=int(spec.get("terminationGracePeriodSeconds") or 0),
        evicted=eviction is not None,
        diagnosis=diagnosis(str(_ended(app).get("message") or "")),
    )


def newest(pods: Iterable[PodState], *, is_over: bool = False) -> tuple[PodState, ...]:
    """The newest Pod per role and number, sorted; its restarts include the earlier Pods.

    Args:
        is_over: whether the job has failed: a newer Pod that does not say why it ended does not count.
    """
    by_instance: dict[tuple[str, int], list[PodState]] = {}
    for each in pods:
        by_instance.setdefault((each.role, each.index), []).append(each)
    return tuple(
        attrs.evolve(last, restarts=sum(p.restarts for p in same) + len(same) - 1)
        for _, same in sorted(by_instance.items())
        for last in [
            max(same, key=lambda p: (is_over and p.has_cause, p.made, p.phase not in ENDED, p.uid))
        ]
    )


def is_over(pod: Mapping[str, Any], name: str) -> bool:
    """Whether a container of a Pod has ended for good, so that it prints no more."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        return True
    if spec.get("restartPolicy") != "Never" and name != INIT:
        return False
    statuses = status.get("initContainerStatuses" if name == INIT else "containerStatuses")
    mine = (s for s in statuses or () if s.get("name") == name)
    return any("terminated" in (s.get("state") or {}) for s in mine)


def diagnoses(pod: Mapping[str, Any]) -> tuple[Mapping[str, str | float], ...]:
    """Why the command failed in its last run and in this one; empty for a run without a reason."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    app: Mapping[str, Any] = next((s for s in statuses if s.get("name") == APP), {})
    ends = ((app.get(state) or {}).get("terminated") or {} for state in ("lastState", "state"))
    return tuple(diagnosis(str(end.get("message") or "")) for end in ends)


def _container(statuses: Any, name: str) -> Mapping[str, Any]:
    """The status of the container with a name; else of the first one, for Pods made elsewhere."""
    containers = [s for s in statuses or () if isinstance(s, dict)]
    return next(
        (s for s in containers if s.get("name") == name), containers[0] if containers else {}
    )


def _ended(container: Mapping[str, Any]) -> Mapping[str, Any]:
    state = container.get("state") or {}
    return state.get("terminated") or {}


def _code(container: Mapping[str, Any]) -> int | None:
    code = _ended(container).get("exitCode")
    return code if isinstance(code, int) else None


def _eviction(meta: Mapping[str, Any], status: Mapping[str, Any]) -> tuple[str, str] | None:
    """Why and when (RFC 3339) the cluster evicted a Pod; None if it did not.

    From Kubernetes 1.26 on, the API server and the controllers set the condition
    ``DisruptionTarget`` before they signal the Pod's processes (Kubernetes, "Disruptions"). The
    kubelet sets the Pod's reason ``Evicted``. A controller counts an evicted Pod that exits with 0
    as a success; no controller counts a plain Pod.
    """
    if status.get("phase") == "Succeeded" and meta.get("ownerReferences"):
        return None
    if status.get("reason") == "Evicted":
        return f"evicted ({status.get('message') or 'by its node'})", ""
    condition = conditions_of(status).get("DisruptionTarget", {})
    if condition.get("status") != "True":
        return None
    words = ": ".join(str(condition[k]) for k in ("reason", "message") if condition.get(k))
    return f"evicted ({words})", str(condition.get("lastTransitionTime") or "")


def _phase(
    meta: Mapping[str, Any],
    status: Mapping[str, Any],
    init: Mapping[str, Any],
    app: Mapping[str, Any],
) -> tuple[str, str]:
    match status.get("phase"):
        case "Succeeded":
            return "succeeded", ""
        case "Failed":
            gone = DELETED if meta.get("deletionTimestamp") else ""
            return "failed", _failure(status, init, app) or gone
        case "Unknown":
            return "lost", "its node does not answer"
    if meta.get("deletionTimestamp"):
        return "stopping", ""
    if status.get("phase") in (None, "Pending") and (reason := unscheduled(status)) is not None:
        return "stuck" if _NEVER.search(reason) else "unschedulable", reason
    for container, what in ((init, INIT), (app, "the command")):
        state = container.get("state") or {}
        if (waiting := state.get("waiting") or {}).get("reason") in STUCK:
            words = [str(waiting["reason"])]
            if last := (container.get("lastState") or {}).get("terminated"):
                words.append(f"{what} ended with {ended_with(last, what)}")
            elif waiting.get("message"):
                words.append(str(waiting["message"]))
            return "stuck", ": ".join(words)
        if "running" in state:
            return ("init" if container is init else "running"), ""
    if _ended(app):
        return "stopping", _failure(status, init, app) if _code(app) else ""
    if not status.get("phase") or not is_scheduled(status):
        return "pending", ""
    return "starting", ""


def _failure(status: Mapping[str, Any], init: Mapping[str, Any], app: Mapping[str, Any]) -> str:
    if _code(init):
        return f"init ended with {ended_with(_ended(init), INIT)}"
    if ended := _ended(app):
        return f"the command ended with {ended_with(ended, 'the command')}"
    words = (status.get("reason"), status.get("message"))
    return ": ".join(str(w) for w in words if w)
