"""pairun's additions to the spec of a Pod: init container, volume, and PID 1 before the command."""

from __future__ import annotations

import json
from collections.abc import Sequence as Items
from typing import Any

import attrs

from pairun.base.durations import parse_duration
from pairun.base.paths import DEFAULT_PAI_DIR
from pairun.inject.emitting import as_json
from pairun.inject.options import Options
from pairun.inject.splices import Splices
from pairun.inject.tree import Mapping, Sequence
from pairun.inject.variables import COMMAND, RECORD

INIT = "pairun-init"
"""The init container's name, which identifies an injected Pod."""
VOLUME = "pairun"
PROGRAM = f"{DEFAULT_PAI_DIR}/runtime"
SEPARATOR = "--"
"""Separates the program from the user's command in the main container's command."""
KUBELET_S = 2.0
"""The part of the Pod's grace time that is reserved for kubelet."""
DEFAULT_GRACE_S = 30

NOBODY = 65534
"""The init container's user if only the image sets the main container's user."""

_AFTER_HOLD_S = 10.0
"""Extra time to end a hold."""

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
    """

    init_env: list[dict[str, Any]] = attrs.field(factory=list)
    init_mounts: list[dict[str, Any]] = attrs.field(factory=list)
    env: list[dict[str, Any]] = attrs.field(factory=list)
    mounts: list[dict[str, Any]] = attrs.field(factory=list)
    volumes: list[dict[str, Any]] = attrs.field(factory=list)
    service_account: str = ""
    config: dict[str, Any] = attrs.field(factory=dict)


class PodEdit:
    """The edits of one Pod's spec, and the record of what they replaced.

    The record has an entry for each changed key, except lists that only got items: null if the key
    was missing, else the text of its old value.

    Args:
        splices: takes the edits.
        spec: the Pod's spec.
        container: the main container.
    """

    def __init__(self, splices: Splices, spec: Mapping, container: Mapping) -> None:
        self._splices = splices
        self._spec = spec
        self._container = container
        self._was: dict[str, str | None] = {}
        self._variables: list[str] = []

    def wrap(self, words: Items[str], written: Items[str] | None) -> None:
        """Make PID 1 start the command.

        Args:
            words: the words before the command.
            written: the whole command if the container sets none; else None.
        """
        if written is None:
            self._extend(self._container, "command", list(words), first=True)
        else:
            self._set(self._container, "command", [*words, *written])

    def add_mounts(self, mounts: list[dict[str, Any]]) -> None:
        """Add volume mounts to the main container."""
        self._extend(self._container, "volumeMounts", mounts)

    def add_env(self, variables: list[dict[str, Any]]) -> None:
        """Add variables to the main container; existing ones do not change."""
        given = self._container.get("env")
        names = {v.get("name") for v in given.plain()} if isinstance(given, Sequence) else set()
        added = [v for v in variables if v["name"] not in names]
        self._variables = [v["name"] for v in added]
        self._extend(self._container, "env", added)

    def add_volumes(self, volumes: list[dict[str, Any]]) -> None:
        """Add volumes to the Pod."""
        self._extend(self._spec, "volumes", volumes)

    def set_account(self, name: str) -> None:
        """Set the Pod's service account, which must be missing or ``default``."""
        self._set(self._spec, "serviceAccountName", name)

    def pin(self, image: str) -> None:
        """Replace the main container's image."""
        self._set(self._container, "image", image)

    def finish(self, init: dict[str, Any]) -> None:
        """Add the init container, with the record in it, after all other edits."""
        self._note(self._spec, "initContainers")
        container = self._container.get("name")
        record = {
            "container": container.plain() if container else None,
            "env": self._variables,
            "was": self._was,
        }
        # Kubernetes replaces $(NAME) in a value; JSON can escape the dollar sign.
        text = json.dumps(record).replace("$", "\\u0024")
        init["env"].append({"name": RECORD, "value": text})
        self._extend(self._spec, "initContainers", [init])

    def _set(self, mapping: Mapping, key: str, value: Any) -> None:
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

    def _extend(self, mapping: Mapping, key: str, items: list[Any], *, first: bool = False) -> None:
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
    options: Options,
    addition: Addition,
    spec: Mapping,
    container: Mapping,
    command: Items[str],
) -> dict[str, Any]:
    """The init container of a Pod.

    Args:
        options: the command's options.
        addition: the features' additions.
        spec: the Pod's spec.
        container: the main container.
        command: its command, as written.
    """
    given = container.get("name")
    name = str(given.plain()) if given else ""
    env: list[dict[str, Any]] = [
        field("FC_POD_UID", "metadata.uid"),
        field("FC_POD_NAME", "metadata.name"),
        field("POD_NAME", "metadata.name"),
        field("PAIRUN_HOST_IP", "status.podIP"),
        {"name": "RUNTIME_CONFIG", "value": _config(options, addition, name)},
        {"name": COMMAND, "value": variable_json(list(command))},
    ]
    security = _security(spec, container)
    if security.get("runAsUser") not in (None, NOBODY):
        env.append({"name": "PAIRUN_APP_UID", "value": str(security["runAsUser"])})
    made: dict[str, Any] = {
        "name": INIT,
        "image": options.image,
        "args": ["init"],
        "env": [*env, *addition.init_env],
        "volumeMounts": [{"name": VOLUME, "mountPath": DEFAULT_PAI_DIR}, *addition.init_mounts],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if options.resources:
        made["resources"] = dict(options.resources)
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
    seconds = given.plain() if given else DEFAULT_GRACE_S
    if not isinstance(seconds, int) or isinstance(seconds, bool) or seconds <= 0:
        return None
    return max(seconds - KUBELET_S, seconds / 2)


def _security(spec: Mapping, container: Mapping) -> dict[str, Any]:
    """The init container's security context: the main container's, without its privileges."""
    of_pod, given = spec.get("securityContext"), container.get("securityContext")
    outer = of_pod.plain() if isinstance(of_pod, Mapping) else {}
    context = given.plain() if isinstance(given, Mapping) else {}
    both = {**outer, **context}
    made = {name: context[name] for name in _OF_SECURITY if name in context}
    if (context.get("capabilities") or {}).get("drop"):
        made["capabilities"] = {"drop": context["capabilities"]["drop"]}
    if both.get("runAsNonRoot") and both.get("runAsUser") is None:
        # In this case the user's image sets its user, but pairun's image runs as root.
        made["runAsUser"] = NOBODY
    return made


def _config(options: Options, addition: Addition, name: str) -> str:
    config: dict[str, Any] = {"commands": ["true"], **addition.config}
    playbook = {key: value for key, value in options.playbook.items() if value}
    if options.hold:
        playbook["runtime"] = [*playbook.get("runtime", []), _hold(options.hold, name)]
    if playbook:
        config["extras"] = {"pairun": playbook}
    return variable_json(config)


def _hold(time: str, container: str) -> dict[str, Any]:
    """A task whose exit handler keeps a failed container; it needs no program in the image."""
    return {
        "before": "user_command",
        "id": "hold",
        "name": "A failed container is kept for people",
        "file": {"path": f"{DEFAULT_PAI_DIR}/run/hold", "content": ""},
        "on_exit": [
            {
                "id": "held",
                "name": "The container is kept",
                "event": "failure",
                "deadline": f"{(parse_duration(time) or 0) + _AFTER_HOLD_S:g}s",
                "hold": {"time": time, "container": container},
            }
        ],
    }
