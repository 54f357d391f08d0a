"""Finds the Pods of a gang that another controller made, by labels alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from pairun.base.foreignjson import parse_json

POD_NAME = "metadata.name"
"""The source of an index that is the number at the end of the Pod's name."""
RESTART_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
"""The label in which a JobSet counts its restarts."""
GROUP_KEY = "leaderworkerset.sigs.k8s.io/group-key"
_WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
GANG_VARIABLE = "PAIRUN_GANG"
"""The init container's variable with the gang, in the format of `GangPods.text`."""


@attrs.frozen(kw_only=True)
class IndexPart:
    """One source of an instance's number.

    Attributes:
        key: a label or an annotation of the Pod, or `POD_NAME`.
        weight: the factor of its value.
    """

    key: str
    weight: int = 1


@attrs.frozen(kw_only=True)
class GangRole:
    """The Pods of one role.

    Attributes:
        labels: of all its Pods.
        index: the sources of an instance's number, which is their sum.
        offset: subtracted from the sum.
    """

    name: str
    instances: int
    labels: Mapping[str, str]
    index: tuple[IndexPart, ...]
    offset: int = 0

    def number_of(self, values: Mapping[str, str]) -> int | None:
        """An instance's number; None if the Pod has none or is not an instance.

        Args:
            values: labels and annotations of the Pod, and its name as `POD_NAME`.
        """
        total = -self.offset
        for part in self.index:
            text = values.get(part.key, "")
            match = re.search("[0-9]{1,9}$" if part.key == POD_NAME else "^[0-9]{1,9}$", text)
            if match is None:
                return None
            total += int(match[0]) * part.weight
        return total if 0 <= total < self.instances else None


