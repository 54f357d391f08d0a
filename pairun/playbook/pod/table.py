"""The table of a Pod's settings: key, schema, and target field in the cluster's objects.

Schema, layers, policy, review, command line, objects and the page docs/pod.md are generated from
this table. The names of fields are those of Kubernetes' API
(https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/), of JobSet's, of
Kueue's, of Volcano's and of FrameworkController's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pairun.base.durations import DURATION_PATTERN
from pairun.base.records import field, record

Schema = Mapping[str, Any]
Engine = Literal["framework", "job", "jobset", "pod"]
Kind = Literal["plain", "duration", "quantity", "quantities", "profile"]

QUANTITY = r"^[0-9]+(\.[0-9]+)?([eE][0-9]+|[EPTGMk]i?|Ki|m)?$"
"""A Kubernetes quantity, such as ``500m``, ``2`` or ``16Gi``."""

_TEXT: Schema = {"type": "string", "minLength": 1}
_BOOL: Schema = {"type": "boolean"}
_ID: Schema = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_QUANTITY: Schema = {
    "type": ["string", "integer", "number"],
    "pattern": QUANTITY,
    "examples": ["500m", "2", "2Gi"],
}
_QUANTITIES: Schema = {"type": "object", "additionalProperties": _QUANTITY}
_DURATION: Schema = {"type": "string", "pattern": f"^{DURATION_PATTERN}$"}
_CAPABILITIES: Schema = {
    "type": "array",
    "items": {
        "type": "string",
        "pattern": "^[A-Z_]+$",
        "examples": ["IPC_LOCK"],
    },
}
_PROFILE: Schema = {
    "type": "string",
    "pattern": "^(RuntimeDefault|Unconfined|localhost/.+)$",
    "examples": ["RuntimeDefault", "Unconfined", "localhost/profiles/a.json"],
}
_QUALIFIED_NAME: Schema = {
    "type": "string",
    "pattern": r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
    "examples": ["gpu", "example.com/gpu"],
}


def _mapping(*required: str, **properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_OBJECT: Schema = {"type": "object"}
_PATH: Schema = {
    "type": "string",
    "pattern": "^/",
    "examples": ["/data"],
}
_TOLERATION = _mapping(
    key=_QUALIFIED_NAME,
    operator={"enum": ["Equal", "Exists"]},
    value={"type": "string"},
    effect={"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
    tolerationSeconds={"type": "integer"},
)
_SPREAD = _mapping(
    "maxSkew",
    "topologyKey",
    "whenUnsatisfiable",
    maxSkew={"type": "integer", "minimum": 1},
    topologyKey=_TEXT,
    whenUnsatisfiable={"enum": ["DoNotSchedule", "ScheduleAnyway"]},
    labelSelector=_OBJECT,
    minDomains={"type": "integer", "minimum": 1},
    matchLabelKeys=_list(_TEXT),
    nodeAffinityPolicy={"enum": ["Honor", "Ignore"]},
    nodeTaintsPolicy={"enum": ["Honor", "Ignore"]},
)
_VOLUME = _mapping(
    "name",
    name={
        "type": "string",
        "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
        "examples": ["data"],
    },
    persistentVolumeClaim=_mapping("claimName", claimName=_TEXT, readOnly=_BOOL),
    configMap=_OBJECT,
    secret=_OBJECT,
    emptyDir=_OBJECT,
    hostPath=_mapping("path", path=_PATH, type=_TEXT),
)
_MOUNT = _mapping(
    "name",
    "mountPath",
    name=_TEXT,
    mountPath={**_PATH, "pattern": "^/[^:]*$"},
    subPath=_TEXT,
    readOnly=_BOOL,
)
_SKU = _mapping("gpu", "cpu", "memory", gpu=_ID, cpu=_ID, memory={**_QUANTITY, "type": "string"})


@record
class PodSetting:
    """One setting of a Pod.

    Attributes:
        key: its path in ``extras.pairun.pod``.
        meaning: one sentence for people.
        schema: JSON Schema of its value; None for a part that only a policy names.
        target: the target field: ``pod.`` is the Pod template, ``app.`` and ``init.`` are its
            containers, ``job.`` is the spec of each Job, ``workload.`` the spec of the whole.
            A target without one of these is a sentence, and the engine's code implements it.
        targets: engines with another target; None if the engine does not support the setting.
        example: a value for the documentation.
        per_role: a role may override it.
        closed: a policy's ``"*"``, and the name above it, do not include it.
        flag: the command-line option.
        kind: how a value is measured and written.
        element: for a list of mappings, the entry that a policy's limits compare.
    """

    key: str
    meaning: str
    schema: Schema | None
    target: str
    targets: Mapping[Engine, str | None] = field(factory=dict)
    example: Any = None
    per_role: bool = True
    closed: bool = False
    flag: str | None = None
    kind: Kind = "plain"
    element: str | None = None

    def target_of(self, engine: Engine) -> str | None:
        """The setting's target in an engine; None if the engine does not support it."""
        return self.targets.get(engine, self.target)


