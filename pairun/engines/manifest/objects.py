"""All objects that a job needs in a cluster, as plain data for the API server."""

from __future__ import annotations

from pairun.base.sizes import quantity
from pairun.engines.manifest.choices import ManifestOptions, is_image
from pairun.engines.manifest.hived import check_hived
from pairun.engines.manifest.jobsecrets import check_size, config_map, secret_objects, storable
from pairun.engines.manifest.objectnames import LABEL_MAX, check_names, labels, metadata, short
from pairun.engines.manifest.podsecurity import check_profile
from pairun.engines.manifest.queues import mark_workload, pod_groups
from pairun.engines.manifest.retries import (
    counted,
    failure_rules,
    has_failure_policy,
    never_fails,
    place_of,
    restarts_alone,
    warn_of_exit_codes,
)
from pairun.engines.manifest.rolepod import job_fields, pod_template, workload_fields
from pairun.engines.manifest.storages import check_storages, unmountable
from pairun.engines.manifest.versions import check_version
from pairun.errors import Problems
from pairun.job.model import Job, Role
from pairun.job.templates import TAG
from pairun.kube.gang import RESTART_ATTEMPT
from pairun.kube.owners import Object
from pairun.kube.workloads import JOB, JOBSET, POD
from pairun.openpai.framework import make_framework
from pairun.playbook.podfragment import APP, PodSettings, found


def pod_workload(job: Job, options: ManifestOptions, problems: Problems) -> list[Object]:
    """Make the Pods of a job."""
    if job.retry_count:
        message = "no controller restarts bare Pods"
        _warn_of_retries(job, message, "--engine job or jobset does", problems)
    if sum(role.instances for role in job.roles) > 1:
        problems.warning(
            "PR784",
            "no controller ends bare Pods when another one has ended: completion has no effect",
            hint="--engine jobset ends them; `pairun delete` does when you say so",
        )
    made: list[Object] = []
    for role in job.roles:
        for index in range(role.instances):
            template = pod_template(job, role, options, index=index)
            end = f"-{index}"
            name = short(f"{options.name}-{role.fc_name}", LABEL_MAX - len(end)) + end
            meta = metadata(options, name)
            meta["labels"] = {**labels(options), **template["metadata"]["labels"]}
            meta["annotations"] = template["metadata"]["annotations"]
            made.append(POD.object(meta, template["spec"]))
    return made


def _warn_of_retries(job: Job, message: str, hint: str, problems: Problems) -> None:
    retries = job.node.get("jobRetryCount")
    message = f"{message}: jobRetryCount has no effect"
    problems.warning("PR784", message, retries.place if retries else None, hint)


def job_workload(job: Job, options: ManifestOptions, problems: Problems) -> list[Object]:
    """Make the Job of a job's only role."""
    for other in job.roles[1:]:
        problems.error(
            "PR780",
            f"a Job of Kubernetes has one role, and '{other.name}' is a second one",
            other.node.key,
            "use --engine jobset for several roles",
        )
    role = job.roles[0]
    alone = role.instances == 1
    _warn(job, role, problems)
    spec: Object = {**counted(job, role), **workload_fields(options), **job_fields(role, options)}
    if not alone:
        spec["completionMode"] = "Indexed"
    if "backoffLimit" in spec and restarts_alone(job, role):
        retries = 0 if job.gang else max(role.retry_count or 0, 0)
        # all attempts except the first
        spec["backoffLimit"] = (retries + 1) * (job.retry_count + 1) - 1
    if has_failure_policy(options):
        spec["podFailurePolicy"] = {
            "rules": failure_rules(job, role, spec, options.exit_codes, alone=True)
        }
    else:
        warn_of_exit_codes(problems)
    spec["template"] = pod_template(job, role, options, index=0 if alone else None)
    return [JOB.object(metadata(options, options.name), spec)]


