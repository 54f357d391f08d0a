"""All objects that a job needs in a cluster, as plain data for the API server."""

from __future__ import annotations

import re

from pairun.engines.manifest.choices import Object, Options
from pairun.engines.manifest.configmap import config_map
from pairun.engines.manifest.engine_framework import framework_workload
from pairun.engines.manifest.engine_job import job_workload
from pairun.engines.manifest.engine_jobset import jobset_workload
from pairun.engines.manifest.engine_pod import pod_workload
from pairun.engines.manifest.hived import check_hived
from pairun.engines.manifest.jobsecrets import secret_objects, storable
from pairun.engines.manifest.objectnames import check_names
from pairun.engines.manifest.podchecks import check_requests, check_settings
from pairun.engines.manifest.podsecurity import check_profile
from pairun.engines.manifest.queues import mark_workload, pod_groups
from pairun.engines.manifest.rolepod import pod_template
from pairun.engines.manifest.storages import check_storages
from pairun.engines.manifest.versions import check_version
from pairun.errors import Problems
from pairun.job.model import Job
from pairun.job.templates import TAG

_WORKLOADS = {
    "framework": framework_workload,
    "job": job_workload,
    "jobset": jobset_workload,
    "pod": pod_workload,
}


def make_objects(job: Job, options: Options, problems: Problems | None = None) -> list[Object]:
    """Make the objects of a job, in the order of creation.

    Secrets and the ConfigMap come first, the workload last: one object, or one per Pod with the
    engine ``pod``. Nothing is random: the same arguments make the same objects.

    Args:
        job: a valid job.
        options: the options for its objects.
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


def is_image(text: str) -> bool:
    """Whether a text is a valid image name."""
    return bool(text) and not re.search(r"\s", text)


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
