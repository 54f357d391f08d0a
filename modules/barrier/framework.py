"""Reads the Framework object, whose status FrameworkController updates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from pairun.module import Context, Gathering, Permanent, TimedOut, Transient
from pairun.module.cluster import PORT_ANNOTATION, port_annotation, task_statuses, why_missing

from .objects import (
    Backend,
    Look,
    Member,
    Object,
    meta,
    parse_object,
    peer_addresses,
    task_attempts,
    with_addresses,
    with_statuses,
)

_REASONS_S = 10.0
"""The limit for all requests about missing instances together, in seconds."""

_WHOLE_FRAMEWORK = 800
"""The maximum number of instances for which every Pod reads the Framework: more exceed 1 MB."""

_METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_FRAMEWORKS = "/apis/frameworkcontroller.microsoft.com/v1/namespaces/{}/frameworks/{}"


class FrameworkBackend(Backend):
    """Reads the Framework object from the API server.

    Args:
        ctx: the world.
        gang: whether to wait for all instances, or only for this one.
        strict: whether to read a large Framework whole, too.
    """

    looks_per_s = 150.0

    def __init__(self, ctx: Context, gang: bool, *, strict: bool = False) -> None:
        super().__init__(ctx, gang, "")
        self._strict = strict
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
        self._use(framework)
        attempts = task_attempts(framework)
        if self._ctx.env.get("PAIRUN_HOST_IP"):
            # The engines that set it reach Pods at their own addresses, not at their nodes'
            # addresses.
            for attempt in attempts.values():
                attempt["podHostIP"] = attempt.get("podIP")
        own = attempts.get(self._own, {})
        if self._gang:
            members = self._members
            missing = [m for m in members if not attempts.get(m, {}).get("podIP")]
        else:
            members = [self._own]
            has_ip = own.get("podHostIP") or self._ctx.env.get("PAIRUN_HOST_IP")
            missing = [] if own.get("podUID") and has_ip else members
        foreign = self._other_attempt(framework) or self._foreign(own)
        running = any(a.get("runTime") for m, a in attempts.items() if m != self._own)
        self._last = Look(framework, members, missing, foreign, running=running)
        return self._last

    def met(self, roles: Mapping[str, Object], gathering: Gathering) -> Look:
        """The Framework with the addresses that the instances sent each other.

        The controller may record them later. A large Framework is not read: this Pod already has
        what the instances need from it.
        """
        addresses, ports = peer_addresses(gathering), gathering.ports
        members = list(addresses)
        must_read = self._strict or ports is None
        if must_read or len(members) <= _WHOLE_FRAMEWORK:
            try:
                framework = _inflated(self._lately())
                known = task_attempts(framework)
                whole = {m: {**known.get(m, {}), **address} for m, address in addresses.items()}
                return Look(with_addresses(framework, whole), members, [])
            except (Transient, TimedOut):
                if must_read:
                    raise
        assert ports is not None
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
        path = _FRAMEWORKS.format(quote(self._namespace), quote(self._name))
        query = {"resourceVersion": version} if version else None
        data = self._ask(path, query=query, accept=accept)
        which = f"the Framework {self._name} in the namespace {self._namespace}"
        hint = "submit the job again"
        if data is None:
            gone = "was deleted while this instance waited" if self._last else "does not exist"
            raise Permanent(f"{which} {gone}", fault="user", hint=hint)
        framework = parse_object(data, which)
        if meta(framework, "deletionTimestamp"):
            raise Permanent(f"{which} is being deleted", fault="user", hint=hint)
        uid = self._ctx.env.get("FC_FRAMEWORK_UID")
        if uid and meta(framework, "uid") != uid:
            raise Permanent(
                f"{which} is newer than the one that this Pod belongs to",
                fault="user",
                hint="nothing to do: Kubernetes removes this Pod with its own Framework",
            )
        return framework

    def _other_attempt(self, framework: Object) -> str:
        """Why the status is not for this Pod's attempt (it may be older or newer)."""
        current = ((framework.get("status") or {}).get("attemptStatus") or {}).get("id")
        mine = self._ctx.env.get("FC_FRAMEWORK_ATTEMPT_ID")
        if not mine or current is None or str(current) == mine:
            return ""
        return f"they belong to the job's attempt {current}, and this Pod to {mine}"

    def why(self, missing: list[Member]) -> Iterator[tuple[Member, str]]:
        """Read the missing Pods one by one; there are few, or the first are like the others."""
        known = task_attempts(self._framework)
        end = self._ctx.now() + _REASONS_S
        for member in missing:
            attempt = known.get(member, {})
            if not attempt.get("podUID"):
                yield member, "no Pod yet"
                continue
            name = attempt.get("podName") or f"{self._name}-{member}"
            left = max(0.5, end - self._ctx.now())
            data = self._ask(f"{self._pods_path}/{quote(name)}", left)
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
    return with_statuses(framework, statuses) if statuses else framework
