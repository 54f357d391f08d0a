"""Checks of Pod settings against the engine, and of the finished Pods."""

from __future__ import annotations

from pairun.base.sizes import quantity
from pairun.engines.manifest.choices import Object, Options
from pairun.engines.manifest.storages import unmountable
from pairun.errors import Problems
from pairun.job.model import Job, Role
from pairun.playbook.podfragment import APP, PodSettings, found

_UNSUPPORTED = {"framework": ("ttl_after_finished",), "pod": ("suspend", "ttl_after_finished")}
"""For each engine, the settings that it does not have."""


def check_settings(job: Job, options: Options, problems: Problems) -> None:
    """Report settings that the engine does not have, and mount points that are taken.

    Args:
        job: the job.
        options: the options for its objects.
        problems: collects errors, each once.
    """
    for pod in options.pods.values():
        for key in _UNSUPPORTED.get(options.engine, ()):
            if pod.get(key):
                message = f"the engine {options.engine} has no '{key}'"
                hint = "--engine job or jobset has it"
                problems.error("PR780", message, pod.place(key), hint)
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


def check_requests(template: Object, role: Role, options: Options, problems: Problems) -> None:
    """Report container requests above their limit: every API server refuses these.

    Args:
        template: the role's finished Pod.
        role: the role.
        options: the options for the job's objects.
        problems: collects errors.
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
