"""Mounts the storages that a job names, as volumes of its Pods."""

from __future__ import annotations

import posixpath
import re

from pairun.errors import Problems
from pairun.job.model import Job
from pairun.kube.labels import OBJECT_NAME
from pairun.kube.owners import Object
from pairun.playbook.document.reading import Node

_OWN = (
    "/usr/local/pai",
    "/dev",
    "/proc",
    "/sys",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/resolv.conf",
    "/var/run/secrets/kubernetes.io",
)
"""Paths that the user's container already uses: Pod mounts, the kubelet's and the kernel's."""


def check_storages(job: Job, problems: Problems) -> None:
    """Report storages that no Pod can mount, and those that only OpenPAI's REST server knows."""
    at: dict[str, str] = {}
    for storage in job.storages:
        place, name, path = storage.node.place, storage.name, storage.path
        if not re.fullmatch(OBJECT_NAME, name):
            problems.error(
                "PR783",
                f"the storage '{name}' cannot be a PersistentVolumeClaim",
                place,
                "use lower-case letters, digits, '-' and '.'",
            )
        if reason := unmountable(path):
            message = f"the storage '{name}' cannot be mounted at '{path}'"
            problems.error("PR783", message, place, reason)
        path = path.rstrip("/")
        if path in at:
            problems.error(
                "PR783", f"two storages at one mount point: '{at[path]}' and '{name}'", place
            )
        at[path] = name
    # OpenPAI's REST server also mounts these.
    defaults = job.extras.get("storages") if job.extras else None
    if defaults is None:
        teams = (p.node for p in job.plugins if p.plugin == "teamwise_storage")
        defaults = next((n for n in teams if not _mounts_itself(n)), None)
    if defaults is not None and not job.storages:
        problems.warning(
            "PR784",
            "only OpenPAI knows the storages of the user and the team, so pairun mounts none",
            defaults.place,
            "list them in extras.storages by the names of their PersistentVolumeClaims",
        )


def unmountable(path: str) -> str | None:
    """Why a path of the user's container cannot be a mount point; None if it can."""
    if not path.startswith("/") or ":" in path:
        return "start mountPath with '/', and use no ':'"
    plain = posixpath.normpath(f"/{path.lstrip('/')}")
    for own in _OWN:
        if _is_within(plain, own) or _is_within(own, plain):
            return f"the container has its own {own}: choose another path, such as /mnt/data"
    return None if path in (plain, f"{plain}/") else f"write it as '{plain}'"


def _is_within(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")


def _mounts_itself(plugin: Node) -> bool:
    mount = plugin.at(("parameters", "mount"))
    return mount is not None and mount.value is True


def mount_storages(job: Job, spec: Object) -> None:
    """Mount a job's storages in the user's container: claims in the job's namespace.

    Args:
        spec: a Pod's spec; changed in place.
    """
    for number, storage in enumerate(job.storages):
        volume = f"storage-{number}"
        claim = {"claimName": storage.name}
        spec["volumes"].append({"name": volume, "persistentVolumeClaim": claim})
        mount = {"name": volume, "mountPath": storage.path}
        spec["containers"][0]["volumeMounts"].append(mount)
