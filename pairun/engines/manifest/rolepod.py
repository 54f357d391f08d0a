"""The Pod of a role: what OpenPAI's REST server makes, for any cluster and engine."""

from __future__ import annotations

import math
import os.path
import re
from collections.abc import Mapping
from typing import Any

from pairun.base.durations import parse_seconds
from pairun.base.grace import GRACE_VARIABLE, KUBELET_S
from pairun.base.onstop import INTERRUPTED, ON_STOP_VARIABLE
from pairun.engines.manifest.choices import SERVICE_ACCOUNT, ManifestOptions
from pairun.engines.manifest.hived import place_with_hived
from pairun.engines.manifest.jobsecrets import FILE, JOB_SECRETS_FOLDER
from pairun.engines.manifest.objectnames import MANAGED
from pairun.engines.manifest.podsecurity import app_uid, confine, set_apparmor
from pairun.engines.manifest.queues import mark_pod
from pairun.engines.manifest.storages import mount_storages
from pairun.job.model import DEFAULT_SHM_MB, Job, Role
from pairun.kube.labels import (
    CONFIG_SECRET,
    INDEX_LABEL,
    INDEXED,
    JOB_CONFIG,
    JOB_LABEL,
    KEY_SECRET,
    REGISTRY_SECRET,
    ROLE_LABEL,
)
from pairun.kube.owners import Object
from pairun.kube.ports import PORT_ANNOTATION, port_annotation
from pairun.kube.tokenvolume import CREDENTIALS, token_volume
from pairun.openpai.platform import app_variables, framework_environment, init_variables
from pairun.playbook.podfragment import APP, overlaid
from pairun.volume.bundle import IN_THE_IMAGE, PROVIDED
from pairun.volume.logjournal import LOG_JOURNAL_VARIABLE

RENDEZVOUS = "/usr/local/pai/rendezvous"
OPENPAI_LOGS = "/var/log/pai"
MAX_VARIABLE_BYTES = 100_000
"""Linux refuses to start a program with a variable of more than 128 KiB."""

