"""The table of workload kinds, for the search for templates and gangs.

Sources: the types and controllers of Kubernetes 1.36, JobSet v1alpha2, training-operator 1.9,
mpi-operator v2beta1, Volcano v1alpha1, KubeRay v1, LeaderWorkerSet v1, Trainer v1alpha1.
"""

from __future__ import annotations

import attrs

INDEXED = "batch.kubernetes.io/job-completion-index"
POD_NAME = "metadata.name"
"""A source of an index: the number at the end of the Pod's name."""


@attrs.frozen(kw_only=True)
class RoleRule:
    """The Pods of one template of a kind.

    Attributes:
        template: the path of the Pod template in the object; ``*`` matches any key or item.
        name: the role's name; ``*`` is what the path's ``*`` matched, or the item's ``name``.
        count: paths, from the matched item, of the number of Pods; several are multiplied.
        default: the number if a path has no value.
        labels: labels of the role's Pods; ``*`` as in ``name``.
        index: labels or annotations whose values are a Pod's number; the earlier ones count in
            units of the later paths of ``count``. Empty: the Pods have no numbers.
        offset: is subtracted from the number.
    """

    template: str
    name: str
    count: tuple[str, ...] = ()
    default: int = 1
    labels: dict[str, str] = attrs.field(factory=dict)
    index: tuple[str, ...] = ()
    offset: int = 0


@attrs.frozen(kw_only=True)
class Kind:
    """One kind of workload.

    Attributes:
        name: the kind.
        groups: its API groups; empty means any.
        roles: its templates.
        same: labels whose values all Pods of a gang share.
        containers: the container name that its controller requires.
        first_is_main: its controller treats the first container as the main one.
        lone: why its Pods are no gang, or why the manifest does not give the gang's size.
        replaces: what its controller runs instead of the container's command.
    """

    name: str
    groups: tuple[str, ...] = ()
    roles: tuple[RoleRule, ...] = ()
    same: tuple[str, ...] = ()
    containers: str = ""
    first_is_main: bool = False
    lone: str = ""
    replaces: str = ""


_TRAINING = "training.kubeflow.org"
_JOBSET = "jobset.sigs.k8s.io"
_LWS = "leaderworkerset.sigs.k8s.io"


def _kubeflow(kind: str, field: str, container: str) -> Kind:
    rule = RoleRule(
        template=f"spec.{field}.*.template",
        name="*",
        count=("replicas",),
        labels={f"{_TRAINING}/replica-type": "*"},
        index=(f"{_TRAINING}/replica-index",),
    )
    return Kind(
        name=kind,
        groups=("kubeflow.org",),
        roles=(rule,),
        same=(f"{_TRAINING}/job-name",),
        containers=container,
    )


def _jobset(kind: str, group: str, root: str) -> Kind:
    rule = RoleRule(
        template=f"{root}replicatedJobs.*.template.spec.template",
        name="*",
        count=("replicas", "template.spec.parallelism"),
        labels={f"{_JOBSET}/replicatedjob-name": "*"},
        index=(f"{_JOBSET}/job-index", INDEXED),
    )
    return Kind(
        name=kind,
        groups=(group,),
        roles=(rule,),
        same=(f"{_JOBSET}/jobset-name", f"{_JOBSET}/restart-attempt"),
    )


def _ray(kind: str, root: str) -> Kind:
    return Kind(
        name=kind,
        groups=("ray.io",),
        roles=(
            RoleRule(
                template=f"{root}headGroupSpec.template",
                name="head",
                labels={"ray.io/node-type": "head"},
            ),
            RoleRule(
                template=f"{root}workerGroupSpecs.*.template",
                name="*",
                count=("replicas", "numOfHosts"),
                labels={"ray.io/node-type": "worker", "ray.io/group": "*"},
            ),
        ),
        same=("ray.io/cluster",),
        first_is_main=True,
        lone="KubeRay gives its Pods no numbers, and an init container of its own waits for the head",
        replaces="KubeRay starts Ray in place of the container's command",
    )


def _volcano(name: str, root: str) -> Kind:
    rule = RoleRule(
        template=f"{root}tasks.*.template",
        name="*",
        count=("replicas",),
        labels={"volcano.sh/task-spec": "*"},
        index=(POD_NAME,),
    )
    same = ("volcano.sh/job-name", "volcano.sh/job-version")
    return Kind(name=name, groups=("batch.volcano.sh", "flow.volcano.sh"), roles=(rule,), same=same)


