"""Finds what would fail with pairun in a Pod, and reports it with its place before it runs."""

from __future__ import annotations

from typing import Any

from pairun.base.paths import DEFAULT_PAI_DIR
from pairun.errors import Place, Problems
from pairun.inject.podspec import INIT, VOLUME
from pairun.inject.templates import Owner, Template
from pairun.inject.tree import Mapping, Sequence, target

OVERWRITE = "ray.io/overwrite-container-cmd"
_TRAINER = "trainer.kubeflow.org"


def left_out(template: Template, container: Mapping) -> str | None:
    """Why PID 1 cannot start the command of a template's main container; None if it can."""
    owner = template.owner
    annotations = (owner.data.get("metadata") or {}).get("annotations") or {}
    if owner.known and owner.known.replaces and template.rule is not None:
        if str(annotations.get(OVERWRITE)).lower() == "true":
            return None
        return (
            f"{owner.known.replaces}; with the annotation {OVERWRITE}: 'true' on the "
            f"{owner.kind}, the command stays yours"
        )
    if _is_runtime(template) and _is_empty(container, "command"):
        return "the command comes from the TrainJob, which would replace PID 1 with it"
    return None


def holds_none(owner: Owner) -> str | None:
    """Why an object of this kind has no Pod template; None for other kinds."""
    if owner.kind == "TrainJob" and owner.root.get("spec") is not None:
        return "a TrainJob holds no Pod template: inject the runtime that runtimeRef names"
    if owner.kind in ("RayJob", "RayService") and str(owner.data.get("apiVersion")).startswith(
        "ray."
    ):
        return "it runs on a cluster that exists: inject that RayCluster"
    return None


def check_pod(template: Template, container: Mapping, problems: Problems) -> None:
    """Find everything in a Pod's spec that conflicts with pairun's additions."""
    spec, label = template.spec, template.label
    for key in ("volumes", "initContainers", "containers"):
        for name, place in _names(spec, key):
            if name in (VOLUME, INIT) or name.startswith(f"{VOLUME}-"):
                problems.error(
                    "PR825", f"{label} has its own '{name}' in {key}", place, "rename it"
                )
    mounts = container.get("volumeMounts")
    for mount in mounts.items if isinstance(mounts, Sequence) else ():
        _check_mount(label, target(mount), problems)
    if _true(spec, "shareProcessNamespace") or _true(spec, "hostPID"):
        problems.warning(
            "PR826",
            f"{label} shares a process namespace: pairun is not its process 1, and orphans of "
            "other containers are not reaped",
            spec.place,
        )
    lifecycle = container.get("lifecycle")
    if isinstance(lifecycle, Mapping) and lifecycle.get("preStop") is not None:
        problems.warning(
            "PR826",
            f"{label}: the preStop hook takes its time from the grace time, of which PID 1 "
            "expects all but 2 s",
            lifecycle.place,
        )
    if _is_runtime(template):
        problems.warning(
            "PR827",
            f"{label}: a TrainJob with trainer.command replaces this command, and PID 1 with it",
            container.place,
        )
    _check_exit_codes(template, problems)


def _check_mount(label: str, mount: Any, problems: Problems) -> None:
    path = mount.get("mountPath") if isinstance(mount, Mapping) else None
    where = str(path.plain()).rstrip("/") if path else ""
    if where == DEFAULT_PAI_DIR or where.startswith(f"{DEFAULT_PAI_DIR}/"):
        problems.error(
            "PR825",
            f"{label} mounts '{where}', where pairun's volume is",
            mount.place,
            "mount it elsewhere",
        )
    elif where and f"{DEFAULT_PAI_DIR}/".startswith(f"{where}/") and _true(mount, "readOnly"):
        problems.error(
            "PR825",
            f"{label} mounts '{where}' read-only, so {DEFAULT_PAI_DIR} cannot be made in it",
            mount.place,
            "mount a path below it",
        )


def _check_exit_codes(template: Template, problems: Problems) -> None:
    """Warn if a rule reads the exit codes of all containers, including init containers."""
    holder: Any = template.owner.data
    for step in template.path[:-1]:
        holder = holder[step]
    policy = holder.get("podFailurePolicy") if isinstance(holder, dict) else None
    rules = (policy.get("rules") or []) if isinstance(policy, dict) else []
    if any("onExitCodes" in r and not r["onExitCodes"].get("containerName") for r in rules):
        problems.warning(
            "PR826",
            f"{template.label}: podFailurePolicy reads the exit codes of every container, also "
            "pairun-init's: 1 for its errors, 250 to 254 for its checks",
            template.spec.place,
            "name the container in onExitCodes",
        )


def _is_runtime(template: Template) -> bool:
    return str(template.owner.data.get("apiVersion")).startswith(f"{_TRAINER}/")


def _is_empty(container: Mapping, key: str) -> bool:
    value = container.get(key)
    return value is None or not value.plain()


def _true(mapping: Mapping, key: str) -> bool:
    value = mapping.get(key)
    return value is not None and value.plain() is True


def _names(spec: Mapping, key: str) -> list[tuple[str, Place]]:
    items = spec.get(key)
    named = []
    for item in items.items if isinstance(items, Sequence) else ():
        mapping = target(item)
        name = mapping.get("name") if isinstance(mapping, Mapping) else None
        if name is not None:
            named.append((str(name.plain()), item.place))
    return named