def _warn(job: Job, role: Role, problems: Problems) -> None:
    """Warn of differences to FrameworkController."""
    if job.retry_count and (not restarts_alone(job, role) or role.instances > 1):
        message = "a Job of Kubernetes cannot restart all instances"
        _warn_of_retries(job, message, "--engine jobset does", problems)
    if never_fails(role):
        problems.warning(
            "PR784",
            "a Job of Kubernetes whose instances have all ended, some with a failure, is failed; "
            "FrameworkController counts it as a success",
            place_of(role),
        )


def jobset_workload(job: Job, options: ManifestOptions, problems: Problems) -> list[Object]:
    """Make the JobSet of a job, version v1alpha2. A retry creates all its Pods again.

    https://jobset.sigs.k8s.io/docs/reference/
    """
    names = {role.name: _name(role, options) for role in job.roles}
    for role in job.roles:
        if never_fails(role):
            problems.error(
                "PR780",
                f"a JobSet fails when instances of '{role.name}' fail: it cannot ignore "
                "all of their failures",
                place_of(role),
                f"set minFailedInstances to a number from 1 to {role.instances}",
            )
    failure: Object = {"maxRestarts": job.retry_count}
    if job.retry_count and has_failure_policy(options):
        reasons = ["PodFailurePolicy"]
        failure["rules"] = [
            {"name": "failed_for_good", "action": "FailJobSet", "onJobFailureReasons": reasons}
        ]
    spec: Object = {"failurePolicy": failure, **workload_fields(options)}
    # The first role that completes ends the job; a role with -1 waits for the others.
    ending = [names[r.name] for r in job.roles if 0 < r.min_succeeded <= r.instances]
    if ending and len(job.roles) > 1:
        spec["successPolicy"] = {"operator": "Any", "targetReplicatedJobs": ending}
    spec["replicatedJobs"] = [_replicated(job, r, names[r.name], options) for r in job.roles]
    return [JOBSET.object(metadata(options, options.name), spec)]


def _name(role: Role, options: ManifestOptions) -> str:
    """A role's name in the JobSet, short enough for the names of its Pods."""
    after = f"--0-{role.instances - 1}-abcde"
    return short(role.fc_name, LABEL_MAX - len(options.name) - len(after))


def _replicated(job: Job, role: Role, name: str, options: ManifestOptions) -> Object:
    spec = {**counted(job, role), **job_fields(role, options), "completionMode": "Indexed"}
    if has_failure_policy(options):
        spec["podFailurePolicy"] = {
            "rules": failure_rules(job, role, spec, options.exit_codes, alone=False)
        }
    path = f"metadata.labels['{RESTART_ATTEMPT}']"
    attempt = {"valueFrom": {"fieldRef": {"fieldPath": path}}}
    spec["template"] = pod_template(job, role, options, attempt=attempt)
    return {"name": name, "replicas": 1, "template": {"spec": spec}}


MAX_ANNOTATIONS = 256 * 1024
"""The API server's limit for annotations, keys and values together, in bytes."""


def framework_workload(job: Job, options: ManifestOptions, problems: Problems) -> list[Object]:
    """Make the Framework of a job as OpenPAI's REST server does, with this engine's Pods.

    FrameworkController itself decides by the exit code whether to retry
    (``fancyRetryPolicy``).
    """
    framework = make_framework(job, framework_name=options.name)
    meta = framework["metadata"]
    meta |= {**metadata(options, options.name), "labels": {**meta["labels"], **labels(options)}}
    if options.namespace is None:
        meta.pop("namespace", None)
    size = sum(len(k.encode()) + len(v.encode()) for k, v in meta["annotations"].items())
    check_size(size, MAX_ANNOTATIONS, "an annotation", problems)
    if options.whole.get("suspend"):
        framework["spec"]["executionType"] = "Create"
    for role, made in zip(job.roles, framework["spec"]["taskRoles"], strict=True):
        made["task"]["pod"] = pod_template(job, role, options)
    return [framework]


_WORKLOADS = {
    "framework": framework_workload,
    "job": job_workload,
    "jobset": jobset_workload,
    "pod": pod_workload,
}


