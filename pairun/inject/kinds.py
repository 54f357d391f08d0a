"""The table of workload kinds: where their Pod templates are, and what their controllers do.

Sources: the types and controllers of Kubernetes 1.36, JobSet v1alpha2, training-operator 1.9,
mpi-operator v2beta1, Volcano v1alpha1, KubeRay v1, LeaderWorkerSet v1, Trainer v1alpha1, KServe
0.15, Knative Serving 1.18, Argo Workflows 3.6, AIBrix 0.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import attrs

from pairun.kube.gang import GROUP_KEY, POD_NAME, RESTART_ATTEMPT
from pairun.kube.labels import INDEXED


class Need(NamedTuple):
    """What a barrier needs of a template's object.

    Attributes:
        path: of a field, from the matched item.
        value: its only good value.
        why: the reason without it.
        is_default: whether a missing field means this value.
    """

    path: str
    value: str
    why: str
    is_default: bool = False


@attrs.frozen(kw_only=True)
class RoleRule:
    """The Pods of one template of a kind.

    Attributes:
        template: the path of the Pod template in the object; ``*`` matches any key or item.
        name: the role's name; ``*`` is what the path's ``*`` matched, or the item's ``name``.
        count: paths of the number of Pods, from the matched item; several are multiplied.
        completions: the path of a Job's completions: no more Pods than these run.
        labels: labels of the role's Pods; ``*`` as in ``name``.
        index: labels or annotations whose values are a Pod's number; the earlier ones count in
            units of the later paths of ``count``. Empty: the Pods have no numbers.
        offset: the path of what is subtracted from the number; ``/`` starts at the object. What is
            not a number counts as 1 if it is there.
        is_rest: the offset is also subtracted from the count.
        need: what its barrier needs.
        commands: what the controller runs in a container without a command, by API version.
        replaced: what the controller runs instead of the container's command.
        no_command: why a template whose container has no command is left alone.
    """

    template: str
    name: str
    count: Sequence[str] = ()
    completions: str = ""
    labels: Mapping[str, str] = attrs.field(factory=dict)
    index: Sequence[str] = ()
    offset: str = ""
    is_rest: bool = False
    need: Need | None = None
    commands: Mapping[str, Sequence[str]] = attrs.field(factory=dict)
    replaced: str = ""
    no_command: str = ""


@attrs.frozen(kw_only=True)
class InjectedKind:
    """One kind of workload.

    Attributes:
        name: the kind.
        group: its API group.
        roles: its templates.
        same: labels whose values all Pods of a gang share.
        has_selector: the labels of ``spec.selector`` are on all its Pods, too.
        container: the container name that its controller requires.
        first_is_main: its controller treats the first container as the main one.
        lone: why its Pods are no gang, or why the manifest does not give the gang's size.
        is_single: it has one Pod.
        may_replace: when its controller replaces the command.
        empty: why an object may have no Pod template.
        refused: why pairun cannot work in it.
        is_optional: ``--kind-template`` lifts the refusal.
    """

    name: str
    group: str
    roles: Sequence[RoleRule] = ()
    same: Sequence[str] = ()
    has_selector: bool = False
    container: str = ""
    first_is_main: bool = False
    lone: str = ""
    is_single: bool = False
    may_replace: str = ""
    empty: str = ""
    refused: str = ""
    is_optional: bool = False


_TRAINING = "training.kubeflow.org"
_JOBSET = "jobset.sigs.k8s.io"
_LWS = "leaderworkerset.sigs.k8s.io"
OVERWRITE = "ray.io/overwrite-container-cmd"
"""The annotation with which KubeRay runs a container's own command."""
RAY_GROUPS = ("headGroupSpec", "workerGroupSpecs")
"""The fields that hold the templates of a Ray cluster, also in kinds that wrap one."""
_NO_NUMBERS = "its Pods have no numbers"
_ORDER = "its Pods start one by one, each when the one before it is ready"
_SCALED = "its number of Pods changes while it runs, and they have no numbers"
_EVERY_NODE = "it has a Pod for every node, however many there are"
_TRAINJOB = "a TrainJob with trainer.command replaces this command, and PID 1 with it"
_RUNTIME = "the command comes from the TrainJob, which would replace PID 1 with it"
_SUBMITTER = "KubeRay submits the job only if the submitter has no command"
_RAY = (
    "KubeRay starts Ray in place of the container's command; with the annotation "
    f"{OVERWRITE}: 'true' on the object, the command stays yours"
)
_RAY_LONE = "KubeRay gives its Pods no numbers, and adds an init container that waits for the head"
_ARGO = "Argo starts each step's command under its own program, and its steps are no Pod templates"
_KSERVE = (
    "it has no initContainers: the API server would drop pairun-init, and the container would not "
    "start"
)
_KNATIVE = (
    "Knative takes init containers only with the feature flags kubernetes.podspec-init-containers "
    "and kubernetes.podspec-fieldref; where they are on, name its template with --kind-template"
)
RAY_RULE = RoleRule(template="", name="worker", replaced=_RAY)
"""A template of a Ray cluster in a kind that is not in the table."""
_PODS = (RoleRule(template="spec.template", name="worker"),)