_TERMINATION = "terminationMessagePolicy"
_DEADLINE = "activeDeadlineSeconds"
_INDEXES = ("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "PAI_TASK_INDEX")
"""The variables with an instance's number; the init container has only the first."""
_UNUSED = ("KUBE_APISERVER_ADDRESS", "REST_SERVER_URI")


def pod_template(
    job: Job,
    role: Role,
    options: ManifestOptions,
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
    init, app = _environments(job, role, options, index, attempt or {"value": "0"})
    shared = _shared_mounts(job, role, options)
    rendezvous = {"name": "rendezvous", "mountPath": RENDEZVOUS, "readOnly": True}
    of_init = [
        *shared,
        {"name": "job-exit-spec", "mountPath": "/usr/local/pai-config"},
        rendezvous,
        {"name": "api-token", "mountPath": CREDENTIALS, "readOnly": True},
    ]
    if options.engine != "framework":
        of_init.append({"name": "job", "mountPath": JOB_SECRETS_FOLDER, "readOnly": True})
    spec: Object = {
        "restartPolicy": "Never",
        "serviceAccountName": SERVICE_ACCOUNT,
        **({"hostNetwork": True} if options.host_network else {}),
        "initContainers": [
            {
                "name": "init",
                "imagePullPolicy": "Always",
                "image": options.image,
                "env": init,
                "volumeMounts": of_init,
                _TERMINATION: "FallbackToLogsOnError",
            }
        ],
        "containers": [
            {
                **_app(role, options, app),
                "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}, *shared, rendezvous],
                _TERMINATION: "FallbackToLogsOnError",
            }
        ],
        "volumes": _volumes(job, role, options),
    }
    if role.image.node.get("auth") is not None:
        spec["imagePullSecrets"] = [{"name": f"{options.name}-{REGISTRY_SECRET}"}]
    spec["automountServiceAccountToken"] = False
    labels = {
        "userName": job.user,
        "virtualCluster": job.virtual_cluster,
        "type": "kube-launcher-task",
    }
    if options.engine != "framework":
        labels = {} if index is None else {INDEX_LABEL: str(index)}
    ports = port_annotation(role.resources.ports)
    template = {
        "metadata": {"labels": labels, "annotations": {PORT_ANNOTATION: ports}},
        "spec": spec,
    }
    mount_storages(job, spec)
    _apply_settings(template, role, options)
    spec = template["spec"]
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


def _app(role: Role, options: ManifestOptions, env: list[Object]) -> Object:
    """The user's container, without mounts."""
    asked, uri = role.resources, role.image.node.get("uri")
    limits = {
        "cpu": asked.cpu,
        "memory": f"{asked.memory_mb}Mi",
        "rdma/hca": int(asked.infiniband),
        options.gpu_resource: asked.gpu,
    }
    # The Pod Security Standards would refuse what OpenPAI adds.
    capabilities: Object = {"add": ["IPC_LOCK"]} if asked.infiniband else {}
    if options.engine == "framework" and not options.confined:
        capabilities = {"add": ["SYS_ADMIN", "IPC_LOCK", "DAC_READ_SEARCH"], "drop": ["MKNOD"]}
    return {
        "name": "app",
        "imagePullPolicy": "Always",
        "image": uri.value if uri else "",
        "command": ["/usr/local/pai/runtime"],
        "env": env,
        # Quantities are strings. Omit zero: it would be a limit, too.
        "resources": {"limits": {k: str(v) for k, v in limits.items() if v not in (0, "0Mi")}},
        **({"securityContext": {"capabilities": capabilities}} if capabilities else {}),
        "terminationMessagePath": "/tmp/pai-termination-log",
    }


def _environments(
    job: Job, role: Role, options: ManifestOptions, index: int | None, attempt: Object
) -> tuple[list[Object], list[Object]]:
    """The variables of the init container, and those of the user's.

    FrameworkController sets variables that tell a Pod who it is; for other engines they are here.
    """
    of_role = init_variables(job, role)
    if len(of_role["USER_CMD"].encode()) > MAX_VARIABLE_BYTES:
        del of_role["USER_CMD"]  # Init then renders the command itself.
    init = _values({name: value for name, value in of_role.items() if name not in _UNUSED})
    shared = _values({**framework_environment(job), "PAI_CURRENT_TASK_ROLE_NAME": role.name})
    address = _field("PAIRUN_HOST_IP", "status.podIP")
    # So that `pairun report NAME` needs only the logs.
    both = [address, *_values({LOG_JOURNAL_VARIABLE: "true"})]
    uid = app_uid(role, options)
    of_init = [*_values({} if uid is None else {"PAIRUN_APP_UID": str(uid)}), *both]
    of_app = [
        *both,
        *_values({GRACE_VARIABLE: f"{options.grace_s[role.name]:.3f}".rstrip("0").rstrip(".")}),
    ]
    if options.engine in ("job", "jobset"):
        # Their controllers count an evicted command that exits with 0 as a success.
        of_app += _values({ON_STOP_VARIABLE: INTERRUPTED})
    app = _values(app_variables(role))
    if options.engine == "framework":
        number = [_field(name, "metadata.annotations['FC_TASK_INDEX']") for name in _INDEXES]
        return [*init, *shared, *number[:1], *of_init], [*app, *shared, *number, *of_app]
    where = f"metadata.annotations['{INDEXED}']"
    own, *number = (
        _field(name, where) if index is None else {"name": name, "value": str(index)}
        for name in ("FC_TASK_INDEX", *_INDEXES)
    )
    identity = [
        _field("FC_FRAMEWORK_NAMESPACE", "metadata.namespace"),
        *_values({"FC_FRAMEWORK_NAME": options.name, "FC_TASKROLE_NAME": role.fc_name}),
        own,
        _field("FC_POD_UID", "metadata.uid"),
        _field("FC_POD_NAME", "metadata.name"),
        {"name": "FC_FRAMEWORK_ATTEMPT_ID", **attempt},
    ]
    barrier = {"PAIRUN_BARRIER": "pods", "PAIRUN_FRAMEWORK_FILE": f"{JOB_SECRETS_FOLDER}/{FILE}"}
    return (
        [*identity, *init, *shared, *of_init, *number[:1], *_values(barrier)],
        [*identity, *app, *shared, *of_app, *number],
    )


def _log_folder(options: ManifestOptions) -> str | None:
    """The node's folder for logs, or None."""
    on_node = options.engine == "framework" and not options.confined
    return options.log_host_path or (OPENPAI_LOGS if on_node else None)


def _shared_mounts(job: Job, role: Role, options: ManifestOptions) -> list[Object]:
    logs: Object = {"name": "logs"}
    if _log_folder(options):
        logs = {"name": "host-log", "subPath": f"{job.user}/{options.name}/{role.fc_name}"}
    mounts = [
        {"name": "pai-vol", "mountPath": "/usr/local/pai"},
        {**logs, "mountPath": "/usr/local/pai/logs"},
    ]
    if job.secrets is not None:
        mounts.append({"name": "job-secrets", "mountPath": "/usr/local/pai/secrets"})
    return mounts


def _volumes(job: Job, role: Role, options: ManifestOptions) -> list[Object]:
    size = f"{role.resources.shm_mb or DEFAULT_SHM_MB}Mi"
    logs: Object = {"name": "logs", "emptyDir": {}}
    if folder := _log_folder(options):
        logs = {"name": "host-log", "hostPath": {"path": folder, "type": "DirectoryOrCreate"}}
    exit_spec = {"name": "runtime-exit-spec-configuration", "optional": True}
    volumes: list[Object] = [
        {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": size}},
        {"name": "pai-vol", "emptyDir": {}},
        logs,
        {"name": "job-exit-spec", "configMap": exit_spec},
    ]
    if job.secrets is not None:
        secret = {"secretName": f"{options.name}-{CONFIG_SECRET}"}
        volumes.append({"name": "job-secrets", "secret": secret})
    key = {"secretName": f"{options.name}-{KEY_SECRET}"}
    volumes += [{"name": "rendezvous", "secret": key}, token_volume("api-token")]
    if options.engine != "framework":
        volumes.append({"name": "job", "configMap": {"name": f"{options.name}-{JOB_CONFIG}"}})
    return volumes


def _mount_image(options: ManifestOptions, spec: Object) -> None:
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


def _values(environment: Mapping[str, str]) -> list[Object]:
    """Variables, with their values protected from Kubernetes, which replaces ``$(NAME)`` and ``$$``.

    A missing value becomes empty: old API servers treat an empty text in a JobSet as none.
    """
    return [
        {"name": name, **({"value": re.sub(r"\$(?=[$(])", "$$", value)} if value else {})}
        for name, value in environment.items()
    ]


def _field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


# --- settings of Pods -----------------------------------------------------------------------------


def _apply_settings(template: Object, role: Role, options: ManifestOptions) -> None:
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


def job_fields(role: Role, options: ManifestOptions) -> Object:
    """The settings for the spec of a role's Job: the deadline counts from its first attempt."""
    deadline = options.pod(role.name).get(f"spec.{_DEADLINE}")
    return {} if deadline is None else {_DEADLINE: deadline}


def workload_fields(options: ManifestOptions) -> Object:
    """The settings for the spec of a Job or a JobSet itself."""
    suspend, ttl = options.whole.get("suspend"), options.whole.get("ttl_after_finished")
    fields: Object = {} if suspend is None else {"suspend": suspend}
    if ttl is not None:
        fields["ttlSecondsAfterFinished"] = math.ceil(parse_seconds(ttl) or 0)
    return fields