def make_objects(
    job: Job, options: ManifestOptions, problems: Problems | None = None
) -> list[Object]:
    """Make the objects of a job, in the order of creation.

    Secrets and the ConfigMap come first, the workload last: one object, or one per Pod with the
    engine ``pod``. Nothing is random: the same arguments make the same objects.

    Args:
        job: a valid job.
        problems: also collects warnings, such as settings that the engine ignores.

    Raises:
        PairunError: all that the engine or this Kubernetes version does not support.
    """
    problems = Problems() if problems is None else problems
    check_names(job, options, problems)
    check_storages(job, problems)
    check_settings(job, options, problems)
    check_hived(job, options, problems)
    _check_images(job, problems)
    stored = storable(job, problems)
    workload = _WORKLOADS[options.engine](stored, options, problems)
    mark_workload(workload, job, options, problems)
    for role in job.roles:
        template = pod_template(stored, role, options)
        check_profile(template, role, options, problems)
        check_requests(template, role, options, problems)
    check_version(job, workload, options, problems)
    made = [*secret_objects(stored, options, problems), *pod_groups(job, options)]
    if options.engine != "framework":
        made.append(config_map(stored, options, problems))
    problems.raise_errors()
    return [*made, *workload]


def _check_images(job: Job, problems: Problems) -> None:
    for role in job.roles:
        uri = role.image.node.get("uri")
        if uri is not None and not TAG.search(uri.value) and not is_image(uri.value):
            problems.error(
                "PR782",
                f"'{uri.value}' is not an image",
                uri.place,
                "uri is an image as the cluster pulls it: registry.example/team/image:1",
            )


_UNSUPPORTED = {"framework": ("ttl_after_finished",), "pod": ("suspend", "ttl_after_finished")}
"""For each engine, the settings that it does not have."""


def check_settings(job: Job, options: ManifestOptions, problems: Problems) -> None:
    """Report settings that the engine does not have, and mount points that are taken.

    Args:
        problems: collects errors, each once.
    """
    for pod in options.pods.values():
        for key in _UNSUPPORTED.get(options.engine, ()):
            if pod.get(key):
                message = f"the engine {options.engine} has no '{key}'"
                hint = "--engine job or jobset has it"
                problems.error("PR780", message, pod.place(key), hint)
        if options.engine == "framework" and pod.get("pod_security") == "restricted":
            # Its types are those of Kubernetes before 1.19: https://github.com/microsoft/frameworkcontroller
            problems.error(
                "PR780",
                "FrameworkController drops the seccomp profile that 'pod_security: restricted' "
                "requires: no Pod of a Framework is created",
                pod.place("pod_security"),
                "--engine job, jobset or pod, or pod_security: baseline",
            )
        _check_mounts(job, pod, problems)


def _check_mounts(job: Job, pod: PodSettings, problems: Problems) -> None:
    taken = {storage.path.rstrip("/") for storage in job.storages}
    for _, mounts in found(pod.root, f"{APP}.volumeMounts"):
        for path, node in mounts.items():
            if reason := unmountable(path):
                message = f"a volume cannot be mounted at '{path}'"
                problems.error("PR783", message, node.place, reason)
            if path in taken:
                problems.error("PR783", f"two volumes at one mount point: '{path}'", node.place)


def check_requests(
    template: Object, role: Role, options: ManifestOptions, problems: Problems
) -> None:
    """Report container requests above their limit: every API server refuses these.

    Args:
        template: the role's finished Pod.
    """
    spec, pod = template["spec"], options.pod(role.name)
    for setting, container in (
        (f"{APP}.resources.requests", spec["containers"][0]),
        ("init_resources.requests", spec["initContainers"][0]),
    ):
        resources = container.get("resources") or {}
        limits = resources.get("limits") or {}
        for name, request in (resources.get("requests") or {}).items():
            limit = limits.get(name)
            if limit is not None and (quantity(request) or 0) > (quantity(limit) or 0):
                problems.error(
                    "PR783",
                    f"the role '{role.name}' requests {request} of {name}, and its limit is {limit}",
                    pod.place(setting),
                )
