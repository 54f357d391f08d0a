"""pairun's additions to the spec of a Pod: init container, volume, and PID 1 before the command."""

from __future__ import annotations

import json
from typing import Any

import attrs

from pairun.base.grace import KUBELET_S
from pairun.base.paths import DEFAULT_PAI_DIR
from pairun.inject.emitting import as_json
from pairun.inject.options import InjectOptions
from pairun.inject.splices import Splices
from pairun.inject.templates import mapping_at
from pairun.inject.tree import Mapping, Sequence, mappings_in, name_of
from pairun.openpai.enginelayers import RECORD
from pairun.plan import DEFAULT_GRACE_S

INIT = "pairun-init"
"""The init container's name, which identifies an injected Pod."""
VOLUME = "pairun"
SCHEDULING_GROUP = "schedulingGroup"
"""The field of a Pod's spec that names its PodGroup (Kubernetes 1.36, KEP-4671)."""
PROGRAM = f"{DEFAULT_PAI_DIR}/runtime"
SEPARATOR = "--"
"""Separates the program from the user's command in the main container's command."""

_OF_SECURITY = (
    "runAsUser", "runAsGroup", "runAsNonRoot", "allowPrivilegeEscalation", "seccompProfile",
    "appArmorProfile", "seLinuxOptions", "readOnlyRootFilesystem",
)  # fmt: skip
"""The init container copies these from the main one; it needs no privileges."""


@attrs.define
class Addition:
    """What the features add to one Pod, in addition to the plain case.

    Attributes:
        init_env: variables of the init container.
        init_mounts: volume mounts of the init container.
        env: variables of the main container.
        mounts: volume mounts of the main container.
        volumes: volumes of the Pod.
        service_account: set on the Pod if it names none; empty changes nothing.
        config: parts of the Pod's ``RUNTIME_CONFIG``.
        notes: what the summary says of it.
    """

    init_env: list[dict[str, Any]] = attrs.field(factory=list)
    init_mounts: list[dict[str, Any]] = attrs.field(factory=list)
    env: list[dict[str, Any]] = attrs.field(factory=list)
    mounts: list[dict[str, Any]] = attrs.field(factory=list)
    volumes: list[dict[str, Any]] = attrs.field(factory=list)
    service_account: str = ""
    config: dict[str, Any] = attrs.field(factory=dict)
    notes: list[str] = attrs.field(factory=list)


class PodEdit:
    """The edits of one Pod's spec, and the record of what they replaced.

    The record has an entry for each changed key, except lists that only got items: null if the key
    was missing, else the text of its old value.
    """

    def __init__(self, splices: Splices, spec: Mapping, container: Mapping) -> None:
        self._splices = splices
        self._spec = spec
        self._container = container
        self._was: dict[str, str | None] = {}
        self._variables: list[str] = []

    def add_env(self, variables: list[dict[str, Any]]) -> None:
        """Add variables to the main container; existing ones do not change."""
        names = {name_of(v) for v in mappings_in(self._container.get("env"))}
        added = [v for v in variables if v["name"] not in names]
        self._variables = [v["name"] for v in added]
        self.extend(self._container, "env", added)

    def finish(self, init: dict[str, Any]) -> None:
        """Add the init container, with the record in it, after all other edits."""
        self._note(self._spec, "initContainers")
        record = {"container": name_of(self._container), "env": self._variables, "was": self._was}
        # Kubernetes replaces $(NAME) in a value; JSON can escape the dollar sign.
        text = json.dumps(record).replace("$", "\\u0024")
        init["env"].append({"name": RECORD, "value": text})
        self.extend(self._spec, "initContainers", [init])

    def set(self, mapping: Mapping, key: str, value: Any) -> None:
        """Set a key of the spec or the container."""
        entry = mapping.own(key)
        if entry is None:
            self._was[key] = None
            self._splices.add_entry(mapping, key, value)
        else:
            self._was[key] = self._splices.value_text(entry)
            self._splices.replace(entry, f" {as_json(value)}")

    def _note(self, mapping: Mapping, key: str) -> None:
        entry = mapping.own(key)
        if entry is None:
            self._was[key] = None
        elif not isinstance(entry.value, Sequence):
            self._was[key] = self._splices.value_text(entry)

    def extend(self, mapping: Mapping, key: str, items: list[Any], *, first: bool = False) -> None:
        """Add items to a list of the spec or the container, last or first."""
        if not items:
            return
        entry = mapping.own(key)
        if entry is not None and isinstance(entry.value, Sequence):
            for item in items:
                self._splices.add_item(entry.value, item, first=first)
            return
        self._note(mapping, key)
        there = mapping.get(key)
        others = there.plain() if isinstance(there, Sequence) else []
        value = [*items, *others] if first else [*others, *items]
        if entry is None:
            self._splices.add_entry(mapping, key, value)
        else:
            self._splices.replace(entry, f" {as_json(value)}")