def _job(name: str, root: str) -> Kind:
    rule = RoleRule(
        template=f"{root}template", name="worker", count=("parallelism",), index=(INDEXED,)
    )
    return Kind(
        name=name,
        groups=("batch",),
        roles=(rule,),
        same=("batch.kubernetes.io/job-name", "job-name"),
    )


_SCALED = "its number of Pods changes while it runs, and they have no numbers"

KINDS = (
    Kind(name="Pod", groups=("",), roles=(RoleRule(template="", name="worker"),),
         lone="a Pod is alone"),
    _job("Job", "spec."),
    _job("CronJob", "spec.jobTemplate.spec."),
    _jobset("JobSet", "jobset.x-k8s.io", "spec."),
    attrs.evolve(
        _jobset("TrainingRuntime", "trainer.kubeflow.org", "spec.template.spec."),
        lone="a TrainJob sets the number of Pods of its runtime",
    ),
    attrs.evolve(
        _jobset("ClusterTrainingRuntime", "trainer.kubeflow.org", "spec.template.spec."),
        lone="a TrainJob sets the number of Pods of its runtime",
    ),
    _kubeflow("PyTorchJob", "pytorchReplicaSpecs", "pytorch"),
    _kubeflow("TFJob", "tfReplicaSpecs", "tensorflow"),
    _kubeflow("XGBoostJob", "xgbReplicaSpecs", "xgboost"),
    _kubeflow("JAXJob", "jaxReplicaSpecs", "jax"),
    _kubeflow("PaddleJob", "paddleReplicaSpecs", "paddle"),
    Kind(
        name="MPIJob",
        groups=("kubeflow.org",),
        roles=(
            RoleRule(
                template="spec.mpiReplicaSpecs.Launcher.template",
                name="launcher",
                labels={f"{_TRAINING}/job-role": "launcher"},
            ),
            RoleRule(
                template="spec.mpiReplicaSpecs.Worker.template",
                name="worker",
                count=("replicas",),
                labels={f"{_TRAINING}/job-role": "worker"},
                index=(f"{_TRAINING}/replica-index",),
            ),
        ),
        same=(f"{_TRAINING}/job-name",),
        first_is_main=True,
    ),
    _volcano("Job", "spec."),
    _volcano("CronJob", "spec.jobTemplate.spec."),
    _volcano("JobTemplate", "spec."),
    _ray("RayCluster", "spec."),
    _ray("RayJob", "spec.rayClusterSpec."),
    _ray("RayCronJob", "spec.jobTemplate.rayClusterSpec."),
    _ray("RayService", "spec.rayClusterConfig."),
    Kind(
        name="LeaderWorkerSet",
        groups=("leaderworkerset.x-k8s.io",),
        roles=(
            RoleRule(
                template="spec.leaderWorkerTemplate.leaderTemplate",
                name="leader",
                labels={f"{_LWS}/worker-index": "0"},
            ),
            RoleRule(
                template="spec.leaderWorkerTemplate.workerTemplate",
                name="worker",
                index=(f"{_LWS}/worker-index",),
            ),
        ),
        same=(f"{_LWS}/name", f"{_LWS}/group-index", f"{_LWS}/template-revision-hash"),
    ),
    Kind(
        name="StatefulSet",
        groups=("apps",),
        roles=(
            RoleRule(
                template="spec.template", name="worker", count=("replicas",), index=(POD_NAME,)
            ),
        ),
    ),
    Kind(name="Deployment", groups=("apps",), lone=_SCALED),
    Kind(name="ReplicaSet", groups=("apps",), lone=_SCALED),
    Kind(name="DaemonSet", groups=("apps",), lone="it has a Pod for every node, however many there are"),
    Kind(
        name="Framework",
        groups=("frameworkcontroller.microsoft.com",),
        lone="FrameworkController's own barrier knows its gang: `pairun manifest --engine framework`",
    ),
)  # fmt: skip


def kind_of(api_version: str, name: str) -> Kind | None:
    """The table's entry of a kind, or None.

    Args:
        api_version: such as ``batch/v1``.
        name: of the kind.
    """
    group = api_version.rpartition("/")[0]
    return next((k for k in KINDS if k.name == name and group in k.groups), None)
