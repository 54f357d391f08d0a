"""The Pod of a role: OpenPAI's template, adapted to the cluster and the engine."""

from __future__ import annotations

import math
import os.path
import re
from typing import Any

from pairun.base.durations import parse_seconds
from pairun.base.grace import VARIABLE as GRACE
from pairun.base.onstop import INTERRUPTED
from pairun.base.onstop import VARIABLE as ON_STOP
from pairun.engines.manifest.choices import KUBELET_S, SERVICE_ACCOUNT, Object, Options
from pairun.engines.manifest.hived import place_with_hived
from pairun.engines.manifest.jobsecrets import FILE, FOLDER
from pairun.engines.manifest.objectnames import MANAGED
from pairun.engines.manifest.podsecurity import app_uid, confine, set_apparmor
from pairun.engines.manifest.queues import mark_pod
from pairun.engines.manifest.storages import mount_storages
from pairun.job.model import Job, Role
from pairun.kube.labels import INDEX_LABEL, INDEXED, JOB_CONFIG, JOB_LABEL, KEY_SECRET, ROLE_LABEL
from pairun.kube.ports import PORT_ANNOTATION
from pairun.kube.tokenvolume import CREDENTIALS, token_volume
from pairun.openpai.podtemplate import PodMaker
from pairun.playbook.podfragment import APP, overlaid
from pairun.volume.bundle import IN_THE_IMAGE, PROVIDED
from pairun.volume.logjournal import VARIABLE as LOG_JOURNAL

RENDEZVOUS = "/usr/local/pai/rendezvous"
OPENPAI_LOGS = "/var/log/pai"
MAX_VARIABLE_BYTES = 100_000
"""Linux refuses to start a program with a variable of more than 128 KiB."""

_TERMINATION = "terminationMessagePolicy"
_DEADLINE = "activeDeadlineSeconds"
_INDEXES = (
    "FC_TASK_INDEX",
    "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX",
    "PAI_TASK_INDEX",
)


def pod_template(
    job: Job,
    role: Role,
    options: Options,
    *,
    index: int | None = None,
    attempt: Object | None = None,
) -> Object:
    """Make the metadata (labels and annotations) and the spec of a role's Pods.

    Args:
        job: the job, without secrets in its text.
        index: the number of the only Pod; None if the engine sets an annotation with it.
        attempt: the source of FC_FRAMEWORK_ATTEMPT_ID; by default the first attempt.

    Returns:
        The template for the engine's object. Only the init container gets the API token.
    """
    template = PodMaker(job, options.name, image=options.image).make(role)
    spec = template["spec"]
    # OpenPAI's own nodes, classes and devices do not exist in other clusters.
    for name in ("affinity", "priorityClassName"):
        del spec[name]
    init, app = spec["initContainers"][0], spec["containers"][0]
    _set_up_app(role, options, app)
    _set_environment(role, options, init, app)
    _set_logs(options, spec)
    _set_volumes(options, spec)
    mount_storages(job, spec)
    if options.engine != "framework":
        _identify(template, role, options, index, attempt or {"value": "0"})
    if not options.host_network:
        del spec["hostNetwork"]
    spec["serviceAccountName"] = SERVICE_ACCOUNT
    spec["automountServiceAccountToken"] = False
    for container in (init, app):
        container[_TERMINATION] = "FallbackToLogsOnError"
        container["env"] = [_as_kubernetes_reads(v) for v in container["env"]]
    _apply_settings(template, role, options)
    spec = template["spec"]
    init, app = spec["initContainers"][0], spec["containers"][0]
    if options.image_volume:
        _mount_image(options, spec)
    place_with_hived(template, job, role, options)
    mark_pod(template, options)
    set_apparmor(template, options)
    confine(template, role, options)
    spec["terminationGracePeriodSeconds"] = math.ceil(options.grace_s[role.name] + KUBELET_S)
    template["metadata"]["labels"] |= {
        **MANAGED,
        JOB_LABEL: options.name,
        ROLE_LABEL: role.fc_name,
    }
    return template


