"""The job's Pods, found by their labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote

from pairun.module import Context, Gathering, Permanent
from pairun.module.cluster import (
    PORT_ANNOTATION,
    GangPods,
    PortPlan,
    init_succeeded,
    is_done,
    is_running,
    of_main_containers,
    read_gang,
    why_missing,
)

from .members import SHOWN, Look, Member, all_members, own_member
from .objects import (
    ANSWER_S,
    MAX_BYTES,
    OBJECT_VARIABLES,
    PODS_PATH,
    Object,
    meta,
    parse_object,
    peer_addresses,
    read_framework,
    with_addresses,
)

_JOB_LABEL, _ROLE_LABEL = "pairun/job", "pairun/role"
_INDEX_LABELS = ("pairun/index", "batch.kubernetes.io/job-completion-index")


class PodsBackend:
    """Reads the job's Pods from the API server, and the tasks from the Framework in a file.

    Args:
        ctx: the world.
        gang: whether to wait for all tasks, or only for this one.
        ready: the condition that the others must meet.
        port: the label of the port that must accept connections.
    """

    def __init__(self, ctx: Context, gang: bool, ready: str, port: str) -> None:
        self._ctx, self._gang, self._ready, self._port = ctx, gang, ready, port
        self._namespace, self._name = (ctx.env[name] for name in OBJECT_VARIABLES)
        self._framework = read_framework(ctx, ctx.env["PAIRUN_FRAMEWORK_FILE"])
        self._members = all_members(self._framework)
        self._own = own_member(ctx, self._members)
        self._gang_pods = gang_of(ctx)
        self._selector = (
            self._gang_pods.selector if self._gang_pods else f"{_JOB_LABEL}={self._name}"
        )
        self._pods: dict[Member, Object] = {}
        self._answered: set[str] = set()
        self._silent = 0

    def look(self) -> Look:
        """Read the addresses of the Pods that are ready."""
        data = self._ctx.ask_api(
            PODS_PATH.format(quote(self._namespace)),
            # Any version is good enough, so the server answers from memory.
            query={"labelSelector": self._selector, "resourceVersion": "0"},
            timeout_s=ANSWER_S,
            max_bytes=MAX_BYTES,
        )
        items = parse_object(data or b"{}", "the list of Pods").get("items") or []
        self._pods = _newest(items, set(self._members), self._gang_pods)
        addresses = {m: _address(pod) for m, pod in self._pods.items() if _address(pod)["podIP"]}
        members = self._members if self._gang else [self._own]
        self._silent = 0
        missing = [m for m in members if not self._is_here(m, addresses)]
        own = addresses.get(self._own)
        other = own is not None and own["podUID"] != self._ctx.env["FC_POD_UID"]
        foreign = "they refer to another Pod instead of this one" if other else ""
        state = "run" if self._ready == "running" else "have addresses"
        running = any(init_succeeded(pod) for m, pod in self._pods.items() if m != self._own)
        framework = with_addresses(self._framework, addresses)
        return Look(framework, members, missing, foreign, state, running)

    def met(self, roles: Mapping[str, Object], gathering: Gathering) -> Look:
        """The Framework in the file with the addresses that the tasks sent each other."""
        _ = roles
        addresses = peer_addresses(gathering.peers or ())
        return Look(with_addresses(self._framework, addresses), list(addresses), [])

    def _is_here(self, member: Member, addresses: Mapping[Member, Object]) -> bool:
        if self._ready == "running" and member in self._pods and is_done(self._pods[member]):
            return True
        return member in addresses and self._is_ready(member)

    def _is_ready(self, member: Member) -> bool:
        pod = self._pods[member]
        status = pod.get("status") or {}
        if status.get("phase") == "Failed":
            return False
        # This task waits here itself.
        if self._ready == "address" or member == self._own:
            return True
        if self._ready == "init":
            return init_succeeded(pod)
        if self._ready == "running":
            return is_running(pod)
        return self._answers(member, pod)

    def _answers(self, member: Member, pod: Object) -> bool:
        """Whether a Pod's port has accepted a connection; one check tries few silent ports."""
        uid = meta(pod, "uid")
        if uid in self._answered or self._silent >= SHOWN:
            return uid in self._answered
        number = _first_port(self._framework, member, uid, self._port)
        if not self._ctx.connects(_address(pod)["podIP"], number):
            self._silent += 1
            return False
        self._answered.add(uid)
        return True

    def why(self, missing: list[Member]) -> Iterator[tuple[Member, str]]:
        """The reasons in the last list of Pods."""
        for member in missing:
            pod = self._pods.get(member)
            if pod is not None and self._ready == "running":
                pod = of_main_containers(pod)
            why = "no Pod yet" if pod is None else why_missing(pod)
            if pod is not None and self._ready == "port" and _address(pod)["podIP"]:
                why = f"its port {self._port} does not answer"
            yield member, why


def gang_of(ctx: Context) -> GangPods | None:
    """The gang of another controller's Pods; None for Pods that pairun made.

    Raises:
        Permanent: its description is invalid.
    """
    try:
        gang = read_gang(ctx.env)
    except ValueError as e:
        raise Permanent(str(e), fault="platform") from e
    return gang[0] if gang else None


def _newest(
    items: Iterable[Object], members: set[Member], gang: GangPods | None
) -> dict[Member, Object]:
    """The Pod of every task: of several one that has not failed, else the newest one.

    Ignores Pods that are being deleted.
    """
    newest: dict[Member, Object] = {}
    for pod in items:
        member = _member_of(pod, gang)
        if meta(pod, "deletionTimestamp") or member is None:
            continue
        before = newest.get(member)
        if member in members and (before is None or _rank(before) < _rank(pod)):
            newest[member] = pod
    return newest


def _member_of(pod: Object, gang: GangPods | None) -> Member | None:
    if gang is not None:
        place = gang.place_of(pod)
        return None if place is None else Member(*place)
    labels = {**(meta(pod, "annotations") or {}), **(meta(pod, "labels") or {})}
    index = next((labels[name] for name in _INDEX_LABELS if name in labels), "")
    if not (index.isascii() and index.isdigit()):
        return None
    return Member(labels.get(_ROLE_LABEL, ""), int(index))


def _rank(pod: Object) -> tuple[bool, str, str]:
    failed = (pod.get("status") or {}).get("phase") == "Failed"
    return (not failed, meta(pod, "creationTimestamp") or "", meta(pod, "uid") or "")


def _address(pod: Object) -> Object:
    """A Pod's address in the form of a Framework's status; others reach it at that address."""
    ip = (pod.get("status") or {}).get("podIP") or None
    return {"podUID": meta(pod, "uid"), "podName": meta(pod, "name"), "podIP": ip,
            "podHostIP": ip}  # fmt: skip


def _first_port(framework: Object, member: Member, pod_uid: str, label: str) -> int:
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
