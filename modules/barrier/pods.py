"""The job's Pods, found by their labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pairun.module import Context, Permanent
from pairun.module.cluster import (
    PORT_ANNOTATION,
    PortPlan,
    init_succeeded,
    is_done,
    is_running,
    of_main_containers,
    read_gang,
    why_missing,
)

from .objects import SHOWN, Backend, Look, Member, Object, meta, parse_object, with_addresses

_JOB_LABEL, _ROLE_LABEL = "pairun/job", "pairun/role"
_INDEX_LABELS = ("pairun/index", "batch.kubernetes.io/job-completion-index")


class PodsBackend(Backend):
    """Reads the job's Pods from the API server, and the instances from the Framework in a file.

    Args:
        ctx: the world.
        gang: whether to wait for all instances, or only for this one.
        ready: the condition that the others must meet.
        port: the label of the port that must accept connections.
    """

    looks_per_s = 25.0

    def __init__(self, ctx: Context, gang: bool, ready: str, port: str) -> None:
        super().__init__(ctx, gang, ctx.env["PAIRUN_FRAMEWORK_FILE"])
        self._ready, self._port = ready, port
        try:
            # The gang of another controller's Pods; None for Pods that pairun made.
            read = read_gang(ctx.env)
        except ValueError as e:
            raise Permanent(str(e), fault="platform") from e
        self._gang_pods = read[0] if read else None
        self._selector = read[0].selector if read else f"{_JOB_LABEL}={self._name}"
        self._pods: dict[Member, Object] = {}
        self._answered: set[str] = set()
        self._silent = 0

    def look(self) -> Look:
        """Read the addresses of the Pods that are ready."""
        # Any version is good enough, so the server answers from memory.
        query = {"labelSelector": self._selector, "resourceVersion": "0"}
        data = self._ask(self._pods_path, query=query) or b"{}"
        pods = parse_object(data, "the list of Pods").get("items") or []
        if self._gang_pods is not None:
            pods = self._gang_pods.of_last_start(pods)
        self._pods = self._newest(pods)
        addresses = {m: a for m, pod in self._pods.items() if (a := _address(pod))["podIP"]}
        members = self._members if self._gang else [self._own]
        self._silent = 0
        return Look(
            with_addresses(self._framework, addresses),
            members,
            [m for m in members if not self._is_ready(m, m in addresses)],
            self._foreign(addresses.get(self._own, {})),
            "run" if self._ready == "running" else "have addresses",
            any(init_succeeded(pod) for m, pod in self._pods.items() if m != self._own),
        )

    def _newest(self, pods: Iterable[Object]) -> dict[Member, Object]:
        """The Pod of every task: of several one that has not failed, else the newest one.

        Ignores Pods that are being deleted.
        """
        newest: dict[Member, Object] = {}
        members = set(self._members)
        for pod in pods:
            member = self._member_of(pod)
            if member not in members or meta(pod, "deletionTimestamp"):
                continue
            if member not in newest or _rank(newest[member]) < _rank(pod):
                newest[member] = pod
        return newest

    def _member_of(self, pod: Object) -> Member:
        if self._gang_pods is not None:
            return Member(*(self._gang_pods.place_of(pod) or ("", -1)))
        labels = {**(meta(pod, "annotations") or {}), **(meta(pod, "labels") or {})}
        index = next((labels[name] for name in _INDEX_LABELS if name in labels), "")
        is_number = index.isascii() and index.isdigit()
        return Member(labels.get(_ROLE_LABEL, ""), int(index) if is_number else -1)

    def _is_ready(self, member: Member, has_address: bool) -> bool:
        pod = self._pods.get(member)
        if pod is None:
            return False
        if self._ready == "running" and is_done(pod):
            return True
        if not has_address or _phase(pod) == "Failed":
            return False
        # This instance waits here itself.
        if self._ready == "address" or member == self._own:
            return True
        if self._ready == "port":
            return self._answers(member, pod)
        return init_succeeded(pod) if self._ready == "init" else is_running(pod)

    def _answers(self, member: Member, pod: Object) -> bool:
        """Whether a Pod's port has accepted a connection; one check tries few silent ports."""
        uid = meta(pod, "uid")
        if uid not in self._answered and self._silent < SHOWN:
            number = _first_port(self._framework, member, uid, self._port)
            if self._ctx.connects(_address(pod)["podIP"], number):
                self._answered.add(uid)
            else:
                self._silent += 1
        return uid in self._answered

    def why(self, missing: list[Member]) -> Iterator[tuple[Member, str]]:
        """The reasons in the last list of Pods."""
        for member in missing:
            pod = self._pods.get(member)
            if pod is None:
                yield member, "no Pod yet"
            elif self._ready == "port" and _address(pod)["podIP"]:
                yield member, f"its port {self._port} does not answer"
            else:
                is_main = self._ready == "running"
                yield member, why_missing(of_main_containers(pod) if is_main else pod)


def _phase(pod: Object) -> Any:
    return (pod.get("status") or {}).get("phase")


def _rank(pod: Object) -> tuple[bool, str, str]:
    created = meta(pod, "creationTimestamp") or ""
    return (_phase(pod) != "Failed", created, meta(pod, "uid") or "")


def _address(pod: Object) -> Object:
    """A Pod's address in the form of a Framework's status; others reach it at that address."""
    ip = (pod.get("status") or {}).get("podIP") or None
    return {"podUID": meta(pod, "uid"), "podName": meta(pod, "name"), "podIP": ip,
            "podHostIP": ip}  # fmt: skip


def _first_port(framework: Mapping[str, Any], member: Member, pod_uid: str, label: str) -> int:
    """The number of a Pod's first port with a label.

    Raises:
        Permanent: the role has no port with this label.
    """
    try:
        (role,) = (r for r in framework["spec"]["taskRoles"] if r["name"] == member.role)
        annotation = role["task"]["pod"]["metadata"]["annotations"][PORT_ANNOTATION]
        return PortPlan(annotation).of(pod_uid, member.number)[label][0]
    except (KeyError, TypeError, ValueError, IndexError) as e:
        raise Permanent(f"the role {member.role} has no port '{label}'", fault="user") from e
