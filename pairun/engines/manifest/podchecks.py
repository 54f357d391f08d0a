"""Checks of Pod settings against the engine, each other, and pairun's own settings."""

from __future__ import annotations

from pairun.engines.manifest.choices import Object, Options
from pairun.engines.manifest.objectnames import MANAGED
from pairun.engines.manifest.storages import unmountable
from pairun.errors import Problems
from pairun.job.model import Job, Role
from pairun.kube.ports import PORT_ANNOTATION
from pairun.playbook.document.reading import Node
from pairun.playbook.pod.bounds import quantity
from pairun.playbook.pod.layering import PodSettings
from pairun.playbook.pod.table import POD_SETTINGS

_OWN_KEYS = frozenset({*MANAGED, PORT_ANNOTATION})
_OWN_PREFIXES = ("pairun/", "FC_")
_OWN_VOLUMES = frozenset(
    {"dshm", "pai-vol", "host-log", "logs", "job-exit-spec", "job-secrets", "rendezvous",
     "api-token", "job"}
)  # fmt: skip
_OWN_VOLUME_PREFIX = "storage-"


def check_settings(job: Job, options: Options, problems: Problems) -> None:
    """Report settings that the engine does not support or that contradict each other.

    Args:
        job: the job.
        options: the options for its objects.
        problems: collects errors, each once.
    """
    for pod in options.pods.values():
        _check_engine(pod, options, problems)
        _check_keys(pod, problems)
        _check_volumes(job, pod, problems)


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
        ("resources.requests", spec["containers"][0]),
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


def _check_engine(pod: PodSettings, options: Options, problems: Problems) -> None:
    for key, node in pod.values.items():
        if POD_SETTINGS[key].target_of(options.engine) is None and node.value:
            problems.error(
                "PR780",
                f"the engine {options.engine} has no '{key}'",
                node.key or node.place,
                "--engine job or jobset has it",
            )


def _check_keys(pod: PodSettings, problems: Problems) -> None:
    for setting in ("labels", "annotations"):
        listed = pod.values.get(setting)
        for key, node in listed.items() if listed else ():
            if key in _OWN_KEYS or key.startswith(_OWN_PREFIXES):
                place = node.key or node.place
                problems.error("PR783", f"'{key}' in '{setting}' is reserved for pairun", place)


def _check_volumes(job: Job, pod: PodSettings, problems: Problems) -> None:
    volumes, mounts = (_elements(pod, key) for key in ("volumes", "mounts"))
    names: list[str] = []
    for node in volumes:
        name = str(_value(node, "name"))
        kinds = [key for key, _ in node.items() if key != "name"]
        if len(kinds) != 1:
            problems.error(
                "PR783",
                f"the volume '{name}' must have one kind",
                node.place,
                "persistentVolumeClaim, configMap, secret, emptyDir or hostPath",
            )
        if name in _OWN_VOLUMES or name.startswith(_OWN_VOLUME_PREFIX) or name in names:
            whose = "is given twice" if name in names else "is reserved for pairun"
            problems.error("PR783", f"the volume name '{name}' {whose}", node.place)
        names.append(name)
    paths = {storage.path.rstrip("/") for storage in job.storages}
    for node in mounts:
        name, path = str(_value(node, "name")), str(_value(node, "mountPath")).rstrip("/")
        if reason := unmountable(path):
            problems.error(
                "PR783", f"the volume '{name}' cannot be mounted at '{path}'", node.place, reason
            )
        if path in paths:
            problems.error("PR783", f"two volumes at one mount point: '{path}'", node.place)
        paths.add(path)


def _elements(pod: PodSettings, key: str) -> list[Node]:
    node = pod.values.get(key)
    return node.elements() if node is not None else []


def _value(node: Node, key: str) -> object:
    child = node.get(key)
    return child.value if child is not None else ""