def init_container(
    options: InjectOptions, addition: Addition, spec: Mapping, container: Mapping
) -> dict[str, Any]:
    """The init container of a Pod."""
    env: list[dict[str, Any]] = [
        field("FC_POD_UID", "metadata.uid"),
        field("FC_POD_NAME", "metadata.name"),
        field("PAIRUN_HOST_IP", "status.podIP"),
        {"name": "RUNTIME_CONFIG", "value": _config(options, addition)},
    ]
    security = _security(container)
    if "runAsUser" in security:
        env.append({"name": "PAIRUN_APP_UID", "value": str(security["runAsUser"])})
    made: dict[str, Any] = {
        "name": INIT,
        "image": options.image,
        "args": ["init"],
        "env": [*env, *addition.init_env],
        "volumeMounts": [{"name": VOLUME, "mountPath": DEFAULT_PAI_DIR}, *addition.init_mounts],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if resources := _resources(options, spec, container.plain()):
        made["resources"] = resources
    if security:
        made["securityContext"] = security
    return made


def field(name: str, path: str) -> dict[str, Any]:
    """A variable whose value is a field of the Pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def variable_json(value: Any) -> str:
    """JSON for a variable's value, escaped so that Kubernetes replaces no ``$(NAME)``."""
    return json.dumps(value, ensure_ascii=False).replace("$", "\\u0024")


def grace_s(spec: Mapping) -> float | None:
    """PID 1's part of the Pod's grace time in seconds; None if the Pod sets none."""
    given = spec.get("terminationGracePeriodSeconds")
    seconds = given.plain() if given else int(DEFAULT_GRACE_S)
    if not isinstance(seconds, int) or isinstance(seconds, bool) or seconds <= 0:
        return None
    return max(seconds - KUBELET_S, seconds / 2)


def _security(container: Mapping) -> dict[str, Any]:
    """The init container's security context: the main container's, without its privileges."""
    context = mapping_at(container.plain(), ("securityContext",))
    made = {name: context[name] for name in _OF_SECURITY if name in context}
    if drop := mapping_at(context, ("capabilities",)).get("drop"):
        made["capabilities"] = {"drop": drop}
    return made


def _resources(options: InjectOptions, spec: Mapping, container: Any) -> dict[str, Any]:
    """The init container's resources.

    In a Pod of the class Guaranteed, requests equal limits. They are the main container's, so that
    the Pod needs no more than before.
    """
    asked = dict(options.resources)
    lists = (mappings_in(spec.get(key)) for key in ("initContainers", "containers"))
    each = [item.plain() for items in lists for item in items]
    if spec.get("resources") or not all(map(_is_guaranteed, each)):
        return asked
    values = {name: container["resources"]["limits"][name] for name in _OF_CLASS}
    if asked.get("requests") == asked.get("limits"):
        values |= asked.get("limits") or {}
    return {"requests": values, "limits": values}


_OF_CLASS = ("cpu", "memory")


def _is_guaranteed(container: Any) -> bool:
    limits, requests = (mapping_at(container, ("resources", key)) for key in ("limits", "requests"))
    return all(
        name in limits and str(requests.get(name, limits[name])) == str(limits[name])
        for name in _OF_CLASS
    )


def _config(options: InjectOptions, addition: Addition) -> str:
    config: dict[str, Any] = {"commands": ["true"], **addition.config}
    if playbook := {key: value for key, value in options.playbook.items() if value}:
        config["extras"] = {"pairun": playbook}
    return variable_json(config)
