"""Reads the Framework object, whose status FrameworkController updates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from pairun.module import Context, Gathering, Permanent, TimedOut, Transient
from pairun.module.cluster import PORT_ANNOTATION, port_annotation, task_statuses, why_missing

from .members import Look, Member, all_members, own_member
from .objects import (
    ANSWER_S,
    MAX_BYTES,
    OBJECT_VARIABLES,
    PODS_PATH,
    Object,
    meta,
    parse_object,
    peer_addresses,
    task_attempts,
    with_addresses,
    with_statuses,
)

_REASONS_S = 10.0
"""The limit for all requests about missing tasks together, in seconds."""

_WHOLE_FRAMEWORK = 800
"""The maximum number of tasks for which every Pod reads the Framework: more exceed a megabyte."""

_METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_FRAMEWORKS = "/apis/frameworkcontroller.microsoft.com/v1/namespaces/{}/frameworks/{}"


class FrameworkBackend:
    """Reads the Framework object from the API server.

    Args:
        ctx: the world.
        gang: whether to wait for all tasks, or only for this one.
        strict: whether to read a large Framework whole, too.
    """

    def __init__(self, ctx: Context, gang: bool, *, strict: bool = False) -> None:
        self._ctx, self._gang, self._strict = ctx, gang, strict
        self._namespace, self._name = (ctx.env[name] for name in OBJECT_VARIABLES)
        self._path = _FRAMEWORKS.format(quote(self._namespace), quote(self._name))
        self._last: Look | None = None
        self._seen = ""

    def look(self) -> Look:
        """Read the Framework, or only its metadata while these have not changed."""
        # The server answers from memory with anything not older than the last answer. After a
        # failure, ask for the state as it is now.
        seen, self._seen = self._seen, ""
        if self._last is not None:
            head = self._get(seen, accept=_METADATA_ONLY)
            seen = meta(head, "resourceVersion") or ""
            if seen == meta(self._last.framework, "resourceVersion"):
                self._seen = seen
                return self._last
        framework = _inflated(self._get(seen))
        self._seen = meta(framework, "resourceVersion") or ""
        members = all_members(framework)
        own = own_member(self._ctx, members)
        attempts = dict(task_attempts(framework))
        if self._ctx.env.get("PAIRUN_HOST_IP"):
            # The engines that set it reach Pods at their own addresses, not at their nodes'
            # addresses.
            for attempt in attempts.values():
                attempt["podHostIP"] = attempt.get("podIP")
        if self._gang:
            missing = [m for m in members if not attempts.get(m, {}).get("podIP")]
        else:
            members, attempt = [own], attempts.get(own, {})
            has_ip = attempt.get("podHostIP") or self._ctx.env.get("PAIRUN_HOST_IP")
            missing = [] if attempt.get("podUID") and has_ip else [own]
        foreign = self._foreign(framework, attempts.get(own, {}))
        running = any(a.get("runTime") for m, a in attempts.items() if m != own)
        self._last = Look(framework, members, missing, foreign, running=running)
        return self._last

    def met(self, roles: Mapping[str, Object], gathering: Gathering) -> Look:
        """The Framework with the addresses that the tasks sent each other.

        The controller may record them later. A large Framework is not read: this Pod already has
        what the tasks need from it.
        """
        addresses = peer_addresses(gathering.peers or ())
        members = list(addresses)
        ports = gathering.ports
        if self._strict or ports is None or len(members) <= _WHOLE_FRAMEWORK:
            try:
                framework = _inflated(self._lately())
                known = dict(task_attempts(framework))
                whole = {m: {**known.get(m, {}), **address} for m, address in addresses.items()}
                return Look(with_addresses(framework, whole), members, [])
            except (Transient, TimedOut):
                if self._strict or ports is None:
                    raise
        return Look(with_addresses(self._sketch(roles, ports), addresses), members, [])

    def _lately(self) -> Object:
        """The Framework in the server's memory: half the cost, but perhaps slightly old."""
        try:
            return self._get("0")
        except Permanent:
            return self._get()

    def _sketch(self, roles: Mapping[str, Object], ports: tuple[int, int]) -> Object:
        """The part of the Framework with addresses and ports."""
        task_roles = []
        for name, role in roles.items():
            annotations = {PORT_ANNOTATION: port_annotation(role["ports"], ports)}
            task = {"pod": {"metadata": {"annotations": annotations}}}
            task_roles.append({"name": name, "taskNumber": role["count"], "task": task})
        return {
            "apiVersion": "frameworkcontroller.microsoft.com/v1",
            "kind": "Framework",
            "metadata": {"namespace": self._namespace, "name": self._name},
            "spec": {"taskRoles": task_roles},
        }

    def _get(self, version: str = "", accept: str | None = None) -> Object:
        """The Framework, not older than a version (Kubernetes API concepts, "Resource versions")."""
        query = {"resourceVersion": version} if version else None
        data = self._ctx.ask_api(
            self._path, query=query, accept=accept, timeout_s=ANSWER_S, max_bytes=MAX_BYTES
        )
        which = f"the Framework {self._name} in the namespace {self._namespace}"
        if data is None:
            gone = "was deleted while this task waited" if self._last else "does not exist"
            raise Permanent(f"{which} {gone}", fault="user", hint="submit the job again")
        framework = parse_object(data, which)
        if meta(framework, "deletionTimestamp"):
            raise Permanent(f"{which} is being deleted", fault="user", hint="submit the job again")
        uid = self._ctx.env.get("FC_FRAMEWORK_UID")
        if uid and meta(framework, "uid") != uid:
            raise Permanent(
                f"{which} is newer than the one that this Pod belongs to",
                fault="user",
                hint="nothing to do: Kubernetes removes this Pod with its own Framework",
            )
        return framework

    def _foreign(self, framework: Object, own: Object) -> str:
        """Why the status is not for this Pod (it may be older or newer); empty if it is."""
        current = ((framework.get("status") or {}).get("attemptStatus") or {}).get("id")
        mine = self._ctx.env.get("FC_FRAMEWORK_ATTEMPT_ID")
        if mine and current is not None and str(current) != mine:
            return f"they belong to the job's attempt {current}, and this Pod to {mine}"
        pod = own.get("podUID")
        if pod and pod != self._ctx.env["FC_POD_UID"]:
            return "they refer to another Pod instead of this one"
        return ""

    def why(self, missing: list[Member]) -> Iterator[tuple[Member, str]]:
        """Read the missing Pods one by one; there are few, or the first are like the others."""
        assert self._last is not None
        known = dict(task_attempts(self._last.framework))
        end = self._ctx.now() + _REASONS_S
        for member in missing:
            attempt = known.get(member, {})
            if not attempt.get("podUID"):
                yield member, "no Pod yet"
                continue
            name = attempt.get("podName") or f"{self._name}-{member}"
            path = f"{PODS_PATH.format(quote(self._namespace))}/{quote(name)}"
            left = max(0.5, end - self._ctx.now())
            data = self._ctx.ask_api(path, timeout_s=left, max_bytes=MAX_BYTES)
            why = "its Pod is gone" if data is None else why_missing(parse_object(data, name))
            yield member, why


def _inflated(framework: Object) -> Object:
    """The Framework with its task statuses uncompressed.

    Raises:
        Transient: they cannot be read.
    """
    try:
        statuses = task_statuses(framework)
    except ValueError as e:
        raise Transient(str(e), fault="platform") from e
    if not statuses:
        return framework
    inflated = with_statuses(framework, statuses)
    inflated["status"]["attemptStatus"].pop("taskRoleStatusesCompressed", None)
    return inflated