def _kubeflow(kind: str, field: str, container: str) -> InjectedKind:
    rule = RoleRule(
        template=f"spec.{field}.*.template", name="*", count=("replicas",),
        labels={f"{_TRAINING}/replica-type": "*"}, index=(f"{_TRAINING}/replica-index",),
    )  # fmt: skip
    same = (f"{_TRAINING}/job-name",)
    return InjectedKind(
        name=kind, group="kubeflow.org", roles=(rule,), same=same, container=container
    )


def _jobset(kind: str, group: str, root: str, no_command: str = "") -> InjectedKind:
    rule = RoleRule(
        template=f"{root}replicatedJobs.*.template.spec.template", name="*",
        count=("replicas", "template.spec.parallelism"), completions="template.spec.completions",
        labels={f"{_JOBSET}/replicatedjob-name": "*"}, index=(f"{_JOBSET}/job-index", INDEXED),
        need=Need("template.spec.completionMode", "Indexed", _NO_NUMBERS, is_default=True),
        no_command=no_command,
    )  # fmt: skip
    same = (f"{_JOBSET}/jobset-name", RESTART_ATTEMPT)
    return InjectedKind(name=kind, group=group, roles=(rule,), same=same)


def _runtime(kind: str) -> InjectedKind:
    made = _jobset(kind, "trainer.kubeflow.org", "spec.template.spec.", _RUNTIME)
    lone = "a TrainJob sets the number of Pods of its runtime"
    return attrs.evolve(made, lone=lone, may_replace=_TRAINJOB)


def _ray(kind: str, root: str, submitter: str = "", group: str = "ray.io") -> InjectedKind:
    roles = [
        RoleRule(
            template=f"{root}headGroupSpec.template", name="head", replaced=_RAY,
            labels={"ray.io/node-type": "head"},
        ),
        RoleRule(
            template=f"{root}workerGroupSpecs.*.template", name="*", replaced=_RAY,
            count=("replicas", "numOfHosts"),
            labels={"ray.io/node-type": "worker", "ray.io/group": "*"},
        ),
    ]  # fmt: skip
    if submitter:
        roles.append(RoleRule(template=submitter, name="submitter", no_command=_SUBMITTER))
    return InjectedKind(
        name=kind, group=group, roles=roles, same=("ray.io/cluster",), first_is_main=True,
        lone=_RAY_LONE, empty="it runs on a cluster that exists: inject that RayCluster",
    )  # fmt: skip


def _volcano(name: str, group: str, root: str) -> InjectedKind:
    rule = RoleRule(
        template=f"{root}tasks.*.template", name="*", count=("replicas",),
        labels={"volcano.sh/task-spec": "*"}, index=(POD_NAME,),
    )  # fmt: skip
    same = ("volcano.sh/job-name", "volcano.sh/job-version")
    return InjectedKind(name=name, group=f"{group}.volcano.sh", roles=(rule,), same=same)


def _job(name: str, root: str) -> InjectedKind:
    rule = RoleRule(
        template=f"{root}template", name="worker", count=("parallelism",), index=(INDEXED,),
        completions="completions", need=Need("completionMode", "Indexed", _NO_NUMBERS),
    )  # fmt: skip
    same = ("batch.kubernetes.io/job-name", "job-name")
    return InjectedKind(name=name, group="batch", roles=(rule,), same=same)


_MPI = (
    RoleRule(
        template="spec.mpiReplicaSpecs.Launcher.template", name="launcher",
        labels={f"{_TRAINING}/job-role": "launcher"},
    ),
    RoleRule(
        template="spec.mpiReplicaSpecs.Worker.template", name="worker", count=("replicas",),
        labels={f"{_TRAINING}/job-role": "worker"}, index=(f"{_TRAINING}/replica-index",),
        offset="/spec.runLauncherAsWorker",  # the launcher is then number 0
        commands={"v2beta1": ("/usr/sbin/sshd", "-De"), "v1": ("sleep", "365d")},
    ),
)  # fmt: skip
_GROUP = (
    RoleRule(
        template="spec.leaderWorkerTemplate.leaderTemplate", name="leader",
        labels={f"{_LWS}/worker-index": "0"},
    ),
    RoleRule(
        template="spec.leaderWorkerTemplate.workerTemplate", name="worker", count=("size",),
        index=(f"{_LWS}/worker-index",), offset="leaderTemplate", is_rest=True,
    ),
)  # fmt: skip
_GROUPS = tuple(
    RoleRule(template=f"spec.roles.*.spec.leaderWorkerTemplate.{part}Template", name="*")
    for part in ("leader", "worker")
)
_ORDERED = RoleRule(
    template="spec.template", name="worker", count=("replicas",), index=(POD_NAME,),
    offset="ordinals.start", need=Need("podManagementPolicy", "Parallel", _ORDER),
)  # fmt: skip