def _set_up_app(role: Role, options: Options, app: Object) -> None:
    asked, limits = role.resources, app["resources"]["limits"]
    del limits["github.com/fuse"], limits["nvidia.com/gpu"]
    if asked.gpu:
        limits[options.gpu_resource] = asked.gpu
    # Quantities are strings. Omit zero: it would be a limit, too.
    app["resources"]["limits"] = {k: str(v) for k, v in limits.items() if v not in (0, "0Mi")}
    security = app["securityContext"]
    if options.engine != "framework" or options.confined:
        # The Pod Security Standards would refuse what OpenPAI adds.
        security.pop("capabilities")
        if asked.infiniband:
            security["capabilities"] = {"add": ["IPC_LOCK"]}
    if not security:
        del app["securityContext"]


def _set_environment(role: Role, options: Options, init: Object, app: Object) -> None:
    grace = f"{options.grace_s[role.name]:.3f}".rstrip("0").rstrip(".")
    init["env"] = [
        v
        for v in init["env"]
        if v["name"] not in ("KUBE_APISERVER_ADDRESS", "REST_SERVER_URI") and not _is_too_long(v)
    ]
    if (uid := app_uid(role, options)) is not None:
        init["env"].append({"name": "PAIRUN_APP_UID", "value": str(uid)})
    address = _field("PAIRUN_HOST_IP", "status.podIP")
    # So that `pairun report NAME` needs only the logs.
    on_log = {"name": LOG_JOURNAL, "value": "true"}
    init["env"] += [address, on_log]
    app["env"] += [address, on_log, {"name": GRACE, "value": grace}]
    if options.engine in ("job", "jobset"):
        # Their controllers count an evicted command that exits with 0 as a success.
        app["env"].append({"name": ON_STOP, "value": INTERRUPTED})


def _is_too_long(variable: Object) -> bool:
    """Whether a variable is too long for Linux; init then renders such a command itself."""
    return variable["name"] == "USER_CMD" and len(variable["value"].encode()) > MAX_VARIABLE_BYTES


def _set_logs(options: Options, spec: Object) -> None:
    on_node = options.engine == "framework" and not options.confined
    folder = options.log_host_path or (OPENPAI_LOGS if on_node else None)
    for volume in spec["volumes"]:
        if volume["name"] == "host-log":
            if folder:
                volume["hostPath"] = {"path": folder, "type": "DirectoryOrCreate"}
            else:
                volume["name"] = "logs"
                volume["emptyDir"] = {}
                del volume["hostPath"]
    for container in (*spec["initContainers"], *spec["containers"]):
        for mount in container["volumeMounts"]:
            if mount["name"] == "host-log" and not folder:
                mount["name"] = "logs"
                del mount["subPath"]


def _set_volumes(options: Options, spec: Object) -> None:
    init, app = spec["initContainers"][0], spec["containers"][0]
    for volume in spec["volumes"]:
        if volume["name"] == "job-exit-spec":
            volume["configMap"]["optional"] = True
    rendezvous = {"name": "rendezvous", "mountPath": RENDEZVOUS, "readOnly": True}
    secret = {"secretName": f"{options.name}-{KEY_SECRET}"}
    spec["volumes"] += [{"name": "rendezvous", "secret": secret}, token_volume("api-token")]
    init["volumeMounts"] += [
        rendezvous,
        {"name": "api-token", "mountPath": CREDENTIALS, "readOnly": True},
    ]
    app["volumeMounts"].append(rendezvous)
    if options.engine != "framework":
        config = {"name": f"{options.name}-{JOB_CONFIG}"}
        spec["volumes"].append({"name": "job", "configMap": config})
        init["volumeMounts"].append({"name": "job", "mountPath": FOLDER, "readOnly": True})


def _mount_image(options: Options, spec: Object) -> None:
    """Mount pairun's image in the user's container, and start PID 1 from it."""
    init, app = spec["initContainers"][0], spec["containers"][0]
    image = {"reference": options.image, "pullPolicy": init["imagePullPolicy"]}
    spec["volumes"].append({"name": "pairun-image", "image": image})
    folder = os.path.dirname(IN_THE_IMAGE)
    app["volumeMounts"].append(
        {"name": "pairun-image", "mountPath": folder, "subPath": folder[1:], "readOnly": True}
    )
    app["command"] = [IN_THE_IMAGE]
    init["env"].append({"name": PROVIDED, "value": IN_THE_IMAGE})


