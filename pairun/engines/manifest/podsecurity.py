"""The Pod Security Standards: the fields that Pods get, and the settings that a job may not use.

https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pairun.engines.manifest.choices import Object, Options
from pairun.engines.manifest.podvalues import profile_field
from pairun.errors import Place, Problems
from pairun.job.model import Role

UID = 1000
"""The default user of both containers under the profile restricted."""

_BASELINE_CAPABILITIES = frozenset(
    {"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
     "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"}
)  # fmt: skip
_RESTRICTED_CAPABILITIES = frozenset({"NET_BIND_SERVICE"})


def app_uid(role: Role, options: Options) -> int | None:
    """The user of a role's user container; None for the image's default."""
    uid = options.pod(role.name).get("security.run_as_user")
    if uid is None and options.whole.get("pod_security") == "restricted":
        return UID
    return None if uid is None else int(uid)


def confine(template: Object, role: Role, options: Options) -> None:
    """Add the fields that the profile restricted requires; other profiles require none.

    Both containers run as the same user, who owns the shared volume with init's files. The user's
    container is then not isolated from init's files.

    Args:
        template: metadata and spec; changed in place.
        role: the role.
        options: the options for the job's objects.
    """
    if options.whole.get("pod_security") != "restricted":
        return
    spec, uid = template["spec"], app_uid(role, options)
    shared = spec.setdefault("securityContext", {})
    shared["runAsNonRoot"] = True
    shared["runAsUser"] = uid
    shared.setdefault("fsGroup", uid)
    shared.setdefault("seccompProfile", {"type": "RuntimeDefault"})
    for container in (*spec["initContainers"], *spec["containers"]):
        security = container.setdefault("securityContext", {})
        security.setdefault("allowPrivilegeEscalation", False)
        security.setdefault("capabilities", {})["drop"] = ["ALL"]


class _Rule(NamedTuple):
    """The values that a profile allows for a field.

    Attributes:
        profiles: the profiles with this rule.
        field: the path in the Pod's spec; ``*`` matches every element of a list.
        allows: whether a value is allowed.
        setting: the Pod setting that sets the field.
    """

    profiles: tuple[str, ...]
    field: str
    allows: Callable[[Any], bool]
    setting: str


_BOTH, _RESTRICTED = ("baseline", "restricted"), ("restricted",)


def _not_true(value: object) -> bool:
    return value is not True


def _is_confined(profile: object) -> bool:
    return profile != "Unconfined"


_RULES = (
    _Rule(_BOTH, "hostNetwork", _not_true, "host_network"),
    _Rule(_BOTH, "hostIPC", _not_true, "host_ipc"),
    _Rule(_BOTH, "volumes.*.hostPath", lambda _: False, "volumes"),
    _Rule(_BOTH, "containers.*.securityContext.privileged", _not_true, "security.privileged"),
    _Rule(_BOTH, "securityContext.seccompProfile.type", _is_confined, "security.seccomp"),
    _Rule(
        _BOTH,
        "containers.*.securityContext.appArmorProfile.type",
        _is_confined,
        "security.apparmor",
    ),
    _Rule(
        ("baseline",),
        "containers.*.securityContext.capabilities.add.*",
        _BASELINE_CAPABILITIES.__contains__,
        "security.capabilities.add",
    ),
    _Rule(
        _RESTRICTED,
        "containers.*.securityContext.capabilities.add.*",
        _RESTRICTED_CAPABILITIES.__contains__,
        "security.capabilities.add",
    ),
    _Rule(
        _RESTRICTED,
        "containers.*.securityContext.allowPrivilegeEscalation",
        _not_true,
        "security.allow_privilege_escalation",
    ),
    _Rule(
        _RESTRICTED,
        "containers.*.securityContext.runAsNonRoot",
        lambda value: value is not False,
        "security.run_as_non_root",
    ),
    _Rule(_RESTRICTED, "securityContext.runAsUser", bool, "security.run_as_user"),
)


def check_profile(template: Object, role: Role, options: Options, problems: Problems) -> None:
    """Report fields of a role's Pods that the profile forbids.

    Args:
        template: the role's finished Pod.
        role: the role.
        options: the options for the job's objects.
        problems: collects one error per field.
    """
    profile = options.whole.get("pod_security")
    for rule in _RULES:
        if profile not in rule.profiles:
            continue
        for value in _values(template["spec"], rule.field.split(".")):
            if not rule.allows(value):
                place, hint = _cause(rule.setting, value, role, options)
                said = f": {value}" if isinstance(value, str) else ""
                problems.error(
                    "PR796",
                    f"the profile {profile} forbids {rule.field}{said} of the role '{role.name}'",
                    place,
                    hint,
                )
    annotation = template["metadata"]["annotations"].get(APPARMOR)
    if options.confined and annotation == "unconfined":
        problems.error(
            "PR796",
            f"the profile {profile} forbids AppArmor's profile Unconfined of the role "
            f"'{role.name}'",
            options.pod(role.name).place("security.apparmor"),
            "leave out security.apparmor",
        )


def _values(at: Any, path: list[str]) -> Iterator[Any]:
    if not path:
        yield at
    elif path[0] == "*":
        for each in at:
            yield from _values(each, path[1:])
    elif isinstance(at, dict) and path[0] in at:
        yield from _values(at[path[0]], path[1:])


def _cause(setting: str, value: Any, role: Role, options: Options) -> tuple[Place | None, str]:
    """The setting that caused a forbidden value, and how to fix it."""
    place = options.pod(role.name).place(setting)
    infiniband = role.node.at(("extraContainerOptions", "infiniband"))
    if place is None and value == "IPC_LOCK" and infiniband is not None:
        return infiniband.key or infiniband.place, (
            "infiniband needs the capability IPC_LOCK: leave out "
            "extraContainerOptions.infiniband, or use another profile"
        )
    if place is None and setting == "volumes":
        return None, "leave out --log-host-path, or use another profile"
    return place, f"leave out {setting}, or use another profile"


# --- AppArmor --------------------------------------------------------------------------------------

APPARMOR = "container.apparmor.security.beta.kubernetes.io/app"
"""The annotation of the user's container before Kubernetes 1.30."""
_FIELD_SINCE = (1, 30)
_ANNOTATED = {"RuntimeDefault": "runtime/default", "Unconfined": "unconfined"}


def set_apparmor(template: Object, role: Role, options: Options) -> None:
    """Set the user container's AppArmor profile: a field from Kubernetes 1.30 on.

    FrameworkController drops the unknown field, so a Framework keeps the annotation; the API server
    converts it: https://kubernetes.io/docs/tutorials/security/apparmor/.

    Args:
        template: metadata and spec; changed in place.
        role: the role.
        options: the options for the job's objects.
    """
    annotations = template["metadata"]["annotations"]
    annotations.pop(APPARMOR, None)
    profile = options.pod(role.name).get("security.apparmor")
    if profile is None and options.engine == "framework" and not options.confined:
        profile = "Unconfined"
    if profile is None:
        return
    if options.version is None or options.version >= _FIELD_SINCE:
        app = template["spec"]["containers"][0]
        app.setdefault("securityContext", {})["appArmorProfile"] = profile_field(profile)
        if options.engine != "framework":
            return
    annotations[APPARMOR] = _ANNOTATED.get(profile, profile)