_KINDS = (
    InjectedKind(name="Pod", group="", roles=(RoleRule(template="", name="worker"),), is_single=True),
    InjectedKind(name="Notebook", group="kubeflow.org", roles=_PODS, is_single=True),
    _job("Job", "spec."),
    _job("CronJob", "spec.jobTemplate.spec."),
    InjectedKind(name="StatefulSet", group="apps", roles=(_ORDERED,), has_selector=True),
    InjectedKind(name="Deployment", group="apps", roles=_PODS, lone=_SCALED),
    InjectedKind(name="ReplicaSet", group="apps", roles=_PODS, lone=_SCALED),
    InjectedKind(name="ReplicationController", group="", roles=_PODS, lone=_SCALED),
    InjectedKind(name="DaemonSet", group="apps", roles=_PODS, lone=_EVERY_NODE),
    InjectedKind(name="Rollout", group="argoproj.io", roles=_PODS, lone=_SCALED),
    _jobset("JobSet", "jobset.x-k8s.io", "spec."),
    _runtime("TrainingRuntime"),
    _runtime("ClusterTrainingRuntime"),
    InjectedKind(name="TrainJob", group="trainer.kubeflow.org",
         refused="a TrainJob holds no Pod template: inject the runtime that runtimeRef names"),
    _kubeflow("PyTorchJob", "pytorchReplicaSpecs", "pytorch"),
    _kubeflow("TFJob", "tfReplicaSpecs", "tensorflow"),
    _kubeflow("XGBoostJob", "xgbReplicaSpecs", "xgboost"),
    _kubeflow("JAXJob", "jaxReplicaSpecs", "jax"),
    _kubeflow("PaddleJob", "paddleReplicaSpecs", "paddle"),
    InjectedKind(name="MPIJob", group="kubeflow.org", roles=_MPI, same=(f"{_TRAINING}/job-name",),
         first_is_main=True),
    _volcano("Job", "batch", "spec."),
    _volcano("CronJob", "batch", "spec.jobTemplate.spec."),
    _volcano("JobTemplate", "flow", "spec."),
    _ray("RayCluster", "spec."),
    _ray("RayJob", "spec.rayClusterSpec.", "spec.submitterPodTemplate"),
    _ray("RayCronJob", "spec.jobTemplate.rayClusterSpec.", "spec.jobTemplate.submitterPodTemplate"),
    _ray("RayService", "spec.rayClusterConfig."),
    _ray("RayClusterFleet", "spec.template.spec.", group="orchestration.aibrix.ai"),
    _ray("RayClusterReplicaSet", "spec.template.spec.", group="orchestration.aibrix.ai"),
    InjectedKind(name="LeaderWorkerSet", group="leaderworkerset.x-k8s.io", roles=_GROUP,
         same=(f"{_LWS}/name", GROUP_KEY, f"{_LWS}/template-revision-hash")),
    InjectedKind(name="DisaggregatedSet", group="disaggregatedset.x-k8s.io", roles=_GROUPS,
         lone="it makes LeaderWorkerSets, whose groups are the gangs"),
    InjectedKind(name="Framework", group="frameworkcontroller.microsoft.com",
         roles=(RoleRule(template="spec.taskRoles.*.task.pod", name="*"),),
         lone="FrameworkController's own barrier knows its gang: `pairun manifest --engine framework`"),
    InjectedKind(name="Workflow", group="argoproj.io", refused=_ARGO),
    InjectedKind(name="WorkflowTemplate", group="argoproj.io", refused=_ARGO),
    InjectedKind(name="ClusterWorkflowTemplate", group="argoproj.io", refused=_ARGO),
    InjectedKind(name="CronWorkflow", group="argoproj.io", refused=_ARGO),
    InjectedKind(name="ServingRuntime", group="serving.kserve.io", refused=_KSERVE),
    InjectedKind(name="ClusterServingRuntime", group="serving.kserve.io", refused=_KSERVE),
    InjectedKind(name="InferenceService", group="serving.kserve.io",
         refused="KServe makes its Pods from a ServingRuntime and spec.predictor, no Pod template"),
    InjectedKind(name="Service", group="serving.knative.dev", refused=_KNATIVE, is_optional=True),
    InjectedKind(name="Configuration", group="serving.knative.dev", refused=_KNATIVE, is_optional=True),
    InjectedKind(name="Revision", group="serving.knative.dev", refused=_KNATIVE, is_optional=True),
)  # fmt: skip


def kind_of(api_version: str, name: str) -> InjectedKind | None:
    """The table's entry of a kind, or None."""
    group = api_version.rpartition("/")[0]
    return next((k for k in _KINDS if k.name == name and k.group == group), None)