def _identify(
    template: Object, role: Role, options: Options, index: int | None, attempt: Object
) -> None:
    """Tell a Pod who it is, with the variables that FrameworkController sets."""
    meta = template["metadata"]
    annotations = meta["annotations"]
    meta["labels"] = {} if index is None else {INDEX_LABEL: str(index)}
    meta["annotations"] = {PORT_ANNOTATION: annotations[PORT_ANNOTATION]}
    number = (
        {"valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEXED}']"}}}
        if index is None
        else {"value": str(index)}
    )
    identity = [
        _field("FC_FRAMEWORK_NAMESPACE", "metadata.namespace"),
        {"name": "FC_FRAMEWORK_NAME", "value": options.name},
        {"name": "FC_TASKROLE_NAME", "value": role.fc_name},
        {"name": "FC_TASK_INDEX", **number},
        _field("FC_POD_UID", "metadata.uid"),
        _field("FC_POD_NAME", "metadata.name"),
        {"name": "FC_FRAMEWORK_ATTEMPT_ID", **attempt},
    ]
    init, app = template["spec"]["initContainers"][0], template["spec"]["containers"][0]
    for container in (init, app):
        others = [v for v in container["env"] if v["name"] not in _INDEXES]
        indexes = [v["name"] for v in container["env"] if v["name"] in _INDEXES]
        container["env"] = [*identity, *others, *({"name": n, **number} for n in indexes)]
    init["env"] += [
        {"name": "PAIRUN_BARRIER", "value": "pods"},
        {"name": "PAIRUN_FRAMEWORK_FILE", "value": f"{FOLDER}/{FILE}"},
    ]


def _field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _as_kubernetes_reads(variable: dict[str, Any]) -> dict[str, Any]:
    """Protect a variable's value from Kubernetes, which replaces ``$(NAME)`` and ``$$``.

    A missing value becomes empty: old API servers treat an empty text in a JobSet as none.
    """
    if not variable.get("value"):
        return {k: v for k, v in variable.items() if k != "value"}
    return {**variable, "value": re.sub(r"\$(?=[$(])", "$$", variable["value"])}


# --- settings of Pods -----------------------------------------------------------------------------


def _apply_settings(template: Object, role: Role, options: Options) -> None:
    """Lay a role's settings over its Pod template.

    Args:
        template: metadata and spec; changed in place.
    """
    pod = options.pod(role.name)
    for part in ("metadata", "spec"):
        template[part] = overlaid(template[part], pod.get(part) or {})
    spec = template["spec"]
    init = spec["initContainers"][0]
    if (resources := pod.get("init_resources")) is not None:
        init |= overlaid(init, {"resources": resources})
    if (size := pod.get("shm")) is not None:
        [shm] = [v for v in spec["volumes"] if v["name"] == "dshm"]
        shm["emptyDir"] = {**shm["emptyDir"], "sizeLimit": str(size)}
    if (policy := pod.get(f"{APP}.imagePullPolicy")) is not None:
        init["imagePullPolicy"] = policy
    for constraint in spec.get("topologySpreadConstraints", ()):
        own = {JOB_LABEL: options.name, ROLE_LABEL: role.fc_name}
        constraint.setdefault("labelSelector", {"matchLabels": own})
    if options.engine in ("job", "jobset"):
        spec.pop(_DEADLINE, None)


def job_fields(role: Role, options: Options) -> Object:
    """The settings for the spec of a role's Job: the deadline counts from its first attempt."""
    deadline = options.pod(role.name).get(f"spec.{_DEADLINE}")
    return {} if deadline is None else {_DEADLINE: deadline}


def workload_fields(options: Options) -> Object:
    """The settings for the spec of a Job or a JobSet itself."""
    suspend, ttl = options.whole.get("suspend"), options.whole.get("ttl_after_finished")
    fields: Object = {} if suspend is None else {"suspend": suspend}
    if ttl is not None:
        fields["ttlSecondsAfterFinished"] = math.ceil(parse_seconds(ttl) or 0)
    return fields
