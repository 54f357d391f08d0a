"""The Pod Security Standards: the fields that Pods get, and the settings that a job may not use.

https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pairun.engines.manifest.choices import ManifestOptions
from pairun.errors import Place, Problems
from pairun.job.model import Role
from pairun.kube.owners import Object
from pairun.playbook.podfragment import APP

UID = 1000
"""The default user of both containers under the profile restricted."""

_BASELINE_CAPABILITIES = frozenset(
    {"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
     "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"}
)  # fmt: skip
_RESTRICTED_CAPABILITIES = frozenset({"NET_BIND_SERVICE"})


def app_uid(role: Role, options: ManifestOptions) -> int | None:
    """The user of a role's user container; None for the image's default."""
    pod, field = options.pod(role.name), "securityContext.runAsUser"
    own, shared = pod.get(f"{APP}.{field}"), pod.get(f"spec.{field}")
    uid = shared if own is None else own
    if uid is None and options.whole.get("pod_security") == "restricted":
        return UID
    return None if uid is None else int(uid)


def confine(template: Object, role: Role, options: ManifestOptions) -> None:
    """Add the fields that the profile restricted requires; other profiles require none.

    Both containers run as the same user, who owns the shared volume with init's files. The user's
    container is then not isolated from init's files.

    Args:
        template: metadata and spec; changed in place.
    """
    if options.whole.get("pod_security") != "restricted":
        return
    spec, uid = template["spec"], app_uid(role, options)
    shared = spec.setdefault("securityContext", {})
    shared["runAsNonRoot"] = True
    shared["runAsUser"] = uid or shared.get("runAsUser", UID)
    shared.setdefault("fsGroup", uid)
    shared.setdefault("seccompProfile", {"type": "RuntimeDefault"})
    for container in (*spec["initContainers"], *spec["containers"]):
        security = container.setdefault("securityContext", {})
        security.setdefault("allowPrivilegeEscalation", False)
        security.setdefault("capabilities", {})["drop"] = ["ALL"]


_BOTH, _RESTRICTED = ("baseline", "restricted"), ("restricted",)
_VOLUMES = frozenset(
    {"name", "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image",
     "hostPath", "persistentVolumeClaim", "projected", "secret"}
)  # fmt: skip
_SYSCTLS = frozenset(
    {"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
     "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports",
     "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
     "net.ipv4.tcp_keepalive_probes"}
)  # fmt: skip
_SELINUX_TYPES = frozenset(
    {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
)
_Checks = tuple[tuple[tuple[str, ...], str, Callable[[Any], bool]], ...]
"""The profiles with a rule, the field's path (``*`` matches every element), and which values they allow."""
_HOST = ("hostNetwork", "hostIPC", "hostPID")
_IN_CONTAINERS: _Checks = (
    (_BOTH, "ports.*.hostPort", lambda port: not port),
    (_BOTH, "securityContext.privileged", lambda value: value is not True),
    (_BOTH, "securityContext.procMount", lambda value: value == "Default"),
    (("baseline",), "securityContext.capabilities.add.*", _BASELINE_CAPABILITIES.__contains__),
    (_RESTRICTED, "securityContext.capabilities.add.*", _RESTRICTED_CAPABILITIES.__contains__),
    (_RESTRICTED, "securityContext.allowPrivilegeEscalation", lambda value: value is not True),
    (_RESTRICTED, "securityContext.runAsNonRoot", lambda value: value is not False),
)
_IN_BOTH: _Checks = (
    (_BOTH, "seccompProfile.type", lambda value: value != "Unconfined"),
    (_BOTH, "appArmorProfile.type", lambda value: value != "Unconfined"),
    (_BOTH, "seLinuxOptions.type", _SELINUX_TYPES.__contains__),
    (_BOTH, "seLinuxOptions.user", lambda value: not value),
    (_BOTH, "seLinuxOptions.role", lambda value: not value),
    (_RESTRICTED, "runAsUser", bool),
)
"""Fields of ``securityContext``, of a container and of the Pod."""
_KINDS = ("containers.*.", "initContainers.*.")
_RULES: _Checks = (
    *((_BOTH, key, lambda value: value is not True) for key in _HOST),
    (_BOTH, "volumes.*.hostPath", lambda _: False),
    (_RESTRICTED, "volumes.*", lambda volume: volume.keys() <= _VOLUMES),
    (_BOTH, "securityContext.sysctls.*.name", _SYSCTLS.__contains__),
    *((who, kind + field, allows) for kind in _KINDS for who, field, allows in _IN_CONTAINERS),
    *(
        (who, f"{at}securityContext.{field}", allows)
        for at in ("", *_KINDS)
        for who, field, allows in _IN_BOTH
    ),
)