_ALL = (
    PodSetting(
        key="scheduler_name",
        meaning="the scheduler that places the Pods",
        schema=_TEXT,
        target="pod.spec.schedulerName",
        example="volcano",
        flag="--scheduler-name",
    ),
    PodSetting(
        key="queue",
        meaning="the queue that admits the job",
        schema=_TEXT,
        target="the label or annotation of queue_system",
        example="research",
        per_role=False,
        flag="--queue",
    ),
    PodSetting(
        key="queue_system",
        meaning="what manages queues in the cluster",
        schema={"enum": ["kueue", "volcano", "yunikorn"]},
        target="how queue is written",
        example="kueue",
        per_role=False,
        closed=True,
    ),
    PodSetting(
        key="labels",
        meaning="further labels of the Pods",
        schema=_TEXTS,
        target="pod.metadata.labels",
        example={"team": "vision"},
    ),
    PodSetting(
        key="annotations",
        meaning="further annotations of the Pods",
        schema=_TEXTS,
        target="pod.metadata.annotations",
        example={"sidecar.istio.io/inject": "false"},
    ),
    PodSetting(
        key="priority_class",
        meaning="the Pods' PriorityClass",
        schema=_TEXT,
        target="pod.spec.priorityClassName",
        example="high",
        flag="--priority-class",
    ),
    PodSetting(
        key="node_selector",
        meaning="labels that a node must have",
        schema=_TEXTS,
        target="pod.spec.nodeSelector",
        example={"gpu": "a100"},
        flag="--node-selector",
    ),
    PodSetting(
        key="affinity",
        meaning="rules of affinity, in Kubernetes' form",
        schema=_mapping(nodeAffinity=_OBJECT, podAffinity=_OBJECT, podAntiAffinity=_OBJECT),
        target="pod.spec.affinity",
        example={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "zone", "operator": "In", "values": ["a", "b"]}
                            ]
                        }
                    ]
                }
            }
        },
    ),
    PodSetting(
        key="tolerations",
        meaning="taints of nodes that the Pods tolerate, in Kubernetes' form",
        schema=_list(_TOLERATION),
        target="pod.spec.tolerations",
        example=[{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        flag="--toleration",
        element="key",
    ),
    PodSetting(
        key="topology_spread",
        meaning="how Pods spread over nodes or zones, in Kubernetes' form; without labelSelector "
        "the role's Pods are counted",
        schema=_list(_SPREAD),
        target="pod.spec.topologySpreadConstraints",
        example=[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
        element="topologyKey",
    ),
    PodSetting(
        key="runtime_class",
        meaning="the Pods' RuntimeClass",
        schema=_TEXT,
        target="pod.spec.runtimeClassName",
        example="nvidia",
        flag="--runtime-class",
    ),
    PodSetting(
        key="host_network",
        meaning="the Pods have their node's network; framework has it by default, where pod_security "
        "allows it",
        schema=_BOOL,
        target="pod.spec.hostNetwork",
        example=True,
        closed=True,
        flag="--host-network",
    ),
    PodSetting(
        key="host_ipc",
        meaning="the Pods have their node's IPC namespace",
        schema=_BOOL,
        target="pod.spec.hostIPC",
        example=True,
        closed=True,
    ),
    PodSetting(
        key="shm",
        meaning="the size of /dev/shm; overrides shmMB",
        schema=_QUANTITY,
        target="sizeLimit of the volume dshm",
        example="16Gi",
        flag="--shm",
        kind="quantity",
    ),
    PodSetting(
        key="security.run_as_user",
        meaning="the uid of the user's container; with pod_security restricted of init too",
        schema=_ID,
        target="app.securityContext.runAsUser",
        example=1000,
        flag="--app-uid",
    ),
    PodSetting(
        key="security.run_as_group",
        meaning="the gid of the user's container",
        schema=_ID,
        target="app.securityContext.runAsGroup",
        example=1000,
    ),
    PodSetting(
        key="security.fs_group",
        meaning="the group that owns the Pod's volumes",
        schema=_ID,
        target="pod.spec.securityContext.fsGroup",
        example=1000,
    ),
    PodSetting(
        key="security.run_as_non_root",
        meaning="kubelet refuses to start the user's container as root",
        schema=_BOOL,
        target="app.securityContext.runAsNonRoot",
        example=True,
    ),
    PodSetting(
        key="security.seccomp",
        meaning="the Pods' seccomp profile",
        schema=_PROFILE,
        target="pod.spec.securityContext.seccompProfile",
        example="RuntimeDefault",
        kind="profile",
    ),
    PodSetting(
        key="security.apparmor",
        meaning="the AppArmor profile of the user's container; framework has Unconfined by default",
        schema=_PROFILE,
        target="appArmorProfile from Kubernetes 1.30 on, an annotation before",
        example="RuntimeDefault",
    ),
    PodSetting(
        key="security.capabilities.add",
        meaning="capabilities that the user's container gets",
        schema=_CAPABILITIES,
        target="app.securityContext.capabilities.add",
        example=["IPC_LOCK"],
        closed=True,
    ),
    PodSetting(
        key="security.capabilities.drop",
        meaning="capabilities that the user's container loses",
        schema=_CAPABILITIES,
        target="app.securityContext.capabilities.drop",
        example=["NET_RAW"],
    ),
    PodSetting(
        key="security.privileged",
        meaning="the user's container is privileged",
        schema=_BOOL,
        target="app.securityContext.privileged",
        example=True,
        closed=True,
    ),
    PodSetting(
        key="security.allow_privilege_escalation",
        meaning="whether setuid programs work in the user's container",
        schema=_BOOL,
        target="app.securityContext.allowPrivilegeEscalation",
        example=False,
    ),
    PodSetting(
        key="security.read_only_root",
        meaning="the root file system of the user's container is read-only; mount an emptyDir at "
        "/tmp where the command needs one",
        schema=_BOOL,
        target="app.securityContext.readOnlyRootFilesystem",
        example=True,
    ),
    PodSetting(
        key="pod_security",
        meaning="the profile of the Pod Security Standards that the objects keep to",
        schema={"enum": ["privileged", "baseline", "restricted"]},
        target="the security of every container",
        example="restricted",
        per_role=False,
        flag="--pod-security",
    ),
    PodSetting(
        key="resources.requests",
        meaning="what the user's container requests; without an entry, its limit",
        schema=_QUANTITIES,
        target="app.resources.requests",
        example={"cpu": "500m", "memory": "64Mi"},
        kind="quantities",
    ),
    PodSetting(
        key="resources.limits",
        meaning="further limits of the user's container; an entry overrides resourcePerInstance's",
        schema=_QUANTITIES,
        target="app.resources.limits",
        example={"rdma/hca": 1, "ephemeral-storage": "20Gi"},
        kind="quantities",
    ),
    PodSetting(
        key="init_resources.requests",
        meaning="what the init container requests",
        schema=_QUANTITIES,
        target="init.resources.requests",
        example={"cpu": "100m", "memory": "128Mi"},
        kind="quantities",
        flag="--init-requests",
    ),
    PodSetting(
        key="init_resources.limits",
        meaning="the limits of the init container",
        schema=_QUANTITIES,
        target="init.resources.limits",
        example={"cpu": 1, "memory": "1Gi"},
        kind="quantities",
        flag="--init-limits",
    ),
    PodSetting(
        key="image_pull_policy",
        meaning="when kubelet pulls the images of both containers",
        schema={"enum": ["Always", "IfNotPresent", "Never"]},
        target="imagePullPolicy of both containers",
        example="IfNotPresent",
        flag="--image-pull-policy",
    ),
    PodSetting(
        key="volumes",
        meaning="further volumes, in Kubernetes' form: persistentVolumeClaim, configMap, secret, "
        "emptyDir, hostPath",
        schema=_list(_VOLUME),
        target="pod.spec.volumes",
        example=[{"name": "data", "persistentVolumeClaim": {"claimName": "imagenet"}}],
        element="name",
    ),
    PodSetting(
        key="volumes.hostPath",
        meaning="volumes may be folders of the node",
        schema=None,
        target="pod.spec.volumes",
        closed=True,
        element="path",
    ),
    PodSetting(
        key="mounts",
        meaning="where the user's container mounts these volumes, in Kubernetes' form",
        schema=_list(_MOUNT),
        target="app.volumeMounts",
        example=[{"name": "data", "mountPath": "/data", "readOnly": True}],
        element="mountPath",
    ),
    PodSetting(
        key="active_deadline",
        meaning="how long the job may run before Kubernetes stops it",
        schema=_DURATION,
        target="job.activeDeadlineSeconds",
        targets={
            "pod": "pod.spec.activeDeadlineSeconds",
            "framework": "pod.spec.activeDeadlineSeconds",
        },
        example="12h",
        kind="duration",
    ),
    PodSetting(
        key="ttl_after_finished",
        meaning="how long after its end the job is deleted",
        schema=_DURATION,
        target="workload.ttlSecondsAfterFinished",
        targets={"pod": None, "framework": None},
        example="24h",
        per_role=False,
        kind="duration",
    ),
    PodSetting(
        key="suspend",
        meaning="create the job suspended; it starts when it is resumed",
        schema=_BOOL,
        target="workload.suspend",
        targets={"pod": None, "framework": "executionType Create"},
        example=True,
        per_role=False,
        flag="--suspend",
    ),
    PodSetting(
        key="pod_group",
        meaning="the Pods are placed together or not at all; min_member is all of them by default",
        schema=_mapping(
            "system",
            system={"enum": ["volcano", "scheduler-plugins"]},
            min_member={"type": "integer", "minimum": 1},
        ),
        target="an object PodGroup, and each Pod's mark of it",
        example={"system": "volcano"},
        per_role=False,
    ),
    PodSetting(
        key="hived_skus",
        meaning="what one cell of HiveD has, by its SKU type",
        schema={"type": "object", "additionalProperties": _SKU},
        target="the annotations that extras.hivedScheduler becomes",
        example={"V100": {"gpu": 1, "cpu": 6, "memory": "56Gi"}},
        per_role=False,
        closed=True,
    ),
)

POD_SETTINGS: Mapping[str, PodSetting] = {each.key: each for each in _ALL}