@attrs.frozen(kw_only=True)
class GangPods:
    """All Pods of a gang.

    Attributes:
        same: labels of all Pods, with their values.
        roles: the roles, the leader's first.
    """

    same: Mapping[str, str]
    roles: tuple[GangRole, ...]

    @property
    def selector(self) -> str:
        """The selector of all Pods."""
        return ",".join(f"{key}={value}" for key, value in self.same.items())

    @property
    def key(self) -> tuple[str, int]:
        """What identifies the gang, and the number of its restart.

        A LeaderWorkerSet counts no restarts, but may give each new group another key.
        """
        labels = dict(self.same)
        attempt = labels.pop(RESTART_ATTEMPT, "")
        uid = ",".join(f"{key}={value}" for key, value in labels.items())
        return uid, int(attempt) if re.fullmatch("[0-9]{1,9}", attempt) else 0

    def of_last_start(self, pods: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """The Pods without workers of an earlier group of a LeaderWorkerSet.

        A group with a number keeps its key when its leader is replaced. Its workers are always
        created after the leader.
        """
        if GROUP_KEY not in self.same:
            return pods
        leaders = [p for p in pods if _meta(p, "labels").get(_WORKER_INDEX) == "0"]
        since = max((_created(leader) for leader in leaders), default="")
        return [p for p in pods if _created(p) >= since]

    def place_of(self, pod: Mapping[str, Any]) -> tuple[str, int] | None:
        """The role and the number of a Pod; None if it is not in the gang."""
        meta = pod.get("metadata") or {}
        labels = meta.get("labels") or {}
        values = {**(meta.get("annotations") or {}), **labels, POD_NAME: meta.get("name") or ""}
        if any(labels.get(key) != value for key, value in self.same.items()):
            return None
        for role in self.roles:
            if all(labels.get(key) == value for key, value in role.labels.items()):
                number = role.number_of(values)
                if number is not None:
                    return role.name, number
        return None

    def pod_name_of(self, name: str, number: int, own_role: str, own_pod: str) -> str | None:
        """The name of an instance's Pod, if it follows from this Pod's name; else None.

        Args:
            number: its number in the role.
        """
        role, own = (next(r for r in self.roles if r.name == n) for n in (name, own_role))
        stem, dash, _ = own_pod.rpartition("-")
        if not dash or any([p.key for p in r.index] != [POD_NAME] for r in (role, own)):
            return None
        if name != own_role:
            # A controller with several roles names its Pods WORKLOAD-ROLE-NUMBER, by the role's
            # label.
            values = [(v, role.labels[k]) for k, v in own.labels.items() if k in role.labels]
            ends = [(v, other) for v, other in values if v != other and stem.endswith(f"-{v}")]
            if not ends:
                return None
            stem = stem.removesuffix(ends[0][0]) + ends[0][1]
        return f"{stem}-{number + role.offset}"

    def selector_of(self, name: str, number: int) -> str | None:
        """The selector of one instance; None if labels alone do not identify it."""
        role = next(r for r in self.roles if r.name == name)
        labels = {**self.same, **role.labels}
        left = number + role.offset
        for part in role.index:
            if part.key == POD_NAME:
                return None
            labels[part.key], left = str(left // part.weight), left % part.weight
        return ",".join(f"{key}={value}" for key, value in labels.items())


def _meta(pod: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return (pod.get("metadata") or {}).get(name) or {}


def _created(pod: Mapping[str, Any]) -> str:
    return (pod.get("metadata") or {}).get("creationTimestamp") or ""


def gang_text(
    same: Mapping[str, str], roles: tuple[GangRole, ...], role: str, index: Mapping[str, str]
) -> str:
    """The value of `GANG_VARIABLE`.

    Args:
        same: labels that all Pods share, to the variable with this Pod's value.
        index: the sources of its number, to the variables with their values.
    """
    made = {
        "same": dict(same),
        "roles": [attrs.asdict(r) for r in roles],
        "role": role,
        "index": dict(index),
    }
    return json.dumps(made)


def gang_sizes(env: Mapping[str, str]) -> tuple[dict[str, int], str] | None:
    """The number of Pods of each role of a gang, and this Pod's role; None without a gang.

    Args:
        env: of the init container, as far as a manifest contains it.

    Raises:
        ValueError: the variable is invalid.
    """
    text = env.get(GANG_VARIABLE)
    if not text:
        return None
    roles, data = _roles(text)
    return {role.name: role.instances for role in roles}, str(data.get("role"))


def _roles(text: str) -> tuple[tuple[GangRole, ...], dict[str, Any]]:
    try:
        data = parse_json(text)
        roles = tuple(
            GangRole(**{**r, "index": tuple(IndexPart(**part) for part in r["index"])})
            for r in data["roles"]
        )
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise ValueError(f"{GANG_VARIABLE} does not describe a gang: {type(e).__name__}") from e
    return roles, data


def read_gang(env: Mapping[str, str]) -> tuple[GangPods, str, int] | None:
    """The gang of this Pod, its role and its number; None without a gang.

    Raises:
        ValueError: the variable, or one that it names, is invalid; the message says which.
    """
    text = env.get(GANG_VARIABLE)
    if not text:
        return None
    roles, data = _roles(text)
    try:
        same = {key: env.get(variable, "") for key, variable in data["same"].items()}
        values = {key: env.get(variable, "") for key, variable in data["index"].items()}
        own = next(r for r in roles if r.name == data["role"])
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as e:
        raise ValueError(f"{GANG_VARIABLE} does not describe a gang: {type(e).__name__}") from e
    # If this Pod lacks a label, the gang's other Pods lack it, too.
    gang = GangPods(same={k: v for k, v in same.items() if v}, roles=roles)
    if not gang.same:
        raise ValueError(f"this Pod has none of the labels {', '.join(same)}")
    number = own.number_of(values)
    if number is None:
        what = ", ".join(f"{key}='{value}'" for key, value in values.items())
        raise ValueError(f"this Pod has no number below {own.instances} in {what}")
    return gang, own.name, number
