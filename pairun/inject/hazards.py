"""Finds what would fail with pairun in a Pod, and reports it with its place before it runs."""

from __future__ import annotations

from pairun.base.paths import DEFAULT_PAI_DIR
from pairun.errors import Problems
from pairun.inject.kinds import OVERWRITE
from pairun.inject.podspec import INIT, VOLUME
from pairun.inject.templates import Template, mapping_at
from pairun.inject.tree import Mapping, mappings_in, name_of

_SYSTEM = "kubernetes.io/os"


def left_out(template: Template, container: Mapping) -> str | None:
    """Why pairun cannot work in a template; None if it can."""
    rule, pod = template.rule, template.spec.plain()
    systems = mapping_at(pod, ("os",)).get("name"), mapping_at(pod, ("nodeSelector",)).get(_SYSTEM)
    if "windows" in systems:
        return "pairun's program runs on Linux only, and the Pod on Windows"
    if rule and rule.replaced and not _keeps_command(template):
        return rule.replaced
    if rule and rule.no_command and not container.plain().get("command"):
        return rule.no_command
    return None


def _keeps_command(template: Template) -> bool:
    """Whether an annotation on an object around the template makes KubeRay keep the command."""
    holders = (template.path[:n] for n in range(len(template.path)))
    found = (mapping_at(template.owner.data, (*p, "metadata", "annotations")) for p in holders)
    return any(str(annotations.get(OVERWRITE)).lower() == "true" for annotations in found)


def check_pod(template: Template, container: Mapping, problems: Problems) -> None:
    """Find everything in a Pod's spec that conflicts with pairun's additions."""
    spec, label = template.spec, template.label
    for key in ("volumes", "initContainers", "containers"):
        for item in mappings_in(spec.get(key)):
            name = name_of(item)
            if name in (VOLUME, INIT) or name.startswith(f"{VOLUME}-"):
                problems.error(
                    "PR825", f"{label} has its own '{name}' in {key}", item.place, "rename it"
                )
    for mount in mappings_in(container.get("volumeMounts")):
        _check_mount(label, mount, problems)
    pod, app = spec.plain(), container.plain()
    if pod.get("shareProcessNamespace") is True or pod.get("hostPID") is True:
        what = "pairun is not its process 1, and orphans of other containers are not reaped"
        problems.warning("PR826", f"{label} shares a process namespace: {what}", spec.place)
    both = {**mapping_at(pod, ("securityContext",)), **mapping_at(app, ("securityContext",))}
    if both.get("runAsNonRoot") and both.get("runAsUser") is None:
        what = "pairun-init starts only if the platform sets a uid, as OpenShift does"
        hint = "set runAsUser in the Pod where the platform sets none"
        message = f"{label} sets runAsNonRoot without runAsUser: {what}"
        problems.warning("PR826", message, spec.place, hint)
    if mapping_at(app, ("lifecycle",)).get("preStop") is not None:
        what = "takes its time from the grace time, of which PID 1 expects all but 2 s"
        problems.warning("PR826", f"{label}: the preStop hook {what}", container.place)
    if template.owner.known and template.owner.known.may_replace:
        problems.warning("PR827", f"{label}: {template.owner.known.may_replace}", container.place)
    _check_exit_codes(template, problems)


def _check_mount(label: str, mount: Mapping, problems: Problems) -> None:
    path = mount.get("mountPath")
    where = str(path.plain()).rstrip("/") if path else ""
    if where == DEFAULT_PAI_DIR or where.startswith(f"{DEFAULT_PAI_DIR}/"):
        message, hint = f"'{where}', where pairun's volume is", "mount it elsewhere"
    elif (
        where
        and f"{DEFAULT_PAI_DIR}/".startswith(f"{where}/")
        and mount.plain().get("readOnly") is True
    ):
        message = f"'{where}' read-only, so {DEFAULT_PAI_DIR} cannot be made in it"
        hint = "mount a path below it"
    else:
        return
    problems.error("PR825", f"{label} mounts {message}", mount.place, hint)


def _check_exit_codes(template: Template, problems: Problems) -> None:
    """Warn if a rule reads the exit codes of all containers, including init containers."""
    holder = mapping_at(template.owner.data, template.path[:-1])
    policy = holder.get("podFailurePolicy")
    rules = (policy.get("rules") or []) if isinstance(policy, dict) else []
    if any("onExitCodes" in r and not r["onExitCodes"].get("containerName") for r in rules):
        message = (
            f"{template.label}: podFailurePolicy reads the exit codes of every container, also "
            "pairun-init's: 1 for its errors, 250 to 254 for its checks"
        )
        problems.warning("PR826", message, template.spec.place, "name the container in onExitCodes")