def check_profile(
    template: Object, role: Role, options: ManifestOptions, problems: Problems
) -> None:
    """Report fields of a role's Pods that the profile forbids.

    Args:
        template: the role's finished Pod.
        problems: collects one error per field.
    """
    profile = options.whole.get("pod_security")
    for profiles, field, allows in _RULES:
        for value in _values(template["spec"], field.split(".")) if profile in profiles else ():
            if not allows(value):
                said = f": {value}" if isinstance(value, str) else ""
                message = f"the profile {profile} forbids {field}{said} of the role '{role.name}'"
                problems.error("PR796", message, *_cause(field, value, role, options))
    annotation = template["metadata"]["annotations"].get(APPARMOR)
    if options.confined and annotation == "unconfined":
        problems.error(
            "PR796",
            f"the profile {profile} forbids AppArmor's profile Unconfined of the role "
            f"'{role.name}'",
            options.pod(role.name).place(_APPARMOR_FIELD),
            f"leave out {_APPARMOR_FIELD}",
        )


def _values(at: Any, path: list[str]) -> Iterator[Any]:
    if not path:
        yield at
    elif path[0] == "*":
        for each in at:
            yield from _values(each, path[1:])
    elif isinstance(at, dict) and path[0] in at:
        yield from _values(at[path[0]], path[1:])


def _cause(
    field: str, value: Any, role: Role, options: ManifestOptions
) -> tuple[Place | None, str]:
    """The setting that caused a forbidden value, and how to fix it."""
    setting = f"spec.{field}"
    place = options.pod(role.name).place(setting.removesuffix(".*"))
    infiniband = role.node.at(("extraContainerOptions", "infiniband"))
    if place is None and value == "IPC_LOCK" and infiniband is not None:
        return infiniband.key or infiniband.place, (
            "infiniband needs the capability IPC_LOCK: leave out "
            "extraContainerOptions.infiniband, or use another profile"
        )
    if place is None and field.startswith("volumes"):
        return None, "leave out --log-host-path, or use another profile"
    return place, f"leave out {setting}, or use another profile"


# --- AppArmor --------------------------------------------------------------------------------------

APPARMOR = "container.apparmor.security.beta.kubernetes.io/app"
"""The annotation of the user's container before Kubernetes 1.30."""
_APPARMOR_FIELD = f"{APP}.securityContext.appArmorProfile"
_FIELD_SINCE = (1, 30)
_ANNOTATED = {"RuntimeDefault": "runtime/default", "Unconfined": "unconfined"}


def set_apparmor(template: Object, options: ManifestOptions) -> None:
    """Set the user container's AppArmor profile: a field from Kubernetes 1.30 on.

    FrameworkController drops the unknown field, so a Framework keeps the annotation; the API server
    converts it: https://kubernetes.io/docs/tutorials/security/apparmor/.

    Args:
        template: metadata and spec; changed in place.
    """
    annotations, app = template["metadata"]["annotations"], template["spec"]["containers"][0]
    annotations.pop(APPARMOR, None)
    security = app.setdefault("securityContext", {})
    profile = security.get("appArmorProfile")
    if profile is None and options.engine == "framework" and not options.confined:
        profile = security["appArmorProfile"] = {"type": "Unconfined"}
    has_field = options.version is None or options.version >= _FIELD_SINCE
    if profile is not None and not has_field:
        del security["appArmorProfile"]
    if profile is not None and (not has_field or options.engine == "framework"):
        path = profile.get("localhostProfile")
        annotations[APPARMOR] = f"localhost/{path}" if path else _ANNOTATED[profile["type"]]
    if not security:
        del app["securityContext"]
